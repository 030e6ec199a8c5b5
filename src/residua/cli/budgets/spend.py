"""`residua spend`: debit a budget for a query that is about to run."""

import typer

from residua.cli import flags, output, queries, query_options, stores

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=flags.BudgetQueryCommand)
def spend(
    budget: query_options.Budget,
    query: query_options.Query,
    key: query_options.Key = None,
    also: query_options.Also = None,
    assume: query_options.Assume = False,
    replay_ok: query_options.ReplayOk = False,
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """Spend budget on a query, before you run it.

    Exit code 0 if it is admitted: what was spent is on disk, and you may run the query once. 3 if
    it is refused, and nothing was spent. With a key, the same command again spends nothing, prints
    the same receipt, replayed, and exits with 6: the receipt permits no second run.

    \b
    Example:
      residua spend web --laplace scale=4 --key monday-17
      residua spend web --gaussian sigma=8 --json
    """
    from residua.service.api.values import receipt_to_dict

    with stores.books(store, token) as books:
        names = query_options.names(budget, also)
        query_options.warn_of_others(books, key)
        receipt = books.spend(
            names,
            queries.compose(query),
            key,
            assume_budget_relation=assume,
        )
        shown = query_options.with_balance(receipt_to_dict(receipt), receipt, books, names)
    query_options.finish(shown, as_json, "binding", "seq", "key", "head", replay_ok=replay_ok)
