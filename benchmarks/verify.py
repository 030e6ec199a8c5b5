"""How many steps a second the verifier proves: `python benchmarks/verify.py`.

Steps are made by the filters, one query of a kind after the other on a falling budget, so that no
two are equal; each is proven once, in one process. Seconds are of processor time, which other load
on the machine does not change; those of the clock stand beside them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np

import residua as rz
from residua import mechanisms as m
from residua.verify.descriptions.mechanisms import StepQuery
from residua.verify.proofs.filters import prove_step

Query = m.Mechanism


def atoms(n: int, seed: int) -> Query:
    """A random query of `n` atoms, as a tradeoff curve."""
    rng = np.random.default_rng(seed)
    p = rng.random(n) + 1e-3
    q = p * np.exp(0.3 * rng.standard_normal(n))
    p, q = p / p.sum(), q / q.sum()
    order = np.argsort(p / q)
    alphas = np.concatenate([[0.0], np.cumsum(p[order])])
    betas = np.concatenate([[1.0], 1.0 - np.cumsum(q[order])])
    alphas[-1], betas[-1] = 1.0, 0.0
    return m.FromTradeoff(tuple(alphas.tolist()), tuple(np.clip(betas, 0.0, 1.0).tolist()))


def many(n: int) -> Query:
    """As many different small queries at once."""
    return m.Composed(tuple(m.Laplace(1e4 + i) for i in range(n)))


def steps(filter: rz.Filter, query: Query, count: int) -> list[tuple[object, object, StepQuery]]:
    """Admitted steps, as records hold them."""
    made = []
    state = filter.initial()
    for _ in range(count):
        decision = filter.decide(state, query)
        if not decision.admitted:
            break
        before, after = (json.loads(filter.state_to_json(s)) for s in (state, decision.state))
        tables = filter.tables(state), filter.tables(decision.state)
        made.append((before, after, StepQuery(query.to_dict(), "add-remove", *tables)))
        state = decision.state
    return made


def measure(name: str, filter: rz.Filter, query: Query, count: int) -> dict[str, object]:
    config = json.loads(filter.to_json())
    made = steps(filter, query, count)
    verdicts: dict[str, int] = {}
    start, clock = time.process_time(), time.perf_counter()
    for before, after, asked in made:
        proof = prove_step(config, before, after, asked)
        verdicts[proof.verdict] = verdicts.get(proof.verdict, 0) + 1
    taken, waited = time.process_time() - start, time.perf_counter() - clock
    speeds = {"a second": len(made) / taken, "by the clock": len(made) / waited}
    return {"case": name, "steps": len(made), **speeds, **verdicts}


CASES: list[tuple[str, Callable[[], rz.Filter], Callable[[], Query], int]] = [
    ("gdp_residue, R_0.1", lambda: rz.GdpResidueFilter(2.0), lambda: m.PureDp(0.1), 100),
    ("gdp_residue, Laplace 10", lambda: rz.GdpResidueFilter(2.0), lambda: m.Laplace(10.0), 100),
    (
        "gdp_residue, Gaussian 20",
        lambda: rz.GdpResidueFilter(2.0),
        lambda: m.Gaussian(sigma=20.0),
        100,
    ),
    ("gdp_residue, 5 atoms", lambda: rz.GdpResidueFilter(4.0), lambda: atoms(5, 1), 40),
    ("gdp_residue, 10 atoms", lambda: rz.GdpResidueFilter(4.0), lambda: atoms(10, 2), 40),
    ("gdp_residue, 100 atoms", lambda: rz.GdpResidueFilter(4.0), lambda: atoms(100, 3), 5),
    ("gdp_residue, 1000 atoms", lambda: rz.GdpResidueFilter(4.0), lambda: atoms(1000, 4), 2),
    ("gdp_residue, 50 Laplace", lambda: rz.GdpResidueFilter(1.0), lambda: many(50), 3),
    ("renyi, Laplace 10", lambda: rz.RenyiFilter(20.0, 4.0), lambda: m.Laplace(10.0), 100),
    ("zcdp, Laplace 10", lambda: rz.ZcdpFilter(4.0), lambda: m.Laplace(10.0), 20),
    ("auto, R_0.05", lambda: rz.AutoFilter(1.0, 1e-6), lambda: m.PureDp(0.05), 20),
    ("auto, Gaussian 20", lambda: rz.AutoFilter(1.0, 1e-6), lambda: m.Gaussian(sigma=20.0), 20),
]


def main() -> None:
    print(f"{'case':<28}{'steps':>6}{'proven':>8}{'a second':>10}{'by the clock':>14}")
    for name, filter, query, count in CASES:
        row = measure(name, filter(), query(), count)
        figures = f"{row['a second']:>10.3g}{row['by the clock']:>14.3g}"
        print(f"{name:<28}{row['steps']:>6}{row.get('proven', 0):>8}{figures}", flush=True)


if __name__ == "__main__":
    main()
