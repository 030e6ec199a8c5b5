"""`residua history`: what was asked of a budget."""

import itertools
from typing import Annotated, Any

import typer

from residua.cli import output, query_options, stores

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def history(
    budget: query_options.Budget,
    after: Annotated[int | None, typer.Option(help="Begin after this number.")] = None,
    limit: Annotated[int, typer.Option(help="At most so many.", min=1)] = 1000,
    refused: Annotated[bool, typer.Option("--refused", help="Only what was refused.")] = False,
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """Show what was asked of a budget, and what it said.

    \b
    Example:
      residua history web
      residua history web --refused --json
    """
    from residua.service.api.values import record_to_dict

    with stores.books(store, token, read_only=True) as books:
        every = books.history(budget, after=after)
        wanted = (one for one in every if not refused or one.admitted is False)
        items = [record_to_dict(one) for one in itertools.islice(wanted, limit)]
    if as_json:
        output.print_json({"budget": budget, "items": items})
        return
    if not items:
        print("nothing")
    for one in items:
        print(f"{one['seq']:>6}  {one['time']}  {one['by']}  {_what(one)}")


def _what(one: dict[str, Any]) -> str:
    key = f" [{one['key']}]" if one["key"] else ""
    return f"{one['type']}{key}" + (f"  {one['reason']}" if one["reason"] else "")
