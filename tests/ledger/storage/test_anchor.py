"""Restoring a backup must not un-spend: the anchor notices, and recovery is on record."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from sqlalchemy import func, select, update

import residua as rz
from ledger.damage import cut, spent, wipe
from residua.errors import BrokenRecord
from residua.ledger.storage import schema
from residua.ledger.storage.anchor import Anchored, FileAnchor
from residua.ledger.storage.database_anchor import DatabaseAnchor
from residua.ledger.storage.store import place
from residua.records import digest, follows

Open = Callable[..., rz.Ledger]


def test_a_head_that_is_another_than_the_acknowledged_one_is_noticed_at_once(open_: Open) -> None:
    """The same number, and hashed anew: by a process that has the ledger open."""
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.spend("b", rz.pure_dp(0.25), key="k")
    b, r = schema.budgets, schema.records
    record = ledger.history("b")[-1]
    changed = record.text.replace('"key":"k"', '"key":"x"')
    with ledger.store.writing() as connection:
        new = {"text": changed, "hash": digest(changed)}
        connection.execute(update(r).where(r.c.hash == record.hash).values(new))
        connection.execute(update(b).values(head_hash=new["hash"]))
        connection.commit()
    with pytest.raises(rz.ReadOnlyLedger, match="another record 1"):
        ledger.spend("b", rz.pure_dp(0.25))
    assert ledger.read_only is not None


def test_a_budget_stays_retired_whatever_becomes_of_its_row(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.retire("b", "done")
    with ledger.store.writing() as connection:
        connection.execute(update(schema.budgets).values(retired=0))
        connection.commit()
    with pytest.raises(rz.RetiredBudget):
        ledger.spend("b", rz.pure_dp(0.25))
    assert ledger.budget("b").retired


def test_a_store_behind_its_anchor_opens_read_only(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    for place_ in range(3):
        ledger.spend("b", rz.pure_dp(0.25), key=f"k{place_}")
    cut(ledger, "b", 2)
    with pytest.raises(rz.ReadOnlyLedger, match="restored"):
        ledger.spend("b", rz.pure_dp(0.25))
    again = open_()
    assert again.read_only is not None and "record 3" in again.read_only
    for ask in (
        lambda: again.spend("b", rz.pure_dp(0.25)),
        lambda: again.reserve("b", rz.pure_dp(0.25)),
        lambda: again.create_budget("c", rz.PureFilter(1.0)),
    ):
        with pytest.raises(rz.ReadOnlyLedger):
            ask()
    assert again.budget("b").seq == 2, "it can be read"
    assert again.check("b", rz.pure_dp(0.1)).admitted


def test_an_open_ledger_detects_that_its_store_lost_the_spends_of_others(
    open_: Open,
) -> None:
    """A process that is open knows what others acknowledged since it looked last."""
    one, two = open_(), open_()
    one.create_budget("b", rz.PureFilter(1.0))
    two.spend("b", rz.pure_dp(0.125))
    for place_ in range(3):
        one.spend("b", rz.pure_dp(0.125), key=f"k{place_}")
    cut(one, "b", 2)
    with pytest.raises(rz.ReadOnlyLedger, match="restored"):
        two.spend("b", rz.pure_dp(0.125))
    assert two.budget("b").seq == 2
    assert two.recover(retire=True).retired == ("b",)
    with pytest.raises(rz.RetiredBudget):
        two.spend("b", rz.pure_dp(0.125))
    two.create_budget("c", rz.PureFilter(1.0))
    assert two.spend("c", rz.pure_dp(0.125)).admitted


@pytest.mark.needs("flint")
def test_an_emptied_store_does_not_verify(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    receipt = ledger.spend("b", rz.pure_dp(0.25))
    assert ledger.verify().ok
    wipe(ledger)
    for expected in (None, receipt, receipt.head):
        report = ledger.verify(expect_head=expected)
        assert not report.ok and report.exit_code == 1


def test_a_crash_between_commit_and_anchor_is_caught_up(open_: Open, tmp_path: Path) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    anchor = tmp_path / "ledger.anchor"
    before = anchor.read_bytes()
    receipt = ledger.spend("b", rz.pure_dp(0.25), key="k")
    anchor.write_bytes(before)
    again = open_()
    assert again.read_only is None
    assert FileAnchor(anchor).read().marks["b"] == (1, receipt.head)


def test_a_failing_anchor_leaves_the_outcome_unknown_until_the_key_is_repeated(
    open_: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And while it fails nothing else is stored: only the first call could not know."""
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    anchor = tmp_path / "ledger.anchor"

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("residua.ledger.storage.anchor._append", full)
        with pytest.raises(rz.OutcomeUnknown, match="same key"):
            ledger.spend("b", rz.pure_dp(0.25), key="k")
        for key in ("l", None, "m"):
            with pytest.raises(rz.StoreUnavailable, match=r"No space.*nothing was spent"):
                ledger.spend("b", rz.pure_dp(0.25), key=key)
        with pytest.raises(rz.OutcomeUnknown):
            ledger.spend("b", rz.pure_dp(0.25), key="k")
        assert ledger.budget("b").seq == 1
    receipt = ledger.spend("b", rz.pure_dp(0.25), key="k")
    assert receipt.admitted and receipt.replayed
    assert FileAnchor(anchor).read().marks["b"] == (1, receipt.head)
    assert spent(ledger, "b") == Fraction(1, 4)
    assert ledger.spend("b", rz.pure_dp(0.25), key="l").seq == 2


def test_without_its_file_an_open_ledger_spends_nothing_until_it_is_back(
    open_: Open, tmp_path: Path
) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    first = ledger.spend("b", rz.pure_dp(0.25), key="k")
    anchor = tmp_path / "ledger.anchor"
    anchor.rename(tmp_path / "elsewhere")
    for _ in range(3):
        with pytest.raises(rz.StoreUnavailable, match="nothing was spent"):
            ledger.spend("b", rz.pure_dp(0.25))
    assert ledger.budget("b").seq == 1
    assert ledger.spend("b", rz.pure_dp(0.25), key="k").head == first.head, "that was anchored"
    (tmp_path / "elsewhere").rename(anchor)
    assert ledger.spend("b", rz.pure_dp(0.25)).seq == 2


def test_without_its_anchor_a_sqlite_ledger_opens_read_only(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with rz.open_ledger(path) as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        head = ledger.budget("b").head
    anchor = tmp_path / "a.db.anchor"
    kept = anchor.read_bytes()
    anchor.unlink()
    with rz.open_ledger(path) as ledger:
        assert ledger.read_only is not None and "anchor" in ledger.read_only
        assert ledger.recover(heads={"b": head}).retired == ()
        assert ledger.spend("b", rz.pure_dp(0.1)).admitted
    anchor.write_bytes(kept)
    with rz.open_ledger(path) as ledger:
        assert "incarnation" in (ledger.read_only or "")
        with pytest.raises(rz.ReadOnlyLedger, match=r"records after . may be lost"):
            ledger.recover()  # by an anchor of before the recovery
    with rz.open_ledger(tmp_path / "b.db"):
        pass
    shutil.copy(tmp_path / "b.db.anchor", anchor)
    with rz.open_ledger(path) as ledger:
        assert "another ledger" in (ledger.read_only or "")
        with pytest.raises(rz.ReadOnlyLedger, match="belongs to another ledger"):
            ledger.recover(retire=True)
    assert anchor.read_bytes() == (tmp_path / "b.db.anchor").read_bytes()


def test_a_backup_of_a_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with rz.open_ledger(path) as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        shutil.copy(path, tmp_path / "backup.db")
        ledger.spend("b", rz.pure_dp(1.0))
    shutil.copy(tmp_path / "backup.db", path)
    with rz.open_ledger(path) as ledger:
        assert ledger.read_only is not None
        with pytest.raises(rz.ReadOnlyLedger):
            ledger.spend("b", rz.pure_dp(1.0))


def test_a_chain_that_was_rewritten_is_noticed(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.spend("b", rz.pure_dp(0.25))
    cut(ledger, "b", 0)
    ledger._committer.anchored.clear()
    ledger._committer.anchor = None
    ledger.spend("b", rz.pure_dp(0.125))
    again = open_()
    assert "acknowledged as" in (again.read_only or "")


# -- the file --------------------------------------------------------------------------------


def test_lines_out_of_order_and_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "anchor"
    anchor = FileAnchor(path)
    assert anchor.read() is None
    anchor.create(Anchored("l", "i"))
    anchor.create(Anchored("other", "i"))
    anchor.write({"b": (3, "three")})
    anchor.write({"b": (2, "two"), "c": (1, "one")})
    assert anchor.read() == Anchored("l", "i", {"b": (3, "three"), "c": (1, "one")})
    whole = path.read_bytes().rstrip(b"\0")
    path.write_bytes(whole[:-5])
    assert anchor.read() == Anchored("l", "i", {"b": (3, "three")})
    anchor.compact()
    assert path.read_bytes().endswith(b"\n")
    anchor.write({"c": (4, "four")})
    assert anchor.read() == Anchored("l", "i", {"b": (3, "three"), "c": (4, "four")})
    path.write_bytes(whole.replace(b"three", b"fours"))
    with pytest.raises(BrokenRecord, match="line 2"):
        anchor.read()
    path.write_bytes(b"")
    with pytest.raises(BrokenRecord):
        anchor.read()
    anchor.close()


def test_lines_are_added_where_the_others_end(tmp_path: Path) -> None:
    """What was torn off in a file does not count, nor what is behind."""
    path = tmp_path / "anchor"
    one, two = FileAnchor(path), FileAnchor(path)
    one.create(Anchored("l", "i"))
    one.write({"b": (1, "x")})
    for seq in range(2, 40):
        (one, two)[seq % 2].write({"b": (seq, "x" * seq)})
    assert one.read() == Anchored("l", "i", {"b": (39, "x" * 39)})
    lines = path.read_bytes().rstrip(b"\0")
    # Somebody died while writing; then power failed, and of two blocks the second was there.
    path.write_bytes(lines + b"0123 torn" + bytes(500) + b"off\n" + bytes(100))
    two.write({"b": (40, "y")})
    assert one.read() == Anchored("l", "i", {"b": (40, "y")})
    assert path.read_bytes().rstrip(b"\0").startswith(lines)
    path.write_bytes(lines + bytes(500) + b"off\n" + bytes(100))
    one.compact()
    assert path.read_bytes().count(b"\n") == 2
    one.write({"b": (41, "z")})
    two.write({"b": (42, "w")})
    # A shorter file, copied into the same place.
    path.write_bytes(lines)
    two.write({"b": (43, "v")})
    assert one.read() == Anchored("l", "i", {"b": (43, "v")})
    one.close()
    two.close()


def test_a_file_that_is_gone_is_an_error_for_every_writer(tmp_path: Path) -> None:
    """The lock on it is not left behind, on which the others would wait for ever."""
    path = tmp_path / "anchor"
    one, two = FileAnchor(path), FileAnchor(path)
    one.create(Anchored("l", "i"))
    for each in (one, two):
        each.write({"b": (1, "h")})
    path.rename(tmp_path / "elsewhere")
    for each in (one, two, one):
        with pytest.raises(FileNotFoundError):
            each.write({"b": (2, "h")})
    (tmp_path / "elsewhere").rename(path)
    for seq, each in enumerate((one, two), 3):
        each.write({"b": (seq, "h")})
    said = one.read()
    assert said is not None and said.marks == {"b": (4, "h")}


def test_after_a_sync_that_failed_the_file_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a failed sync lost is clean in memory, so that no other sync would bring it back."""
    from residua.ledger.storage import anchor as module

    path = tmp_path / "anchor"
    one = FileAnchor(path)
    one.create(Anchored("l", "i", {"a": (1, "h")}))
    one.write({"b": (1, "h")})
    first = path.stat().st_ino

    def fails(file: int) -> None:
        raise OSError("input/output error")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="input/output"):
        patched.setattr(module, "_sync", fails)
        one.write({"b": (2, "h")})
    one.write({"b": (3, "h")})
    assert path.stat().st_ino != first
    second = path.stat().st_ino
    one.write({"b": (4, "h")})
    assert path.stat().st_ino == second, "once"
    said = one.read()
    assert said is not None and said.marks == {"a": (1, "h"), "b": (4, "h")}


@pytest.mark.parametrize("budgets", [1, 100])
def test_a_file_does_not_grow_with_what_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budgets: int
) -> None:
    """A service writes for months; every verification reads the file, and so does an opening."""
    from residua.ledger.storage import anchor as module

    monkeypatch.setattr(module, "_LONGEST", 2000)
    path = tmp_path / "anchor"
    one, two = FileAnchor(path), FileAnchor(path)
    one.create(Anchored("l", "i", {f"b{n}": (0, "h") for n in range(budgets)}))
    whole, replaced, marks = path.stat().st_size, set(), {}
    for seq in range(1, 200):
        marks = {"b0": (seq, f"h{seq}"), "other": (seq, "x")}
        (one if seq % 3 else two).write(marks)
        assert path.stat().st_size < 2 * max(whole, 2000) + 1000
        replaced.add(path.stat().st_ino)
    assert len(replaced) > 1
    said = two.read()
    assert said is not None and said.marks == {
        **{f"b{n}": (0, "h") for n in range(budgets)}, **marks
    }  # fmt: skip
    one.close()
    two.close()


def test_writers_follow_a_file_that_was_replaced(tmp_path: Path) -> None:
    path = tmp_path / "anchor"
    one, two = FileAnchor(path), FileAnchor(path)
    one.create(Anchored("l", "i"))
    one.write({"b": (1, "x")})
    two.write({"b": (2, "y")})
    two.start(Anchored("l", "j", {"b": (2, "y")}))
    one.write({"b": (3, "z")})
    assert two.read() == Anchored("l", "j", {"b": (3, "z")})
    one.close()
    two.close()


@pytest.fixture
def database(url: str) -> Iterator[DatabaseAnchor]:
    anchor = DatabaseAnchor(place(url), "l")
    yield anchor
    anchor.close()


def test_an_anchor_in_another_database(database: DatabaseAnchor) -> None:
    assert database.read() is None
    database.create(Anchored("l", "i"))
    database.create(Anchored("l", "other"))
    database.write({"b": (3, "three"), "c": (1, "one")})
    database.write({"b": (2, "two")})
    assert database.read() == Anchored("l", "i", {"b": (3, "three"), "c": (1, "one")})
    database.start(Anchored("l", "j", {"b": (3, "three")}))
    assert database.read() == Anchored("l", "j", {"b": (3, "three")})


def test_an_anchor_in_another_database_tells_what_is_new(url: str) -> None:
    one, two = DatabaseAnchor(place(url), "l"), DatabaseAnchor(place(url), "l")
    other = DatabaseAnchor(place(url), "another")
    with pytest.raises(rz.StoreUnavailable, match="is gone"):
        one.changes()
    with pytest.raises(rz.StoreUnavailable, match="is gone"):
        one.write({"b": (1, "x")})
    one.create(Anchored("l", "i", {"a": (5, "five")}))
    other.create(Anchored("another", "i", {"b": (9, "nine")}))
    assert two.changes() == {"a": (5, "five")} and two.changes() == {}
    one.write({"b": (1, "x")})
    one.write({"b": (2, "y"), "c": (1, "z")})
    one.write({"b": (1, "x")})
    assert two.changes() == {"b": (2, "y"), "c": (1, "z")} and two.changes() == {}
    assert set(one.changes()) == {"a", "b", "c"}, "who wrote is told as well, once"
    one.start(Anchored("l", "j", {"c": (3, "w")}))
    assert two.changes() == {"c": (3, "w")}
    # The anchor itself is put back, and goes on from there.
    with one.store.writing() as connection:
        connection.exec_driver_sql("UPDATE residua_anchors SET change = 1")
        connection.commit()
    one.write({"c": (4, "v")})
    assert two.changes() == {"c": (4, "v")}
    for each in (one, two, other):
        each.close()


def test_others_notice_a_store_put_back_by_an_anchor_in_another_database(
    url: str, tmp_path: Path
) -> None:
    where = tmp_path / "a.db"
    with rz.open_ledger(where, anchor=url) as one, rz.open_ledger(where, anchor=url) as two:
        one.create_budget("b", rz.PureFilter(1.0))
        two.spend("b", rz.pure_dp(0.125))
        for key in ("k", "l"):
            one.spend("b", rz.pure_dp(0.125), key=key)
        cut(one, "b", 2)
        with pytest.raises(rz.ReadOnlyLedger, match="restored"):
            two.spend("b", rz.pure_dp(0.125))


def test_an_anchor_that_is_gone_from_its_database_is_noticed(open_: Open, tmp_path: Path) -> None:
    """Whatever the store: everybody has the same one, so nobody is new there."""
    where = f"sqlite:///{tmp_path}/anchors.db"
    ledger = open_(anchor=where)
    head = ledger.create_budget("b", rz.PureFilter(1.0)).head
    anchor = ledger._committer.anchor
    assert isinstance(anchor, DatabaseAnchor)
    with anchor.store.writing() as connection:
        connection.exec_driver_sql("DELETE FROM residua_anchors")
        connection.commit()
    with pytest.raises(rz.StoreUnavailable, match="nothing was spent"):
        ledger.spend("b", rz.pure_dp(0.25), key="k")
    again = open_(anchor=where)
    assert "is gone" in (again.read_only or "")
    assert again.budget("b").seq == 0
    again.recover(heads={"b": head})
    assert not again.spend("b", rz.pure_dp(0.25), key="k").replayed


def test_a_ledger_anchored_in_another_database(url: str, tmp_path: Path) -> None:
    with rz.open_ledger(tmp_path / "a.db", anchor=url) as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        ledger.spend("b", rz.pure_dp(0.25))
        cut(ledger, "b", 0)
    with rz.open_ledger(tmp_path / "a.db", anchor=url) as ledger:
        assert ledger.read_only is not None
        assert ledger.recover(retire=True).retired == ("b",)


# -- tampering -------------------------------------------------------------------------------


def test_tampering_with_any_byte_of_a_record_is_located(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    for _ in range(3):
        ledger.spend("b", rz.pure_dp(0.25))
    r = schema.records
    text = ledger.history("b")[2].text
    for old, new in (('"0.75"', '"0.95"'), ("true", "null"), ("pure_dp", "pure_dq"), ("}", "} ")):
        changed = text.replace(old, new)
        assert changed != text
        with ledger.store.writing() as connection:
            connection.execute(update(r).where(r.c.seq == 2).values(text=changed))
            connection.commit()
        before, broken = None, []
        for record in ledger.history("b"):
            if before is not None and record.prev != before.hash:
                broken.append(before.seq)
            before = record
        assert broken == [2]


def test_tampering_with_the_head_is_an_error_before_anything_is_spent(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.spend("b", rz.pure_dp(0.5))
    text = ledger.history("b")[1].text
    r = schema.records
    with ledger.store.writing() as connection:
        change = update(r).where(r.c.seq == 1)
        connection.execute(change.values(text=text.replace('"0.5"', '"1"')))
        connection.commit()
    with pytest.raises(BrokenRecord, match="'b' 1"):
        ledger.spend("b", rz.pure_dp(1.0))
    with ledger.store.reading() as connection:
        assert connection.execute(select(func.count()).select_from(r)).scalar_one() == 2


def test_rows_that_no_ledger_writes_are_an_error_and_nothing_is_spent(open_: Open) -> None:
    """Whoever can write to the database can make it say anything; nobody waits for ever."""
    ledger = open_()
    ledger.create_budget("cap", rz.PureFilter(1.0))
    ledger.create_budget("b", rz.PureFilter(1.0), parent="cap")
    ledger.reserve("b", rz.pure_dp(0.25))
    b = schema.budgets
    of_b, of_cap = b.c.name == "b", b.c.name == "cap"
    with ledger.store.reading() as connection:
        (held,) = connection.execute(select(b.c.holds).where(of_b)).one()
    for where, damaged, good in (
        (of_b, {"holds": '"'}, {"holds": held}),
        (of_b, {"holds": "null"}, {"holds": held}),
        (of_b, {"holds": '["gone"]'}, {"holds": held}),
        (of_b, {"filter": "{}"}, {"filter": rz.PureFilter(1.0).to_json()}),
        (of_cap, {"parent": "b"}, {"parent": None}),
        (of_cap, {"head_seq": 7}, {"head_seq": 1}),
    ):
        for values, broken in ((damaged, True), (good, False)):
            with ledger.store.writing() as connection:
                connection.execute(update(b).where(where).values(values))
                connection.commit()
            if broken:
                with pytest.raises(rz.ResiduaError):
                    ledger.spend("b", rz.pure_dp(0.25))
    assert ledger.spend("b", rz.pure_dp(0.25)).seq == 2


def test_exports_read_back_as_chains(open_: Open, tmp_path: Path) -> None:
    from residua.ledger.recovery.export import read_export

    ledger = open_()
    ledger.create_budget("b", rz.AdditiveProfileFilter(1.0, 1e-6, 10))
    ledger.spend("b", rz.pure_dp(0.01))
    ledger.export(tmp_path / "a.jsonl")
    read = read_export(tmp_path / "a.jsonl")
    assert [r.text for r in read.chains["b"]] == [r.text for r in ledger.history("b")]
    named = {h for r in read.chains["b"] for h in r.body["tables"].values()}
    assert named and set(read.tables) == named
    assert follows(read.chains["b"][0], read.chains["b"][1]) is None


def test_an_anchor_is_not_put_in_the_place_of_a_database(tmp_path: Path) -> None:
    """A recovery would write it there, and the ledger would be gone."""
    path, other = tmp_path / "a.db", tmp_path / "other.db"
    for each in (path, other):
        with rz.open_ledger(each) as ledger:
            ledger.create_budget("b", rz.PureFilter(1.0))
    (tmp_path / "link").symlink_to(path)
    own = [path, tmp_path / "link", f"{path}-wal", f"{path}-journal", f"sqlite:///{path}"]
    for given in own:
        with pytest.raises(rz.ArgumentError, match="anchor must be outside the ledger"):
            rz.open_ledger(path, anchor=given)
    with pytest.raises(rz.ArgumentError, match="which is a database"):
        rz.open_ledger(path, anchor=other)
    for each in (path, other):
        with rz.open_ledger(each) as ledger:
            assert ledger.read_only is None and ledger.spend("b", rz.pure_dp(0.25)).admitted


def test_an_anchor_of_a_later_incarnation_is_not_replaced(tmp_path: Path, url: str) -> None:
    with rz.open_ledger(tmp_path / "a.db", anchor=url) as ledger:
        anchors = [ledger._committer.anchor, FileAnchor(tmp_path / "file")]
        for anchor in anchors:
            assert anchor is not None
            for incarnation in ("1-a", "2-b", "2-c"):
                anchor.start(Anchored(ledger.id, incarnation, {"b": (5, "x")}))
            with pytest.raises(rz.ReadOnlyLedger, match="another process has recovered"):
                anchor.start(Anchored(ledger.id, "1-d"))
            assert anchor.read() == Anchored(ledger.id, "2-c", {"b": (5, "x")})
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    with pytest.raises(OSError, match="keeps being replaced"):
        FileAnchor(tmp_path / "nowhere").start(Anchored("l", "1-a"))


def test_an_anchor_that_was_emptied_is_gone(tmp_path: Path) -> None:
    """Marks behind a first line that is missing would tell nobody anything."""
    path = tmp_path / "a.db"
    anchor = tmp_path / "a.db.anchor"
    with rz.open_ledger(path) as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        ledger.spend("b", rz.pure_dp(0.25))
        content = anchor.read_bytes()
        for left in (b"", content[:5]):
            with anchor.open("r+b") as file:
                file.truncate(0)
                file.write(left)
            for _ in range(2):
                with pytest.raises(
                    rz.StoreUnavailable, match=r"it was truncated.*nothing was spent"
                ):
                    ledger.spend("b", rz.pure_dp(0.25))
            assert ledger.budget("b").seq == 1 and not anchor.read_bytes().strip(left)
            with pytest.raises(OSError, match="it was truncated"):
                FileAnchor(anchor).write({"b": (5, "x")})
        anchor.write_bytes(content)
        assert ledger.spend("b", rz.pure_dp(0.25)).admitted
    with rz.open_ledger(path) as ledger:
        assert ledger.read_only is None and spent(ledger, "b") == Fraction(1, 2)
