"""The command line.

`main` is what the `residua` command calls. It needs Typer and Rich, which the core does not, so
it asks for them by name before anything else is loaded.

To add a command: write a function in the module of its subject, with the decorator of its `app`,
and give it a line in the table of `cli/app.py`.
"""

import os
import sys
from importlib.util import find_spec

__all__ = ["main"]

REQUIRED = ("typer", "rich")


def main() -> None:
    """Run the command line; without Typer and Rich, say what to install."""
    missing = [name for name in REQUIRED if find_spec(name) is None]
    if missing:
        print(
            f"the residua command needs {' and '.join(missing)} (not installed); "
            "install with: pip install 'residua[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)  # As for bad input: see the table in `cli/app.py`.
    from residua.cli.app import PIPE_CLOSED, app

    printed = sys.stdout
    try:
        app()
    except SystemExit as leaving:
        # Typer wraps the stream where the pipe breaks outside a command, in the help.
        if leaving.code == PIPE_CLOSED or sys.stdout is not printed or not _flush():
            _discard_output()
            sys.exit(PIPE_CLOSED)
        raise


def _flush() -> bool:
    """Write out what is still buffered; False if the reader closed the pipe."""
    try:
        if sys.__stdout__ is not None:
            sys.__stdout__.flush()
    except BrokenPipeError:
        return False
    return True


def _discard_output() -> None:
    """Discard what is left in the buffer: Python would report an error as it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
