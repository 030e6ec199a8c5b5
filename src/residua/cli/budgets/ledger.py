"""Commands on a whole ledger: `init`, `status`, `history`, `export` and `recover`."""

import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from residua.cli import options, output, stores
from residua.errors import ArgumentError, NotALedger

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
            help="A file, sqlite:///... or postgresql://... (or RESIDUA_STORE).",
        ),
    ] = stores.DEFAULT,
    as_json: output.AsJson = False,
) -> None:
    """Create a ledger for budgets in a file or database.

    An existing ledger is not changed; its contents are summarised. The anchor beside a SQLite file
    detects that a backup was restored: keep it where it is. If it belongs to a ledger that was
    lost, the new ledger is read-only: recover it from an export (residua recover --export).

    Example:
      residua init
      residua init sqlite:///study.db --json
    """
    try:
        with stores.ledger_at(store, create=False) as ledger:
            _print_ledger(ledger, False, as_json)
    except NotALedger:
        # A file that is something else is an error here too.
        with stores.ledger_at(store, create=True) as ledger:
            _print_ledger(ledger, True, as_json)


def _print_ledger(ledger: "Ledger", created: bool, as_json: bool) -> None:
    shown = {"store": str(ledger.store.place), "ledger": ledger.id}
    budgets = ledger.budgets()
    if as_json:
        output.print_json({**shown, "created": created, "budgets": len(budgets)})
    else:
        output.print_fields(list(shown.items()))
        if not created:
            records = sum(one.seq + 1 for one in budgets)
            has = f"{_plural(len(budgets), 'budget')} with {_plural(records, 'record')}"
            print(f"the ledger already exists and was not changed: {has}")
    stores.warn(ledger.read_only)
    if ledger.read_only is not None and created:
        raise typer.Exit(4)
    if as_json:
        return
    if not budgets:
        print("next: residua budget create NAME --eps 1")
    elif not created:
        print(f"next: residua budget list --store {ledger.store.place}")


def _plural(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


@app.command()
def status(
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """Show the ledger at a glance: budgets, reservations, promises.

    The head of a budget is the number of its last record and the beginning of that record's hash;
    --json has the whole hash.

    Example:
      residua status
    """
    from residua.service.api.values import plain_data

    with stores.open_store(store, token) as ledger:
        found = plain_data(ledger.status())
    stores.warn(found["read_only"])
    if as_json:
        output.print_json(found)
        return
    rows = [("ledger", found["ledger"])]
    rows += [(name, str(value)) for name, value in found["store"].items()]
    rows.append(("anchor", found["anchor"]))
    if found["read_only"]:
        rows.append(("read-only", found["read_only"]))
    rows += [(f"budget {one['name']}", _budget(one)) for one in found["budgets"]]
    rows += [(f"hold {one['id']}", _hold(one)) for one in found["holds"]]
    rows += [(f"data {name}", one) for name, each in found["data"].items() for one in each]
    rows += [("promised", one) for one in found["promises"]]
    output.print_fields(rows)


def _budget(one: dict[str, Any]) -> str:
    head = f"head {one['seq']}:{one['head'][:12]}..."
    if one["balance"] is None:
        return f"retired; {head}"
    return f"{one['balance']['text']}; {head}"


def _hold(one: dict[str, Any]) -> str:
    late = ", overdue" if one["overdue"] else ""
    return f"{', '.join(one['budgets'])}: {one['mechanism']}, {one['age']:.0f} s old{late}"


@app.command()
def history(
    budget: options.Budget,
    after: Annotated[
        int | None, typer.Option(help="Start after the record of this number.")
    ] = None,
    limit: Annotated[int, typer.Option(help="Show at most this many records.", min=1)] = 1000,
    refused: Annotated[bool, typer.Option("--refused", help="Show refused requests only.")] = False,
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """Show the requests to a budget and how they were decided.

    Example:
      residua history web
      residua history web --refused --json
    """
    from residua.service.api.values import record_to_dict

    with stores.open_store(store, token, read_only=True) as ledger:
        every = ledger.history(budget, after=after)
        wanted = (one for one in every if not refused or one.admitted is False)
        items = [record_to_dict(one) for one in itertools.islice(wanted, limit)]
    if as_json:
        output.print_json({"budget": budget, "items": items})
        return
    if not items:
        print("nothing")
    for one in items:
        print(f"{one['seq']:>6}  {one['time']}  {one['by']}  {_in_words(one)}")


def _in_words(one: dict[str, Any]) -> str:
    key = f" [{one['key']}]" if one["key"] else ""
    return f"{one['type']}{key}" + (f"  {one['reason']}" if one["reason"] else "")


@app.command()
def export(
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to this file instead of printing.")
    ] = None,
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """Write the whole ledger as JSON Lines.

    The export has every record with its hash, and the tables that a verifier needs. It is enough to
    verify the ledger elsewhere, and to recover what a restored backup lacks. --json prints a
    summary if --out is given; without --out it has no effect.

    Example:
      residua export --out ledger.jsonl
    """
    with stores.open_store(store, token, read_only=True) as ledger:
        if out is None:
            ledger.export(sys.stdout)
            return
        from residua.ledger.recovery.export_file import check_spares

        try:
            check_spares("out", out)
            with out.open("w", encoding="utf-8") as file:
                lines = ledger.export(file)
        except OSError as error:
            raise ArgumentError(f"out must be a writable file, got {out} ({error})") from None
    if as_json:
        output.print_json({"out": str(out), "lines": lines})
    else:
        print(f"wrote {lines} lines to {out}")


@app.command()
def recover(
    exported: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Apply the records of this export."),
    ] = None,
    vouched: Annotated[
        list[str] | None,
        typer.Option(
            "--head",
            metavar="BUDGET=[SEQ:]HASH",
            help="Vouch for a budget's last record if there is no anchor; may be repeated.",
        ),
    ] = None,
    retire: Annotated[
        bool, typer.Option("--retire", help="Retire budgets that lost spends, as fully spent.")
    ] = False,
    store: stores.Store = stores.DEFAULT,
    anchor: stores.AnchorText = None,
    as_json: output.AsJson = False,
) -> None:
    """Recover a restored ledger without giving back what was spent.

    A ledger that is behind its anchor opens read-only. If an export is newer than the backup, the
    lost records can be applied again; a budget whose records are lost for good can only be retired
    as fully spent. If the anchor is lost too, nothing shows that an export is complete: vouch for
    the last record of each budget, as on its receipt, or retire the budget. The recovery is
    recorded in every budget that it concerns.

    Example:
      residua recover --retire
    """
    from residua.service.api.values import plain_data

    with stores.ledger_at(store, create=False, anchor=anchor) as ledger:
        healthy = ledger.read_only is None
        found = plain_data(
            ledger.recover(exported, retire, stores.heads_by_budget("--head", vouched))
        )
    if as_json:
        output.print_json(found)
    elif healthy and not any(found.values()):
        print("there was nothing to recover: the ledger was not read-only, and nothing was missing")
    else:
        output.print_fields(
            [
                (name, ", ".join(value) or "none" if isinstance(value, list) else str(value))
                for name, value in found.items()
            ]
        )
