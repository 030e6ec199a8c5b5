"""`residuum init`: a new ledger."""

from typing import Annotated

import typer

from residuum.cli import output, stores

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def init(
    store: Annotated[
        str, typer.Argument(metavar="URL", help="A file, sqlite:///... or postgresql://...")
    ] = stores.DEFAULT,
    as_json: output.AsJson = False,
) -> None:
    """Create a ledger for budgets in a file or database.

    Nothing happens to one that exists. Beside a SQLite file lies its anchor, which notices when a
    backup was restored: keep it where it is.

    \b
    Example:
      residuum init
      residuum init sqlite:///study.db --json
    """
    with stores.ledger_at(store, create=True) as ledger:
        shown = {"store": str(ledger.store.place), "ledger": ledger.id}
        if as_json:
            output.print_json(shown)
            return
        output.print_fields(list(shown.items()))
        print("next: residuum budget create NAME --filter 'gdp_residue mu=1'")
