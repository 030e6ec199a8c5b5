"""`residua token`: who may talk to a service."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from residua.cli import output, stores

if TYPE_CHECKING:
    from residua.service.auth.tokens import Token

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.callback()
def token() -> None:
    """Tokens for the budget service: create, revoke, list.

    A token has a role: admin does everything; engine runs mechanisms and alone spends, reserves,
    commits and cancels; analyst checks, plans and reads; auditor reads everything and verifies. An
    engine or an analyst can be kept to some budgets. Options of each: residua token create --help,
    of which --json is one.

    \b
    Example:
      residua token create --role engine --name query-engine
      residua token create --role analyst --budget web --days 90 --json
      residua token list
    """


@app.command()
def create(
    role: Annotated[str, typer.Option(help="admin, engine, analyst or auditor.")],
    name: Annotated[
        str | None,
        typer.Option(help="In whose name the ledger records; keys belong to that name."),
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(help="Only this budget, or beginnings with a * at the end; may be repeated."),
    ] = None,
    days: Annotated[float | None, typer.Option(help="Days until it expires.")] = None,
    store: stores.Store = stores.DEFAULT,
    as_json: output.AsJson = False,
) -> None:
    """Create a token; it is shown once and kept nowhere.

    The ledger is created where there is none yet.

    \b
    Example:
      residua token create --store sqlite:///budgets.db --role admin --json
    """
    stores.need("sqlalchemy")
    from residua.service.auth import tokens
    from residua.service.auth.token_store import TokenStore

    made, text = tokens.made(role, name, budget or None, days)
    with stores.ledger_at(store, create=True) as ledger:
        TokenStore(ledger).add(made)
    if as_json:
        output.print_json({"token": text, **_plain(made)})
        return
    print(text)
    output.print_fields([(name, str(value)) for name, value in _plain(made).items()])
    print("this is the only time it is shown")


@app.command()
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="The id of the token, as listed.")],
    store: stores.Store = stores.DEFAULT,
    as_json: output.AsJson = False,
) -> None:
    """Revoke a token; services notice within a second.

    \b
    Example:
      residua token revoke ID
    """
    stores.need("sqlalchemy")
    from residua.service.auth.token_store import TokenStore

    # A whole token may be given: its id stands between the underscores.
    id = id.split("_")[1] if id.startswith("rz_") and id.count("_") >= 2 else id
    with stores.ledger_at(store, create=False) as ledger:
        found = TokenStore(ledger).revoke(id)
    if as_json:
        output.print_json(_plain(found))
    else:
        print(f"revoked {found.id} ({found.role}, {found.principal})")


@app.command("list")
def every(
    store: stores.Store = stores.DEFAULT,
    as_json: output.AsJson = False,
) -> None:
    """List tokens, never their secrets.

    \b
    Example:
      residua token list --json
    """
    stores.need("sqlalchemy")
    from residua.service.auth.token_store import TokenStore

    with stores.ledger_at(store, create=False) as ledger:
        found = TokenStore(ledger).every()
    if as_json:
        output.print_json({"tokens": [_plain(one) for one in found]})
        return
    if not found:
        print("no tokens; residua token create --role admin makes one")
        return
    now = datetime.now(UTC)
    rows = [
        (one.principal, one.role, one.id, "all" if one.scope is None else ", ".join(one.scope),
         one.state(now))
        for one in found
    ]  # fmt: skip
    output.print_table("tokens", ("name", "role", "id", "budgets", "state"), rows)


def _plain(token: "Token") -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.principal,
        "role": token.role,
        "budgets": None if token.scope is None else list(token.scope),
        "created": token.created.isoformat(timespec="seconds"),
        "expires": None if token.expires is None else token.expires.isoformat(timespec="seconds"),
        "state": token.state(datetime.now(UTC)),
    }
