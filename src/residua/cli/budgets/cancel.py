"""`residua cancel`: let a reservation go."""

from typing import Annotated

import typer

from residua.cli import output, stores

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def cancel(
    hold: Annotated[str, typer.Argument(metavar="ID", help="The id of the reservation.")],
    reason: Annotated[str, typer.Option(help="Why; it is recorded.")] = "cancelled",
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """Let a reservation go whose query has not started.

    \b
    Example:
      residua cancel HOLD --reason 'query was withdrawn'
    """
    with stores.books(store, token) as books:
        books.cancel(hold, reason)
    if as_json:
        output.print_json({"cancelled": hold, "reason": reason})
    else:
        print(f"cancelled {hold}")
