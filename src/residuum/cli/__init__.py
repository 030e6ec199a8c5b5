"""The command line.

`main` is what the `residuum` command calls. It needs Typer and Rich, which the core does not, so
it asks for them by name before anything else is loaded.

One command a file. To add one: write `cli/<name>.py` with an `app` (a `typer.Typer` holding one
command, or several for a group), and give it a line in the table of `cli/app.py`.
"""

import sys
from importlib.util import find_spec

__all__ = ["main"]

REQUIRED = ("typer", "rich")


def main() -> None:
    """Run the command line; without Typer and Rich, say what to install."""
    missing = [name for name in REQUIRED if find_spec(name) is None]
    if missing:
        sys.exit(
            f"the residuum command needs {' and '.join(missing)}, not installed here; "
            "install with: pip install 'residuum[cli]'"
        )
    from residuum.cli.app import app

    app()
