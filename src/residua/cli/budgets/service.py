"""`residua serve` and `residua token`: the budget service, and who may use it."""

import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from residua.cli import output, stores

if TYPE_CHECKING:
    from residua.service.auth import Token


app = typer.Typer(add_completion=False, rich_markup_mode=None)
group = typer.Typer(add_completion=False, rich_markup_mode=None)
app.add_typer(group, name="token")


@app.command()
def serve(
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A file, sqlite:///... or postgresql://... "
            "(default: RESIDUA_STORE, then sqlite:///budgets.db).",
        ),
    ] = None,
    host: Annotated[str | None, typer.Option(help="Listen on this address.")] = None,
    port: Annotated[int | None, typer.Option(help="Listen on this port; 0 for a free one.")] = None,
    dev: Annotated[
        bool, typer.Option("--dev", help="Treat every caller as an admin; on loopback only.")
    ] = False,
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help="Read settings from this TOML file.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Number of processes for slow computations.")
    ] = None,
    log_format: Annotated[str | None, typer.Option(help="Log as json or text.")] = None,
    log_level: Annotated[
        str | None, typer.Option(help="Lowest level to log: debug, info, warning or error.")
    ] = None,
    as_json: output.AsJson = False,
) -> None:
    """Run the budget service until it is stopped.

    By default it listens on loopback. Every request needs a token, and the service does not listen
    beyond loopback until a token exists. Settings can also come from the environment (RESIDUA_PORT)
    or from a file; see docs/service.md. With --json the address is printed as a JSON object.

    Example:
      residua serve --store sqlite:///budgets.db --port 8321
      residua serve --dev --log-format text
    """  # fmt: skip
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


@group.command()
def create(
    role: Annotated[str, typer.Option(help="The role: admin, engine, analyst or auditor.")],
    name: Annotated[
        str | None,
        typer.Option(help="The principal that the ledger records; keys belong to it."),
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(help="Restrict to this budget, or a prefix followed by *; may be repeated."),
    ] = None,
    days: Annotated[float | None, typer.Option(help="Days until the token expires.")] = None,
    store: stores.Store = stores.DEFAULT,
    as_json: output.AsJson = False,
) -> None:
    """Create a token; it is shown only once.

    The ledger is created if it does not exist yet.

    Example:
      residua token create --store sqlite:///budgets.db --role admin --json
    """
    stores.need("sqlalchemy")
    from residua.service import auth
    from residua.service.auth import TokenStore

    made, text = auth.new_token(role, name, budget or None, days)
    with stores.ledger_at(store, create=True) as ledger:
        TokenStore(ledger).add(made)
    if as_json:
        output.print_json({"token": text, **_plain(made)})
        return
    print(text)
    output.print_fields([(name, str(value)) for name, value in _plain(made).items()])
    print("copy the token now: it is not shown again")


@group.command()
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="The id of the token, as listed.")],
    store: stores.Store = stores.DEFAULT,
    as_json: output.AsJson = False,
) -> None:
    """Revoke a token; services notice within a second.

    Example:
      residua token revoke ID
    """
    stores.need("sqlalchemy")
    from residua.service.auth import TokenStore

    # The id of a whole token is between its underscores.
    id = id.split("_")[1] if id.startswith("rz_") and id.count("_") >= 2 else id
    with stores.ledger_at(store, create=False) as ledger:
        found = TokenStore(ledger).revoke(id)
    if as_json:
        output.print_json(_plain(found))
    else:
        print(f"revoked {found.id} ({found.role}, {found.principal})")


@group.command("list")
def every(
    store: stores.Store = stores.DEFAULT,
    as_json: output.AsJson = False,
) -> None:
    """List tokens, never their secrets.

    Example:
      residua token list --json
    """
    stores.need("sqlalchemy")
    from residua.service.auth import TokenStore

    with stores.ledger_at(store, create=False) as ledger:
        found = TokenStore(ledger).every()
    if as_json:
        output.print_json({"tokens": [_plain(one) for one in found]})
        return
    if not found:
        print("no tokens; create one with: residua token create --role admin")
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
