"""`residua attack`: how much adaptive analysts can learn under a filter."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from residua.cli import descriptions, options, output
from residua.cli.command import Result, command
from residua.errors import ArgumentError

if TYPE_CHECKING:
    from residua.adversary.attack import Attack
    from residua.adversary.strategy import Strategy
    from residua.adversary.strongest import NaturalAttack
    from residua.filters import Filter


app = typer.Typer(add_completion=False, rich_markup_mode=None)

DEFAULT_ACCURACY = 0.01
"""Of queries with continuous losses, in eps."""
SURVIVES = {"YES": "holds", "NO": "BROKEN", "UNDECIDED": "holds, but for rounding"}
OWN_GUARANTEE, BUDGET = "the filter's own guarantee", "the rule's budget"
"""What a row of the suite is about."""
TRIVIAL = "holds, but it is trivial (delta = 1)"
ANY_QUERIES = "natural, any queries"
"""The natural rule with the budget `(ANY_EPS, ANY_DELTA)`, in `SOME_ROUNDS`."""
ANY_EPS, ANY_DELTA = 1.0, 1e-6
SOME_ROUNDS, MOST_ROUNDS = 10, 20
"""Rounds against any queries: without a limit of the filter's own, and with a large one."""


@command(app, cls=options.QueryCommand)
def attack(
    query: list[str] | None = None,
    filter: str | None = None,
    rounds: int = 3,
    accuracy: float = DEFAULT_ACCURACY,
    kind: list[str] | None = None,
    draw: Path | None = None,
) -> Result:
    """Play the worst adversary against filters.

    For each filter and a small catalogue of queries, the exact worst case over all adaptive
    analysts is compared with the filter's guarantee. Without options, every kind of filter is
    attacked with every built-in catalogue. So are rules that are known to break their promise, to
    show that the attack finds them. Where the natural filter admits any queries, the strongest
    known adversary plays against it as well. Exit with status 1 if a filter breaks its promise, or
    if a known unsound rule is not caught.

    Operands:
      query (QUERY): The queries that may be asked, for --filter.

    Options:
      filter: Attack this filter, as JSON or in short, with these queries.
      rounds: Number of queries, for --filter.
      kind (KIND): Attack an example of this kind of filter only; may be repeated.

    Example:
      residua attack --kind pure
      residua attack --filter '{"kind": "gdp_residue", "mu": 1.0}' --rounds 2 --pure-dp eps=0.5 --gdp mu=0.5
    """  # noqa: E501
    if filter is None and query:
        raise ArgumentError("queries must come with --filter, got no filter")
    if filter is None and draw is not None:
        raise ArgumentError("--draw must come with --filter, got no filter")
    if filter is not None and not query:
        raise ArgumentError("--filter must come with queries to ask, got none")
    if filter is not None:
        return _attack_one(filter, query or [], rounds, accuracy, draw)
    return _attack_all(tuple(kind or ()))


def _attack_one(
    text: str, asked: Sequence[str], rounds: int, accuracy: float, draw: Path | None
) -> Result:
    from residua.adversary.attack import attack_filter

    filter = descriptions.parse_filter(text)
    losses = [descriptions.parse_mechanism(item).pld() for item in asked]
    with output.progress("states") as report:
        found = attack_filter(
            filter,
            losses,
            rounds,
            accuracy=accuracy,
            progress=lambda done, whole: report("", done, whole),
        )
    strongest = _with_any_queries(filter)
    shown = {
        "filter": filter.to_dict(),
        "rounds": rounds,
        **_plain(found),
        "any_queries": None if strongest is None else reached_plain(strongest),
    }
    code = 1 if found.verdict.value == "NO" else 0
    return with_strategy(shown, _fields(filter, found, strongest), found.strategy, draw, code)


def _with_any_queries(filter: "Filter") -> "NaturalAttack | None":
    """The strongest known adversary of a natural filter that is not free and admits any queries."""
    from residua.adversary.natural_filter import NaturalFilter
    from residua.adversary.strongest import natural_attack

    if not isinstance(filter, NaturalFilter) or filter.free or filter.catalogue is not None:
        return None
    rounds = min(filter.rounds or SOME_ROUNDS, MOST_ROUNDS)
    if rounds == 1:
        return None
    try:
        return natural_attack(filter.budget, rounds)
    except ArgumentError:  # The budget is too small for the queries that it would ask.
        return None


def reached_plain(found: "NaturalAttack") -> dict[str, Any]:
    """What an adversary of the natural filter reaches, as JSON data."""
    return {
        "rounds": found.rounds,
        "eps": found.eps,
        "delta_promised": found.promised,
        "delta_reached": found.delta,
        "ratio": output.number(found.ratio),
    }


def with_strategy(
    shown: dict[str, Any],
    rows: list[tuple[str, str]],
    strategy: "Strategy | None",
    draw: Path | None,
    code: int = 0,
) -> Result:
    """A result with the adversary that attains it, in words and drawn."""
    picture = output.draw_strategy(strategy, draw)

    def words() -> None:
        output.print_fields(rows)
        if strategy is not None:
            print(f"\n{strategy}")
        if draw is not None:
            print("\n" + (picture.trouble or f"the adversary, drawn: {picture.file}"))

    return Result({**shown, "picture": picture.file}, words, code)


def _verdict(verdict: str, trivial: bool) -> str:
    """The outcome of an attack in words; a trivial guarantee is named."""
    return TRIVIAL if trivial and verdict != "NO" else SURVIVES[verdict]


def _of_natural(row: Mapping[str, Any]) -> str:
    """A natural filter does not guarantee its budget; the rule that claims it is caught."""
    return " (its budget need not)" if row["filter"] == "natural" else ""


def _kept(found: "Attack") -> str:
    """Whether a natural filter kept its budget, although it does not promise to."""
    if found.verdict.value == "NO":
        assert found.witness is not None
        return f"is not what is promised, and is exceeded {_excess(found.violation, found.witness)}"
    return "is not what is promised; these queries do not exceed it"


def _excess(gap: float, x: float) -> str:
    return f"by {output.below(gap, 4)} at eps = {math.log(x):.6g}"


def _in_words(found: "NaturalAttack") -> str:
    """What the strongest known adversary reaches, in words."""
    times = f"{output.below(found.ratio, 3)} times the budget's delta"
    if found.delta <= found.promised:
        times = "which does not exceed the budget"
    reached = f"at least {output.below(found.delta, 3)} at eps = {found.eps:.6g}"
    return f"{reached}, {times}, in {found.rounds} rounds"


def _fields(
    filter: "Filter", found: "Attack", strongest: "NaturalAttack | None"
) -> list[tuple[str, str]]:
    from residua.adversary.attack import judge
    from residua.adversary.natural_filter import NaturalFilter

    rows = [
        ("filter", filter.to_json()),
        ("guarantee", repr(found.guarantee)),
        ("worst case", repr(found.worst.pld)),
        ("the guarantee", _verdict(found.verdict.value, found.guarantee.is_infinite)),
    ]
    if found.guarantee.is_infinite:
        rows.append(("", "every outcome may tell the data sets apart: nothing is promised"))
    if isinstance(filter, NaturalFilter) and not filter.free:
        rows.append(("the budget", _kept(judge(found.worst, filter.budget))))
    if found.witness is not None:
        rows.append(("exceeded", _excess(found.violation, found.witness)))
    if strongest is not None:
        rows.append(("any queries", _in_words(strongest)))
    return rows


def _attack_all(kinds: tuple[str, ...]) -> Result:
    from residua.adversary import attack
    from residua.adversary.unsound import UNSOUND
    from residua.filters import KINDS

    chosen = kinds or tuple(KINDS)
    survived: list[dict[str, Any]] = []
    whole = len(chosen) * len(attack.catalogues()) + (0 if kinds else len(UNSOUND) + 1)
    with output.progress("attacks") as report:
        for kind, name, found in attack.survivors(chosen):
            about = {"filter": kind, "catalogue": name, "about": OWN_GUARANTEE}
            survived.append({**about, **_plain(found)})
            report(f"{kind} against {name}", len(survived), whole)
        caught: list[dict[str, Any]] = []
        for rule in () if kinds else UNSOUND:
            about = {"rule": rule.name, "about": BUDGET}
            caught.append({**about, **_plain(rule.attack())})
            report(rule.name, len(survived) + len(caught), whole)
        if not kinds:
            caught.append({"rule": ANY_QUERIES, "about": BUDGET, **_any_queries()})
            report(ANY_QUERIES, whole, whole)
    broken = [row for row in survived if row["verdict"] == "NO"]
    missed = [row for row in caught if row["verdict"] != "NO"]
    kept = [
        (
            r["filter"],
            r["catalogue"],
            str(r["states"]),
            _verdict(r["verdict"], r["guarantee_is_trivial"]) + _of_natural(r),
        )
        for r in survived
    ]
    exceeded = [
        (
            r["rule"],
            output.below(r["gap"], 3),
            "" if r["x"] is None else f"{math.log(r['x']):.4g}",
            "yes" if r["verdict"] == "NO" else "NO",
        )
        for r in caught
    ]

    def words() -> None:
        output.print_table(
            f"filters: the worst case against {OWN_GUARANTEE}",
            ("filter", "catalogue", "states", "its own guarantee"),
            kept,
        )
        if exceeded:
            output.print_table(
                f"unsound rules: the worst case against {BUDGET}, which they do not keep",
                ("rule", "budget exceeded by", "at eps", "caught"),
                exceeded,
            )

    return Result(
        {"filters": survived, "unsound_rules": caught}, words, 1 if broken or missed else 0
    )


def _any_queries() -> dict[str, Any]:
    """As `_plain`, for the strongest known adversary of the natural rule."""
    from residua.adversary.strongest import natural_attack
    from residua.pld.constructors import approximate_dp

    budget = approximate_dp(ANY_EPS, ANY_DELTA)
    found = natural_attack(budget, SOME_ROUNDS)
    exceeded = found.delta > found.promised
    return {
        "verdict": "NO" if exceeded else "UNDECIDED",
        "gap": math.nextafter(found.delta - found.promised, 0.0) if exceeded else 0.0,
        "x": math.exp(found.eps) if exceeded else None,
        "states": None,
        "exact": False,
        "worst_case": None,
        "guarantee": repr(budget),
        "guarantee_is_trivial": False,
        "strategy": None,
        **reached_plain(found),
    }


def _plain(found: "Attack") -> dict[str, Any]:
    return {
        "verdict": found.verdict.value,
        "gap": found.violation,
        "x": None if found.witness is None else output.number(found.witness),
        "states": found.worst.states,
        "exact": found.worst.exact,
        "worst_case": repr(found.worst.pld),
        "guarantee": repr(found.guarantee),
        "guarantee_is_trivial": found.guarantee.is_infinite,
        "strategy": None if found.strategy is None else found.strategy.to_dict(),
    }
