"""`residua reserve`: hold budget for a query that has not started."""

from typing import Annotated

import typer

from residua.cli import flags, output, queries, query_options, stores

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=flags.BudgetQueryCommand)
def reserve(
    budget: query_options.Budget,
    query: query_options.Query,
    key: query_options.Key = None,
    ttl: Annotated[float, typer.Option(help="Seconds until the hold expires.")] = 3600.0,
    also: query_options.Also = None,
    assume: query_options.Assume = False,
    replay_ok: query_options.ReplayOk = False,
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """Hold budget for a query that has not started.

    `residua commit ID` debits it just before the query starts; `residua cancel ID` lets it go,
    and so does time. With a key, the same command again prints the same hold, replayed, and exits
    with 6.

    \b
    Example:
      residua reserve web --laplace scale=4 --ttl 600
    """
    from residua.service.api.values import reservation_to_dict

    with stores.books(store, token) as books:
        names = query_options.names(budget, also)
        query_options.warn_of_others(books, key)
        hold = books.reserve(
            names,
            queries.compose(query),
            key,
            ttl,
            assume_budget_relation=assume,
        )
        shown = query_options.with_balance(reservation_to_dict(hold), hold, books, names)
    # Where it was refused there is no hold of that id.
    held = ("id", "expires") if shown["admitted"] else ()
    used = "this key was already used: this is the hold that it made"
    fields = ("binding", *held, "key")
    query_options.finish(shown, as_json, *fields, replay_ok=replay_ok, used=used)
