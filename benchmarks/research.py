"""`python -m benchmarks.research [NAME ...]`: compute the numbers of docs/research.md.

Each name is a section of that page and prints what stands there. Without names, all of them: some
minutes, nearly all of them for `menus`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import residua as rz
from benchmarks.ceilings import ceilings
from benchmarks.natural import additive_profile, natural_guarantee
from benchmarks.pure_ceilings import pure_ceilings
from benchmarks.reachable import reachable_points
from residua.adversary import attack
from residua.adversary.unsound import UNSOUND
from residua.planning.workload import Run

BUDGETS = ((1.0, 1e-6), (3.0, 1e-6), (8.0, 1e-5))
Lines = Iterator[str]


@dataclass(frozen=True)
class _From(rz.Rule):
    """A rule from one of its states on."""

    rule: rz.Rule
    state: Hashable

    @property
    def start(self) -> Hashable:
        return self.state

    def _allowed(self, state: Any) -> Iterable[tuple[rz.Pld, Hashable]]:
        return self.rule.moves(state)[1:]


def residues() -> Lines:
    """A filter's own worst cases, from each state on, are budgets that it walks through."""
    rounds = 3
    yield f"worst cases of the rest of {rounds} rounds, as budgets"
    for kind in ("pure", "basic", "renyi", "gdp_residue", "approximate_zcdp"):
        rule = rz.as_rule(attack.example(kind), attack.catalogues()["pure"])
        layers: list[dict[Any, rz.Pld]] = []
        states: list[Any] = [rule.start]
        for left in range(rounds, 0, -1):
            layers.append({s: rz.worst_case(_From(rule, s), left).pld for s in states})
            states = list(dict.fromkeys(after for s in states for _, after in rule.moves(s)))
        checks = [
            loss + later[after] <= budget
            for now, later in pairwise(layers)
            for state, budget in now.items()
            for loss, after in rule.moves(state)
        ]
        first = layers[0][rule.start] <= attack.example(kind).guarantee
        yield (
            f"  {kind:17} {len(checks):3} moves, the residue condition"
            f" {'holds' if all(checks) else 'FAILS'} at each;"
            f" the first is {'below' if first else 'NOT below'} the guarantee"
        )


def plans() -> Lines:
    """What plan, menu and automatic filter admit beside the optimum that knows everything."""
    workload = rz.Workload(
        "weekly", (Run(rz.laplace(20.0)), Run(rz.gaussian(sigma=30.0))), repeat=True
    )
    yield "Laplace of scale 20 and Gaussian of sigma 30 in turn, admitted before the first refusal"
    kinds = ("basic", "approximate_zcdp", "gdp_residue", "auto", "plan")
    yield f"{'':14}" + "".join(f"{kind:>17}" for kind in ("optimum", *kinds))
    for eps, delta in BUDGETS[:2]:
        row = rz.compare_filters(eps, delta, workload, kinds).rows[0]
        counts = (row.optimum, *row.admitted)
        yield f"({eps:g}, {delta:g})    ".ljust(14) + "".join(f"{count:17}" for count in counts)


def menus() -> Lines:
    """Menus of the queries that random workloads ask for."""
    from residua.planning.comparison import SuiteComparison
    from residua.planning.suite import REPORT_SEED

    for eps, delta in BUDGETS:
        found = rz.compare_filters(eps, delta, "suite", ["menu"], seed=REPORT_SEED, count=15)
        assert isinstance(found, SuiteComparison)
        menu = found.summary("menu")
        yield (
            f"({eps:g}, {delta:g}): mean {menu.mean:.3f}, least {menu.minimum:.3f}"
            f" of {menu.workloads} workloads"
        )


def renyi_commit() -> Lines:
    """Gaussian queries until 40 % of the optimum, and then: commit, or go on as before."""
    query = rz.gaussian(sigma=20.0)
    yield "more Gaussians of sigma 20 after two fifths of the optimum"
    yield "               asked  plain Rényi  committed  optimum"
    for eps, delta in BUDGETS:
        optimum = rz.compare_filters(eps, delta, query, ["renyi_commit"]).rows[0].optimum
        asked = math.floor(0.4 * optimum)
        filter = rz.RenyiCommitFilter(eps, delta)
        for _ in range(asked):
            if not filter.request(query).admitted:
                raise AssertionError("two fifths fit")
        plain = rz.how_many(filter, query)
        if not filter.commit(filter.largest_gaussian()).admitted:
            raise AssertionError("what is offered is admitted")
        committed = rz.how_many(filter, query)
        yield f"({eps:g}, {delta:g})".ljust(14) + (
            f"{asked:6}{plain:13}{committed:11}{optimum - asked:9}"
        )


def _attacked(name: str) -> tuple[str, float]:
    (rule,) = (rule for rule in UNSOUND if rule.name == name)
    found = rule.attack()
    if found.witness is None or found.strategy is None:
        raise AssertionError(f"{name} is caught")
    promised = float(found.guarantee.hockey_stick(found.witness))
    reached = found.strategy.exact("below", rule.accuracy).hockey_stick(Fraction(found.witness))
    line = (
        f"promised {promised:.5g} at eps = {math.log(found.witness):.4g},"
        f" reached {float(reached):.5g}: {float(reached) / promised:.3f} times"
    )
    return line, float(reached) / promised


def any_order() -> Lines:
    """Rényi accounting at whichever order is best, under two conversions."""
    for name in (
        "Rényi at whichever order is best",
        "Rényi at whichever order is best, optimal conversion",
    ):
        yield f"{name}:"
        yield f"  {_attacked(name)[0]}"


def several_budgets() -> Lines:
    """Two budgets of which each alone is sound, kept open together."""
    yield _attacked("several budgets at once")[0]


def replay() -> Lines:
    """A reserved query that is run or cancelled after looking at later answers."""
    from residua.adversary.finite import finite_atoms
    from residua.pld.constructors import from_exact
    from residua.pld.lattice import exact_supremum

    for mu, held, ran, eps in (
        (1.0, rz.pure_dp(0.7), rz.pure_dp(0.5), 0.53),
        (2.0, rz.pure_dp(1.0), rz.gaussian(mu=1.5), 1.2),
    ):
        office = rz.GdpResidueFilter(mu)
        both = office.decide(office.decide(office.initial(), held).state, ran).remaining
        cancelled = office.decide(office.initial(), ran).remaining
        # The two futures, rounded down; what was run is composed as it is.
        futures = [finite_atoms(after, "below", 2e-4) for after in (held + both, cancelled)]
        reached = (ran + from_exact(exact_supremum(*futures))).delta_bounds(eps).lo
        promised = office.guarantee.delta(eps)
        yield (
            f"G_{mu:g}, {held} reserved, {ran} seen: delta({eps:g}) reaches"
            f" {float(reached):.4f}, promised {promised:.4f}"
        )


def _upper(cost: rz.Interval | None) -> float:
    """The upper end of a cost that fits."""
    assert cost is not None
    return float(cost.hi)


def slack() -> Lines:
    """What a subsampled Gaussian costs a Gaussian budget, without slack and with it."""
    from residua.pld.residue.slack import slack_cost

    step = rz.subsampled_gaussian(sigma=1.0, sampling_rate=0.01)
    whole = rz.gaussian(sigma=1.0)
    yield "one step of sigma 1 at rate 0.01 on G_2: cost in mu²"
    yield f"  without slack        {_upper(rz.gdp_residue_cost(4.0, step)):.6f}"
    yield f"  the same unsampled   {_upper(rz.gdp_residue_cost(4.0, whole)):.6f}"
    for eta in (1e-9, 1e-7, 1e-5):
        yield f"  slack {eta:.0e}          {_upper(slack_cost(4.0, step, eta)):.6f}"


def contour() -> Lines:
    """Proven intervals for delta of long compositions, deep in the tail."""
    steps = 1000 * rz.subsampled_gaussian(sigma=1.0, sampling_rate=0.01)
    mixed = 400 * rz.gaussian(sigma=30.0) + 100 * rz.laplace(scale=25.0) + 200 * rz.pure_dp(0.02)
    for name, loss in (("1,000 steps at rate 0.01, sigma 1", steps), ("700 of three kinds", mixed)):
        yield f"{name}:"
        for delta in (1e-6, 1e-12, 1e-20, 1e-30):
            eps = float(f"{float(loss.epsilon(delta)):.6g}")
            found = loss.delta_bounds(eps)
            width = "1e-6" if found.hi <= (1.0 + 1e-6) * found.lo else "1e-4"
            if found.hi > (1.0 + 1e-4) * found.lo:
                raise AssertionError(f"{found} is wider than said")
            yield (
                f"  delta({eps:g}) is between {float(found.lo):.6e} and {float(found.hi):.6e},"
                f" relative width below {width}"
            )


SECTIONS: dict[str, Callable[[], Lines]] = {
    "residues": residues,
    "menus": menus,
    "plans": plans,
    "renyi-commit": renyi_commit,
    "any-order": any_order,
    "several-budgets": several_budgets,
    "replay": replay,
    "ceilings": ceilings,
    "pure-ceilings": pure_ceilings,
    "reachable-points": reachable_points,
    "slack": slack,
    "contour": contour,
    "natural-guarantee": natural_guarantee,
    "additive-profile": additive_profile,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.research", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help=", ".join(SECTIONS))
    chosen = parser.parse_args().names or list(SECTIONS)
    for name in chosen:
        if name not in SECTIONS:
            parser.error(f"NAME must be one of {', '.join(SECTIONS)}, got {name!r}")
    for name in chosen:
        if len(chosen) > 1:
            print(f"== {name}")
        for line in SECTIONS[name]():
            print(line, flush=True)


if __name__ == "__main__":
    main()
