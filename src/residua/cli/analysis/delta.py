"""`residua delta`: the delta of a composition at a given eps."""

from operator import methodcaller
from typing import Annotated

import typer

from residua.cli import flags, output, queries
from residua.cli.analysis import reading

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=flags.QueryCommand)
def delta(
    query: flags.Queries,
    eps: Annotated[float, typer.Option(help="The eps at which to read the curve.")],
    relation: flags.Relation = None,
    as_json: output.AsJson = False,
) -> None:
    """The delta of the composed queries at a given eps.

    The least delta for which together they are (eps, delta)-DP, printed as a proven interval:
    the exact value lies between lo and hi, and hi is the safe one. Where the two directions of a
    relation differ, it is that of the worse one.

    \b
    Example:
      residua delta --gaussian sigma=4,count=10 --eps 1
      residua delta '{"kind": "subsampled_gaussian", "sigma": 1.0, "sampling_rate": 0.01, "steps": 100}' --eps 1
    """  # noqa: E501
    mechanism = queries.compose(query)
    read = methodcaller("delta_bounds", eps)
    reading.print_worst(mechanism, relation, read, "delta", ("eps", eps), as_json)
