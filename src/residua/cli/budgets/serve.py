"""`residua serve`: the budget service."""

import os
import sys
from typing import Annotated

import typer

from residua.cli import output, stores

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def serve(
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A file, sqlite:///... or postgresql://...; default: "
            "RESIDUA_STORE, then sqlite:///budgets.db.",
        ),
    ] = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="The port; 0 for a free one.")] = None,
    dev: Annotated[
        bool, typer.Option("--dev", help="On loopback only: no token is needed, all are admins.")
    ] = False,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="Settings as TOML.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes for what takes long to compute.")
    ] = None,
    log_format: Annotated[str | None, typer.Option(help="json or text.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    as_json: output.AsJson = False,
) -> None:
    """Run the budget service, until it is told to stop.

    It listens on loopback, and everyone needs a token; beyond loopback it does not start while
    there is none. Every setting is also RESIDUA_NAME in the environment and a name in a file, see
    docs/service.md. With --json the address is printed as a JSON object.

    \b
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
