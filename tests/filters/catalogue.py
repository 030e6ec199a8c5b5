"""Every kind of filter by name. The common tests run over all of it; a new filter adds one line.

The JSON is what stored budgets hold: a line here may be added, never changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import residua as rz
from residua import mechanisms
from residua.adversary.natural_filter import AdditiveProfileFilter
from residua.filters.query import Query


@dataclass(frozen=True)
class Entry:
    """A filter, and what the common tests need to know of it."""

    make: Callable[[], rz.Filter]
    part: Query
    """A query that fits exactly `times` times."""
    times: int
    whole: Callable[[Any], Query] | None
    """Asks for exactly what `remaining` reports; None where that is no single query."""
    json: str | None
    """Canonical JSON of the configuration; None for filters that live in memory."""
    left: tuple[str, ...] = ()
    """For sums: what the JSON of a state has under `left` when one `part` is spent."""
    state: dict[str, Any] | None = None
    """For others: what it has beside `kind` and `of`; None where that is not fixed."""

    @property
    def fields(self) -> dict[str, Any] | None:
        """What the JSON of a state has beside `kind` and `of` when one `part` is spent."""
        return {"left": list(self.left)} if self.left else self.state


def spend_one(budget: rz.Pld, loss: rz.Pld) -> rz.Pld:
    """The rule of the update filter below: budgets are multiples of one response."""
    if loss == budget:
        return rz.identity()
    ((response, n),) = budget.terms.items()
    return (n - 1) * rz.pure_dp(response.eps)


def _same(remaining: rz.Pld) -> rz.Pld:
    return remaining


def _pld(remaining: Any) -> rz.Pld:
    return remaining.pld


def _rdp(remaining: Any) -> Query:
    return mechanisms.Rdp((remaining.alpha,), (remaining.rho,))


def _rdp_curve(remaining: Any) -> Query:
    return mechanisms.Rdp(remaining.alphas, remaining.rhos)


def _zcdp(remaining: Any) -> Query:
    return mechanisms.Zcdp(remaining.rho)


def _zcdp_and_delta(remaining: Any) -> Query:
    parts = mechanisms.Zcdp(remaining.rho), mechanisms.ApproximateDp(0.0, remaining.delta)
    return mechanisms.Composed(parts)


_TENTH = rz.pure_dp(0.1)
_THIRD = rz.gaussian(sigma=3.0)
_SIXTH = rz.gaussian(sigma=6.0)
_DELTA = rz.approximate_dp(0.0, 5e-5)
_BOTH = rz.approximate_dp(0.1, 1e-4)
_CURVE = {2: 0.25, 8: 1}
_LEFT = "14969752928303010817/45000000000000000000"
_OPEN = {"committed": False, "inner": None, "left": _LEFT, "to": None}
_NATURAL = (
    '{"budget":{"kind":"gaussian","sensitivity":1.0,"sigma":1.0},"catalogue":"gaussian",'
    '"kind":"natural"}'
)
_ONE_THIRD = {"loss": {"kind": "gaussian", "sensitivity": 1.0, "sigma": 3.0}, "rounds": 1}
_TENTHS = '{"mechanism":{"eps":0.1,"kind":"pure_dp"},"repeat":10}'
_UNION = (
    '{"eps":1.0,"filters":[{"eps":1.0,"kind":"pure"},{"kind":"gdp_residue","mu":0.2}],'
    '"kind":"union"}'
)
_PRICED = (
    '{"delta":1e-06,"eps":1.0,"kind":"menu","menu":[{"eps":0.25,"kind":"pure_dp"}],"prices":[100]}'
)

# fmt: off
CATALOGUE: dict[str, Entry] = {
    "pure": Entry(lambda: rz.PureFilter(1.0), _TENTH, 10, _same, '{"eps":1.0,"kind":"pure"}', ("0.9",)),  # noqa: E501
    "basic": Entry(lambda: rz.BasicFilter(1, 1e-3), _BOTH, 10, _pld, '{"delta":0.001,"eps":1.0,"kind":"basic"}', ("0.9", "0.0009")),  # noqa: E501
    "renyi": Entry(lambda: rz.RenyiFilter(8.0, 1.0), _SIXTH, 9, _rdp, '{"alpha":8.0,"kind":"renyi","rho":1.0}', ("8/9",)),  # noqa: E501
    "renyi_curve": Entry(lambda: rz.RenyiCurveFilter(_CURVE), _SIXTH, 9, _rdp_curve, '{"curve":[[2.0,0.25],[8.0,1.0]],"kind":"renyi_curve"}', ("2/9", "8/9")),  # noqa: E501
    "zcdp": Entry(lambda: rz.ZcdpFilter(0.5), _THIRD, 9, _zcdp, '{"kind":"zcdp","rho":0.5}', ("4/9",)),  # noqa: E501
    "approximate_zcdp": Entry(lambda: rz.ApproximateZcdpFilter(1.0, 1e-3, 5e-4), _DELTA, 10, _zcdp_and_delta, '{"conversion":"best","delta":0.001,"delta_conversion":0.0005,"eps":1.0,"kind":"approximate_zcdp"}', ("0.052273825519249214127", "0.00045")),  # noqa: E501
    "approximate_zcdp whitehouse": Entry(lambda: rz.ApproximateZcdpFilter(1.0, 1e-3, 5e-4, "whitehouse"), _DELTA, 10, _zcdp_and_delta, '{"conversion":"whitehouse","delta":0.001,"delta_conversion":0.0005,"eps":1.0,"kind":"approximate_zcdp"}', ("0.030890206673495484444367773601793292508028461958688", "0.00045")),  # noqa: E501
    "gdp": Entry(lambda: rz.GdpFilter(1.0), _THIRD, 9, _same, '{"kind":"gdp","mu":1.0}', ("8/9",)),
    "gdp_residue": Entry(lambda: rz.GdpResidueFilter(1.0), _THIRD, 9, _same, '{"kind":"gdp_residue","mu":1.0}', ("8/9",)),  # noqa: E501
    "approximate_gdp_residue": Entry(lambda: rz.ApproximateGdpResidueFilter(1.0, 1e-3), _THIRD, 9, _same, '{"delta":0.001,"kind":"approximate_gdp_residue","mu":1.0}', (), {"left": ["8/9", "0.001"]}),  # noqa: E501
    "target_residue": Entry(lambda: rz.TargetResidueFilter(1.0, 1e-6), _TENTH, 10, _same, '{"delta":1e-06,"eps":1.0,"kind":"target_residue","order":18.85,"reserve":0.0,"slack":0.0}'),  # noqa: E501
    "target_residue with reserve": Entry(lambda: rz.TargetResidueFilter(1.0, 1e-6, 0.12, 0.03), _TENTH, 10, _same, '{"delta":1e-06,"eps":1.0,"kind":"target_residue","order":18.85,"reserve":0.12,"slack":0.03}'),  # noqa: E501
    "renyi_commit": Entry(lambda: rz.RenyiCommitFilter(1.0, 1e-3, 8.0), _SIXTH, 3, _rdp, '{"alpha":8.0,"delta":0.001,"eps":1.0,"kind":"renyi_commit"}', (), _OPEN),  # noqa: E501
    "union": Entry(lambda: rz.UnionFilter([rz.PureFilter(1.0), rz.GdpResidueFilter(0.2)]), _TENTH, 10, _same, _UNION),  # noqa: E501
    "natural": Entry(lambda: rz.NaturalFilter(rz.gaussian(mu=1.0), None, "gaussian"), _THIRD, 9, None, _NATURAL, (), _ONE_THIRD),  # noqa: E501
    "additive_profile": Entry(lambda: AdditiveProfileFilter(1.0, 1e-3, 4), rz.pure_dp(0.001), 4, None, '{"delta":0.001,"eps":1.0,"kind":"additive_profile","rounds":4,"target_delta":0.01,"target_eps":4.2792}'),  # noqa: E501
    "plan": Entry(lambda: rz.PlanFilter(1.0, 1e-6, [_TENTH] * 10), _TENTH, 10, _same, f'{{"delta":1e-06,"eps":1.0,"kind":"plan","plan":[{_TENTHS}]}}', (), {"left": [9], "variance": "0"}),  # noqa: E501
    "menu": Entry(lambda: rz.MenuFilter(1.0, 1e-6, [rz.pure_dp(0.25)], [100]), rz.pure_dp(0.25), 4, _same, _PRICED),  # noqa: E501
    "auto": Entry(lambda: rz.AutoFilter(1.0, 1e-6), _TENTH, 10, _same, '{"delta":1e-06,"eps":1.0,"kind":"auto"}'),  # noqa: E501
    "update": Entry(lambda: rz.UpdateFilter(4 * rz.pure_dp(0.25), spend_one), rz.pure_dp(0.25), 4, _same, None),  # noqa: E501
}
# fmt: on
NAMES = list(CATALOGUE)
DESCRIBED = [name for name in NAMES if CATALOGUE[name].json]
ADDITIVE = [name for name in NAMES if CATALOGUE[name].left]

HOPELESS = rz.approximate_dp(0.0, 1.0)
"""Reveals everything: no filter admits it."""
