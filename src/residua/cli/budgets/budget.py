"""`residua budget`: create, list, show and retire budgets."""

from typing import TYPE_CHECKING, Any

import typer

from residua.cli import descriptions, output, stores
from residua.cli.command import Result, command, subgroup
from residua.errors import BudgetExists

if TYPE_CHECKING:
    from residua.ledger.api.views import Budget

app = typer.Typer(add_completion=False, rich_markup_mode=None)
group = subgroup(app, "budget")


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


@command(group, at=stores.open_store)
def create(
    ledger: Any,
    name: str,
    filter: str | None = None,
    eps: float | None = None,
    delta: float | None = None,
    relation: str | None = None,
    unit: str | None = None,
    parent: str | None = None,
    partition: str | None = None,
    data: str | None = None,
    window: float | None = None,
    shares_data: bool = False,
) -> Result:
    """Create a budget.

    With --eps alone the budget is pure: everything together is eps-DP. With --eps and --delta it
    has the automatic filter. --filter chooses another one.

    Operands:
      name (NAME): The name of the new budget.

    Options:
      filter (FILTER): The filter as JSON, as a file, or in short: 'gdp_residue mu=1', 'pure eps=1 |
          gdp mu=0.2'.
      relation: Neighbouring relation: add-remove (default), replace-one or zero-out.
      unit: The unit whose privacy is protected (default: person).
      parent: Make it a quota of this budget.
      partition: Label a disjoint part of the data of --parent.
      data: Label the data set.
      window: Restart the budget each time this many seconds have passed (1 or more).
      shares_data: Allow a second cap on the same data.

    Example:
      residua budget create web --eps 1
      residua budget create survey --eps 1 --delta 1e-6
      residua budget create study --filter 'gdp_residue mu=1' --unit household
    """
    needed = "give --filter, or --eps with or without --delta"
    chosen = descriptions.chosen_filter(filter, eps, delta, needed)
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
    return _shown(made)


@command(group, "list", at=stores.read_store)
def every(ledger: Any) -> Result:
    """List budgets with what is left of each.

    Example:
      residua budget list
    """
    from residua.service.api.values import budget_to_dict

    found = [budget_to_dict(one) for one in ledger.budgets()]
    rows = [
        (one["name"], "retired" if one["retired"] else "open", str(one["seq"] + 1),
         one["filter"]["kind"], one["balance"]["text"] if one["balance"] else "")
        for one in found
    ]  # fmt: skip

    def words() -> None:
        if rows:
            output.print_columns(("name", "state", "records", "filter", "left"), rows)
        else:
            print("no budgets; create one with: residua budget create NAME --eps 1")

    return Result({"budgets": found}, words)


@command(group, at=stores.read_store)
def show(ledger: Any, budget: str) -> Result:
    """Show a budget: its filter, what is left, what is promised.

    Example:
      residua budget show web
    """
    return _shown(ledger.budget(budget))


@command(group, at=stores.open_store)
def retire(
    ledger: Any,
    budget: str,
    reason: str,
) -> Result:
    """Close a budget for good; its history stays.

    Options:
      reason: The reason to record.

    Example:
      residua budget retire web --reason 'study ended'
    """
    ledger.retire(budget, reason)
    return _shown(ledger.budget(budget))


def _shown(budget: "Budget") -> Result:
    from residua.filters.balance import detail_words
    from residua.service.api.values import budget_to_dict

    shown = budget_to_dict(budget)
    left_out = {"state", "head", "remaining", *(() if budget.retired else ("capacity",))}
    rows = []
    for name, value in shown.items():
        if value is None or name in left_out:
            continue
        if name == "filter":
            fields = [v if field == "kind" else f"{field}={v}" for field, v in value.items()]
            rows.append((name, " ".join(fields)))
        elif name in ("capacity", "balance", "guarantee"):
            rows.append((name, value["text"]))
        else:
            rows.append((name, str(len(value) if name == "holds" else value)))
        if name == "balance" and budget.balance is not None:
            rows += [("details", one) for one in detail_words(budget.balance.details)]
    return Result(shown, rows)
