"""`residua version`: which residua this is, and on what it runs."""

import platform
from importlib.metadata import version as installed

import typer

from residua.cli import output

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def version(as_json: output.AsJson = False) -> None:
    """Print the versions of residua, Python, numpy and scipy.

    \b
    Example:
      residua version
    """
    versions = {
        "residua": installed("residua"),
        "python": platform.python_version(),
        "numpy": installed("numpy"),
        "scipy": installed("scipy"),
    }
    if as_json:
        output.print_json(versions)
        return
    for name, number in versions.items():
        print(f"{name} {number}")
