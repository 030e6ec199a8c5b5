"""`residua recover`: after a backup was restored."""

from pathlib import Path
from typing import Annotated

import typer

from residua.cli import heads, output, stores

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def recover(
    exported: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Take over the records that this file has."),
    ] = None,
    vouched: Annotated[
        list[str] | None,
        typer.Option(
            "--head",
            metavar="BUDGET=[SEQ:]HASH",
            help="Without an anchor: vouch that this is the budget's last record; may be repeated.",
        ),
    ] = None,
    retire: Annotated[
        bool, typer.Option("--retire", help="Retire what lost spends, as if all were spent.")
    ] = False,
    store: stores.Store = stores.DEFAULT,
    anchor: stores.AnchorText = None,
    as_json: output.AsJson = False,
) -> None:
    """Make a restored ledger writable again, without un-spending.

    A ledger that lost what its anchor knows opens read-only. With an export that is newer than the
    backup the lost records are taken over; what is lost for good can only be retired, as fully
    spent. Where the anchor is lost too, nobody can tell whether an export has everything: vouch for
    the last record of each budget, as receipts have it, or retire. What was done is recorded in
    every budget that it concerns.

    \b
    Example:
      residua recover --retire
    """
    from residua.service.api.values import plain_data

    with stores.ledger_at(store, create=False, anchor=anchor) as ledger:
        healthy = ledger.read_only is None
        found = plain_data(ledger.recover(exported, retire, heads.by_budget("--head", vouched)))
    if as_json:
        output.print_json(found)
    elif healthy and not any(found.values()):
        print("there was nothing to recover: the ledger was not read-only, and lacked nothing")
    else:
        output.print_fields(
            [
                (name, ", ".join(value) or "none" if isinstance(value, list) else str(value))
                for name, value in found.items()
            ]
        )
