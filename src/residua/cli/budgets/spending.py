"""Commands that ask a budget: `check`, `spend`, `reserve`, `commit` and `cancel`.

Exit code 0 where the query is admitted, 3 where it is refused, and 6 where the key was already used
and --replay-ok is not given.
"""

import contextlib
import sys
from typing import Any

import typer

from residua.cli import descriptions, options, output, stores
from residua.cli.command import Result, command

app = typer.Typer(add_completion=False, rich_markup_mode=None)

REFUSED, REPLAYED = 3, 6
"""Exit codes."""
LABELS = {"binding": "refused by", "seq": "record", "head": "hash"}
"""Labels for the names of fields."""
RECEIPT = ("binding", "seq", "key", "head")
"""The fields of a receipt that are printed."""


@command(app, at=stores.open_store, cls=options.BudgetQueryCommand)
def check(
    ledger: Any,
    budget: str,
    query: list[str],
    also: list[str] | None = None,
    assume_budget_relation: bool = False,
) -> Result:
    """Ask whether a query would be admitted; spend nothing.

    Exit with status 0 if it would be admitted, 3 if it would be refused, and 4 if the ledger is
    read-only. A refusal says what is left and what would fit.

    Example:
      residua check web --eps 0.3
      residua check web --gaussian sigma=4
      residua check web --query '{"kind": "laplace", "scale": 4.0}' --json
    """
    if stores.is_local(ledger):
        from residua.ledger.recovery.anchor_check import must_be_open

        must_be_open(ledger.read_only)
    names = _names(budget, also)
    answer = ledger.check(
        names, descriptions.compose(query), assume_budget_relation=assume_budget_relation
    )
    return _result(answer, ledger, names, "binding")


@command(app, at=stores.open_store, cls=options.BudgetQueryCommand)
def spend(
    ledger: Any,
    budget: str,
    query: list[str],
    key: str | None = None,
    also: list[str] | None = None,
    assume_budget_relation: bool = False,
    replay_ok: bool = False,
) -> Result:
    """Spend budget on a query before you run it.

    Exit with status 0 if the query is admitted: the spend is on disk, and you may run the query
    once. Exit with status 3 if it is refused: nothing was spent. With a key, repeating the command
    spends nothing, prints the same receipt marked as replayed, and exits with status 6: do not run
    the query again.

    Example:
      residua spend web --eps 0.3
      residua spend web --laplace scale=4 --key monday-17
      residua spend web --gaussian sigma=8 --json
    """
    names = _names(budget, also)
    _warn_of_others(ledger, key)
    asked = descriptions.compose(query)
    receipt = ledger.spend(names, asked, key, assume_budget_relation=assume_budget_relation)
    return _result(receipt, ledger, names, *RECEIPT, replay_ok=replay_ok)


@command(app, at=stores.open_store, cls=options.BudgetQueryCommand)
def reserve(
    ledger: Any,
    budget: str,
    query: list[str],
    key: str | None = None,
    ttl: float = 3600.0,
    also: list[str] | None = None,
    assume_budget_relation: bool = False,
    replay_ok: bool = False,
) -> Result:
    """Hold budget for a query that has not started.

    Run `residua commit ID` just before the query starts, or `residua cancel ID` if it will not run.
    Otherwise the reservation expires. With a key, repeating the command prints the same reservation
    marked as replayed, and exits with status 6.

    Options:
      ttl: Seconds until the reservation expires.

    Example:
      residua reserve web --laplace scale=4 --ttl 600
    """
    names = _names(budget, also)
    _warn_of_others(ledger, key)
    asked = descriptions.compose(query)
    hold = ledger.reserve(names, asked, key, ttl, assume_budget_relation=assume_budget_relation)
    used = "this key was already used: this is the reservation that it made"
    # A refused reservation has no id.
    held = ("id", "expires") if hold.admitted else ()
    return _result(hold, ledger, names, "binding", *held, "key", replay_ok=replay_ok, used=used)


@command(app, at=stores.open_store)
def commit(ledger: Any, hold: str, key: str | None = None, replay_ok: bool = False) -> Result:
    """Debit a reservation just before its query starts.

    Exit with status 0 if the query may start, once, and with status 3 if the commit is refused for
    now. A second commit prints the same receipt marked as replayed, and exits with status 6: do not
    start the query again.

    Example:
      residua commit ID
    """
    receipt = ledger.commit(hold, key)
    used = "this reservation was already committed: do not run the query again"
    return _result(receipt, ledger, list(receipt.budgets), *RECEIPT, replay_ok=replay_ok, used=used)


@command(app, at=stores.open_store)
def cancel(
    ledger: Any,
    hold: str,
    reason: str = "cancelled",
) -> Result:
    """Cancel a reservation whose query has not started.

    Options:
      reason: The reason to record.

    Example:
      residua cancel ID --reason 'query was withdrawn'
    """
    ledger.cancel(hold, reason)
    return Result({"cancelled": hold, "reason": reason}, lambda: print(f"cancelled {hold}"))


def _names(budget: str, also: list[str] | None) -> str | list[str]:
    """One budget, or several together."""
    return [budget, *also] if also else budget


def _result(
    answer: Any,
    ledger: Any,
    named: str | list[str],
    *fields: str,
    replay_ok: bool = False,
    used: str = "this key was already used: do not run the query again",
) -> Result:
    """The answer of a ledger, with the balance after it; `used` is the message for a replay."""
    from residua.service.api.values import decision_to_dict, plain_data

    shown = {**decision_to_dict(answer), "balance": plain_data(_balance(answer, ledger, named))}
    replayed = shown["admitted"] and bool(shown.get("replayed"))

    def words() -> None:
        print(_labelled_reason(shown))
        rows = _left(shown)
        for name in fields:
            if name in ("seq", "head") and len(shown["budgets"]) > 1:
                rows += [
                    (f"{LABELS[name]} of {budget}", str(link[name]))
                    for budget, link in shown["budgets"].items()
                ]
            elif shown.get(name) is not None:
                rows.append((LABELS.get(name, name), str(shown[name])))
        if shown.get("replayed"):
            rows.append(("replayed", "yes"))
        if rows:
            output.print_fields(rows)
        if replayed:
            print(used, file=sys.stderr)

    if not shown["admitted"]:
        return Result(shown, words, REFUSED)
    return Result(shown, words, REPLAYED if replayed and not replay_ok else 0)


def _balance(answer: Any, ledger: Any, named: str | list[str]) -> Any:
    """What is left after an answer: of one budget, or by name.

    A service leaves it out of answers; then it is read now, of the budgets that are in scope.
    """
    from residua.errors import AccessDenied

    if answer.balance is not None:
        return answer.balance
    names = [named] if isinstance(named, str) else named
    found = {}
    for name in names:
        with contextlib.suppress(AccessDenied):
            found[name] = ledger.budget(name).balance
    return found[names[0]] if len(found) == 1 == len(names) else found


def _left(shown: dict[str, Any]) -> list[tuple[str, str]]:
    """What is left, as rows: one, or one for each of several budgets."""
    label, balance = shown["remaining_is"], shown["balance"] or {}
    if "share" in balance:
        return [(label, balance["text"])]
    return [(f"{label} in {name}", one["text"]) for name, one in balance.items() if one]


def _labelled_reason(shown: dict[str, Any]) -> str:
    """The reason; where several budgets are charged, with the one whose cost it says."""
    reason, budgets = str(shown["reason"]), shown.get("budgets", {})
    if len(budgets) > 1 and shown["admitted"]:
        of = next(name for name, link in budgets.items() if link["head"] == shown["head"])
        return f"budget {of!r}: {reason}"
    return reason


def _warn_of_others(ledger: Any, key: str | None) -> None:
    """Warn of a key that is new to the caller and that others have used.

    Keys belong to principals: `local`, which is Python's own, and those of the tokens are checked.
    """
    if key is None or not stores.is_local(ledger):
        return
    from sqlalchemy import select

    from residua.ledger.storage.schema import keys
    from residua.service.auth import TokenStore

    known = {"local", ledger.principal, *(one.principal for one in TokenStore(ledger).every())}
    query = select(keys.c.principal).where(keys.c.principal.in_(known), keys.c.key == key)
    with ledger.store.reading() as connection:
        used = set(connection.execute(query).scalars())
    if used and ledger.principal not in used:
        print(
            f"warning: the key {key!r} was used by {', '.join(map(repr, sorted(used)))}; for"
            f" {ledger.principal!r} it is a new key",
            file=sys.stderr,
        )
