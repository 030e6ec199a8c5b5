"""`residua status`: the ledger at a glance."""

from typing import Any

import typer

from residua.cli import output, stores

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def status(
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """Show the ledger at a glance: budgets, reservations, promises.

    The head of a budget is the number of its last record and how its hash begins; --json has all of
    the hash.

    \b
    Example:
      residua status
    """
    from residua.service.api.values import plain_data

    with stores.books(store, token) as books:
        found = plain_data(books.status())
    stores.warn(found["read_only"])
    if as_json:
        output.print_json(found)
        return
    rows = [("ledger", found["ledger"])]
    rows += [(name, str(value)) for name, value in found["store"].items()]
    rows.append(("anchor", found["anchor"]))
    if found["read_only"]:
        rows.append(("read-only", found["read_only"]))
    rows += [(f"budget {one['name']}", _budget(one)) for one in found["budgets"]]
    rows += [(f"hold {one['id']}", _hold(one)) for one in found["holds"]]
    rows += [(f"data {name}", one) for name, each in found["data"].items() for one in each]
    rows += [("promised", one) for one in found["promises"]]
    output.print_fields(rows)


def _budget(one: dict[str, Any]) -> str:
    head = f"head {one['seq']}:{one['head'][:12]}..."
    if one["balance"] is None:
        return f"retired; {head}"
    return f"{one['balance']['text']}; {head}"


def _hold(one: dict[str, Any]) -> str:
    late = ", overdue" if one["overdue"] else ""
    return f"{', '.join(one['budgets'])}: {one['mechanism']}, {one['age']:.0f} s old{late}"
