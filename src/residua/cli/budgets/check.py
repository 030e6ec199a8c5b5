"""`residua check`: what a spend would be answered."""

import typer

from residua.cli import flags, output, queries, query_options, stores

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=flags.BudgetQueryCommand)
def check(
    budget: query_options.Budget,
    query: query_options.Query,
    also: query_options.Also = None,
    assume: query_options.Assume = False,
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """Ask whether a query would be admitted; spend nothing.

    Exit code 0 if it would be, 3 if it would be refused, 4 if the ledger is read-only, as for a
    spend. A refusal says what is left and what would have fitted.

    \b
    Example:
      residua check web --gaussian sigma=4
      residua check web --query '{"kind": "laplace", "scale": 4.0}' --json
    """
    from residua.service.api.values import answer_to_dict

    with stores.books(store, token) as books:
        if not stores.is_service(store):
            from residua.ledger.recovery.anchor_check import must_be_open

            must_be_open(books.read_only)
        names = query_options.names(budget, also)
        answer = books.check(names, queries.compose(query), assume_budget_relation=assume)
        shown = query_options.with_balance(answer_to_dict(answer), answer, books, names)
    query_options.finish(shown, as_json, "binding")
