"""`residuum version`: which residuum this is, and on what it runs."""

import platform
from importlib.metadata import version as installed

import typer

from residuum.cli import output

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def version(as_json: output.AsJson = False) -> None:
    """Print the versions of residuum, Python, numpy and scipy.

    \b
    Example:
      residuum version
    """
    versions = {
        "residuum": installed("residuum"),
        "python": platform.python_version(),
        "numpy": installed("numpy"),
        "scipy": installed("scipy"),
    }
    if as_json:
        output.print_json(versions)
        return
    for name, number in versions.items():
        print(f"{name} {number}")
