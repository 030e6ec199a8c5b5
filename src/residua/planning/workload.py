"""Workloads: sequences of queries that are asked in order.

As JSON,

    {"name": "weekly report", "repeat": true,
     "queries": [{"kind": "laplace", "scale": 10.0},
                 {"mechanism": {"kind": "gaussian", "sigma": 20.0}, "repeat": 3}]}

`repeat` inside `queries` says how often a query is asked in a row (1 without it); beside them it
says whether the whole list starts again when it ends (false without it). `expected`, of the same
form as `queries` and always repeating, is what the analyst planned for in advance; without
it that is the workload itself.

**The non-adaptive optimum**, which filters are compared with: the most queries `t` of a workload
with `L1 ⊕ … ⊕ Lt ⪯ R_{eps,delta}`, that is with `h(e^eps) <= delta` for the composition and for its
reversal. No filter that keeps the promise admits more of that sequence. Longer prefixes lose more,
so `t` is found by bisection.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError
from residua.filters.counting import MOST
from residua.filters.query import Query, as_mechanism, as_query, loss_of
from residua.mechanisms.codec import from_dict as mechanism_from_dict
from residua.mechanisms.codec import parsed_json
from residua.pld.constructors import identity
from residua.pld.pld import Pld, composition


class Run(NamedTuple):
    """A query, and how often it is asked in a row."""

    query: Query
    times: int = 1


@dataclass(frozen=True)
class Workload:
    """Queries in the order they are asked; with `repeat`, again and again."""

    name: str
    queries: tuple[Run, ...]
    repeat: bool = False
    expected: tuple[Run, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ArgumentTypeError(f"name must be text, got {checks.shown(self.name)}")
        object.__setattr__(self, "queries", _runs("queries", self.queries))
        object.__setattr__(self, "expected", _runs("expected", self.expected))
        checks.require(bool(self.queries), "queries", "non-empty", self.queries)
        checks.flag("repeat", self.repeat)

    @cached_property
    def round(self) -> int:
        """How many queries there are before the list ends or starts again."""
        return sum(run.times for run in self.queries)

    @property
    def longest(self) -> int | None:
        """How many queries there are at all; None without end."""
        return None if self.repeat else self.round

    def runs(self, most: int) -> Iterator[Run]:
        """The first `most` queries."""
        for query, count in itertools.cycle(self.queries) if self.repeat else self.queries:
            if most <= 0:
                return
            yield Run(query, min(count, most))
            most -= count

    @property
    def planned(self) -> Workload:
        """The expected queries, as a workload."""
        return Workload(self.name, self.expected, True) if self.expected else self

    @property
    def kinds(self) -> tuple[Query, ...]:
        """The different queries, those expected first."""
        return tuple(dict.fromkeys(run.query for run in (*self.expected, *self.queries)))

    def composed(self, count: int, relation: str | None = None) -> Pld:
        """The composition of the first `count` queries."""
        rounds, rest = divmod(count, self.round) if self.repeat else (0, count)
        whole = rounds * self._total(self.round, relation) if rounds else identity()
        return whole + self._total(rest, relation)

    def _total(self, count: int, relation: str | None) -> Pld:
        counts: dict[Query, int] = {}
        for query, n in Workload(self.name, self.queries).runs(count):
            counts[query] = counts.get(query, 0) + n
        return composition(n * loss_of(query, relation) for query, n in counts.items())

    # -- descriptions -------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The workload as plain data."""
        out: dict[str, Any] = {
            "name": self.name,
            "queries": [_plain(run) for run in self.queries],
            "repeat": self.repeat,
        }
        if self.expected:
            out["expected"] = [_plain(run) for run in self.expected]
        return out

    @classmethod
    def from_json(cls, given: Any, name: str = "workload") -> Workload:
        """Read a workload (text or parsed); `name` is for one that has none."""
        data = parsed_json("workload", given)
        checks.instance("workload", data, Mapping, "a JSON object")
        for field in data:
            if field not in ("name", "queries", "repeat", "expected"):
                takes = "name, queries, repeat, expected"
                raise ArgumentError(f"workload takes {takes}, got the unknown field {field!r}")
        if "queries" not in data:
            raise ArgumentError(f"workload needs the field 'queries', got only {sorted(data)!r}")
        return cls(
            data.get("name", name),
            _parsed("queries", data["queries"]),
            data.get("repeat", False),
            _parsed("expected", data.get("expected", [])),
        )

    @classmethod
    def from_file(cls, path: str | Path) -> Workload:
        """Read a workload from a file; the file's name stands in for a missing name."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ArgumentError(f"workload must be a readable file, got {path} ({error})") from None
        try:
            return cls.from_json(text, Path(path).stem)
        except (ArgumentError, ArgumentTypeError) as error:
            raise type(error)(f"{path}: {error}") from None


def _runs(name: str, given: Any) -> tuple[Run, ...]:
    checks.instance(name, given, list | tuple, "a list of queries")
    return tuple(_run(f"{name}[{place}]", one) for place, one in enumerate(given))


def _run(name: str, given: Any) -> Run:
    query, count = given if isinstance(given, tuple) and len(given) == 2 else (given, 1)
    count = checks.count(f"repeat of {name}", count)
    checks.require(1 <= count <= 1 << 53, f"repeat of {name}", "between 1 and 2**53", count)
    return Run(as_query(query, name), count)


def _plain(run: Run) -> dict[str, Any]:
    described = as_mechanism(run.query).to_dict()
    return described if run.times == 1 else {"mechanism": described, "repeat": run.times}


def _parsed(name: str, given: Any) -> tuple[Any, ...]:
    checks.instance(name, given, list | tuple, "a list of queries")
    return tuple(_parsed_run(f"{name}[{place}]", one) for place, one in enumerate(given))


def _parsed_run(name: str, given: Any) -> Any:
    if not isinstance(given, Mapping) or "kind" in given or "mechanism" not in given:
        return mechanism_from_dict(given)
    for field in given:
        if field not in ("mechanism", "repeat"):
            raise ArgumentError(f"{name} takes mechanism, repeat, got the unknown field {field!r}")
    return mechanism_from_dict(given["mechanism"]), given.get("repeat", 1)


def optimum(
    eps: float, delta: float, workload: Workload, *, most: int = MOST, relation: str | None = None
) -> int:
    """The most queries of the workload within `(eps, delta)`, looking at all of them at once.

    Never less than the truth: the next one is proven to be too many, unless the workload ends
    or `most` is reached.
    """
    end = most if workload.longest is None else min(most, workload.longest)

    return largest_count(
        lambda count: not exceeds(workload.composed(count, relation), eps, delta), end
    )


def largest_count(fits: Callable[[int], bool], end: int, share: int = 0) -> int:
    """The largest count up to `end` that fits, by bisection; with `share`, to within 1/share."""
    low, high = 0, 1
    while high < end and fits(high):
        low, high = high, 2 * high
    if high >= end:
        if fits(end):
            return end
        high = end
    while high - low > max(1, low // share if share else 1):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def exceeds(loss: Pld, eps: float, delta: float) -> bool:
    """Whether a loss is proven not to be within `(eps, delta)`."""
    return any(float(one.delta_bounds(eps).lo) > delta for one in _directions(loss))


def is_within(loss: Pld, eps: float, delta: float) -> bool:
    """Whether a loss is proven to be within `(eps, delta)`, in both directions."""
    return all(float(one.delta(eps)) <= delta for one in _directions(loss))


def _directions(loss: Pld) -> tuple[Pld, ...]:
    return (loss,) if loss.is_symmetric else (loss, loss.reverse())
