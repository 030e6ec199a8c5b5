"""`residua attack` and `residua natural`: how much adaptive analysts can learn under a filter."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from residua.cli import descriptions, options, output
from residua.errors import ArgumentError

if TYPE_CHECKING:
    from residua.adversary.attack import Attack
    from residua.filters import Filter


app = typer.Typer(add_completion=False, rich_markup_mode=None)
group = typer.Typer(add_completion=False, rich_markup_mode=None)
app.add_typer(group, name="natural")

DEFAULT_ACCURACY = 0.01
"""Of queries with continuous losses, in eps."""
SURVIVES = {"YES": "holds", "NO": "BROKEN", "UNDECIDED": "holds, but for rounding"}
OWN_GUARANTEE, BUDGET = "the filter's own guarantee", "the rule's budget"
"""What a row of the suite is about."""
TRIVIAL = "holds, but it is trivial (delta = 1)"


@app.command(cls=options.QueryCommand)
def attack(
    query: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUERY", help="The queries that may be asked, for --filter."),
    ] = None,
    filter: Annotated[
        str | None,
        typer.Option(help="Attack this filter, as JSON or in short, with these queries."),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Number of queries, for --filter.")] = 3,
    accuracy: options.Accuracy = DEFAULT_ACCURACY,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Attack an example of this kind of filter only; may be repeated."),
    ] = None,
    draw: output.Draw = None,
    as_json: output.AsJson = False,
) -> None:
    """Play the worst adversary against filters.

    For each filter and a small catalogue of queries, the exact worst case over all adaptive
    analysts is compared with the filter's guarantee. Without options, every kind of filter is
    attacked with every built-in catalogue. So are rules that are known to break their promise, to
    show that the attack finds them. Exit code 1 if a filter breaks its promise, or such a rule is
    not caught.

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
        good = _attack_one(filter, query or [], rounds, accuracy, draw, as_json)
    else:
        good = _attack_all(tuple(kind or ()), as_json)
    if not good:
        raise typer.Exit(1)


def _attack_one(
    text: str,
    asked: Sequence[str],
    rounds: int,
    accuracy: float,
    draw: Path | None,
    as_json: bool,
) -> bool:
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
    drawn, trouble = output.draw_strategy(found.strategy, draw)
    if as_json:
        shown = None if drawn is None else str(drawn)
        result = {**_as_json(found), "picture": shown}
        output.print_json({"filter": filter.to_dict(), "rounds": rounds, **result})
    else:
        output.print_fields(_fields(filter, found))
        if found.strategy is not None:
            print(f"\n{found.strategy}")
        output.print_picture(draw, drawn, trouble)
    return found.verdict.value != "NO"


def _verdict(verdict: str, trivial: bool) -> str:
    """The outcome of an attack in words; a trivial guarantee is named."""
    return TRIVIAL if trivial and verdict != "NO" else SURVIVES[verdict]


def _of_natural(row: Mapping[str, Any]) -> str:
    """A natural filter does not guarantee its budget; the rule that claims it is caught."""
    return " (its budget need not)" if row["filter"] == "natural" else ""


def _kept(found: "Attack") -> str:
    """Whether a natural filter kept its budget, although it does not promise to."""
    if found.verdict.value == "NO":
        assert found.x is not None
        where = f"by {output.below(found.gap, 4)} at eps = {math.log(found.x):.6g}"
        return f"is not what is promised, and is exceeded {where}"
    return "is not what is promised; these queries do not exceed it"


def _fields(filter: "Filter", found: "Attack") -> list[tuple[str, str]]:
    from residua.adversary.attack import judge
    from residua.adversary.natural.filter import NaturalFilter

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
    if found.x is not None:
        rows.append(
            ("exceeded", f"by {output.below(found.gap, 4)} at eps = {math.log(found.x):.6g}")
        )
    return rows


def _attack_all(kinds: tuple[str, ...], as_json: bool) -> bool:
    from residua.adversary import attack
    from residua.adversary.unsound.demonstrations import UNSOUND
    from residua.filters import KINDS

    chosen = kinds or tuple(KINDS)
    survived: list[dict[str, Any]] = []
    whole = len(chosen) * len(attack.catalogues()) + (0 if kinds else len(UNSOUND))
    with output.progress("attacks") as report:
        for kind, name, found in attack.survivors(chosen):
            about = {"filter": kind, "catalogue": name, "about": OWN_GUARANTEE}
            survived.append({**about, **_as_json(found)})
            report(f"{kind} against {name}", len(survived), whole)
        caught: list[dict[str, Any]] = []
        for rule in () if kinds else UNSOUND:
            about = {"rule": rule.name, "about": BUDGET}
            caught.append({**about, **_as_json(rule.attack())})
            report(rule.name, len(survived) + len(caught), whole)
    broken = [row for row in survived if row["verdict"] == "NO"]
    missed = [row for row in caught if row["verdict"] != "NO"]
    if as_json:
        output.print_json({"filters": survived, "unsound_rules": caught})
        return not broken and not missed
    output.print_table(
        f"filters: the worst case against {OWN_GUARANTEE}",
        ("filter", "catalogue", "states", "its own guarantee"),
        [
            (
                r["filter"],
                r["catalogue"],
                str(r["states"]),
                _verdict(r["verdict"], r["guarantee_is_trivial"]) + _of_natural(r),
            )
            for r in survived
        ],
    )
    if caught:
        output.print_table(
            f"unsound rules: the worst case against {BUDGET}, which they do not keep",
            ("rule", "budget exceeded by", "at eps", "caught"),
            [
                (
                    r["rule"],
                    output.below(r["gap"], 3),
                    "" if r["x"] is None else f"{math.log(r['x']):.4g}",
                    "yes" if r["verdict"] == "NO" else "NO",
                )
                for r in caught
            ],
        )
    return not broken and not missed


def _as_json(found: "Attack") -> dict[str, Any]:
    return {
        "verdict": found.verdict.value,
        "gap": found.gap,
        "x": None if found.x is None else output.number(found.x),
        "states": found.worst.states,
        "exact": found.worst.exact,
        "worst_case": repr(found.worst.pld),
        "guarantee": repr(found.guarantee),
        "guarantee_is_trivial": found.guarantee.is_infinite,
        "strategy": None if found.strategy is None else found.strategy.to_dict(),
    }


Rounds = Annotated[int, typer.Option(help="Number of queries that may be asked.")]


@group.callback()
def natural() -> None:
    """Say what the natural filter costs, and when it is free.

    The natural filter admits queries while the exact composition of what was spent stays below the
    budget. In general this does not keep the budget against an analyst who looks at each answer
    before choosing the next query.

    Example:
      residua natural cost --budget 'approximate_dp eps=1.395,delta=0.509' --rounds 2 --approximate-dp eps=0.0847,delta=0.478 --approximate-dp eps=1.404,delta=0.0208
      residua natural free --rounds 3 --pure-dp eps=1 --pure-dp eps=1.2 --json
    """  # noqa: E501


@group.command(cls=options.QueryCommand)
def cost(
    query: options.Catalogue,
    budget: Annotated[str, typer.Option(help="The budget: a query, or a list of them.")],
    rounds: Rounds,
    accuracy: options.Accuracy = DEFAULT_ACCURACY,
    coarse: Annotated[
        float | None,
        typer.Option(help="Merge atoms, with a relative error of at most this in each round."),
    ] = None,
    draw: output.Draw = None,
    relation: options.Relation = None,
    as_json: output.AsJson = False,
) -> None:
    """Compute what the natural filter over these queries really costs.

    The worst case is exact if all masses are rational; otherwise it lies between two proven bounds.
    If it exceeds the budget, the point, the gap and the adversary that attains it are shown. --draw
    also draws the adversary.

    Example:
      residua natural cost --budget 'gdp mu=1' --rounds 2 --pure-dp eps=0.5 --pure-dp eps=0.8
    """
    from residua.adversary.attack import natural_cost

    losses = [descriptions.parse_mechanism(text).pld(relation=relation) for text in query]
    promised = descriptions.parse_composed(budget).pld(relation=relation)
    with output.progress("states") as report:
        found = natural_cost(
            losses,
            promised,
            rounds,
            accuracy=accuracy,
            coarse=coarse,
            progress=lambda done, whole: report("", done, whole),
        )
    at = found.witness
    drawn, trouble = output.draw_strategy(found.strategy, draw)
    if as_json:
        output.print_json(
            {
                "budget": repr(promised),
                "rounds": rounds,
                "states": found.worst.states,
                "exact": found.worst.exact,
                "pld": repr(found.pld),
                "within_budget": found.verdict.value,
                "violation": found.violation,
                "witness": None if at is None else output.number(at),
                "promised": None if at is None else float(promised.hockey_stick(at)),
                "real": None if at is None else output.bounds(found.worst.hockey_stick_bounds(at)),
                "strategy": None if found.strategy is None else found.strategy.to_dict(),
                "picture": None if drawn is None else str(drawn),
            }
        )
        return
    rows = [("budget", repr(promised)), ("worst case", repr(found.pld))]
    rows.append(("within the budget", _verdict_in_words(found.verdict.value)))
    if at is not None:
        real = found.worst.hockey_stick_bounds(at)
        sides = output.below(float(real.lo), 6), output.above(float(real.hi), 6)
        rows += [
            ("at eps", f"{math.log(at):.6g}"),
            ("delta promised", f"{float(promised.hockey_stick(at)):.6g}"),
            ("delta real", " to ".join(sides)),
        ]
    output.print_fields(rows)
    if found.strategy is not None:
        print(f"\n{found.strategy}")
    output.print_picture(draw, drawn, trouble)


@group.command(cls=options.QueryCommand)
def free(
    query: options.Catalogue,
    rounds: Annotated[
        int | None, typer.Option(help="Number of queries that may be asked (default: any number).")
    ] = None,
    relation: options.Relation = None,
    as_json: output.AsJson = False,
) -> None:
    """Decide whether the natural filter is free for every budget.

    If not, a counterexample is shown: a query L and two futures A and C. L and A fit a budget, and
    so do L and C, but asking L and then choosing A or C by the answer exceeds it.

    Example:
      residua natural free --rounds 3 --pure-dp eps=1 --pure-dp eps=1.2
      residua natural free --gaussian sigma=2 --gaussian sigma=5
    """
    from residua.adversary.freeness import is_universally_free

    mechanisms = [descriptions.parse_mechanism(text) for text in query]
    with output.progress("comparing"):
        found = is_universally_free([m.pld(relation=relation) for m in mechanisms], rounds)
    if as_json:
        triple = None if found.triple is None else [repr(pld) for pld in found.triple]
        gap = None if found.gap is None else {"x": found.gap.x, "gap": found.gap.gap}
        output.print_json(
            {
                "queries": [m.to_dict() for m in mechanisms],
                "rounds": rounds,
                "free": found.free,
                "verdict": found.verdict.value,
                "reason": found.reason,
                "triple": triple,
                "gap": gap,
            }
        )
        return
    rows = [("free for every budget", _verdict_in_words(found.verdict.value))]
    if found.reason:
        rows.append(("because", found.reason))
    if found.triple is not None and found.gap is not None:
        rows += list(zip(("L", "A", "C"), map(repr, found.triple), strict=True))
        rows.append(("gap", f"{output.below(found.gap.gap, 4)} at x = {found.gap.x:.6g}"))
    output.print_fields(rows)


@group.command()
def guarantee(
    eps: Annotated[float, typer.Option(help="The eps of the budget.")],
    delta: Annotated[float, typer.Option(help="The delta of the budget.")],
    rounds: Rounds,
    target_delta: Annotated[
        float | None, typer.Option(help="The delta to guarantee (default: ten times --delta).")
    ] = None,
    points: Annotated[
        str | None,
        typer.Option(
            help="Cut losses at these points: paper, remark, or sizes like 0.1,0.5,2"
            " (default: the best found)."
        ),
    ] = None,
    as_json: output.AsJson = False,
) -> None:
    """Compute what the natural (eps, delta) filter really guarantees.

    The result is the least eps that is proven for arbitrary symmetric queries, chosen adaptively.

    Example:
      residua natural guarantee --eps 1 --delta 1e-6 --rounds 10
      residua natural guarantee --eps 0.1 --delta 1e-6 --rounds 20 --target-delta 1e-4 --points remark
    """  # noqa: E501
    from residua.adversary.natural.guarantee import natural_guarantee

    with output.progress("searching"):
        found = natural_guarantee(eps, delta, rounds, target_delta, _parse_sizes(points))
    if as_json:
        given = {"eps": eps, "delta": delta, "rounds": rounds}
        real = {"eps": found.eps, "delta": found.delta, "method": found.method}
        output.print_json({"budget": given, "guarantee": real})
        return
    rows = [("budget", f"eps {eps:g}, delta {delta:g}")]
    if not (found.delta < 1.0 and found.eps < math.inf):
        of = "" if target_delta is not None else ", and ten times delta is 1 or more"
        why = f"at delta 1 everything may be lost{of}; --target-delta asks for another"
        if found.delta < 1.0:
            why = f"no finite eps is proven at delta {found.delta!r}"
        output.print_fields([*rows, ("guaranteed", f"nothing: {why}")])
        return
    output.print_fields(
        [
            *rows,
            ("guaranteed eps", output.above(found.eps, 6)),
            ("at delta", repr(found.delta)),
            ("by", found.method),
        ]
    )


def _parse_sizes(text: str | None) -> list[float] | str | None:
    """Points as given on the command line."""
    if text is None or text in ("paper", "remark"):
        return text
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ArgumentError(
            f"points must be paper, remark or sizes separated by commas, got {text!r}"
        ) from None


def _verdict_in_words(verdict: str) -> str:
    return {"YES": "yes, proven", "NO": "no, proven"}.get(verdict, "undecided, so no")
