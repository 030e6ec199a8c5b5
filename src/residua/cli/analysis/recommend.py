"""`residua recommend`: which filter for a workload, and with how much noise."""

from typing import Annotated

import typer

from residua.cli import filters, flags, output, queries
from residua.cli.progress import patience
from residua.errors import ArgumentError

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=flags.QueryCommand)
def recommend(
    query: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUERY", help="The workload: queries asked in turn without end."),
    ] = None,
    eps: filters.Eps = None,
    delta: filters.Delta = None,
    workload: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A workload file."),
    ] = None,
    n: Annotated[
        int | None,
        typer.Option("-n", help="So many rounds of the workload are all to be answered."),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--filter", metavar="KIND", help="A kind to choose from; may be repeated. Else all."
        ),
    ] = None,
    relation: flags.Relation = None,
    as_json: output.AsJson = False,
) -> None:
    """Recommend a filter and the noise for a workload, and say why.

    Every filter is measured on the workload within (eps, delta), as residua compare does. The one
    that admits most is taken; of equals, the one that needs to know less in advance. With -n, or
    for a workload that ends, all of it is to be answered: where it does not fit, the least noise
    with which it does is worked out, all queries turned by one factor.

    \b
    Example:
      residua recommend --eps 1 --delta 1e-6 --laplace scale=20 --filter basic --filter renyi
      residua recommend --eps 1 --delta 1e-6 --gaussian sigma=20 -n 52 --filter gdp --filter plan
    """
    from residua.planning import recommend as find
    from residua.planning.workload import Run, Workload

    eps, delta = filters.budget(eps, delta)
    if bool(query) == (workload is not None):
        got = "both" if query else "neither"
        raise ArgumentError(f"give queries or --workload, got {got}")
    asked: Workload | str = workload or ""
    if query:
        asked = Workload("workload", tuple(Run(one) for one in queries.parse_list(query)), True)
    with patience("measuring") as tell:
        found = find(
            eps, delta, asked, n=n, filters=given or None, relation=relation, progress=tell
        )
    if as_json:
        output.print_json(found.to_dict())
        return
    kind = found.filter.kind
    if found.described is None:
        shown = f"{kind} (of losses under {relation}, to be made in Python)"
    else:
        text = found.filter.to_json()
        shown = text if len(text) <= 300 else f"{kind} (--json shows all of it)"
    rows = [("filter", shown)]
    rows.append(("reason", found.reason))
    if found.noise != 1.0:
        turned = dict.fromkeys(f"{run.query!r}" for run in found.queries)
        rows += [("query", one) for one in list(turned)[:12]]
    output.print_fields(rows)
    print()
    print(found.comparison.table())
