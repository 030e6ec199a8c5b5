"""SQL as analysts write it: read strictly, into a value that plans are made from.

Only what is on the lists of this module passes; anything else is refused by its name, with the
nearest thing that works. Conditions consist of operations that cannot fail whatever the data are:
comparisons, `IN`, `BETWEEN`, `LIKE`, `IS NULL`, `AND`, `OR` and `NOT`, of columns with literals of
their type or with each other. A query is written back in one normal form, so that two ways to write
the same question are one question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NoReturn

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from residua import checks
from residua.data.declarations import Table
from residua.data.keys import UNKNOWN, WORKS, Key, by_bins, by_period, by_value
from residua.data.sources import CASTS
from residua.errors import ArgumentError, ArgumentTypeError

LONGEST = 10_000
"""The most characters of a question."""
MOST_ITEMS = 64
"""The most columns of an answer."""
DEEPEST = 50
"""The deepest nesting of a condition."""

EXTREMES: Mapping[type[exp.Expression], tuple[str, int]] = {
    exp.Min: ("MIN", 1), exp.Median: ("MEDIAN", 50), exp.Max: ("MAX", 99),
}  # fmt: skip
"""Percentiles with a name. The least and the greatest value would be one unit's own."""
_WORKS = (
    "COUNT(*), COUNT(column), COUNT(DISTINCT unit), SUM, AVG, VARIANCE, MIN, MAX, MEDIAN and"
    " QUANTILE_CONT of a column"
)
_INSTEAD: Mapping[str, str] = {
    "joins": "declare the joined rows as one table",
    "with_": "write one SELECT",
    "with": "write one SELECT",
    "having": "filter the answer, which costs nothing",
    "order": "sort the answer, which costs nothing",
    "limit": "take the first rows of the answer, which costs nothing",
    "offset": "take some rows of the answer, which costs nothing",
    "distinct": "COUNT(DISTINCT unit) is answered",
    "windows": "GROUP BY declared keys",
    "qualify": "filter the answer, which costs nothing",
    "laterals": "write one SELECT",
    "sample": "leave it out",
}
"""A clause that is refused, and what works."""
_CLAUSES = frozenset({"expressions", "from_", "from", "where", "group", "kind", "hint"})


@dataclass(frozen=True)
class Item:
    """A column of an answer: a key, or an aggregate."""

    name: str
    function: str
    """`KEY`, `COUNT`, `COUNT DISTINCT`, or another aggregate."""
    column: str | None
    """None for `COUNT(*)`."""
    key: Key | None = None
    """What a key is."""
    percent: int | None = None
    """Which percentile it is."""


@dataclass(frozen=True)
class Question:
    """A query that can be answered, in its normal form."""

    table: Table
    items: tuple[Item, ...]
    keys: tuple[Key, ...]
    """What to group by, in the order of the clause."""
    where: exp.Expression | None
    sql: str
    """The normal form."""

    @property
    def has_unknown_keys(self) -> bool:
        """Whether which groups there are depends on the data."""
        return any(each.kind == UNKNOWN for each in self.keys)


def table_named(sql: Any) -> str:
    """The name of the table that a query is about."""
    source = _parsed(sql).args.get("from_") or _parsed(sql).args.get("from")
    if source is None or not isinstance(source.this, exp.Table):
        _refuse("a query without a table", "SELECT ... FROM a declared table")
    if source.this.db or source.this.catalog or not isinstance(source.this.this, exp.Identifier):
        _refuse(f"FROM {_shown(source.this)}", "FROM the name of a declared table")
    return str(source.this.name)


def parse(sql: Any, table: Table, unknown_keys: bool = False) -> Question:
    """The question that a query asks about a table; raises on anything that is not answered.

    `unknown_keys`: whether it may group by columns without declared keys.
    """
    tree = _parsed(sql)
    for clause, given in tree.args.items():
        if given and clause not in _CLAUSES:
            name = clause.strip("_").upper()
            _refuse(f"{name}", _INSTEAD.get(clause, "leave it out"))
    if tree.args.get("kind") or tree.args.get("hint"):
        _refuse("SELECT with an option", "plain SELECT")
    source = (tree.args.get("from_") or tree.args["from"]).this
    if {name for name, value in source.args.items() if value} - {"this", "alias"}:
        _refuse(f"FROM {_shown(source)}", f"FROM {table.name}")
    alias = source.alias or source.name
    reader = _Reader(table, alias, unknown_keys)
    keys = _keys(tree, reader)
    items = tuple(reader.item(each, keys) for each in tree.expressions)
    if not 0 < len(items) <= MOST_ITEMS:
        raise ArgumentError(f"sql must have at most {MOST_ITEMS} columns, got {len(items)}")
    names = [each.name for each in items]
    if len(set(names)) != len(names):
        raise ArgumentError("columns of an answer must have different names; use AS")
    if all(each.function == "KEY" for each in items):
        _refuse("SELECT without an aggregate", _WORKS)
    where = tree.args.get("where")
    condition = None if where is None else reader.condition(where.this)
    return Question(table, items, keys, condition, _normal(table, items, keys, condition))


def _parsed(sql: Any) -> exp.Select:
    if not isinstance(sql, str):
        raise ArgumentTypeError(f"sql must be a string, got {checks.shown(sql)}")
    if len(sql) > LONGEST or not sql.strip():
        raise ArgumentError(f"sql must have 1 to {LONGEST} characters, got {len(sql)}")
    try:
        found = sqlglot.parse(sql, dialect="duckdb")
    except (SqlglotError, RecursionError) as error:
        first = re.sub("\x1b\\[[0-9;]*m", "", str(error)).partition("\n")[0]
        raise ArgumentError(f"sql must be a SELECT that can be parsed: {first}") from None
    statements = [each for each in found if each is not None]
    if len(statements) != 1:
        raise ArgumentError(f"sql must be one statement, got {len(statements)}")
    (tree,) = statements
    if not isinstance(tree, exp.Select):
        _refuse(tree.key.upper(), "SELECT")
    if sum(1 for _ in tree.walk()) > LONGEST:
        raise ArgumentError("sql has too many parts")
    return tree


def _keys(tree: exp.Select, reader: _Reader) -> tuple[Key, ...]:
    """What GROUP BY names: keys, or names that the SELECT gives to keys."""
    group = tree.args.get("group")
    if group is None:
        return ()
    for clause, given in group.args.items():
        if given and clause != "expressions":
            _refuse(f"GROUP BY {clause.strip('_').upper()}", WORKS)
    named = {each.alias.casefold(): each.this for each in tree.expressions if each.alias}
    keys = []
    for each in group.expressions:
        is_name = isinstance(each, exp.Column) and not each.table
        keys.append(reader.key(named.get(each.name.casefold(), each) if is_name else each))
        if keys[-1] is None:
            _refuse(f"GROUP BY {_shown(each)}", WORKS)
    if len(set(keys)) != len(keys):
        raise ArgumentError("GROUP BY must name each column once")
    return tuple(each for each in keys if each is not None)


class _Reader:
    """Reads the parts of a query about one table."""

    def __init__(self, table: Table, alias: str, unknown_keys: bool):
        self.table = table
        self._unknown_keys = unknown_keys
        self._alias = alias.casefold()

    def column(self, given: exp.Column) -> str:
        """The declared name of a column."""
        qualifier = given.table
        if given.args.get("db") or (qualifier and qualifier.casefold() != self._alias):
            _refuse(f"column {_shown(given)}", f"columns of {self.table.name}")
        if not isinstance(given.this, exp.Identifier):
            _refuse(_shown(given), "name a column")
        return self.table.column(given.name)

    def key(self, given: exp.Expression) -> Key | None:
        """The key that an expression is; None for any other expression."""
        if isinstance(given, exp.Column) and isinstance(given.this, exp.Identifier):
            return by_value(self.table, self.column(given), self._unknown_keys)
        if isinstance(given, exp.TimestampTrunc | exp.DateTrunc):
            extra = {name for name, value in given.args.items() if value} - {"this", "unit"}
            if isinstance(given.this, exp.Column) and given.unit is not None and not extra:
                return by_period(self.table, self.column(given.this), given.unit.name.upper())
        if isinstance(given, exp.Mul) and isinstance(given.this, exp.Floor):
            width, inner = given.expression, given.this.this
            while isinstance(inner, exp.Paren):
                inner = inner.this
            divided = isinstance(inner, exp.Div) and isinstance(inner.this, exp.Column)
            if divided and _is_number(width) and inner.expression == width:
                return by_bins(self.table, self.column(inner.this), width.name)
        return None

    # -- aggregates ---------------------------------------------------------------------

    def item(self, given: exp.Expression, keys: tuple[Key, ...]) -> Item:
        """A column of the answer."""
        plain = given.this if isinstance(given, exp.Alias) else given
        column = plain if isinstance(plain, exp.Column) else None
        if column is not None and self.column(column) not in {each.column for each in keys}:
            name = self.column(column)
            _refuse(f"column {name!r} without an aggregate", "GROUP BY it, or one of " + _WORKS)
        key = self.key(plain)
        if key is not None:
            if key not in keys:
                _refuse(f"{_shown(plain)} without GROUP BY", "GROUP BY it")
            return Item(_label(given.alias or key.column), "KEY", key.column, key)
        if isinstance(plain, (*EXTREMES, exp.PercentileCont, exp.WithinGroup)):
            name, column_, percent = self._percentile(plain)
            default = f"{name.lower()}_{column_}"
            return Item(_label(given.alias or default), "PERCENTILE", column_, None, percent)
        function, column = self._aggregate(plain)
        default = "count" if column is None else f"{function.split()[0].lower()}_{column}"
        return Item(_label(given.alias or default), function, column)

    def _aggregate(self, given: exp.Expression) -> tuple[str, str | None]:
        if isinstance(given, exp.Count):
            return self._count(given)
        kinds = {exp.Sum: "SUM", exp.Avg: "AVG", exp.Variance: "VARIANCE"}
        function = kinds.get(type(given))
        if function is None:
            _refuse(_shown(given), _WORKS)
        if isinstance(given.this, exp.Distinct):
            _refuse(f"{function}(DISTINCT ...)", f"{function}(column)")
        self._check_plain(given)
        if not isinstance(given.this, exp.Column):
            _refuse(_shown(given), f"{function} of a column with declared bounds")
        column = self.column(given.this)
        self.table.bounds_of(column)
        return function, column

    def _percentile(self, given: exp.Expression) -> tuple[str, str, int]:
        """The name, the column and the percentage of a percentile."""
        name, percent = EXTREMES.get(type(given), ("PERCENTILE", None))
        column: Any = given.this
        share: Any = given.args.get("expression")
        extra = {key for key, value in given.args.items() if value} - {"this", "expression"}
        if isinstance(given, exp.WithinGroup) and isinstance(column, exp.PercentileCont):
            order = share.expressions if isinstance(share, exp.Order) else []
            ascending = len(order) == 1 and not order[0].args.get("desc")
            column, share = (order[0].this if ascending else None), column.this
        if name == "PERCENTILE" and _is_number(share):
            scaled = 100 * Decimal(share.name)
            percent = int(scaled) if scaled == int(scaled) else None
        if percent is None or not 0 < percent < 100 or not isinstance(column, exp.Column) or extra:
            _refuse(_shown(given), "QUANTILE_CONT(column, 0.25), in whole percents from 1 to 99")
        found = self.column(column)
        self.table.bounds_of(found)
        return name, found, percent

    def _count(self, given: exp.Count) -> tuple[str, str | None]:
        inner = given.this
        if isinstance(inner, exp.Star) and not any(inner.args.values()):
            return "COUNT", None
        self._check_plain(given)
        if isinstance(inner, exp.Distinct):
            unit = self.table.unit_column
            named = inner.expressions
            if inner.args.get("on") or len(named) != 1 or not isinstance(named[0], exp.Column):
                _refuse(_shown(given), f"COUNT(DISTINCT {unit})")
            if self.column(named[0]) != unit:
                _refuse(_shown(given), f"COUNT(DISTINCT {unit})")
            return "COUNT DISTINCT", unit
        if not isinstance(inner, exp.Column):
            _refuse(_shown(given), _WORKS)
        column = self.column(inner)
        # The unit is never NULL.
        return "COUNT", None if column == self.table.unit_column else column

    def _check_plain(self, given: exp.Expression) -> None:
        extra = {name for name, value in given.args.items() if value} - {"this", "big_int"}
        if extra:
            _refuse(_shown(given), _WORKS)

    # -- conditions ---------------------------------------------------------------------

    def condition(self, given: exp.Expression, depth: int = 0) -> exp.Expression:
        """A condition on the values of a row, in its normal form."""
        if depth > DEEPEST:
            raise ArgumentError(f"conditions must be nested at most {DEEPEST} deep")

        def below(part: exp.Expression) -> exp.Expression:
            return self.condition(part, depth + 1)

        if isinstance(given, exp.Paren):
            return below(given.this)
        if isinstance(given, exp.And | exp.Or):
            parts = [below(each) for each in given.flatten()]
            return (exp.and_ if isinstance(given, exp.And) else exp.or_)(*parts, copy=False)
        if isinstance(given, exp.Not):
            return exp.not_(below(given.this), copy=False)
        if isinstance(given, exp.Boolean):
            return given.copy()
        if isinstance(given, exp.Column):
            column = self._value(given)
            if self._type(column) != "boolean":
                _refuse(f"the condition {_shown(given)}", "compare it with a literal")
            return column
        if isinstance(given, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
            left, right = self._pair(given)
            return type(given)(this=left, expression=right)
        found = self._about_column(given) if isinstance(given.this, exp.Column) else None
        if found is not None:
            return found
        _refuse(
            f"the condition {_shown(given)}",
            "=, <>, <, <=, >, >=, IN, BETWEEN, LIKE and IS NULL of columns and literals, with"
            " AND, OR and NOT",
        )

    def _about_column(self, given: exp.Expression) -> exp.Expression | None:
        """A condition on one column; None for any that is not answered."""
        options = {name for name, value in given.args.items() if value} - {"this", "expression"}
        if not isinstance(given, exp.Is | exp.Between | exp.In | exp.Like):
            return None
        column = self._value(given.this)
        if isinstance(given, exp.Is) and isinstance(given.expression, exp.Null) and not options:
            return exp.Is(this=column, expression=exp.null())
        if isinstance(given, exp.Between) and options == {"low", "high"}:
            low, high = (self._literal(given.args[each], column) for each in ("low", "high"))
            return exp.Between(this=column, low=low, high=high)
        if isinstance(given, exp.In) and options == {"expressions"}:
            listed = [self._literal(each, column) for each in given.expressions]
            return exp.In(this=column, expressions=listed)
        if isinstance(given, exp.Like) and not options and self._type(column) == "text":
            pattern = given.expression
            if pattern.is_string and "\\" not in pattern.name:
                return exp.Like(this=column, expression=exp.Literal.string(pattern.name))
        return None

    def _value(self, given: exp.Column) -> exp.Column:
        name = self.column(given)
        if name == self.table.unit_column:
            _refuse(f"a condition on the unit column {name!r}", "conditions on other columns")
        if self.table.columns[name] == "other":
            raise ArgumentError(f"column {name!r} has a type that cannot be compared")
        return exp.column(name, quoted=True)

    def _type(self, column: exp.Column) -> str:
        return self.table.columns[column.name]

    def _pair(self, given: exp.Expression) -> tuple[exp.Expression, exp.Expression]:
        """The sides of a comparison: of a column with a literal, or of two columns of a type."""
        left, right = given.this, given.args["expression"]
        if isinstance(left, exp.Column) and isinstance(right, exp.Column):
            sides = self._value(left), self._value(right)
            if self._type(sides[0]) != self._type(sides[1]):
                raise ArgumentError(
                    f"columns that are compared must have one type, got {_shown(given)}"
                )
            return sides
        if isinstance(left, exp.Column):
            column = self._value(left)
            return column, self._literal(right, column)
        if isinstance(right, exp.Column):
            column = self._value(right)
            return self._literal(left, column), column
        _refuse(f"the condition {_shown(given)}", "compare a column")

    def _literal(self, given: exp.Expression, column: exp.Column) -> exp.Expression:
        """A literal of the type of a column."""
        type = self._type(column)
        negative = isinstance(given, exp.Neg)
        plain = given.this if isinstance(given, exp.Neg) else given
        if isinstance(plain, exp.Boolean) and type == "boolean" and not negative:
            return plain.copy()
        if isinstance(plain, exp.Cast) and plain.this.is_string:
            plain = plain.this
        if isinstance(plain, exp.Literal):
            if not plain.is_string and type in ("integer", "real"):
                return _number(plain.name, negative, type)
            if plain.is_string and not negative:
                if type == "text":
                    return exp.Literal.string(plain.name)
                if type in ("date", "timestamp") and _is_moment(plain.name, type):
                    return exp.cast(exp.Literal.string(plain.name), CASTS[type])
        raise ArgumentError(
            f"column {column.name!r} is of {type}, and cannot be compared with {_shown(given)}"
        )


def _number(text: str, negative: bool, type: str) -> exp.Expression:
    """A number of ordinary size; a float is written out in full."""
    value = Decimal(text)
    if not abs(value) < Decimal(10) ** (18 if type == "integer" else 300):
        raise ArgumentError(f"numbers must be of ordinary size, got {checks.shown(text)}")
    if value and value.adjusted() < -300:
        raise ArgumentError(f"numbers must be of ordinary size, got {checks.shown(text)}")
    whole = value == value.to_integral_value()
    if type == "integer" and not whole:
        raise ArgumentError(f"a column of integers cannot be compared with {text}")
    written = str(int(value)) if type == "integer" else repr(float(value))
    found = exp.Literal.number(written)
    return exp.Neg(this=found) if negative and value else found


def _is_number(given: Any) -> bool:
    """Whether this is a literal number of ordinary size."""
    if not isinstance(given, exp.Literal) or given.is_string:
        return False
    return abs(Decimal(given.name).adjusted()) < 20 and len(given.name) < 40


def _is_moment(text: str, type: str) -> bool:
    try:
        (date if type == "date" else datetime).fromisoformat(text)
    except ValueError:
        return False
    return text.isascii() and (type != "timestamp" or datetime.fromisoformat(text).tzinfo is None)


def _label(name: str) -> str:
    return checks.new_label("the name of a column", name)


def _shown(given: exp.Expression) -> str:
    return checks.shown(given.sql("duckdb"))[1:-1]


def _refuse(what: str, instead: str) -> NoReturn:
    raise ArgumentError(f"sql must not contain {what}; what works: {instead}")


def _normal(
    table: Table,
    items: tuple[Item, ...],
    keys: tuple[Key, ...],
    where: exp.Expression | None,
) -> str:
    """The query in its normal form."""
    chosen: list[Any] = [
        exp.alias_(_expression(each), each.name, quoted=True, copy=False) for each in items
    ]
    query = exp.select(*chosen).from_(exp.table_(table.name, quoted=True))
    if where is not None:
        query = query.where(where)
    if keys:
        query = query.group_by(*(each.expression() for each in keys))
    return str(query.sql("duckdb"))


def _expression(item: Item) -> exp.Expression:
    if item.key is not None:
        return item.key.expression()
    if item.column is None:
        return exp.Count(this=exp.Star())
    column = exp.column(item.column, quoted=True)
    if item.percent is not None:
        share = exp.Literal.number(f"0.{item.percent:02}")
        return exp.PercentileCont(this=column, expression=share)
    if item.function == "COUNT DISTINCT":
        return exp.Count(this=exp.Distinct(expressions=[column]))
    kinds: Mapping[str, type[exp.Expression]] = {
        "COUNT": exp.Count, "SUM": exp.Sum, "AVG": exp.Avg, "VARIANCE": exp.Variance,
    }  # fmt: skip
    return kinds[item.function](this=column)
