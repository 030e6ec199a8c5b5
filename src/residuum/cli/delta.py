"""`residuum delta`: the delta of a composition at a given eps."""

from typing import Annotated

import typer

from residuum.cli import output, queries

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def delta(
    query: Annotated[
        list[str], typer.Argument(metavar="QUERY", help="Queries as JSON; several are composed.")
    ],
    eps: Annotated[float, typer.Option(help="The eps at which to read the curve.")],
    as_json: output.AsJson = False,
) -> None:
    """The delta of the composed queries at a given eps.

    The least delta for which together they are (eps, delta)-DP, printed as a proven interval:
    the exact value lies between lo and hi, and hi is the safe one.

    \b
    Example:
      residuum delta '{"kind": "gaussian", "sigma": 4.0, "count": 10}' --eps 1
    """
    pld = queries.compose(query)
    interval = pld.delta_bounds(eps)
    if as_json:
        output.print_json(
            {
                "pld": repr(pld),
                "eps": eps,
                "delta": output.number(float(interval.hi)),
                "delta_bounds": output.bounds(interval),
            }
        )
        return
    output.print_table(
        f"delta at eps = {eps}",
        ("queries", "lo", "hi"),
        [(repr(pld), output.below(float(interval.lo)), output.above(float(interval.hi)))],
    )
