"""`residua budget`: create, list, show and retire budgets."""

from typing import TYPE_CHECKING, Annotated

import typer

from residua.cli import filters, output, query_options, stores
from residua.errors import ArgumentError, BudgetExists

if TYPE_CHECKING:
    from residua.filters import Filter
    from residua.ledger.api.views import Budget

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.callback()
def budget() -> None:
    """Budgets: create, list, show, retire.

    A budget has a filter, which decides, and a chain of records, which says what it decided. Every
    one of these commands takes --store and --json.

    \b
    Example:
      residua budget create study --filter 'gdp_residue mu=1'
      residua budget list
      residua budget show study --json
    """


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the new budget.")],
    given: Annotated[
        str | None,
        typer.Option(
            "--filter",
            metavar="FILTER",
            help="As JSON, in short ('gdp_residue mu=1', 'pure eps=1 | gdp mu=0.2'), or a file.",
        ),
    ] = None,
    eps: filters.Eps = None,
    delta: filters.Delta = None,
    relation: Annotated[
        str | None, typer.Option(help="add-remove (the default), replace-one or zero-out.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Whose privacy it is; person by default.")
    ] = None,
    parent: Annotated[str | None, typer.Option(help="Make it a quota of this budget.")] = None,
    partition: Annotated[
        str | None, typer.Option(help="With --parent: a disjoint part of its data, by this label.")
    ] = None,
    data: Annotated[str | None, typer.Option(help="A label for the data set.")] = None,
    window: Annotated[
        float | None, typer.Option(help="Seconds, at least 1, after which a new generation begins.")
    ] = None,
    shares_data: Annotated[
        bool, typer.Option("--shares-data", help="Allow a second cap on the same data.")
    ] = False,
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """Create a budget.

    With --eps and --delta instead of a filter, the filter is the automatic one.

    \b
    Example:
      residua budget create study --filter 'gdp_residue mu=1' --unit household
      residua budget create survey --eps 1 --delta 1e-6
    """
    with stores.books(store, token) as books:
        try:
            made = books.create_budget(
                name,
                _filter(given, eps, delta),
                relation=relation,
                unit=unit,
                parent=parent,
                partition=partition,
                data=data,
                window=window,
                shares_data=shares_data,
            )
        except BudgetExists as error:
            # As the command line calls it.
            said = str(error).replace("shares_data=True", "--shares-data")
            raise BudgetExists(said) from None
        _print(made, as_json)


@app.command("list")
def every(
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """List budgets with what is left of each.

    \b
    Example:
      residua budget list
    """
    from residua.service.api.values import budget_to_dict

    with stores.books(store, token, read_only=True) as books:
        found = [budget_to_dict(one) for one in books.budgets()]
    if as_json:
        output.print_json({"budgets": found})
        return
    rows = [
        (one["name"], "retired" if one["retired"] else "open", str(one["seq"] + 1),
         one["filter"]["kind"], one["balance"]["text"] if one["balance"] else "")
        for one in found
    ]  # fmt: skip
    if not rows:
        print("no budgets; residua budget create NAME --filter 'gdp_residue mu=1' makes one")
        return
    output.print_columns(("name", "state", "records", "filter", "left"), rows)


@app.command()
def show(
    name: query_options.Budget,
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """Show a budget: its filter, what is left, what is promised.

    \b
    Example:
      residua budget show web
    """
    with stores.books(store, token, read_only=True) as books:
        _print(books.budget(name), as_json)


@app.command()
def retire(
    name: query_options.Budget,
    reason: Annotated[str, typer.Option(help="Why; it is recorded.")],
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """Close a budget for good; its history stays.

    \b
    Example:
      residua budget retire web --reason 'study ended'
    """
    with stores.books(store, token) as books:
        books.retire(name, reason)
        _print(books.budget(name), as_json)


def _filter(given: str | None, eps: float | None, delta: float | None) -> "Filter":
    if given is not None:
        if eps is not None or delta is not None:
            raise ArgumentError("give --filter, or --eps and --delta, got both")
        return filters.parse(given)
    if eps is None and delta is None:
        raise ArgumentError("a budget must have --filter, or --eps and --delta, got none")
    from residua.filters.union.auto import AutoFilter

    return AutoFilter(*filters.budget(eps, delta))


def _print(budget: "Budget", as_json: bool) -> None:
    from residua.filters.balance import detail_words
    from residua.service.api.values import budget_to_dict

    shown = budget_to_dict(budget)
    if as_json:
        output.print_json(shown)
        return
    rows = []
    for name, value in shown.items():
        if value is None or name in ("state", "head", "remaining"):
            continue
        if name == "capacity" and not budget.retired:
            continue
        if name == "filter":
            value = " ".join(
                f"{field}={item}" if field != "kind" else item for field, item in value.items()
            )
        elif name in ("capacity", "balance", "guarantee"):
            value = value["text"]
        elif name == "holds":
            value = len(value)
        rows.append((name, str(value)))
        if name == "balance" and budget.balance is not None:
            rows += [("details", one) for one in detail_words(budget.balance.details)]
    output.print_fields(rows)
