"""The one SQL statement of a question: rows are bounded, clipped, counted and added up exactly.

    residua_rows      the rows that count, with unit, keys and values in whole steps
    residua_chosen    numbered within each unit, in an order that only a secret key knows
    (the statement)   of each unit at most `max_groups` groups and `max_rows` rows in each

The order is that of `md5(key, unit, group, values)` with a fresh secret key, which every engine
computes alike; the values break ties. Rows that still tie contribute the same, so which of them is
chosen makes no difference: what a unit contributes depends on the key and its own rows alone.
Statements are trees that are never pasted together from text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlglot import exp

from residua.data.keys import DATE, UNKNOWN, VALUE, Key
from residua.data.queries import Question
from residua.data.sources import CASTS, ROWS, Source

_UNIT, _CHOSEN_ROWS = "residua_unit", "residua_chosen"
_GROUP_RANK, _ROW_RANK = "residua_group", "residua_row"
_SEPARATOR = "|"


@dataclass(frozen=True)
class Total:
    """An exact aggregate of a statement: what is summed up over the rows that were chosen."""

    kind: str
    """`rows`, `units`, `values` (not NULL), `sum`, `squares`, or how many values are `below` or
    `at_most` the center."""
    column: str | None = None
    center: int = 0
    """What is taken off each value, or compared with it, in steps."""
    coarse: int = 1
    """By how much values are divided before they are squared."""


def statement_of(
    question: Question, totals: Sequence[Total], bounds: tuple[int, int], source: Source, key: str
) -> exp.Expression:
    """The statement: for each group that occurs its keys, then the totals.

    `bounds` are the most groups, and the most rows in each, of one unit.
    """
    values = tuple(dict.fromkeys(each.column for each in totals if each.column is not None))
    keys = [_key(at) for at in range(len(question.keys))]
    rows = _rows(question, values, source)
    chosen = exp.select(exp.Star(), *_ranks(keys, [_value(n, values) for n in values], key))
    chosen = chosen.from_("residua_rows")
    picked: list[Any] = [
        *(exp.column(each) for each in keys),
        *(_aggregate(each, values) for each in totals),
    ]
    found = exp.select(*picked).from_(_CHOSEN_ROWS)
    most_groups, most_rows = bounds
    if keys:
        found = found.where(_at_most(_GROUP_RANK, most_groups))
    found = found.where(_at_most(_ROW_RANK, most_rows))
    if keys:
        found = found.group_by(*(exp.column(each) for each in keys))
    return found.with_("residua_rows", as_=rows).with_(_CHOSEN_ROWS, as_=chosen)


def _key(at: int) -> str:
    return f"residua_key_{at}"


def _value(name: str, values: Sequence[str]) -> str:
    return f"residua_value_{values.index(name)}"


def _at_most(name: str, most: int) -> exp.Expression:
    return exp.LTE(this=exp.column(name), expression=exp.Literal.number(most))


def _rows(question: Question, values: Sequence[str], source: Source) -> exp.Select:
    """The rows that count: with a unit, in a group that was declared, that meet the condition."""
    table = question.table
    unit = _read(table.unit_column, table.columns[table.unit_column])
    picked = [exp.alias_(exp.cast(unit.copy(), "TEXT"), _UNIT)]
    conditions: list[exp.Expression] = [exp.not_(exp.Is(this=unit, expression=exp.null()))]
    for at, each in enumerate(question.keys):
        written, kept = _grouped(question, each)
        picked.append(exp.alias_(written, _key(at)))
        conditions += kept
    for name in values:
        picked.append(exp.alias_(_steps(question, name, table.columns[name]), _value(name, values)))
    if question.where is not None:

        def typed(node: exp.Expression) -> exp.Expression:
            return _read(node.name, table.columns[node.name]) if _is_column(node) else node

        conditions.append(exp.paren(question.where.transform(typed)))
    rows = source.rows(table.columns)
    rows.set("alias", exp.TableAlias(this=exp.to_identifier(ROWS)))
    return exp.select(*picked).from_(rows).where(*conditions)


def _grouped(question: Question, key: Key) -> tuple[exp.Expression, list[exp.Expression]]:
    """The text of a key, and which rows have one of its groups."""
    value = _read(key.column, key.type)
    if key.kind == UNKNOWN:
        present = exp.not_(exp.Is(this=value.copy(), expression=exp.null()))
        return exp.cast(value, "TEXT"), [present]
    if key.kind == VALUE:
        listed = [_literal(each, key.type) for _, each in key.groups]
        return exp.cast(value, "TEXT"), [exp.In(this=value.copy(), expressions=listed)]
    if key.kind == DATE:
        ends = [_literal(each, "date") for each in question.table.dates[key.column]]
        day = exp.cast(value, "DATE")
        begin = exp.TimestampTrunc(this=day, unit=exp.var(key.by))
        return exp.cast(exp.cast(begin, "DATE"), "TEXT"), _within(day, *ends)
    bounds, real = question.table.bounds[key.column], exp.cast(value, "DOUBLE")
    ends = [_double(bounds.low), _double(bounds.high)]
    divided = exp.Div(this=_clipped(real, *ends), expression=_double(Decimal(key.by)))
    place = exp.cast(exp.Floor(this=divided), "BIGINT")
    return exp.cast(place, "TEXT"), _within(real, *ends)


def _within(
    value: exp.Expression, low: exp.Expression, high: exp.Expression
) -> list[exp.Expression]:
    """The conditions that a value is within these ends; NULL and NaN are not."""
    return [
        exp.GTE(this=value.copy(), expression=low.copy()),
        exp.LTE(this=value.copy(), expression=high.copy()),
    ]


def _is_column(node: exp.Expression) -> bool:
    return isinstance(node, exp.Column) and not node.table


def _read(name: str, type: str) -> exp.Expression:
    """A column of the source, in the type of the declaration; NULL where it is not of that type."""
    column = exp.column(name, table=ROWS, quoted=True)
    return exp.TryCast(this=column, to=exp.DataType.build(CASTS[type], dialect="duckdb"))


def _literal(value: Any, type: str) -> exp.Expression:
    if type == "date":
        return exp.cast(exp.Literal.string(value), "DATE")
    if isinstance(value, bool):
        return exp.true() if value else exp.false()
    return exp.convert(value)


def _steps(question: Question, name: str, type: str) -> exp.Expression:
    """A value in whole steps, clipped to its bounds; NULL for NULL and NaN.

    Whatever rounding does to a real value, the whole number is clipped again.
    """
    value = _read(name, type)
    case = exp.case().when(_missing(value, type), exp.null())
    if name not in question.table.bounds:  # counted where it is not NULL
        return case.else_(exp.Literal.number(1))
    bounds = question.table.bounds[name]
    if type != "integer" or bounds.step != 1:
        real = exp.cast(value, "DOUBLE")
        inside = _clipped(real, _double(bounds.low), _double(bounds.high))
        grows = bounds.step < 1
        factor = _double(1 / bounds.step if grows else bounds.step)
        scaled = (exp.Mul if grows else exp.Div)(this=inside, expression=factor)
        half = exp.Add(this=scaled, expression=_double(Decimal("0.5")))
        value = exp.cast(exp.Floor(this=half), "BIGINT")
    ends = (exp.cast(exp.convert(each), "BIGINT") for each in (bounds.lowest, bounds.highest))
    return case.else_(_clipped(value, *ends))


def _clipped(value: exp.Expression, low: exp.Expression, high: exp.Expression) -> exp.Expression:
    """A value within these ends; of NULL the engine makes anything, which no caller keeps."""
    above = exp.Anonymous(this="GREATEST", expressions=[value, low])
    return exp.Anonymous(this="LEAST", expressions=[above, high])


def _double(value: Decimal) -> exp.Expression:
    return exp.cast(exp.Literal.number(repr(float(value))), "DOUBLE")


def _missing(value: exp.Expression, type: str) -> exp.Expression:
    """Whether a value is NULL or NaN; NaN equals itself in SQL."""
    null = exp.Is(this=value.copy(), expression=exp.null())
    if type != "real":
        return null
    nan = exp.cast(exp.Literal.string("NaN"), "DOUBLE")
    return exp.Or(this=null, expression=exp.EQ(this=value.copy(), expression=nan))


def _ranks(keys: Sequence[str], values: Sequence[str], key: str) -> list[exp.Expression]:
    """The place of each row's group among those of its unit, and of the row in its group."""
    found: list[exp.Expression] = []
    if keys:
        order = [_hash(key, [_UNIT, *keys]), *(exp.column(each) for each in keys)]
        found.append(_ranked(exp.DenseRank(), [_UNIT], order, _GROUP_RANK))
    order = [_hash(key, [_UNIT, *keys, *values]), *(exp.column(each) for each in values)]
    found.append(_ranked(exp.RowNumber(), [_UNIT, *keys], order, _ROW_RANK))
    return found


def _ranked(
    rank: exp.Expression, within: Sequence[str], order: Sequence[exp.Expression], name: str
) -> exp.Expression:
    window = exp.Window(
        this=rank,
        partition_by=[exp.column(each) for each in within],
        order=exp.Order(expressions=[exp.Ordered(this=each) for each in order]),
    )
    return exp.alias_(window, name)


def _hash(key: str, columns: Sequence[str]) -> exp.Expression:
    """The MD5 of the secret key and of columns."""
    text: exp.Expression = exp.Literal.string(key)
    for each in columns:
        written = exp.Coalesce(
            this=exp.cast(exp.column(each), "TEXT"), expressions=[exp.Literal.string("")]
        )
        separated = exp.DPipe(this=text, expression=exp.Literal.string(_SEPARATOR))
        text = exp.DPipe(this=separated, expression=written)
    return exp.MD5(this=text)


def _aggregate(total: Total, values: Sequence[str]) -> exp.Expression:
    if total.kind == "rows":
        return exp.Count(this=exp.Star())
    if total.kind == "units":
        return exp.Count(this=exp.Distinct(expressions=[exp.column(_UNIT)]))
    assert total.column is not None
    value = exp.column(_value(total.column, values))
    if total.kind == "values":
        return exp.Count(this=value)
    if total.kind in ("below", "at_most"):
        end = exp.cast(exp.convert(total.center), "BIGINT")
        compared = (exp.LT if total.kind == "below" else exp.LTE)(this=value, expression=end)
        return exp.Count(this=exp.case().when(compared, exp.Literal.number(1)))
    inner: exp.Expression = value
    if total.center:
        inner = exp.Paren(
            this=exp.Sub(this=value, expression=exp.cast(exp.convert(total.center), "BIGINT"))
        )
    if total.coarse > 1:
        # Rounded towards zero, so within the bounds of what is rounded.
        inner = exp.IntDiv(this=inner, expression=exp.Literal.number(total.coarse))
    if total.kind == "squares":
        inner = exp.Mul(this=inner, expression=inner.copy())
    return exp.Coalesce(this=exp.Sum(this=inner), expressions=[exp.Literal.number(0)])
