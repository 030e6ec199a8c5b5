"""`residua init`: a new ledger."""

from typing import TYPE_CHECKING, Annotated

import typer

from residua.cli import output, stores
from residua.errors import NotALedger

if TYPE_CHECKING:
    from residua.ledger.api.ledger import Ledger

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def init(
    store: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            envvar="RESIDUA_STORE",
            show_envvar=False,
            help="A file, sqlite:///... or postgresql://...; or RESIDUA_STORE.",
        ),
    ] = stores.DEFAULT,
    as_json: output.AsJson = False,
) -> None:
    """Create a ledger for budgets in a file or database.

    Nothing happens to one that exists; what it has is told. Beside a SQLite file lies its anchor,
    which notices when a backup was restored: keep it where it is. Where the anchor of a ledger lies
    whose file was lost, the new one is read-only: give it the export (residua recover --export).

    \b
    Example:
      residua init
      residua init sqlite:///study.db --json
    """
    try:
        with stores.ledger_at(store, create=False) as ledger:
            _tell(ledger, False, as_json)
    except NotALedger:
        # Something else in this place is an error once more.
        with stores.ledger_at(store, create=True) as ledger:
            _tell(ledger, True, as_json)


def _tell(ledger: "Ledger", created: bool, as_json: bool) -> None:
    shown = {"store": str(ledger.store.place), "ledger": ledger.id}
    budgets = ledger.budgets()
    if as_json:
        output.print_json({**shown, "created": created, "budgets": len(budgets)})
    else:
        output.print_fields(list(shown.items()))
        if not created:
            records = sum(one.seq + 1 for one in budgets)
            has = f"{_counted(len(budgets), 'budget')} with {_counted(records, 'record')}"
            print(f"there is a ledger already, and nothing happened to it: {has}")
    stores.warn(ledger.read_only)
    if ledger.read_only is not None and created:
        raise typer.Exit(4)
    if as_json:
        return
    if not budgets:
        print("next: residua budget create NAME --filter 'gdp_residue mu=1'")
    elif not created:
        print(f"next: residua budget list --store {ledger.store.place}")


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
