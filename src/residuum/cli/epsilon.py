"""`residuum epsilon`: the eps of a composition at a given delta."""

from typing import Annotated

import typer

from residuum.cli import output, queries

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def epsilon(
    query: Annotated[
        list[str], typer.Argument(metavar="QUERY", help="Queries as JSON; several are composed.")
    ],
    delta: Annotated[float, typer.Option(help="The delta to allow.")],
    as_json: output.AsJson = False,
) -> None:
    """The eps of the composed queries at a given delta.

    The least eps for which together they are (eps, delta)-DP, printed as a proven interval:
    the exact value lies between lo and hi, and hi is the safe one. It is inf when no eps will do.

    \b
    Example:
      residuum epsilon '{"kind": "laplace", "scale": 2.0}' '{"kind": "pure_dp", "eps": 0.1, "count": 5}' --delta 1e-6
    """  # noqa: E501
    pld = queries.compose(query)
    interval = pld.epsilon_bounds(delta)
    if as_json:
        output.print_json(
            {
                "pld": repr(pld),
                "delta": delta,
                "epsilon": output.number(float(interval.hi)),
                "epsilon_bounds": output.bounds(interval),
            }
        )
        return
    output.print_table(
        f"eps at delta = {delta}",
        ("queries", "lo", "hi"),
        [(repr(pld), output.below(float(interval.lo)), output.above(float(interval.hi)))],
    )
