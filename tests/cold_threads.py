"""Reads the whole catalogue from a number of threads at once, in a process that has just started.

`python cold_threads.py THREADS SEED` prints one line of JSON per thread: every number of every PLD,
mechanism and filter of the catalogues, written exactly, and how many operations were counted for it
(`residua.work_limit`). All threads begin at the same moment, each
goes through the catalogue in an order of its own, and nothing has been read before; half of the
values are shared by all threads, so that their lazily computed parts are raced for too.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from threading import Barrier, Thread
from typing import Any

import catalogue as plds
import residua as rz
from residua.bounds import Interval
from residua.work_limit import measure_work

Read = Callable[[], Any]


def exact(value: Any) -> Any:
    """Numbers as text that tells them apart bit for bit."""
    if isinstance(value, Interval):
        return [exact(value.lo), exact(value.hi)]
    if isinstance(value, float):
        return float(value).hex()
    return str(value)


def reads_of_pld(name: str, make: Callable[[], rz.Pld]) -> Iterator[tuple[str, Read]]:
    for method, at in (
        ("delta_bounds", (-0.5, 0.3, 1.0)),
        ("epsilon_bounds", (1e-6, 0.01)),
        ("tradeoff_bounds", (0.01, 0.5)),
        ("renyi_bounds", (1.5, 8.0)),
    ):
        for x in at:
            yield f"{name}.{method}({x})", lambda m=method, x=x: exact(getattr(make(), m)(x))
    yield f"gdp_residue(5, {name})", lambda: exact(rz.gdp_residue(5.0, make()))
    yield f"{name} <= G_1", lambda: exact(rz.compare(make(), rz.gaussian(mu=1.0)).verdict)


def decisions(entry: Any) -> Any:
    """Two queries of a filter: what is decided, charged and left, and what it guarantees."""
    budget = entry.make()
    told = []
    for query in (entry.part, rz.laplace(scale=30.0)):
        decision = budget.request(query)
        told += [decision.admitted, decision.reason, decision.remaining]
    return [exact(each) for each in (*told, budget.guarantee.delta(1.0))]


def work() -> dict[str, Read]:
    """Everything that is read, by name."""
    from filters import catalogue as filters
    from mechanisms.examples import EXAMPLES

    made: dict[str, Read] = {}
    for name, make in plds.CASES.items():
        shared = make().pld
        made |= reads_of_pld(name, lambda pld=shared: pld)
        made |= reads_of_pld(f"own {name}", lambda make=make: make().pld)
    for mechanism in EXAMPLES:
        text = mechanism.to_json()
        made[text] = lambda m=mechanism: [exact(pld.delta_bounds(0.7)) for pld in m.plds().values()]
    for name, entry in filters.CATALOGUE.items():
        made[f"{name} filter"] = lambda entry=entry: decisions(entry)
    for scale in (0.125, 0.5, 0.9, 2.0):
        made[f"residue of {scale}"] = lambda s=scale: exact(
            rz.gdp_residue(5.0, rz.laplace(scale=s))
        )
    return made


def main(count: int, seed: int) -> None:
    sys.setswitchinterval(1e-5)
    todo = work()
    found: list[dict[str, Any]] = [{} for _ in range(count)]
    start = Barrier(count)

    def run(place: int) -> None:
        order = list(todo)
        if place % 2:
            random.Random(1000 * seed + place).shuffle(order)
        start.wait()
        for name in order:
            try:
                found[place][name] = measure_work(todo[name])[:2]
            except Exception as error:
                found[place][name] = f"{type(error).__name__}: {error}"

    threads = [Thread(target=run, args=(place,)) for place in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in found:
        print(json.dumps(each, sort_keys=True))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
