"""`residua order`: which of two queries loses more privacy, at every eps at once."""

from typing import TYPE_CHECKING, Annotated

import typer

from residua.cli import flags, output, queries
from residua.cli.analysis import reading

if TYPE_CHECKING:
    from residua.mechanisms import Mechanism
    from residua.pld.order.domination import Domination, Witness

app = typer.Typer(add_completion=False, rich_markup_mode=None)

MEANING = {
    "LESS": "the first never loses more privacy than the second",
    "GREATER": "the first always loses at least as much privacy as the second",
    "EQUAL": "both lose exactly the same privacy",
    "INCOMPARABLE": "each loses more than the other somewhere",
    "UNDECIDED": "neither order could be proven or refuted; treat as no",
}
VERDICTS = {
    ("YES", "NO"): "LESS",
    ("NO", "YES"): "GREATER",
    ("YES", "YES"): "EQUAL",
    ("NO", "NO"): "INCOMPARABLE",
}


@app.command(cls=flags.QueryCommand)
def order(
    first: Annotated[str, typer.Argument(metavar="FIRST", help="A query, or a list of them.")],
    second: Annotated[str, typer.Argument(metavar="SECOND", help="A query, or a list of them.")],
    relation: flags.Relation = None,
    as_json: output.AsJson = False,
) -> None:
    """Compare two queries in the Blackwell order.

    Either side may be a JSON list of queries, which are composed: is this day within that budget?

    The verdict is LESS, GREATER, EQUAL, INCOMPARABLE or UNDECIDED, and holds in every direction of
    the relation. Where an order fails, a witness shows it: a point x of the hockey-stick curves
    and the gap between them there.

    \b
    Example:
      residua order --pure-dp eps=0.5 --laplace scale=2
      residua order '[{"kind": "laplace", "scale": 4.0}, {"kind": "gaussian", "sigma": 6.0}]' --gdp mu=0.5
    """  # noqa: E501
    print_order(first, second, relation, as_json)


def print_order(first: str, second: str, relation: str | None, as_json: bool) -> None:
    """What the command prints."""
    from residua.mechanisms import Composed

    one, two = queries.parse_side(first), queries.parse_side(second)
    relation = relation or Composed((one, two)).supported[0]
    below, above = _dominated(one, two, relation), _dominated(two, one, relation)
    verdict = VERDICTS.get((below.verdict.value, above.verdict.value), "UNDECIDED")
    shown = [repr(mechanism.pld(relation=relation)) for mechanism in (one, two)]
    if as_json:
        output.print_json(
            {
                "first": shown[0],
                "second": shown[1],
                "relation": relation,
                "verdict": verdict,
                "not_below": _witness(below.witness),
                "not_above": _witness(above.witness),
            }
        )
        return
    rows = [("first", shown[0]), ("second", shown[1]), ("verdict", verdict)]
    for name, witness in (
        ("first exceeds second", below.witness),
        ("second exceeds first", above.witness),
    ):
        if witness is not None:
            rows.append((name, f"by {witness.gap:.3g} at x = {witness.x:.6g}"))
    print(MEANING[verdict] + "\n")
    output.print_fields(rows)


def _dominated(low: "Mechanism", high: "Mechanism", relation: str) -> "Domination":
    """Whether `low` loses no more than `high`, in every direction.

    Proven of what is above the one and below the other; refuted the other way round.
    """
    from residua.bounds import Verdict
    from residua.pld.order.compare import dominated
    from residua.pld.order.domination import Domination

    if low == high:
        return Domination(Verdict.YES)
    proven = True
    lows, highs = (reading.by_direction(m, relation).values() for m in (low, high))
    for (low_above, low_below), (high_above, high_below) in zip(lows, highs, strict=True):
        if dominated(low_above, high_below).proven:
            continue
        proven = False
        refuted = dominated(low_below, high_above)
        if refuted.verdict is Verdict.NO:
            return refuted
    return Domination(Verdict.YES if proven else Verdict.UNDECIDED)


def _witness(witness: "Witness | None") -> dict[str, float | str] | None:
    if witness is None:
        return None
    return {"x": output.number(witness.x), "gap": output.number(witness.gap)}
