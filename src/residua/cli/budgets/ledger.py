"""Commands on a whole ledger: `init`, `status`, `history`, `export` and `recover`."""

import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from residua.cli import output, stores
from residua.cli.command import Result, command
from residua.errors import ArgumentError, NotALedger

if TYPE_CHECKING:
    from residua.ledger.api.ledger import Ledger


app = typer.Typer(add_completion=False, rich_markup_mode=None)


@command(app)
def init(
    store: str = stores.DEFAULT,
) -> Result:
    """Create a ledger for budgets in a file or database.

    An existing ledger is not changed; its contents are summarised. The anchor beside a SQLite file
    detects that a backup was restored: keep it where it is. If the anchor belongs to a lost ledger,
    the new ledger is read-only: recover it from an export (residua recover --export).

    Operands:
      store (URL $RESIDUA_STORE): A file, sqlite:///... or postgresql://... (or RESIDUA_STORE).

    Example:
      residua init
      residua init sqlite:///study.db --json
    """
    try:
        with stores.ledger_at(store, create=False) as ledger:
            return _init_result(ledger, False)
    except NotALedger:
        # A file that is something else is an error here too.
        with stores.ledger_at(store, create=True) as ledger:
            return _init_result(ledger, True)


def _init_result(ledger: "Ledger", created: bool) -> Result:
    shown = {"store": str(ledger.store.place), "ledger": ledger.id}
    budgets, read_only = ledger.budgets(), ledger.read_only
    lost = read_only is not None and created

    def words() -> None:
        output.print_fields(list(shown.items()))
        if not created:
            records = sum(one.seq + 1 for one in budgets)
            has = f"{_plural(len(budgets), 'budget')} with {_plural(records, 'record')}"
            print(f"the ledger already exists and was not changed: {has}")
        if not budgets and not lost:
            print("next: residua budget create NAME --eps 1")
        elif budgets and not created:
            print(f"next: residua budget list --store {shown['store']}")

    stores.warn(read_only)
    return Result({**shown, "created": created, "budgets": len(budgets)}, words, 4 if lost else 0)


def _plural(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


@command(app, at=stores.open_store)
def status(ledger: Any) -> Result:
    """Show the ledger at a glance: budgets, reservations, promises.

    The head of a budget is the number of its last record and the beginning of that record's hash;
    --json shows the whole hash.

    Example:
      residua status
    """
    from residua.service.api.values import plain_data

    found = plain_data(ledger.status())
    stores.warn(found["read_only"])
    rows = [("ledger", found["ledger"])]
    rows += [(name, str(value)) for name, value in found["store"].items()]
    rows.append(("anchor", found["anchor"]))
    if found["read_only"]:
        rows.append(("read-only", found["read_only"]))
    rows += [(f"budget {one['name']}", _budget_words(one)) for one in found["budgets"]]
    rows += [(f"hold {one['id']}", _hold_words(one)) for one in found["holds"]]
    rows += [(f"data {name}", one) for name, each in found["data"].items() for one in each]
    rows += [("promised", one) for one in found["promises"]]
    return Result(found, rows)


def _budget_words(one: dict[str, Any]) -> str:
    head = f"head {one['seq']}:{one['head'][:12]}..."
    if one["balance"] is None:
        return f"retired; {head}"
    return f"{one['balance']['text']}; {head}"


def _hold_words(one: dict[str, Any]) -> str:
    late = ", overdue" if one["overdue"] else ""
    return f"{', '.join(one['budgets'])}: {one['mechanism']}, {one['age']:.0f} s old{late}"


@command(app, at=stores.read_store)
def history(
    ledger: Any,
    budget: str,
    after: int | None = None,
    limit: Annotated[int, typer.Option(help="Show at most this many records.", min=1)] = 1000,
    refused: bool = False,
) -> Result:
    """Show the requests to a budget and how they were decided.

    Options:
      after: Start after the record of this number.
      refused: Show refused requests only.

    Example:
      residua history web
      residua history web --refused --json
    """
    from residua.service.api.values import record_to_dict

    every = ledger.history(budget, after=after)
    wanted = (one for one in every if not refused or one.admitted is False)
    items = [record_to_dict(one) for one in itertools.islice(wanted, limit)]
    lines = [f"{one['seq']:>6}  {one['time']}  {one['by']}  {_record_words(one)}" for one in items]
    return Result({"budget": budget, "items": items}, lambda: print("\n".join(lines) or "nothing"))


def _record_words(one: dict[str, Any]) -> str:
    key = f" [{one['key']}]" if one["key"] else ""
    return f"{one['type']}{key}" + (f"  {one['reason']}" if one["reason"] else "")


@command(app, at=stores.read_store)
def export(
    ledger: Any,
    out: Path | None = None,
) -> Result | None:
    """Write the whole ledger as JSON Lines.

    The export has every record with its hash, and the tables that a verifier needs. It is enough to
    verify the ledger elsewhere, and to recover what a restored backup lacks. --json prints a
    summary if --out is given; without --out it has no effect.

    Options:
      out (FILE): Write to this file instead of printing.

    Example:
      residua export --out ledger.jsonl
    """
    if out is None:
        ledger.export(sys.stdout)
        return None
    from residua.ledger.recovery.export_file import check_spares

    try:
        check_spares("out", out)
        with out.open("w", encoding="utf-8") as file:
            lines = ledger.export(file)
    except OSError as error:
        raise ArgumentError(f"out must be a writable file, got {out} ({error})") from None
    shown = {"out": str(out), "lines": lines}
    return Result(shown, lambda: print(f"wrote {lines} lines to {out}"))


@command(app, at=stores.ledger_and_anchor)
def recover(
    ledger: Any,
    export: Path | None = None,
    head: list[str] | None = None,
    retire: bool = False,
) -> Result:
    """Recover a restored ledger without giving back what was spent.

    A ledger that is behind its anchor opens read-only. If an export is newer than the backup, the
    lost records can be applied again; a budget whose records are lost for good can only be retired
    as fully spent. If the anchor is lost too, nothing shows that an export is complete: vouch for
    the last record of each budget, as on its receipt, or retire the budget. The recovery is
    recorded in every budget that it concerns.

    Options:
      export (FILE): Apply the records of this export.
      head (BUDGET=[SEQ:]HASH): Vouch for a budget's last record if there is no anchor; may be
          repeated.
      retire: Retire budgets that lost spends, as fully spent.

    Example:
      residua recover --retire
    """
    from residua.service.api.values import plain_data

    healthy = ledger.read_only is None
    vouched_for = stores.heads_by_budget("--head", head)
    found = plain_data(ledger.recover(export, retire, vouched_for))
    rows = [
        (name, ", ".join(value) or "none" if isinstance(value, list) else str(value))
        for name, value in found.items()
    ]
    if healthy and not any(found.values()):
        nothing = (
            "there was nothing to recover: the ledger was not read-only, and nothing was missing"
        )
        return Result(found, lambda: print(nothing))
    return Result(found, rows)
