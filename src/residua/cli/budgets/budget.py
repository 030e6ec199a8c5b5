"""`residua budget`: create, list, show and retire budgets."""

from typing import TYPE_CHECKING, Annotated

import typer

from residua.cli import descriptions, options, output, stores
from residua.errors import BudgetExists

if TYPE_CHECKING:
    from residua.ledger.api.views import Budget

app = typer.Typer(add_completion=False, rich_markup_mode=None)
group = typer.Typer(add_completion=False, rich_markup_mode=None)
app.add_typer(group, name="budget")


@group.callback()
def budget() -> None:
    """Create, list, show and retire budgets.

    A budget has a filter, which makes decisions, and a chain of records, which documents them. All
    of these commands take --store and --json.

    Example:
      residua budget create study --filter 'gdp_residue mu=1'
      residua budget list
      residua budget show study --json
    """


@group.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the new budget.")],
    given: Annotated[
        str | None,
        typer.Option(
            "--filter",
            metavar="FILTER",
            help="The filter as JSON, as a file, or in short: 'gdp_residue mu=1',"
            " 'pure eps=1 | gdp mu=0.2'.",
        ),
    ] = None,
    eps: options.Eps = None,
    delta: options.Delta = None,
    relation: Annotated[
        str | None,
        typer.Option(help="Neighbouring relation: add-remove (default), replace-one or zero-out."),
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="The unit whose privacy is protected (default: person).")
    ] = None,
    parent: Annotated[str | None, typer.Option(help="Make it a quota of this budget.")] = None,
    partition: Annotated[
        str | None, typer.Option(help="Label a disjoint part of the data of --parent.")
    ] = None,
    data: Annotated[str | None, typer.Option(help="Label the data set.")] = None,
    window: Annotated[
        float | None,
        typer.Option(
            help="Restart the budget each time this many seconds have passed (1 or more)."
        ),
    ] = None,
    shares_data: Annotated[
        bool, typer.Option("--shares-data", help="Allow a second cap on the same data.")
    ] = False,
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """Create a budget.

    With --eps alone the budget is pure: everything together is eps-DP. With --eps and --delta it
    has the automatic filter. --filter chooses another one.

    Example:
      residua budget create web --eps 1
      residua budget create survey --eps 1 --delta 1e-6
      residua budget create study --filter 'gdp_residue mu=1' --unit household
    """
    needed = "give --filter, or --eps with or without --delta"
    chosen = descriptions.chosen_filter(given, eps, delta, needed)
    with stores.open_store(store, token) as ledger:
        try:
            made = ledger.create_budget(
                name,
                chosen,
                relation=relation,
                unit=unit,
                parent=parent,
                partition=partition,
                data=data,
                window=window,
                shares_data=shares_data,
            )
        except BudgetExists as error:
            raise BudgetExists(str(error).replace("shares_data=True", "--shares-data")) from None
        _print(made, as_json)


@group.command("list")
def every(
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """List budgets with what is left of each.

    Example:
      residua budget list
    """
    from residua.service.api.values import budget_to_dict

    with stores.open_store(store, token, read_only=True) as ledger:
        found = [budget_to_dict(one) for one in ledger.budgets()]
    if as_json:
        output.print_json({"budgets": found})
        return
    rows = [
        (one["name"], "retired" if one["retired"] else "open", str(one["seq"] + 1),
         one["filter"]["kind"], one["balance"]["text"] if one["balance"] else "")
        for one in found
    ]  # fmt: skip
    if not rows:
        print("no budgets; create one with: residua budget create NAME --eps 1")
        return
    output.print_columns(("name", "state", "records", "filter", "left"), rows)


@group.command()
def show(
    name: options.Budget,
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """Show a budget: its filter, what is left, what is promised.

    Example:
      residua budget show web
    """
    with stores.open_store(store, token, read_only=True) as ledger:
        _print(ledger.budget(name), as_json)


@group.command()
def retire(
    name: options.Budget,
    reason: Annotated[str, typer.Option(help="The reason to record.")],
    store: stores.Store = stores.DEFAULT,
    token: stores.TokenText = None,
    as_json: output.AsJson = False,
) -> None:
    """Close a budget for good; its history stays.

    Example:
      residua budget retire web --reason 'study ended'
    """
    with stores.open_store(store, token) as ledger:
        ledger.retire(name, reason)
        _print(ledger.budget(name), as_json)


def _print(budget: "Budget", as_json: bool) -> None:
    from residua.filters.balance import detail_words
    from residua.service.api.values import budget_to_dict

    shown = budget_to_dict(budget)
    if as_json:
        output.print_json(shown)
        return
    rows = []
    for name, given in shown.items():
        value = given
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
