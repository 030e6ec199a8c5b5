"""`residua table` declares protected tables, and `residua query` asks about them in SQL.

Exit code 0 where a question is answered, 3 where the budget refuses it.
"""

import csv
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from residua.cli import output, stores
from residua.cli.command import Result, command, subgroup
from residua.errors import ArgumentError

if TYPE_CHECKING:
    from residua.data.answers import Answer
    from residua.data.declarations import Table
    from residua.data.session import Preview

app = typer.Typer(add_completion=False, rich_markup_mode=None)
group = subgroup(app, "table")

REFUSED = 3
"""The exit code of a refusal."""
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the table.")]
Bounds = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=LOW:HIGH",
        help="Clip a column to these bounds; LOW:HIGH:STEP counts it in steps. May be repeated.",
    ),
]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=A,B,...", help="List the keys of a column to group by. May be repeated."
    ),
]


@group.callback()
def table() -> None:
    """Declare, list, show and remove protected tables.

    A declaration is public and recorded in the ledger. All of these commands take --store and
    --json.

    Example:
      residua table add staff --source staff.parquet --unit person_id --budget survey
      residua table list
      residua table show staff --json
    """


@command(group, at=stores.ledger)
def add(
    ledger: Any,
    name: Name,
    source: str,
    unit: str,
    budget: str,
    bounds: Bounds = None,
    keys: Keys = None,
    max_groups: int = 1,
    max_rows: int = 1,
    data_version: str = "1",
    shared_answers: bool = False,
) -> Result:
    """Declare a table, or another version of its declaration.

    Nothing in a declaration may be looked up in the data.

    Options:
      source (FILE): A Parquet or CSV file, or FILE.duckdb#TABLE.
      unit (COLUMN): The column that says whose row it is.
      budget: The budget that answers are charged to.
      max_groups: In how many groups of an answer one unit counts at most.
      max_rows: With how many rows it counts in each group at most.
      data_version: The version of the data; another one is asked again.
      shared_answers: Return a released answer to others who repeat the question.

    Example:
      residua table add staff --source staff.parquet --unit person_id --budget survey
      residua table add staff ... --max-groups 3 --max-rows 2 --bounds salary=0:200000
      residua table add staff ... --keys dept=eng,ops,hr
    """
    from residua.data.sources import source_at

    columns = source_at(source).columns()
    made = ledger.add_table(
        name,
        source=source,
        unit_column=unit,
        budget=budget,
        bounds={column: tuple(ends.split(":")) for column, ends in _pairs("--bounds", bounds)},
        keys={column: _keys(text, columns.get(column)) for column, text in _pairs("--keys", keys)},
        max_groups=max_groups,
        max_rows=max_rows,
        data_version=data_version,
        shared_answers=shared_answers,
    )
    return _shown(made)


@command(group, "list", at=stores.read_store)
def every(ledger: Any) -> Result:
    """List the tables that can be asked about.

    Example:
      residua table list
    """
    from residua.data.declarations import tables

    found = [_to_dict(one) for one in tables(ledger).values()]
    rows = [(one["name"], one["budget"], str(one["version"]), one["source"]) for one in found]

    def words() -> None:
        if rows:
            output.print_columns(("name", "budget", "version", "source"), rows)
        else:
            print("no tables; declare one with: residua table add NAME --source FILE ...")

    return Result({"tables": found}, words)


@command(group, at=stores.read_store)
def show(ledger: Any, name: Name) -> Result:
    """Show the declaration of a table.

    Example:
      residua table show staff
    """
    from residua.data import declarations

    return _shown(declarations.table(ledger, name))


@command(group, at=stores.ledger)
def remove(ledger: Any, name: Name) -> Result:
    """Answer nothing more about a table; its name cannot be used again.

    Example:
      residua table remove staff
    """
    ledger.remove_table(name)
    return Result({"removed": name}, (("removed", name),))


@command(app, at=stores.ledger)
def query(
    ledger: Any,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="A SELECT about a declared table.")],
    eps: float | None = None,
    accuracy: float | None = None,
    scale: float | None = None,
    noise: str | None = None,
    delta: float | None = None,
    key: str | None = None,
    budget: str | None = None,
    timeout: float | None = None,
    memory_limit: str | None = None,
    dry_run: bool = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the answer as CSV.")] = False,
    as_json: bool = False,
) -> Result | None:
    """Answer a question with noise, or refuse it.

    Exit with status 0 if it is answered and with status 3 if the budget refuses. The same question
    gets the same answer again and costs nothing. Without --eps, --accuracy and --scale it costs a
    twentieth of the largest eps that the budget would admit.

    Options:
      eps: Make the answer eps-DP.
      accuracy: Make counts and sums accurate to this, with probability 95 %.
      scale: Add noise of this scale to counts and sums.
      noise: Kind of noise: laplace or gaussian (default: what costs less).
      delta: Group by columns without declared keys, at this cost in delta.
      key: Set your own id for the question.
      budget: Charge this quota under the table's budget as well.
      timeout: Cancel the statement after this many seconds; it stays charged.
      memory_limit: The most memory of the engine, such as 2GB.
      dry_run: Show statement, noise, accuracy and cost; spend nothing.

    Example:
      residua query 'SELECT dept, COUNT(*) FROM staff GROUP BY dept' --eps 0.1
      residua query 'SELECT COUNT(*) FROM staff' --accuracy 25 --dry-run
    """
    from residua.data.session import open_session

    session = open_session(ledger, budget=budget, timeout=timeout, memory_limit=memory_limit)
    wish: dict[str, Any] = {
        "eps": eps,
        "accuracy": accuracy,
        "scale": scale,
        "noise": noise,
        "delta": delta,
    }
    if dry_run:
        return _preview(session.preview(sql, **wish))
    answer = session.sql(sql, key=key, **wish)
    if answer and as_csv and not as_json:
        _print_csv(answer)
        return None
    code = 0 if answer else REFUSED
    return Result(answer.to_dict(), lambda: _print_answer(answer), code)


def _preview(shown: "Preview") -> Result:
    def words() -> None:
        output.print_fields(
            [
                ("question", shown.sql),
                *((f"noise on {n}", _noise(e)) for n, e in shown.noise.items()),
                *((f"accuracy of {n}", _width(width)) for n, width in shown.accuracy.items()),
                ("costs", "nothing: it was answered before" if shown.repeated else shown.reason),
            ]
        )
        print(shown.statement)

    return Result(shown.to_dict(), words, 0 if shown.admitted else REFUSED)


def _noise(noise: Any) -> str:
    return f"{noise['kind']} {noise['scale']:g}" if isinstance(noise, dict) else str(noise)


def _width(width: float | None) -> str:
    return "depends on the data" if width is None else f"± {width:g}"


def _print_answer(answer: "Answer") -> None:
    if answer:
        output.print_table("", answer.columns, answer.shown())
        print("± is a 95 % interval for the value without noise")
    said = "repeated: released before, cost nothing" if answer.repeated else answer.reason
    print(said, file=sys.stdout if answer else sys.stderr)


def _print_csv(answer: "Answer") -> None:
    """Each column with the ends of its interval."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    has_ends = [ends is not None for ends in answer.intervals[0]] if answer.rows else []
    names = zip(answer.columns, has_ends or [False] * len(answer.columns), strict=True)
    writer.writerow([n for name, ends in names for n in (name, *_ends_of(name) * ends)])
    for row, around in zip(answer.rows, answer.intervals, strict=True):
        cells = zip(row, around, strict=True)
        writer.writerow([each for value, ends in cells for each in (value, *(ends or ()))])


def _ends_of(name: str) -> tuple[str, str]:
    return f"{name}_low", f"{name}_high"


def _pairs(option: str, given: list[str] | None) -> list[tuple[str, str]]:
    found = []
    for text in given or ():
        column, equals, value = text.partition("=")
        if not equals or not column or not value:
            raise ArgumentError(f"{option} must be COLUMN=..., got {text!r}")
        found.append((column, value))
    return found


def _keys(text: str, type: str | None) -> list[Any]:
    """Keys of the type of a column, from a list separated by commas."""
    listed = next(csv.reader([text]))
    try:
        if type == "integer":
            return [int(each) for each in listed]
        if type == "boolean":
            return [{"true": True, "false": False}[each.lower()] for each in listed]
    except (ValueError, KeyError):
        raise ArgumentError(f"--keys must be of the column's type, {type}, got {text!r}") from None
    return listed


def _to_dict(table: "Table") -> dict[str, Any]:
    about = {"name": table.name, "budget": table.budget, "version": table.version}
    return {**about, **table.to_declaration()}


def _shown(table: "Table") -> Result:
    rows = [
        ("name", table.name),
        ("budget", table.budget),
        ("version", str(table.version)),
        ("source", table.source),
        ("unit column", table.unit_column),
        ("max groups", str(table.max_groups)),
        ("max rows", str(table.max_rows)),
        *((f"bounds of {n}", " to ".join(e.to_list()[:2])) for n, e in table.bounds.items()),
        *((f"keys of {name}", ", ".join(map(str, each))) for name, each in table.keys.items()),
        ("data version", table.data_version),
        ("shared answers", str(table.shared_answers).lower()),
    ]  # fmt: skip
    return Result(_to_dict(table), rows)
