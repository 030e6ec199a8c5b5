"""`residua plan`: how many more queries fit, and the least noise that does."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from residua.cli import filters, flags, output, pictures, queries, stores
from residua.cli.progress import patience
from residua.errors import ArgumentError

if TYPE_CHECKING:
    from residua.filters import Filter
    from residua.filters.query import Query
    from residua.filters.state import State
    from residua.planning.frontier import Progress

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=flags.QueryCommand)
def plan(
    query: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERY", help="Queries as JSON or by flags; several are asked in turn."
        ),
    ],
    given: Annotated[
        str | None,
        typer.Option(
            "--filter", metavar="FILTER", help="The filter, as JSON or in short: 'zcdp rho=0.1'."
        ),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="The state it is in. Without it, nothing was spent."),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Instead of a filter: a budget in the store, as it is."),
    ] = None,
    eps: filters.Eps = None,
    delta: filters.Delta = None,
    n: Annotated[
        int, typer.Option("-n", help="For how many more (rounds of the queries) to fit the noise.")
    ] = 1,
    most: Annotated[int, typer.Option(help="Where counting ends.")] = 10**6,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Draw how many more of each kind fit, into a directory."),
    ] = None,
    relation: flags.Relation = None,
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """How many more queries fit, and the least noise that fits.

    Several queries are asked in order, again and again. The count is that of asking one by one
    until the first refusal. The noise is the least with which n more fit (n rounds of several
    queries, all turned by the same factor), rounded up and checked. Nothing is spent. With --eps
    and --delta instead of a filter, the filter is the automatic one. With --budget, the filter and
    what is left are those of a budget in the store; its parents and open reservations may allow
    fewer.

    \b
    Example:
      residua plan --filter '{"kind": "gdp_residue", "mu": 1.0}' --laplace scale=2
      residua plan --filter 'basic eps=1,delta=1e-6' --laplace scale=20 --pure-dp eps=0.01 -n 52
      residua plan --eps 1 --delta 1e-6 --laplace scale=20
      residua plan --budget web --laplace scale=20
    """
    from residua.planning import count_more, least_noise

    asked = queries.parse_list(query)
    if budget is not None:
        if (given, eps, delta, state, relation) != (None,) * 5:
            raise ArgumentError(
                "--budget must stand alone, got a filter, a state or a relation too"
            )
        with stores.books(store, token, read_only=True) as books:
            found = books.budget(budget)
        filter, start, relation = found.filter, found.state, found.relation
    else:
        filter = _filter(given, eps, delta)
        start = filter.initial() if state is None else filter.state_from_json(state)
    with patience("counting"):
        count, ended = count_more(filter, asked, state=start, most=most, relation=relation)
    with patience("fitting the noise"):
        least = least_noise(filter, asked, n, state=start, relation=relation)
    picture, trouble = None, ""
    if out is not None:
        with patience("drawing") as tell:
            picture, trouble = _drawn(filter, start, out, relation, tell)
    left = filter.left_words(start)
    if as_json:
        output.print_json(
            {
                "filter": filter.to_dict(),
                "left": left,
                "queries": [one.to_dict() for one in asked],
                "how_many": count,
                "rounds": count // len(asked),
                "counting_ended": ended,
                "n": n,
                "least_noise": None if least is None else [_plain(one) for one in least],
                "picture": None if picture is None else str(picture),
            }
        )
        return
    fitting = f"at least {count}" if ended else str(count)
    if len(asked) > 1:
        fitting += f" ({count // len(asked)} whole rounds of {len(asked)})"
    rows = [("filter", filter.to_json()), ("left", left)]
    rows += [("query", one.to_json()) for one in asked]
    rows.append(("how many more fit", fitting))
    name = f"least noise for {n} more" + (" rounds" if len(asked) > 1 else "")
    if least is None:
        rows.append((name, "none: no noise of this kind would fit"))
    else:
        rows += [(name, _json(one)) for one in least]
    if out is not None:
        rows.append(("picture", trouble if picture is None else str(picture)))
    output.print_fields(rows)


def _drawn(
    filter: "Filter", start: "State", out: Path, relation: str | None, tell: "Progress"
) -> tuple[Path | None, str]:
    """The frontier of what is left, beside that of a fresh filter where something was spent."""
    from residua.figures.frontier import frontier as draw
    from residua.planning.frontier import frontier

    fresh = filter.initial()
    found = {"left": frontier(filter, state=start, relation=relation, progress=tell)}
    if start != fresh:
        before = frontier(filter, state=fresh, relation=relation, progress=tell)
        found = {"at the start": before, **found}
    return pictures.save(lambda: draw(found), out / "frontier.png")


def _filter(given: str | None, eps: float | None, delta: float | None) -> "Filter":
    from residua.filters.union.auto import AutoFilter

    if given is not None:
        if eps is not None or delta is not None:
            raise ArgumentError("give --filter, or --eps and --delta, got both")
        return filters.parse(given)
    if eps is None and delta is None:
        raise ArgumentError(
            "a filter must be given by --filter, by --eps and --delta, or by --budget, got none"
        )
    eps, delta = filters.budget(eps, delta)
    return AutoFilter(eps, delta)


def _plain(query: "Query") -> dict[str, Any]:
    from residua.filters.describe import as_mechanism

    return as_mechanism(query).to_dict()


def _json(query: "Query") -> str:
    from residua.filters.describe import as_mechanism

    return as_mechanism(query).to_json()
