"""What the package looked like and what it computed at a known moment.

`snapshots/api.json` holds every public name with its parameters, `snapshots/intervals.json` the
proven interval of every number of the catalogues. A new interval must overlap the recorded one:
both contain the exact value, so disjoint intervals prove one of them wrong. It may not be much
wider either. Equality is not asked for.

`python tests/test_snapshots.py` records a change that is meant: the public names, intervals
that are new, and those that the tests reject. `--all` records every interval again.
"""

from __future__ import annotations

import inspect
import json
import math
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import catalogue as plds
import residua as rz
from residua.bounds import Interval
from residua.pld.residue.gdp_parameter import gdp_parameter_bounds
from residua.work_limit import remembered_property

SNAPSHOTS = Path(__file__).resolve().parent / "snapshots"
PACKAGES = ("adversary", "figures", "filters", "individual", "mechanisms", "planning")
"""`interop` is left out: its names need the libraries that they are for."""

WIDEST, RELATIVE, ABSOLUTE = 10.0, 1e-12, 1e-15
"""How wide a new interval may be: so many times the recorded width, plus, for intervals that are
next to points, a share of the number and a tiny amount."""

Property = property | cached_property | remembered_property  # type: ignore[type-arg]
Read = Callable[[], Interval]


def parameters(function: Any) -> str:
    """The parameters of a callable: names, kinds and defaults, without annotations."""
    empty = inspect.Parameter.empty
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "?"
    plain = [each.replace(annotation=empty) for each in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def is_method(cls: type, name: str) -> bool:
    """Whether a member is called, whatever kind of descriptor makes it."""
    return callable(member := getattr(cls, name)) and not inspect.isclass(member)


def described(value: Any) -> Any:
    """A public name as JSON: a class with its members, a function with its parameters.

    Nothing here depends on the version of Python: enums are the names of their members, and
    members that a class has from the standard library are left out.
    """
    if inspect.isclass(value) and issubclass(value, Enum):
        return {"enum": list(value.__members__)}
    if inspect.isclass(value):
        ours = [base for base in value.__mro__ if base.__module__.split(".")[0] == "residua"]
        own = {name: member for base in reversed(ours) for name, member in vars(base).items()}
        members = {
            name: "property" if isinstance(member, Property) else parameters(getattr(value, name))
            for name, member in sorted(own.items())
            if not name.startswith("_") and (isinstance(member, Property) or is_method(value, name))
        }
        made = "exception" if issubclass(value, BaseException) else parameters(value)
        return {"class": made, "members": members}
    return parameters(value) if callable(value) else type(value).__name__


def public_api() -> dict[str, Any]:
    """Every public name of the top level and of the public packages."""
    found = {f"rz.{name}": described(getattr(rz, name)) for name in rz.__all__}  # type: ignore[attr-defined]
    for package in PACKAGES:
        module = import_module(f"residua.{package}")
        for name in getattr(module, "__all__", ()):
            found[f"rz.{package}.{name}"] = described(getattr(module, name))
    return found


def reads() -> Iterator[tuple[str, Read]]:
    """The numbers of the catalogues by name."""
    from mechanisms.examples import EXAMPLES

    for name in plds.NAMES:
        pld = plds.case(name).pld
        for method, points in (
            ("delta_bounds", (-0.5, 0.3, 1.0, 4.0)),
            ("epsilon_bounds", (1e-6, 0.01)),
            ("tradeoff_bounds", (0.01, 0.5)),
            ("renyi_bounds", (1.5, 8.0)),
        ):
            for x in points:
                yield f"{name}.{method}({x})", partial(getattr(pld, method), x)
        yield f"gdp_parameter({name})", partial(gdp_parameter_bounds, pld)
    for mechanism in EXAMPLES:
        for direction, pld in mechanism.plds().items():
            name = f"{mechanism.to_json()} {direction}"
            yield name, partial(pld.delta_bounds, 0.7)
    for mu in (0.5, 2.0, 5.0):
        for name, pld in {
            "pure_dp": rz.pure_dp(0.4),
            "laplace": rz.laplace(scale=3.0),
            "gaussian": rz.gaussian(sigma=4.0),
            "3 laplace + gaussian": 3 * rz.laplace(scale=9.0) + rz.gaussian(sigma=5.0),
        }.items():
            yield (
                f"residue of {name} on {mu}",
                lambda mu=mu, pld=pld: rz.gdp_residue_cost(mu * mu, pld),
            )


def why_not(now: Interval, before: Interval) -> str | None:
    """What is wrong with an interval beside the recorded one; None if nothing is."""
    if math.isnan(now.lo) or math.isnan(now.hi):
        return f"{now} is not an interval"
    if now.lo > before.hi or before.lo > now.hi:
        return f"{now} does not meet {before}"
    widest = WIDEST * (before.hi - before.lo) + RELATIVE * abs(before.hi) + ABSOLUTE
    if before.hi < math.inf and now.hi - now.lo > widest:
        return f"{now} is much wider than {before}"
    return None


def snapshot(name: str) -> Any:
    return json.loads((SNAPSHOTS / f"{name}.json").read_text())


@pytest.mark.needs("duckdb", "matplotlib", "typer")
def test_the_public_api_is_as_recorded() -> None:
    recorded, now = snapshot("api"), public_api()
    assert sorted(now) == sorted(recorded)
    for name, value in recorded.items():
        assert now[name] == value, name


def test_every_interval_overlaps_the_recorded_one() -> None:
    recorded = snapshot("intervals")
    names = []
    for name, read in reads():
        names.append(name)
        now, before = read(), Interval(*map(float, recorded[name]))
        assert why_not(now, before) is None, f"{name}: {why_not(now, before)}"
    assert names == list(recorded)


def test_disjoint_and_wide_intervals_are_found() -> None:
    before = Interval(1.0, 1.001)
    assert why_not(Interval(1.0005, 1.002), before) is None
    assert "does not meet" in str(why_not(Interval(1.002, 1.003), before))
    assert "wider" in str(why_not(Interval(0.95, 1.05), before))
    assert "wider" in str(why_not(Interval(1.0, math.inf), before))
    assert why_not(Interval(0.5, math.inf), Interval(1.0, math.inf)) is None
    assert why_not(Interval(0.0, 1e-16), Interval(0.0, 0.0)) is None


if __name__ == "__main__":
    SNAPSHOTS.mkdir(exist_ok=True)
    recorded = {} if "--all" in sys.argv else snapshot("intervals")
    intervals = {}
    for name, read in reads():
        now, before = read(), recorded.get(name)
        if before is None or why_not(now, Interval(*map(float, before))) is not None:
            before = [repr(now.lo), repr(now.hi)]
        intervals[name] = before
    for file, made in (("api", public_api()), ("intervals", intervals)):
        (SNAPSHOTS / f"{file}.json").write_text(json.dumps(made, indent=1) + "\n")
