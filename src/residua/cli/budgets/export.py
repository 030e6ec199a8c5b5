"""`residua export`: the whole ledger as JSON Lines."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from residua.cli import output, stores
from residua.errors import ArgumentError

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def export(
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write here instead of printing.")
    ] = None,
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """Write the whole ledger as JSON Lines.

    Every record with its hash, and the tables that a verifier needs: enough to verify the ledger
    elsewhere, and to re-apply what a restored backup lacks. With --json and --out a summary is
    printed; without --out the lines are JSON already.

    \b
    Example:
      residua export --out ledger.jsonl
    """
    with stores.books(store, token, read_only=True) as books:
        if out is None:
            books.export(sys.stdout)
            return
        from residua.ledger.recovery.export_file import check_spares

        try:
            check_spares("out", out)
            with out.open("w", encoding="utf-8") as file:
                lines = books.export(file)
        except OSError as error:
            raise ArgumentError(f"out must be a file to write, got {out} ({error})") from None
    if as_json:
        output.print_json({"out": str(out), "lines": lines})
    else:
        print(f"wrote {lines} lines to {out}")
