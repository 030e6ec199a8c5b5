"""`residuum reserve`: hold budget for a query that has not started."""

from typing import Annotated

import typer

from residuum.cli import asking, flags, output, queries, stores

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=flags.BudgetQueryCommand)
def reserve(
    budget: asking.Budget,
    query: asking.Query,
    key: asking.Key = None,
    ttl: Annotated[float, typer.Option(help="Seconds until the hold expires.")] = 3600.0,
    also: asking.Also = None,
    assume: asking.Assume = False,
    replay_ok: asking.ReplayOk = False,
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """Hold budget for a query that has not started.

    `residuum commit ID` debits it just before the query starts; `residuum cancel ID` lets it go,
    and so does time. With a key, the same command again prints the same hold, replayed, and exits
    with 6.

    \b
    Example:
      residuum reserve web --laplace scale=4 --ttl 600
    """
    from residuum.service.values import reservation_to_dict

    with stores.books(store, token) as books:
        asking.warn_of_others(books, key)
        hold = books.reserve(
            asking.names(budget, also),
            queries.compose(query),
            key,
            ttl,
            assume_budget_relation=assume,
        )
        shown = reservation_to_dict(hold)
    # Where it was refused there is no hold of that id.
    held = ("id", "expires") if shown["admitted"] else ()
    used = "this key was already used: this is the hold that it made"
    fields = ("binding", *held, "key")
    asking.finish(shown, as_json, *fields, replay_ok=replay_ok, used=used)
