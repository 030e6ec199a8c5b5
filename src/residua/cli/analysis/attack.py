"""`residua attack`: the worst case of filters against what they guarantee."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from residua.cli import filters, flags, output, pictures, queries
from residua.cli.progress import patience
from residua.errors import ArgumentError

if TYPE_CHECKING:
    from residua.adversary.attack import Attack
    from residua.filters import Filter

app = typer.Typer(add_completion=False, rich_markup_mode=None)

SURVIVES = {"YES": "holds", "NO": "BROKEN", "UNDECIDED": "holds, but for rounding"}
OWN_GUARANTEE, BUDGET = "the filter's own guarantee", "the rule's budget"
"""What a line of the suite is about."""
TRIVIAL = "holds, but it is trivial (delta = 1)"


@app.command(cls=flags.QueryCommand)
def attack(
    query: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUERY", help="The queries that may be asked, for --filter."),
    ] = None,
    filter: Annotated[
        str | None,
        typer.Option(help="Attack this filter, as JSON or in short, with these queries."),
    ] = None,
    rounds: Annotated[int, typer.Option(help="How many queries may be asked, for --filter.")] = 3,
    accuracy: Annotated[
        float, typer.Option(help="Of queries with continuous losses, in eps, for --filter.")
    ] = 0.01,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Attack an example of this kind of filter only; may be repeated."),
    ] = None,
    draw: pictures.Draw = None,
    as_json: output.AsJson = False,
) -> None:
    """Play the worst adversary against filters.

    For each filter and a small catalogue of queries, the exact worst case over all adaptive
    analysts is compared with the filter's guarantee. Without options, every kind of filter is
    attacked with every built-in catalogue, and so are rules that are known not to keep what they
    promise: those must be caught. Exit code 1 if a filter is broken, or such a rule is not.

    \b
    Example:
      residua attack --kind pure
      residua attack --filter '{"kind": "gdp_residue", "mu": 1.0}' --rounds 2 --pure-dp eps=0.5 --gdp mu=0.5
    """  # noqa: E501
    if filter is None and query:
        raise ArgumentError("queries go with --filter, got queries and no filter")
    if filter is None and draw is not None:
        raise ArgumentError("--draw goes with --filter, got no filter")
    if filter is not None and not query:
        raise ArgumentError("--filter must come with queries to ask, got none")
    if filter is not None:
        good = _one(filter, query or [], rounds, accuracy, draw, as_json)
    else:
        good = _suite(tuple(kind or ()), as_json)
    if not good:
        raise typer.Exit(1)


def _one(
    text: str,
    asked: Sequence[str],
    rounds: int,
    accuracy: float,
    draw: Path | None,
    as_json: bool,
) -> bool:
    from residua.adversary.attack import attack_filter

    filter = filters.parse(text)
    losses = [queries.parse(item).pld() for item in asked]
    with patience("states") as tell:
        found = attack_filter(
            filter,
            losses,
            rounds,
            accuracy=accuracy,
            progress=lambda done, whole: tell("", done, whole),
        )
    drawn, trouble = pictures.tree(found.strategy, draw)
    if as_json:
        shown = None if drawn is None else str(drawn)
        told = {**_as_json(found), "picture": shown}
        output.print_json({"filter": filter.to_dict(), "rounds": rounds, **told})
    else:
        output.print_fields(_fields(filter, found))
        if found.strategy is not None:
            print(f"\n{found.strategy}")
        pictures.tell(draw, drawn, trouble)
    return found.verdict.value != "NO"


def _verdict(verdict: str, trivial: bool) -> str:
    """What an attack came to; to keep a promise of nothing is no merit."""
    return TRIVIAL if trivial and verdict != "NO" else SURVIVES[verdict]


def _of_natural(row: Mapping[str, Any]) -> str:
    """A natural filter does not guarantee its budget: the rule that claims it is caught below."""
    return " (its budget need not)" if row["filter"] == "natural" else ""


def _kept(found: "Attack") -> str:
    """Whether the budget of a natural filter that does not promise it was kept all the same."""
    if found.verdict.value == "NO":
        assert found.x is not None
        where = f"by {output.below(found.gap, 4)} at eps = {math.log(found.x):.6g}"
        return f"is not what is promised, and is exceeded {where}"
    return "is not what is promised; these queries do not exceed it"


def _fields(filter: "Filter", found: "Attack") -> list[tuple[str, str]]:
    from residua.adversary.attack import judged
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
        rows.append(("the budget", _kept(judged(found.worst, filter.budget))))
    if found.x is not None:
        rows.append(
            ("exceeded", f"by {output.below(found.gap, 4)} at eps = {math.log(found.x):.6g}")
        )
    return rows


def _suite(kinds: tuple[str, ...], as_json: bool) -> bool:
    from residua.adversary import suite
    from residua.filters import KINDS

    chosen = kinds or tuple(KINDS)
    survived: list[dict[str, Any]] = []
    whole = len(chosen) * len(suite.catalogues()) + (0 if kinds else len(suite.UNSOUND))
    with patience("attacks") as tell:
        for kind, name, found in suite.survivors(chosen):
            about = {"filter": kind, "catalogue": name, "about": OWN_GUARANTEE}
            survived.append({**about, **_as_json(found)})
            tell(f"{kind} against {name}", len(survived), whole)
        caught: list[dict[str, Any]] = []
        for rule in () if kinds else suite.UNSOUND:
            about = {"rule": rule.name, "about": BUDGET}
            caught.append({**about, **_as_json(rule.attack())})
            tell(rule.name, len(survived) + len(caught), whole)
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
