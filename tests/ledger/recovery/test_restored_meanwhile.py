"""A backup that is put back while a spend is under way: nothing is permitted twice."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import residua as rz
from residua.ledger.operations import committer

pytestmark = pytest.mark.needs("sqlalchemy")

REST = rz.PureDp(0.75)


@pytest.fixture(params=["file", "database"])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[rz.Ledger]]:
    """Two processes' views of a ledger in which three quarters of a budget are left."""
    kept = request.param
    anchor = tmp_path / "anchor" if kept == "file" else f"sqlite:///{tmp_path}/anchors.db"
    with (
        rz.open_ledger(tmp_path / "b.db", anchor=anchor) as one,
        rz.open_ledger(tmp_path / "b.db", anchor=anchor) as other,
    ):
        one.create_budget("b", rz.PureFilter(1.0))
        assert one.spend("b", rz.PureDp(0.25)).admitted
        yield [one, other]


@pytest.fixture
def restore(two: list[rz.Ledger], tmp_path: Path) -> Callable[[], None]:
    """Puts a backup back into the database that is open, as of now."""
    with closing(sqlite3.connect(tmp_path / "b.db")) as source:
        backup = source.serialize()

    def put_back() -> None:
        with (
            closing(sqlite3.connect(":memory:")) as source,
            closing(sqlite3.connect(tmp_path / "b.db")) as target,
        ):
            source.deserialize(backup)
            source.backup(target)

    return put_back


def test_after_the_anchor_was_asked(
    two: list[rz.Ledger], restore: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    learn = one._committer._read_new_marks

    def learning() -> None:
        learn()
        monkeypatch.undo()
        assert other.spend("b", REST, key="other").admitted
        restore()

    monkeypatch.setattr(one._committer, "_read_new_marks", learning)
    with pytest.raises(rz.OutcomeUnknown, match="a backup was restored"):
        one.spend("b", REST, key="one")
    _is_read_only(one, other)


def test_between_the_commit_and_the_anchor(
    two: list[rz.Ledger], restore: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two

    def pause(at: str) -> None:
        if at == "anchoring":
            monkeypatch.undo()
            restore()
            assert other.spend("b", REST, key="other").admitted

    monkeypatch.setattr(committer, "point", pause)
    with pytest.raises(rz.OutcomeUnknown, match="a backup was restored"):
        one.spend("b", REST, key="one")
    with pytest.raises(rz.ReadOnlyLedger):
        one.spend("b", REST, key="one")
    assert [each.key for each in other.history("b")][1:].count("other") == 1
    assert not other.spend("b", rz.PureDp(0.25)).admitted


def test_while_it_is_recovered(
    two: list[rz.Ledger], restore: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is acknowledged after the recovery asked the anchor is not lost with the old anchor."""
    one, other = two
    assert other.spend("b", rz.PureDp(0.5), key="lost").admitted
    restore()
    with pytest.raises(rz.ReadOnlyLedger):
        one.spend("b", REST)
    anchor = one._committer.anchor
    assert anchor is not None
    start = anchor.start

    def late(said: object, check: object) -> None:
        monkeypatch.undo()
        # As a server does that had committed before the backup was put back.
        other._committer.anchor.write({"b": (3, "0" * 64), "c": (0, "1" * 64)})
        start(said, check)

    monkeypatch.setattr(anchor, "start", late)
    with pytest.raises(rz.ReadOnlyLedger, match="recover it again"):
        one.recover(retire=True)
    _is_read_only(one)
    assert set(one.recover(retire=True).retired) >= {"c"}


def _is_read_only(*ledgers: rz.Ledger) -> None:
    for each in ledgers:
        with pytest.raises(rz.ReadOnlyLedger):
            each.spend("b", rz.PureDp(0.01))
