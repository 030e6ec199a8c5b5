"""`residua serve` and `residua token`: the budget service, and who may use it."""

import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from residua.cli import output, stores
from residua.cli.command import Result, command, subgroup

if TYPE_CHECKING:
    from residua.service.auth import Token


app = typer.Typer(add_completion=False, rich_markup_mode=None)
group = subgroup(app, "token")


@command(app)
def serve(
    store: str | None = None,
    host: str | None = None,
    port: int | None = None,
    dev: bool = False,
    config: str | None = None,
    workers: int | None = None,
    log_format: str | None = None,
    log_level: str | None = None,
    as_json: bool = False,
) -> None:
    """Run the budget service until it is stopped.

    By default it listens on loopback. Every request needs a token, and the service does not listen
    beyond loopback until a token exists. Settings can also come from the environment (such as
    RESIDUA_PORT) or from a file; see docs/service.md. With --json the address is printed as a JSON
    object.

    Options:
      store (URL): A file, sqlite:///... or postgresql://... (default: RESIDUA_STORE, then
          sqlite:///budgets.db).
      host: Listen on this address.
      port: Listen on this port; 0 for a free one.
      dev: Treat every caller as an admin (loopback only).
      config (FILE): Read settings from this TOML file.
      workers: Number of processes for slow computations.
      log_format: Log as json or text.
      log_level: Lowest level to log: debug, info, warning or error.

    Example:
      residua serve --store sqlite:///budgets.db --port 8321
      residua serve --dev --log-format text
    """
    stores.need("fastapi", "uvicorn", "sqlalchemy", "prometheus_client")
    from residua.service.serving import run
    from residua.service.settings import gather

    flags = {
        "store": store,
        "host": host,
        "port": port,
        "dev": dev or None,
        "workers": workers,
        "log_format": log_format,
        "log_level": log_level,
    }

    def started(url: str) -> None:
        if as_json:
            output.print_json({"url": url})
        else:
            print(f"budget service at {url} (for a browser, too); Ctrl-C ends it")
        # A program that reads the address from a pipe would wait for it until the service ends.
        sys.stdout.flush()

    run(gather(flags, os.environ, config), started)


@group.callback()
def token() -> None:
    """Create, revoke and list tokens for the budget service.

    A token has a role. An admin may do everything. An engine runs mechanisms; only engines and
    admins spend, reserve, commit and cancel. An analyst checks, plans and reads. An auditor reads
    everything and verifies. Tokens of engines and analysts can be limited to some budgets. All of
    these commands take --store and --json.

    Example:
      residua token create --role engine --name query-engine
      residua token create --role analyst --budget web --days 90 --json
      residua token list
    """


@command(group)
def create(
    role: str,
    name: str | None = None,
    budget: list[str] | None = None,
    days: float | None = None,
    store: str = stores.DEFAULT,
) -> Result:
    """Create a token; it is shown only once.

    The ledger is created if it does not exist yet.

    Options:
      role: The role: admin, engine, analyst or auditor.
      name: The principal that the ledger records; keys belong to it.
      budget (BUDGET): Restrict to this budget, or a prefix followed by *; may be repeated.
      days: Days until the token expires.

    Example:
      residua token create --store sqlite:///budgets.db --role admin --json
    """
    stores.need("sqlalchemy")
    from residua.service.auth import TokenStore, new_token

    made, text = new_token(role, name, budget or None, days)
    with stores.ledger_at(store, create=True) as ledger:
        TokenStore(ledger).add(made)
    shown = _plain(made)

    def words() -> None:
        print(text)
        output.print_fields([(name, str(value)) for name, value in shown.items()])
        print("copy the token now: it is not shown again")

    return Result({"token": text, **shown}, words)


@command(group, at=stores.ledger)
def revoke(ledger: Any, id: str) -> Result:
    """Revoke a token; services notice within a second.

    Operands:
      id (ID): The token's id (see residua token list).

    Example:
      residua token revoke ID
    """
    from residua.service.auth import TokenStore

    # The id of a whole token is between its underscores.
    id = id.split("_")[1] if id.startswith("rz_") and id.count("_") >= 2 else id
    found = TokenStore(ledger).revoke(id)
    said = f"revoked {found.id} ({found.role}, {found.principal})"
    return Result(_plain(found), lambda: print(said))


@command(group, "list", at=stores.ledger)
def every(ledger: Any) -> Result:
    """List tokens, never their secrets.

    Example:
      residua token list --json
    """
    from residua.service.auth import TokenStore

    found = [_plain(one) for one in TokenStore(ledger).every()]
    rows = [
        (one["name"], one["role"], one["id"],
         "all" if one["budgets"] is None else ", ".join(one["budgets"]), one["state"])
        for one in found
    ]  # fmt: skip

    def words() -> None:
        if rows:
            output.print_table("tokens", ("name", "role", "id", "budgets", "state"), rows)
        else:
            print("no tokens; create one with: residua token create --role admin")

    return Result({"tokens": found}, words)


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
