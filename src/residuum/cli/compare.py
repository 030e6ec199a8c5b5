"""`residuum compare`: which of two queries loses more privacy, at every eps at once."""

from typing import TYPE_CHECKING, Annotated

import typer

from residuum.cli import output, queries

if TYPE_CHECKING:
    from residuum.pld.domination import Witness

app = typer.Typer(add_completion=False, rich_markup_mode=None)

MEANING = {
    "LESS": "the first never loses more privacy than the second",
    "GREATER": "the first always loses at least as much privacy as the second",
    "EQUAL": "both lose exactly the same privacy",
    "INCOMPARABLE": "each loses more than the other somewhere",
    "UNDECIDED": "neither order could be proven or refuted; treat as no",
}


@app.command()
def compare(
    first: Annotated[str, typer.Argument(metavar="FIRST", help="A query, or a list of them.")],
    second: Annotated[str, typer.Argument(metavar="SECOND", help="A query, or a list of them.")],
    as_json: output.AsJson = False,
) -> None:
    """Compare two queries in the Blackwell order.

    Either side may be a JSON list of queries, which are composed: is this day within that budget?

    The verdict is LESS, GREATER, EQUAL, INCOMPARABLE or UNDECIDED. Where an order fails, a witness
    shows it: a point x of the hockey-stick curves and the gap between them there.

    \b
    Example:
      residuum compare '{"kind": "pure_dp", "eps": 0.5}' '{"kind": "laplace", "scale": 2.0}'
      residuum compare '[{"kind": "laplace", "scale": 4.0}, {"kind": "gaussian", "sigma": 6.0}]' \
        '{"kind": "gaussian", "mu": 0.5}'
    """
    from residuum.pld.order import compare as compare_plds

    one, two = queries.parse_side(first), queries.parse_side(second)
    comparison = compare_plds(one, two)
    verdict = str(comparison.verdict.value)
    if as_json:
        output.print_json(
            {
                "first": repr(one),
                "second": repr(two),
                "verdict": verdict,
                "not_below": _witness(comparison.not_below),
                "not_above": _witness(comparison.not_above),
            }
        )
        return
    rows = [("first", repr(one)), ("second", repr(two)), ("verdict", verdict)]
    for name, witness in (
        ("first exceeds second", comparison.not_below),
        ("second exceeds first", comparison.not_above),
    ):
        if witness is not None:
            rows.append((name, f"by {witness.gap:.3g} at x = {witness.x:.6g}"))
    output.print_table(MEANING[verdict], ("", ""), rows)


def _witness(witness: "Witness | None") -> dict[str, float | str] | None:
    if witness is None:
        return None
    return {"x": output.number(witness.x), "gap": output.number(witness.gap)}
