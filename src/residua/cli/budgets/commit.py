"""`residua commit`: debit a reservation."""

from typing import Annotated

import typer

from residua.cli import output, query_options, stores

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def commit(
    hold: Annotated[str, typer.Argument(metavar="ID", help="The id of the reservation.")],
    key: query_options.Key = None,
    replay_ok: query_options.ReplayOk = False,
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """Debit a reservation, just before its query starts.

    Exit code 0 if it may start, once; 3 if the commit is refused for now. Committed again, it
    prints the same receipt, replayed, and exits with 6: the receipt permits no second start.

    \b
    Example:
      residua commit HOLD
    """
    from residua.service.api.values import receipt_to_dict

    with stores.books(store, token) as books:
        receipt = books.commit(hold, key)
        shown = query_options.with_balance(receipt_to_dict(receipt), receipt, books)
    used = "this hold was already committed: do not run the query again"
    fields = ("binding", "seq", "key", "head")
    query_options.finish(shown, as_json, *fields, replay_ok=replay_ok, used=used)
