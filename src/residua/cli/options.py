"""A flag for every kind of mechanism.

`--laplace scale=2` is the query `laplace scale=2`. These flags are not declared one by one: that
would load the numerical core for `--help`. A command of the class `QueryCommand` turns them into
queries before the rest of its arguments is parsed.
"""

import re
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from residua.cli.descriptions import flag, parse_list
from residua.errors import ArgumentError, ArgumentTypeError

ROWS: tuple[tuple[str, str], ...] = (
    ("--KIND NAME=VALUE,...", "A query by its kind: --laplace scale=2. See: residua mechanisms."),
    ("--query JSON|FILE", "A query, or a list of queries, as JSON or in a file."),
)
"""What may be given in place of a QUERY, for the help and the reference."""

_PAIR = re.compile(r"[A-Za-z]\w*=")


class QueryCommand(TyperCommand):
    """A command whose arguments are queries."""

    rows = ROWS
    queries_last = False
    """Whether queries by flag go behind all other arguments, wherever they are given."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            given = self._with_queries(ctx, args)
        except ArgumentError:
            if not ctx.resilient_parsing:
                raise
            given = args  # half a query, in the middle of a completion
        return super().parse_args(ctx, given)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The options of the command, and the flags that are not declared."""
        found = super().shell_complete(ctx, incomplete)
        if not incomplete.startswith("-"):
            return found
        from residua.mechanisms import KINDS

        # Where the class of an item lives depends on the version of Typer.
        item = type(super().shell_complete(ctx, "--")[0])
        flags = ["--query", *(flag(cls) for cls in KINDS.values())]
        return [*found, *(item(each) for each in flags if each.startswith(incomplete))]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        super().format_options(ctx, formatter)
        with formatter.section("In place of a QUERY"):
            formatter.write_dl(list(self.rows))

    def _with_queries(self, ctx: Any, args: list[str]) -> list[str]:
        declared = {name: p for p in self.get_params(ctx) for name in p.opts}
        rest = list(args)
        found: list[str] = []
        flagged: list[str] = []
        named: list[str] = []
        behind = flagged if self.queries_last else found
        while rest:
            token = rest.pop(0)
            if token == "--":
                named += rest
                found += [token, *rest]
                break
            name, equals, value = token.partition("=")
            if not token.startswith("--") or name in declared:
                found.append(token)
                named += [] if token.startswith("-") else [token]
                takes_value = name in declared and not getattr(declared[name], "is_flag", False)
                if takes_value and not equals:
                    if not rest:
                        return found  # Its value is missing; a query must not take that place.
                    if rest[0].startswith("--"):
                        raise ArgumentError(
                            f"{name} must be followed by its value, got {rest[0]};"
                            f" write such a value as {name}={rest[0]}"
                        )
                    found.append(rest.pop(0))
                continue
            if equals:
                rest.insert(0, value)
            behind.append(_from_query(rest) if name == "--query" else self._from_flag(name, rest))
        if not any(name in args for name in ctx.help_option_names):
            self._check_named(ctx, named)
        return [*found, *flagged]

    def _check_named(self, ctx: Any, named: list[str]) -> None:
        """Raise if the arguments that are neither options nor queries by flag are too few."""

    def _from_flag(self, name: str, rest: list[str]) -> str:
        from residua import checks
        from residua.mechanisms import KINDS

        kind = name.removeprefix("--").replace("-", "_")
        if kind not in KINDS:
            raise ArgumentError(
                f"{name} is neither an option of this command nor a kind of mechanism (residua"
                f" mechanisms lists them){checks.suggestion(name, map(flag, KINDS.values()))}"
            )
        fields: list[str] = []
        while rest and (
            _PAIR.match(rest[0]) or not (fields or rest[0].startswith(("-", "{", "[")))
        ):
            fields.append(rest.pop(0))
        return f"{kind} {','.join(fields)}"


class BudgetQueryCommand(QueryCommand):
    """A command whose arguments are a budget and then queries.

    `--eps` is a pure query, and with `--delta` an approximate one.
    """

    rows = (
        ("--eps EPS", "A query that is EPS-DP: --eps 0.3."),
        ("--eps EPS --delta DELTA", "A query that is (EPS, DELTA)-DP: --eps 0.3 --delta 1e-8."),
        *ROWS,
    )
    queries_last = True

    def _check_named(self, ctx: Any, named: list[str]) -> None:
        if not named or named[0].lstrip()[:1] in ("{", "["):
            raise ArgumentError(
                "BUDGET is missing; name the budget before the query:"
                f" residua {ctx.info_name} web --eps 0.3"
            )

    def _from_flag(self, name: str, rest: list[str]) -> str:
        if name not in ("--eps", "--delta"):
            return super()._from_flag(name, rest)
        fields = {name: _number_of(name, rest)}
        for place, token in enumerate(rest):
            other, equals, value = token.partition("=")
            if other in fields or token == "--":
                break
            if other in ("--eps", "--delta"):
                behind = [*([value] if equals else ()), *rest[place + 1 :]]
                fields[other] = _number_of(other, behind)
                rest[place:] = behind
                break
        if "--eps" not in fields:
            raise ArgumentError(
                "--delta must come with --eps (--eps 0.3 --delta 1e-8), got only --delta"
                f" {fields['--delta']}"
            )
        if "--delta" not in fields:
            return f"pure_dp eps={fields['--eps']}"
        return f"approximate_dp eps={fields['--eps']},delta={fields['--delta']}"


def _number_of(name: str, rest: list[str]) -> str:
    """Take the number behind a flag."""
    if not rest or rest[0].startswith("--"):
        got = rest[0] if rest else "nothing"
        raise ArgumentError(f"{name} must be followed by a number, got {got}")
    return rest.pop(0)


def _from_query(rest: list[str]) -> str:
    if not rest:
        raise ArgumentError("--query must be followed by JSON or a file, got nothing")
    given = rest.pop(0)
    if given.lstrip()[:1] in ("{", "["):
        return given
    try:
        text = Path(given).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise ArgumentError(
            f"query must be JSON or a readable file, got {given} ({error})"
        ) from None
    if text[:1] not in ("{", "["):
        raise ArgumentError(f"{given}: query must be a JSON object, got {text[:60]!r}")
    try:
        parse_list([text])
    except (ArgumentError, ArgumentTypeError) as error:
        # Here the file's name is known.
        raise ArgumentError(f"{given}: {error}") from None
    return text
