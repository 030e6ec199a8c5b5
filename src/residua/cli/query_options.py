"""What the commands that ask a budget share: arguments, and how an answer is shown.

Exit code 0 where the query is admitted, 3 where it is refused, and 6 where the key was already used
and --replay-ok is not given.
"""

import contextlib
import sys
from typing import Annotated, Any

import typer

from residua.cli import output

__all__ = [
    "REFUSED",
    "Also",
    "Assume",
    "Budget",
    "Key",
    "Query",
    "ReplayOk",
    "finish",
    "names",
    "warn_of_others",
    "with_balance",
]

REFUSED = 3
REPLAYED = 6
LABELS = {"binding": "refused by", "seq": "record", "head": "hash"}
"""What people read for the names of fields."""

Budget = Annotated[str, typer.Argument(metavar="BUDGET", help="The name of the budget.")]
Query = Annotated[
    list[str],
    typer.Argument(metavar="QUERY", help="Queries as JSON or by flags; several are composed."),
]
Key = Annotated[
    str | None,
    typer.Option(
        help="Your own id: asked again with it, nothing is spent twice. It belongs to who asks:"
        " here the user of this machine, 'local' in Python unless open_ledger(principal=...) says"
        " otherwise, and the token's name at a service."
    ),
]
Also = Annotated[
    list[str] | None,
    typer.Option(metavar="BUDGET", help="Another budget to charge as well; may be repeated."),
]
Assume = Annotated[
    bool,
    typer.Option(
        "--assume-budget-relation",
        help="Take a black box that declares no relation to be of the budget's. Recorded.",
    ),
]


def names(budget: str, also: list[str] | None) -> str | list[str]:
    """One budget, or several together."""
    return [budget, *also] if also else budget


ReplayOk = Annotated[
    bool,
    typer.Option("--replay-ok", help="Exit with 0, not 6, if this key was already used."),
]


def finish(
    shown: dict[str, Any],
    as_json: bool,
    *fields: str,
    replay_ok: bool = False,
    used: str = "this key was already used: do not run the query again",
) -> None:
    """Print an answer, and exit with the code that it means; `used` is said of a replay."""
    if as_json:
        output.print_json(shown)
    else:
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
    if not shown["admitted"]:
        raise typer.Exit(REFUSED)
    if shown.get("replayed"):
        if not as_json:
            print(used, file=sys.stderr)
        raise typer.Exit(0 if replay_ok else REPLAYED)
    raise typer.Exit(0)


def with_balance(
    shown: dict[str, Any], answer: Any, books: Any, named: str | list[str] | None = None
) -> dict[str, Any]:
    """An answer as JSON data with the balance after it, of the budgets that were named.

    A service leaves it out of answers; then it is read now, of the budgets that are in scope.
    """
    from residua.errors import AccessDenied
    from residua.service.api.values import balance_data

    found = answer.balance
    if found is None:
        names = [named] if isinstance(named, str) else named or list(shown["budgets"])
        found = {}
        for name in names:
            with contextlib.suppress(AccessDenied):
                found[name] = books.budget(name).balance
        if len(found) == 1 == len(names):
            (found,) = found.values()
    return {**shown, "balance": balance_data(found)}


def _left(shown: dict[str, Any]) -> list[tuple[str, str]]:
    """What is left, as rows: one, or one for each of several budgets."""
    label, balance = shown["remaining_is"], shown["balance"]
    if not balance:
        left = in_words(shown["remaining"])
        return [(label, left)] if left else []
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


def warn_of_others(books: Any, key: str | None) -> None:
    """Before it is used: tell of a key that is new to the caller, and that others have used.

    Python without a name and the tokens are looked for: keys are found by whose they are.
    """
    if key is None or not hasattr(books, "store"):
        return
    from sqlalchemy import select

    from residua.ledger.storage.schema import keys
    from residua.service.auth.token_store import TokenStore

    known = {"local", books.principal, *(one.principal for one in TokenStore(books).every())}
    query = select(keys.c.principal).where(keys.c.principal.in_(known), keys.c.key == key)
    with books.store.reading() as connection:
        used = set(connection.execute(query).scalars())
    if used and books.principal not in used:
        print(
            f"warning: the key {key!r} was used by {', '.join(map(repr, sorted(used)))}; for"
            f" {books.principal!r} it is another one",
            file=sys.stderr,
        )


def in_words(remaining: Any) -> str:
    """What is left, in words."""
    if not isinstance(remaining, dict):
        return ""
    if isinstance(remaining.get("text"), str):
        return str(remaining["text"])
    parts = [f"{name}: {in_words(value)}" for name, value in remaining.items()]
    return "; ".join(part for part in parts if not part.endswith(": "))
