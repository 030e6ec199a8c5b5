"""`residua figures`: the pictures of the documentation, from computation."""

from pathlib import Path

import typer

from residua.cli import output
from residua.cli.command import Result, command
from residua.errors import ArgumentError, ResiduaError

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@command(app)
def figures(
    out: Path,
    only: list[str] | None = None,
    format: list[str] | None = None,
) -> Result:
    """Draw the pictures of the documentation.

    Every picture is computed, and its caption has the computed numbers. Without --only, all of them
    are drawn, which takes about half a minute. Their names are gdp-residue, natural-guarantee,
    natural-filter-fails, gaussian-budgets and strategy.

    Options:
      out: Write the files to this directory.
      only (NAME): Draw this picture only; may be repeated.
      format (KIND): Write svg or png; may be repeated (default: both).

    Example:
      residua figures --out figures --only strategy
      residua figures --out figures --only gdp-residue --format svg --json
    """
    from residua import checks
    from residua.figures.gallery import GALLERY
    from residua.figures.picture import FORMATS, write

    names = tuple(dict.fromkeys(only or GALLERY))
    kinds = tuple(dict.fromkeys(format or FORMATS))
    for name in names:
        checks.one_of("only", name, tuple(GALLERY))
    for kind in kinds:
        checks.one_of("format", kind, tuple(FORMATS))
    if out.exists() and not out.is_dir():
        raise ArgumentError(f"out must be a directory, got {out}")
    drawn, trouble = [], ""
    with output.progress("figures") as report:
        for name in names:
            report(name, 0, 1)
            picture = GALLERY[name](lambda done, whole, name=name: report(name, done, whole))  # type: ignore[misc]
            paths: list[Path] = []
            try:
                paths = write(picture, out, kinds)
            except ResiduaError as error:
                if not isinstance(error.__cause__, ModuleNotFoundError):
                    raise
                trouble = f"no pictures: {error}"
            drawn.append((picture, paths))
    shown = [
        {
            "name": picture.name,
            "title": picture.title,
            "caption": picture.caption,
            "files": [str(path) for path in paths],
            "numbers": picture.numbers(),
        }
        for picture, paths in drawn
    ]

    def words() -> None:
        for picture, paths in drawn:
            print(f"{', '.join(map(str, paths)) or picture.name}\n  {picture.caption}\n")

    if trouble:
        typer.echo(trouble, err=True)
    return Result({"figures": shown}, words, 1 if trouble else 0)
