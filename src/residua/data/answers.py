"""Answers: a table with an interval for each cell, the noise, the receipt, and what is left.

A released answer is stored in the ledger's database before the caller gets it, under the key of
its receipt. The same question of the same principal gets it again and costs nothing.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import insert, select

from residua.errors import KeyReused
from residua.ledger.storage import schema
from residua.ledger.storage.store import Store
from residua.records import canonical, digest

_A = schema.answers


@dataclass(frozen=True)
class Answer:
    """What a session answers. A refusal has no rows; it is falsy, and nothing was spent."""

    sql: str
    """The question in its normal form."""
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    intervals: tuple[tuple[Any, ...], ...]
    """For each cell `(low, high)`, or None for a key. With 95 % probability it contains the value
    without noise, of the rows that were chosen and clipped; an end that is None is not known."""
    noise: Mapping[str, Any]
    """For each measure the kind and the scale of its noise."""
    mechanism: Mapping[str, Any]
    """The description that was charged."""
    key: str
    admitted: bool
    reason: str
    repeated: bool = False
    """Whether it was released before, so that it cost nothing now."""
    receipt: Any = None
    """The receipt of the spend, or the refusal; None for a repeated answer."""

    def __bool__(self) -> bool:
        return self.admitted

    @property
    def remaining(self) -> Any:
        """What is left of the budget, after the answer; None for a repeated one."""
        return None if self.receipt is None else self.receipt.remaining

    @property
    def accuracy(self) -> dict[str, float | None]:
        """The largest half-width of the intervals of each column; None if one has no end."""
        found: dict[str, float | None] = {}
        for place, name in enumerate(self.columns):
            cells = [row[place] for row in self.intervals if row[place] is not None]
            if cells:
                known = [(high - low) / 2 for low, high in cells if None not in (low, high)]
                found[name] = max(known) if len(known) == len(cells) else None
        return found

    @property
    def table(self) -> Any:
        """The answer as an Arrow table."""
        import pyarrow

        turned = zip(*self.rows, strict=True) if self.rows else ([] for _ in self.columns)
        made = {name: pyarrow.array(list(c)) for name, c in zip(self.columns, turned, strict=True)}
        return pyarrow.table(made)

    def to_pandas(self) -> Any:
        """The answer as a data frame of pandas."""
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """The answer as a data frame of polars."""
        import polars

        return polars.from_arrow(self.table)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON data."""
        return {
            "sql": self.sql,
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "intervals": [[None if c is None else list(c) for c in row] for row in self.intervals],
            "accuracy": self.accuracy,
            "noise": dict(self.noise),
            "mechanism": dict(self.mechanism),
            "key": self.key,
            "admitted": self.admitted,
            "reason": self.reason,
            "repeated": self.repeated,
        }

    def shown(self) -> list[tuple[str, ...]]:
        """The rows as texts, numbers with half the width of their interval."""
        return [
            tuple(_cell(value, ends) for value, ends in zip(row, around, strict=True))
            for row, around in zip(self.rows, self.intervals, strict=True)
        ]

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.shown()
        )
        said = "released before: cost nothing" if self.repeated else self.reason
        return f"<table><tr>{head}</tr>{body}</table><p>{html.escape(said)}</p>"


def _cell(value: Any, ends: Any) -> str:
    if ends is None:
        return str(value)
    if value is None:
        return "unknown"
    shown = f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
    if None in ends:
        return f"{shown} (no interval)"
    below, above = value - ends[0], ends[1] - value
    if isinstance(value, int):
        return f"{shown} ± {above:,}"
    if abs(above - below) <= 1e-6 * abs(above + below):
        return f"{shown} ± {above:,.6g}"
    return f"{shown} ({ends[0]:,.6g} to {ends[1]:,.6g})"


# -- answers that were released ---------------------------------------------------------------


def question_id(question: Mapping[str, Any]) -> str:
    """What two questions have in common that get the same answer."""
    return digest(canonical(question))


def store(ledger: Any, answer: Answer, question: str, open_question: str) -> None:
    """Store an answer, durably, before it is released."""
    row = {
        "principal": ledger.principal, "key": answer.key,
        "released": datetime.now(UTC).isoformat(),
        "question": f"{open_question} {question}", "answer": canonical(answer.to_dict()),
    }  # fmt: skip
    place: Store = ledger.store
    with place.writing() as connection:
        connection.execute(insert(_A).values(row))
        found = (_A.c.principal == row["principal"], _A.c.key == row["key"])
        place.commit(
            connection,
            lambda other: other.execute(select(_A.c.key).where(*found)).scalar() is not None,
        )


def find(
    ledger: Any, key: str | None, question: str, open_question: str, is_open: bool, shared: bool
) -> Answer | None:
    """An answer that was released under a key, or to the same question.

    A question without a wish for the noise gets the last answer, whatever its noise.
    """
    with ledger.store.reading() as connection:
        if key is not None:
            same = select(_A.c.question, _A.c.answer).where(
                _A.c.principal == ledger.principal, _A.c.key == key
            )
            row = connection.execute(same).first()
            if row is not None:
                asked = row.question.split(" ")
                if question not in asked and not (is_open and open_question in asked):
                    raise KeyReused(f"key {key!r} was already used for another question")
                return _read(row.answer)
            return None
        wanted = _A.c.question == f"{open_question} {question}"
        if is_open:
            wanted = _A.c.question.like(f"{open_question} %")
        query = select(_A.c.answer).where(wanted)
        if not shared:
            query = query.where(_A.c.principal == ledger.principal)
        text = connection.execute(query.order_by(_A.c.released.desc()).limit(1)).scalar()
    return None if text is None else _read(text)


def _read(text: str) -> Answer:
    given = json.loads(text)
    del given["accuracy"]
    for name in ("columns", "rows"):
        given[name] = tuple(tuple(e) if isinstance(e, list) else e for e in given[name])
    given["intervals"] = tuple(
        tuple(None if c is None else tuple(c) for c in row) for row in given["intervals"]
    )
    return replace(Answer(**given), repeated=True)
