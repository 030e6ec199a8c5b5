"""Records, and whatever else is put together from texts, are what writing them at once would give.

`canonical` is the slow twin: every text must be the same to the byte, whatever its parts hold.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import residua as rz
from residua.ledger.domain.budget_row import new_entry
from residua.ledger.domain.described_query import describe_query
from residua.ledger.storage import anchor
from residua.mechanisms import Composed, Gaussian, Laplace, PureDp
from residua.records import FIELDS, VERSION, Canonical, canonical, read, record, written

# Quotes, escapes, controls, signs beyond ASCII and beyond the first plane, and half of a pair.
TEXTS = st.text(
    st.one_of(st.sampled_from('"\\/\b\n\x00\x1f\x7f\u2028µ²é𝔾%{}'), st.characters()), max_size=8
)
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
)
DATA = st.recursive(
    PLAIN, lambda of: st.lists(of, max_size=3) | st.dictionaries(TEXTS, of, max_size=3)
)


@given(DATA)
def test_a_part_is_written_as_it_would_be_alone(data: Any) -> None:
    assert written(data) == canonical(data)
    assert written(Canonical(canonical(data))) == canonical(data)


@pytest.mark.parametrize("type", FIELDS)
@settings(max_examples=25)
@given(st.data())
def test_a_record_is_what_canonical_says(type: str, data: st.DataObject) -> None:
    text, number = data.draw(TEXTS), data.draw(st.integers(min_value=0))
    common = {"ledger": text, "budget": text, "seq": number, "prev": text, "time": "", "by": text}
    fields = {name: data.draw(DATA, label=name) for name in sorted(FIELDS[type])}
    whole = {**common, **fields, "type": type, "v": VERSION}
    ready = data.draw(st.sets(st.sampled_from(sorted(fields))))
    given = {
        name: Canonical(canonical(value)) if name in ready else value
        for name, value in fields.items()
    }
    made = record(type, common, given)
    assert made.text == canonical(whole)
    assert made.body == json.loads(made.text)
    again = read(made.text)
    assert (again, again.hash, again.body) == (made, made.hash, made.body)
    simple = ("budget", "seq", "prev", "type", "time")
    assert [getattr(made, name) for name in simple] == [getattr(again, name) for name in simple]


@pytest.mark.parametrize("name", ["a", 'quoted "µ²" \\ 𝔾'])
@pytest.mark.parametrize(
    "query",
    [Laplace(scale=1e6), PureDp(eps=0.1), Composed([Gaussian(sigma=20.0), PureDp(eps=1e-9)])],
)
def test_a_ledger_records_what_canonical_says(name: str, query: Any, tmp_path: Any) -> None:
    """Spends, holds, commits, cancellations and refusals, on a budget and the one above it."""
    with rz.open_ledger(tmp_path / "a.db") as ledger:
        ledger.create_budget(name, rz.GdpResidueFilter(mu=2.0), data="d")
        ledger.create_budget("under", rz.BasicFilter(eps=0.5, delta=1e-6), parent=name)
        ledger.spend(name, query)
        ledger.spend("under", query)
        ledger.spend("under", PureDp(eps=0.25), key=name)
        ledger.reserve("under", PureDp(eps=0.125)).commit()
        ledger.reserve(name, query).cancel('for "no" reason: µ²')
        ledger.retire("under", "done")
        kinds = set()
        for budget in (name, "under"):
            for each in ledger.history(budget):
                kinds.add(each.type)
                assert canonical(json.loads(each.text)) == each.text
                assert read(each.text).hash == each.hash
        assert {"spend", "hold", "commit", "cancel", "retire"} <= kinds


@given(TEXTS, st.integers(min_value=0))
def test_a_mark_and_a_place_are_what_canonical_says(name: str, seq: int) -> None:
    line = anchor._mark(name, (seq, "ab"))
    assert line == anchor._line(canonical({"budget": name, "seq": seq, "head": "ab"}))
    filter = rz.GdpResidueFilter(mu=1.0)
    fields = {
        "parent": None, "partition": None, "data": None, "relation": "add-remove",
        "unit": "person", "window": None, "filter": filter.to_dict(),
        "state": json.loads(filter.state_to_json(filter.initial())),
    }  # fmt: skip
    entry = new_entry(1, name, "", fields)
    place = {"budget": name, "prev": entry.head_hash, "seq": 0}
    assert entry.next_place() == canonical(place)


def test_a_description_that_was_written_otherwise_is_recorded_canonically() -> None:
    """Whoever subclasses may write it as they like."""

    class Spaced(Laplace):
        def to_json(self) -> str:
            return json.dumps(self.to_dict(), indent=2)

    query = describe_query(Spaced(scale=3.0))
    assert query.written == canonical(json.loads(query.text)) != query.text
