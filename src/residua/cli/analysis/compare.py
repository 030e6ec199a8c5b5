"""`residua compare`: which filter admits most of a workload.

Two queries without a budget are compared with each other, as `residua order` does: that is what
the command did before there were filters.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from residua.cli import filters, flags, output, pictures, queries
from residua.cli.analysis.order import print_order
from residua.cli.progress import patience
from residua.errors import ArgumentError

if TYPE_CHECKING:
    from residua.planning import Workload

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=flags.QueryCommand)
def compare(
    query: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUERY", help="The workload: queries asked in turn without end."),
    ] = None,
    eps: filters.Eps = None,
    delta: filters.Delta = None,
    workload: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A workload file, or 'suite' for random workloads (the default).",
        ),
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="FILTER",
            help="A kind, or a filter as JSON; may be repeated. Without it, all that there are.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed of the suite (default: 1).")] = None,
    count: Annotated[
        int | None, typer.Option(help="Number of random workloads (default: 60).")
    ] = None,
    family: Annotated[
        str | None,
        typer.Option(help="Draw this family alone: pure, laplace, gaussian, subsampled or mixed."),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(
            help="Draw this shape alone: constant, bursts, drifting, 'small then large', "
            "'large then small' or alternating."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Draw the ratios into this directory.")
    ] = None,
    relation: flags.Relation = None,
    as_json: output.AsJson = False,
) -> None:
    """Compare filters: how much of a workload each admits.

    Every filter is set up for (eps, delta), and the workload is requested in order until the first
    refusal. Ratios are to the non-adaptive optimum: the most queries of the workload that are
    within (eps, delta) when all of them are known in advance. They are rounded down.

    Without a workload, the filters are compared on a suite of random workloads. The table has the
    mean ratio of each filter with its 95 % confidence interval, the 10th percentile and the
    minimum, over the workloads with an optimum of at least 10; the mean over the others; and the
    mean of each family.

    A workload file is JSON: {"name": ..., "queries": [...], "repeat": true}. A query is a mechanism
    or {"mechanism": ..., "repeat": 3}; with "repeat" the whole list starts again when it ends.

    Two queries without a budget are compared with each other; see residua order.

    \b
    Example:
      residua compare --eps 1 --delta 1e-6 --seed 7 --count 12 --filter pure --filter gdp_residue
      residua compare --eps 1 --delta 1e-6 --family laplace --shape bursts --count 5
      residua compare --eps 1 --delta 1e-6 --laplace scale=20 --filter basic --filter renyi
      residua compare --pure-dp eps=0.5 --laplace scale=2
    """
    from residua.planning import compare_filters

    if eps is None and delta is None and workload is None and query:
        if len(query) != 2:
            raise ArgumentError(
                "filters are compared within --eps and --delta, queries as FIRST and SECOND; "
                f"got neither, but {len(query)} queries"
            )
        print_order(query[0], query[1], relation, as_json)
        return
    eps, delta = filters.budget(eps, delta)
    asked = _workload(query, workload)
    with patience("comparing") as tell:
        found = compare_filters(
            eps,
            delta,
            asked,
            _candidates(given),
            seed=seed,
            count=count,
            family=family,
            shape=shape,
            relation=relation,
            progress=tell,
        )
    picture, trouble = None, ""
    if out is not None:
        from residua.figures.comparison import draw_comparison

        picture, trouble = pictures.save(lambda: draw_comparison(found), out / "comparison.png")
    if as_json:
        shown = None if picture is None else str(picture)
        output.print_json({**found.to_dict(), "picture": shown})
        return
    print(f"admitted / non-adaptive optimum within ({eps:g}, {delta:g})\n")
    print(found.table())
    if out is not None:
        print(trouble if picture is None else f"\npicture: {picture}")


def _workload(query: list[str] | None, workload: str | None) -> "Workload | str":
    from residua.planning.workload import Run, Workload

    if not query:
        return workload or "suite"
    if workload is not None:
        raise ArgumentError(f"give a workload or queries, got both: {workload} and queries")
    name = query[0] if len(query) == 1 and len(query[0]) <= 40 else "workload"
    return Workload(name, tuple(Run(one) for one in queries.parse_list(query)), repeat=True)


def _candidates(given: list[str] | None) -> Any:
    if not given:
        return None
    return [filters.parse(one) if set(one) & set("{= ") else one for one in given]
