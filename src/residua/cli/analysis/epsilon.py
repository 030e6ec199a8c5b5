"""`residua epsilon`: the eps of a composition at a given delta."""

from operator import methodcaller
from typing import Annotated

import typer

from residua.cli import flags, output, queries
from residua.cli.analysis import reading

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=flags.QueryCommand)
def epsilon(
    query: flags.Queries,
    delta: Annotated[float, typer.Option(help="The delta to allow.")],
    relation: flags.Relation = None,
    as_json: output.AsJson = False,
) -> None:
    """The eps of the composed queries at a given delta.

    The least eps for which together they are (eps, delta)-DP, printed as a proven interval:
    the exact value lies between lo and hi, and hi is the safe one. It is inf when no eps will do.
    Where the two directions of a relation differ, it is that of the worse one.

    \b
    Example:
      residua epsilon --laplace scale=2 --pure-dp eps=0.1,count=5 --delta 1e-6
      residua epsilon '{"kind": "laplace", "scale": 2.0}' '{"kind": "pure_dp", "eps": 0.1}' --delta 1e-6
    """  # noqa: E501
    mechanism = queries.compose(query)
    read = methodcaller("epsilon_bounds", delta)
    reading.print_worst(mechanism, relation, read, "epsilon", ("delta", delta), as_json)
