"""Recovery: what was exported comes back as it was; what nobody vouches for is closed."""

from __future__ import annotations

import io
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from urllib.parse import unquote

import pytest
from sqlalchemy import Connection, update

import backups
import residua as rz
from ledger.conftest import Open
from ledger.damage import cut, rows, spent, wipe
from residua.errors import BrokenRecord
from residua.ledger.domain import clock
from residua.ledger.recovery import export_validation
from residua.ledger.recovery import recover as recover_
from residua.ledger.storage import schema
from residua.ledger.storage.anchor import Anchored, Check, FileAnchor, Marks
from residua.ledger.storage.schema import UNANCHORED, facts_in, set_fact
from residua.ledger.storage.store import Store
from residua.records import FIELDS, Record, from_line, lines, record


def test_recovery_retires_what_lost_spends_and_records_that(open_: Open) -> None:
    ledger = open_()
    for name in ("b", "c"):
        ledger.create_budget(name, rz.PureFilter(1.0))
        ledger.spend(name, rz.pure_dp(0.25))
        ledger.spend(name, rz.pure_dp(0.25))
    cut(ledger, "b", 1)
    again = open_()
    with pytest.raises(rz.ReadOnlyLedger, match="'b'"):
        again.recover()
    done = again.recover(retire=True)
    assert done.retired == ("b",) and done.applied == 0
    with pytest.raises(rz.RetiredBudget):
        again.spend("b", rz.pure_dp(0.1))
    record = again.history("b")[-1]
    assert record.type == "recover" and "fully spent" in (record.reason or "")
    assert again.spend("c", rz.pure_dp(0.25)).admitted
    with pytest.raises(rz.ReadOnlyLedger):
        ledger.spend("c", rz.pure_dp(0.25))
    assert open_().read_only is None, "and its anchor is a new one"


def test_recovery_takes_over_what_was_exported(open_: Open) -> None:
    """Rows follow from records: all that the tables say comes back, and every receipt."""
    ledger = open_()
    ask = busy(ledger)
    before, answers = rows(ledger), [shown(each) for each in ask(ledger)]
    assert rows(ledger) == before, "asking again writes nothing"
    exported = io.StringIO()
    lines = ledger.export(exported)
    written = sum(each.seq + 1 for each in ledger.budgets())
    assert lines == exported.getvalue().count("\n") == written
    wipe(ledger)
    again = open_()
    assert again.read_only is not None
    found = again.recover(export=io.StringIO(exported.getvalue()))
    assert found.retired == () and found.applied == lines
    after = rows(again)
    for name in ("residua_keys", "residua_holds", "residua_tables"):
        assert after[name] == before[name], name
    resumed = [row for row in after["residua_records"] if row not in before["residua_records"]]
    assert set(before["residua_records"]) < set(after["residua_records"])
    closed = {budget.name for budget in again.budgets() if budget.retired}
    assert closed == {"over"} and len(resumed) == len(before["residua_budgets"]) - len(closed)
    for old, new in zip(before["residua_budgets"], after["residua_budgets"], strict=True):
        name, steps = str(old[1]), int(old[1] not in closed)
        assert new[:11] + new[13:] == old[:11] + old[13:]
        assert new[11] == old[11] + steps, "what was done is in each chain"
        assert again.history(name)[-1].type == ("resume" if steps else "retire")
    assert [shown(each) for each in ask(again)] == answers
    (hold, *_) = again.holds()
    assert again.commit(hold.id).admitted


def set_clock(ledger: rz.Ledger, seconds: float) -> None:
    """Stop the time of a ledger's database, as far as this process asks for it."""
    store = ledger.store
    store.now = f"'{clock.text(datetime.fromtimestamp(seconds, UTC))}'"
    vars(store).pop("facts_and_time", None)


def busy(ledger: rz.Ledger) -> Callable[[rz.Ledger], list[object]]:
    """Groups, quotas, partitions, windows; holds of every fate. What asks for all of it again."""
    make = ledger.create_budget
    for name in ("z", "b", "a", "over"):
        make(name, rz.PureFilter(1.0))
    make("q", rz.PureFilter(1.0), parent="z")
    make("whole", rz.PureFilter(1.0))
    for name in ("north", "south"):
        make(name, rz.PureFilter(1.0), parent="whole", partition=name)
    begun = time.time()
    set_clock(ledger, begun)
    make("daily", rz.PureFilter(1.0), window=1000.0)
    ledger.spend("daily", rz.pure_dp(0.5), key="day")
    eps = rz.pure_dp
    ledger.spend("b", eps(0.125), key="early")
    first = ledger.reserve(["b", "a"], eps(0.125), key="open")
    second = ledger.reserve(["south", "q", "b"], eps(0.0625), key="second")
    third = ledger.reserve(["q", "b"], eps(0.03125))
    ledger.reserve(["b", "a"], eps(0.25), key="late", ttl=5.0)
    ledger.reserve("z", eps(0.125)).cancel("not needed")
    ledger.spend(["b", "a"], eps(9.0), key="too much")
    set_clock(ledger, begun + 1001.0)
    third.commit(key="third")
    second.commit()
    ledger.spend(["south", "north", "z"], eps(0.125), key="late spend")
    ledger.spend("daily", eps(0.25), key="next day")
    ledger.reserve("over", eps(0.125))
    ledger.retire("over", "done")

    def ask(again: rz.Ledger) -> list[object]:
        return [
            again.spend("daily", eps(0.5), key="day"),
            again.spend("b", eps(0.125), key="early"),
            again.reserve(["b", "a"], eps(0.125), key="open"),
            again.reserve(["a", "b"], eps(0.125), key="open"),
            again.reserve(["south", "q", "b"], eps(0.0625), key="second"),
            again.spend(["b", "a"], eps(9.0), key="too much"),
            again.commit(third.id, key="third"),
            again.commit(third.id),
            again.commit(second.id),
            again.spend(["south", "north", "z"], eps(0.125), key="late spend"),
            again.spend("daily", eps(0.25), key="next day"),
            [(each.id, each.budgets, each.made, each.expires) for each in again.holds()],
            first.id,
        ]

    return ask


def shown(answer: object) -> object:
    """Everything that an answer says."""
    if not isinstance(answer, rz.Receipt | rz.Reservation):
        return answer
    said = {n: v for n, v in vars(answer).items() if not n.startswith("_")}
    return {**said, "remaining": answer.remaining, "largest": answer.largest}


def test_a_commit_by_key_or_by_hold_is_the_same_receipt(open_: Open) -> None:
    """However often it is asked for: the record, its form, and what was left."""
    ledger = open_()
    for name in ("b", "cap"):
        ledger.create_budget(name, rz.PureFilter(1.0))
    ledger.create_budget("q", rz.PureFilter(1.0), parent="cap")
    for names in ("q", ["q", "b"]):
        hold = ledger.reserve(names, rz.pure_dp(0.125))
        first = ledger.commit(hold.id, key=f"k{names}")
        for again in (ledger.commit(hold.id, key=f"k{names}"), ledger.commit(hold.id)):
            assert again.replayed and not first.replayed
            said, same = shown(again), shown(first)
            assert {**said, "replayed": False} == same


def test_a_budget_of_which_nothing_is_left_keeps_its_name(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    wipe(ledger)
    again = open_()
    assert again.recover(retire=True).retired == ("b",)
    with pytest.raises(rz.BudgetExists):
        again.create_budget("b", rz.PureFilter(1.0))
    assert again.budget("b").retired


def test_an_export_of_something_else_is_not_taken_over(open_: Open, tmp_path: Path) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.spend("b", rz.pure_dp(0.25))
    with rz.open_ledger(tmp_path / "other.db") as other:
        other.create_budget("b", rz.PureFilter(1.0))
        other.spend("b", rz.pure_dp(0.125))
        other.export(tmp_path / "other.jsonl")
    ledger.export(tmp_path / "own.jsonl")
    cut(ledger, "b", 0)
    again = open_()
    with pytest.raises(BrokenRecord, match="another ledger"):
        again.recover(export=tmp_path / "other.jsonl")
    text = (tmp_path / "own.jsonl").read_text()
    for wrong in (text.replace("0.75", "0.95"), text.splitlines()[1] + "\n", "{}\n", text[:-9]):
        with pytest.raises(BrokenRecord):
            again.recover(export=io.StringIO(wrong))
    assert again.recover(export=tmp_path / "own.jsonl").applied == 1


def test_an_export_does_not_prove_itself_complete(tmp_path: Path) -> None:
    """Everything was spent and acknowledged; then store and anchor are lost, but for a backup."""
    path, anchor = tmp_path / "a.db", tmp_path / "a.db.anchor"
    with rz.open_ledger(path) as ledger:
        for name in ("b", "c"):
            ledger.create_budget(name, rz.PureFilter(1.0))
        shutil.copy(path, tmp_path / "backup.db")
        receipt = ledger.spend("b", rz.pure_dp(1.0))
        ledger.export(tmp_path / "whole.jsonl")
    shutil.copy(tmp_path / "backup.db", path)
    anchor.unlink()
    with rz.open_ledger(path) as ledger:
        ledger.export(tmp_path / "own.jsonl")
        other = ledger.budget("c").head
        for given in ({}, {"heads": receipt}, {"heads": {"c": other}}, {"heads": {"b": (0, "x")}}):
            with pytest.raises(rz.ReadOnlyLedger, match="may still lack spends"):
                ledger.recover(export=tmp_path / "own.jsonl", **given)
        assert [record.type for record in ledger.history("b")] == ["create"]
        done = ledger.recover(
            export=tmp_path / "own.jsonl", retire=True, heads={"c": (0, other), **receipt.budgets}
        )
        assert done.retired == ("b",)
        assert [record.type for record in ledger.history("b")] == ["create", "recover"]
        resumed = ledger.history("c")[-1]
        assert resumed.type == "resume" and other in (resumed.reason or "")
        with pytest.raises(rz.RetiredBudget):
            ledger.spend("b", rz.pure_dp(1.0))
        assert ledger.spend("c", rz.pure_dp(1.0)).admitted
    anchor.unlink()
    with rz.open_ledger(path) as ledger:
        # A recovery that is done again: what was vouched for first, or what came of it.
        with pytest.raises(rz.ReadOnlyLedger):
            ledger.recover(heads={"c": other})
        assert ledger.recover(heads={"c": ledger.budget("c").head}).retired == ()
        anchor.unlink()
    with rz.open_ledger(path) as ledger:
        assert ledger.recover(heads={"c": (2, ledger.history("c")[2].hash)}).retired == ()
    # The same with an export that has the spend, which its receipt vouches for.
    shutil.copy(tmp_path / "backup.db", path)
    anchor.unlink()
    with rz.open_ledger(path) as ledger:
        heads = {"c": other, **receipt.budgets}
        assert ledger.recover(export=tmp_path / "whole.jsonl", heads=heads).applied == 1
        assert [record.type for record in ledger.history("b")] == ["create", "spend", "resume"]
        assert not ledger.spend("b", rz.pure_dp(1.0)).admitted


def test_an_export_that_lacks_a_budget_of_a_group_is_not_complete(open_: Open) -> None:
    """A record names what was written with it, whatever the anchor knows."""
    ledger = open_()
    for name in ("b", "c"):
        ledger.create_budget(name, rz.PureFilter(1.0))
    heads = dict(ledger.spend(["b", "c"], rz.pure_dp(0.25)).budgets)
    exported = io.StringIO()
    ledger.export(exported)
    lines = exported.getvalue().splitlines(keepends=True)
    cut(ledger, "b", 0)
    cut(ledger, "c", 0)
    assert isinstance(ledger._committer.anchor, FileAnchor)
    ledger._committer.anchor.start(Anchored(ledger.id, ledger._committer.incarnation))
    again = open_()
    assert again.read_only is None, "the anchor was put back, too"
    with pytest.raises(rz.ReadOnlyLedger, match=r"'c'.*together"):
        again.recover(export=lines[:-1], heads={"b": heads["b"]})


def test_a_recovery_that_was_cut_before_its_anchor_began_is_done_again(
    open_: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It retires only what the first try did: the old anchor still counts."""
    ledger = open_()
    for name in ("b", "c"):
        ledger.create_budget(name, rz.PureFilter(1.0))
        ledger.spend(name, rz.pure_dp(0.25))
    cut(ledger, "b", 0)

    def fails(*_: object) -> None:
        raise OSError("gone")

    with monkeypatch.context() as patched:
        patched.setattr(FileAnchor, "start", fails)
        with pytest.raises(rz.StoreUnavailable, match="recover it again"):
            ledger.recover(retire=True)
        assert "recover it again" in (ledger.read_only or "")
    assert "incarnation" in (open_().read_only or "")
    assert ledger.recover(retire=True).retired == ()
    assert [record.type for record in ledger.history("b")] == ["create", "recover"]
    assert ledger.spend("c", rz.pure_dp(0.25)).admitted
    # Killed after the anchor began: whoever opens it next says that it has one.
    with ledger.store.writing() as connection:
        set_fact(connection, UNANCHORED, "before")
        connection.commit()
    again = open_()
    assert again.read_only is None
    with again.store.reading() as connection:
        assert UNANCHORED not in facts_in(connection)


def test_an_anchor_that_is_newer_than_the_store_still_tells(tmp_path: Path) -> None:
    """A backup from before a recovery: its anchor is of a later incarnation, and knows all."""
    path = tmp_path / "a.db"
    with rz.open_ledger(path) as ledger:
        for name in ("b", "c"):
            ledger.create_budget(name, rz.PureFilter(1.0))
        shutil.copy(path, tmp_path / "backup.db")
        ledger.recover()
        ledger.spend("b", rz.pure_dp(0.25))
        ledger.export(tmp_path / "export.jsonl")
    shutil.copy(tmp_path / "backup.db", path)
    with rz.open_ledger(path) as ledger:
        assert "incarnation" in (ledger.read_only or "")
        with pytest.raises(rz.ReadOnlyLedger, match="'b': record 1 was acknowledged"):
            ledger.recover()
        assert ledger.recover(export=tmp_path / "export.jsonl").retired == ()
        assert [record.type for record in ledger.history("c")] == ["create"]
        assert ledger.spend("b", rz.pure_dp(0.75)).admitted
    with rz.open_ledger(path) as ledger:
        assert ledger.read_only is None


def test_what_recovery_is_given_is_checked(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    for export in (5, b"x", {"a": "b"}, [5], object()):
        with pytest.raises(rz.ArgumentTypeError, match="export must be"):
            ledger.recover(export=export)
    for heads in (5, "hash", {"b": 5}, {5: "hash"}, {"b": ("x", 0)}, [("b", "hash")]):
        with pytest.raises(rz.ArgumentTypeError, match="heads must be"):
            ledger.recover(heads=heads)
    with pytest.raises(rz.ArgumentTypeError, match="retire"):
        ledger.recover(retire=1)


def test_a_budget_that_lost_spends_stays_retired_whatever_becomes_of_its_row(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.spend("b", rz.pure_dp(0.25))
    cut(ledger, "b", 0)
    again = open_()
    again.recover(retire=True)
    with again.store.writing() as connection:
        connection.execute(update(schema.budgets).values(retired=0))
        connection.commit()
    for each in (again, open_()):
        with pytest.raises(rz.RetiredBudget):
            each.spend("b", rz.pure_dp(0.25))
        assert each.budget("b").retired


# -- databases that are restored -------------------------------------------------------------


@pytest.mark.needs("pgserver", "psycopg")
def test_a_restored_database_is_detected_unless_the_anchor_is_complete(
    schema_url: str, tmp_path: Path
) -> None:
    """A machine that has no anchor yet, and one that did not write last."""
    one = rz.open_ledger(schema_url, anchor=tmp_path / "one")
    one.create_budget("b", rz.PureFilter(1.0))
    with rz.open_ledger(schema_url, anchor=tmp_path / "two") as two:
        assert two.read_only is None
    early = one.spend("b", rz.pure_dp(0.25))
    restore = backups.postgres(schema_url, tmp_path / "dump.sql")
    one.spend("b", rz.pure_dp(0.75))
    one.close()
    restore()
    for name, why in (
        ("one", "record 2"),
        ("two", "only some of"),
        ("new", "no anchor"),
    ):
        with rz.open_ledger(schema_url, anchor=tmp_path / name) as ledger:
            assert why in (ledger.read_only or "")
            with pytest.raises(rz.ReadOnlyLedger, match="recover"):
                ledger.spend("b", rz.pure_dp(0.75))
            with pytest.raises(rz.ReadOnlyLedger, match="may still lack spends"):
                ledger.recover()
    with rz.open_ledger(schema_url, anchor=tmp_path / "new") as ledger:
        assert ledger.recover(heads=early).retired == ()
        assert "vouches" in (ledger.history("b")[-1].reason or "")
    with rz.open_ledger(schema_url, anchor=tmp_path / "newer") as ledger:
        assert ledger.read_only is None, "it is known by now"
        assert ledger.spend("b", rz.pure_dp(0.75)).admitted
    with rz.open_ledger(schema_url, anchor=tmp_path / "one") as ledger:
        assert "incarnation" in (ledger.read_only or "")
        with pytest.raises(rz.ReadOnlyLedger, match="'b': record 2 was acknowledged"):
            ledger.recover()


@pytest.mark.needs("pgserver", "psycopg")
@pytest.mark.parametrize("shared", [False, True])
def test_a_database_that_was_moved_goes_on_by_an_anchor_that_knows_all(
    schema_url: str, tmp_path: Path, shared: bool
) -> None:
    anchor = f"sqlite:///{tmp_path}/anchors.db" if shared else tmp_path / "anchor"
    with rz.open_ledger(schema_url, anchor=anchor) as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        ledger.spend("b", rz.pure_dp(0.25))
        restore = backups.postgres(schema_url, tmp_path / "dump.sql")
    restore()
    for where in (anchor, anchor if shared else tmp_path / "another"):
        with rz.open_ledger(schema_url, anchor=where) as ledger:
            assert ledger.read_only is None
            assert ledger.spend("b", rz.pure_dp(0.25)).admitted


@pytest.mark.needs("pgserver", "psycopg")
def test_a_server_that_was_recovered_to_a_point_in_time_is_another_one(tmp_path: Path) -> None:
    """Its cluster, database and tables are the same; its timeline is not."""
    import pgserver
    import psycopg

    with tempfile.TemporaryDirectory(prefix="residua-pg", ignore_cleanup_errors=True) as home:
        server = pgserver.get_server(Path(home) / "data", cleanup_mode="stop")
        with rz.open_ledger(server.get_uri(), anchor=tmp_path / "anchor") as ledger:
            ledger.create_budget("b", rz.PureFilter(1.0))
        server.cleanup()
        backup = Path(home) / "backup"
        subprocess.run(["cp", "-a", Path(home) / "data", backup], check=True)
        (backup / "recovery.signal").touch()
        with (backup / "postgresql.conf").open("a") as settings:
            settings.write("\nrestore_command = 'false'\n")
        subprocess.run(["chown", "-R", f"--reference={backup}", backup], check=True)
        again = pgserver.get_server(backup, cleanup_mode="stop")
        try:
            with psycopg.connect(again.get_uri(), autocommit=True) as server_again:
                while server_again.execute("SELECT pg_is_in_recovery()").fetchone() == (True,):
                    time.sleep(0.05)
            with rz.open_ledger(again.get_uri(), anchor=tmp_path / "new") as ledger:
                assert "there is no anchor" in (ledger.read_only or "")
            with rz.open_ledger(again.get_uri(), anchor=tmp_path / "anchor") as ledger:
                assert ledger.read_only is None
        finally:
            again.cleanup()


@pytest.mark.needs("pgserver", "psycopg")
def test_a_fact_that_changes_does_not_stop_who_is_writing(schema_url: str, tmp_path: Path) -> None:
    with rz.open_ledger(schema_url, anchor=tmp_path / "anchor") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        for value in ("a", "b", None):
            assert ledger.spend("b", rz.pure_dp(0.125)).admitted
            assert ledger.spend("b", rz.pure_dp(0.125)).admitted
            with (
                rz.open_ledger(schema_url, anchor=tmp_path / "anchor") as other,
                other.store.writing() as connection,
            ):
                set_fact(connection, "home", value)
                connection.commit()


# -- connections that are cut ----------------------------------------------------------------


@pytest.mark.needs("pgserver", "psycopg")
@pytest.mark.parametrize("moment", ["lock", "commit"])
def test_a_recovery_that_is_cut_says_so_and_is_done_again(
    postgres: str, schema_url: str, tmp_path: Path, moment: str
) -> None:
    import psycopg

    path = unquote(schema_url.partition("&options=")[2])
    ledger = rz.open_ledger(schema_url, anchor=tmp_path / "anchor")
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.spend("b", rz.pure_dp(0.25))
    ledger.export(tmp_path / "export.jsonl")
    cut(ledger, "b", 0)
    found: list[BaseException] = []

    def recover() -> None:
        try:
            ledger.recover(export=tmp_path / "export.jsonl")
        except Exception as error:
            found.append(error)

    recovering = threading.Thread(target=recover)
    with psycopg.connect(postgres, options=path, autocommit=True) as server:
        holder = psycopg.connect(postgres, options=path)
        if moment == "lock":
            holder.execute("SELECT id FROM residua_budgets FOR UPDATE")
            condition = "wait_event_type = 'Lock'"
        else:
            server.execute(
                "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN PERFORM pg_sleep(20); RETURN NEW; END $$"
            )
            server.execute(
                "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON residua_meta"
                " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()"
            )
            condition = "state = 'active' AND upper(query) LIKE 'COMMIT%'"
        recovering.start()
        while recovering.is_alive():
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                f" WHERE application_name = 'residua' AND {condition}"
            )
            recovering.join(0.02)
        holder.close()
        server.execute("DROP TRIGGER IF EXISTS slow ON residua_meta")
    wanted = {"lock": rz.StoreUnavailable, "commit": rz.OutcomeUnknown}[moment]
    assert [type(error) for error in found] == [wanted], found
    assert ledger.recover(export=tmp_path / "export.jsonl").retired == ()
    assert spent(ledger, "b") == Fraction(1, 4)
    assert [record.type for record in ledger.history("b")] == ["create", "spend", "resume"]
    assert ledger.spend("b", rz.pure_dp(0.25)).admitted
    ledger.close()


FORGED: dict[str, Callable[[Record, Record], tuple[str, dict[str, object]]]] = {
    "a resume that moves": lambda first, last: (
        "resume",
        {"reason": "so", "before": last.body["after"], "after": first.body["state"]},
    ),
    "a resume of another state": lambda first, last: (
        "resume",
        {"reason": "so", "before": first.body["state"], "after": first.body["state"]},
    ),
    "a window that was not due": lambda first, last: (
        "refresh",
        {"generation": 1, "tables": {}, "state": first.body["state"]},
    ),
    "a spend that gives back": lambda first, last: (
        "spend",
        {**_asked(last), "key": "k", "before": last.body["after"], "after": first.body["state"]},
    ),
    "a spend of nothing": lambda first, last: (
        "spend",
        {**_asked(last), "key": "k", "before": last.body["after"], "after": last.body["after"]},
    ),
    "a commit of what is not held": lambda first, last: (
        "commit",
        {**_asked(last), "hold": "h", "before": last.body["after"], "after": last.body["after"]},
    ),
}


def _asked(last: Record) -> dict[str, object]:
    own = {name: value for name, value in last.body.items() if name in FIELDS["spend"]}
    place = {"budget": last.budget, "seq": last.seq + 1, "prev": last.hash}
    return {**own, "key": "k", "group": [place]}


@pytest.mark.parametrize("kind", FORGED)
def test_an_export_with_forged_records_is_not_applied(open_: Open, kind: str) -> None:
    """Whoever has the last record can make one that follows it; only what the gate decides does."""
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.spend("b", rz.pure_dp(0.75))
    first, last = ledger.history("b")
    common = {name: last.body[name] for name in ("ledger", "budget", "time", "by")}
    type_, fields = FORGED[kind](first, last)
    forged = record(type_, {**common, "seq": last.seq + 1, "prev": last.hash}, fields)
    with pytest.raises(BrokenRecord, match="number 2"):
        ledger.recover(export=lines([first, last, forged]))
    assert ledger.history("b") == (first, last) and spent(ledger, "b") == Fraction(3, 4)
    assert not ledger.spend("b", rz.pure_dp(0.5)).admitted


def test_what_another_machine_decided_is_taken_over_if_it_is_proven(
    open_: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where rounding differs, states may; then the verifier has the last word."""
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.spend("b", rz.pure_dp(0.5))
    ledger.spend("b", rz.pure_dp(0.25))
    exported = io.StringIO()
    ledger.export(exported)
    cut(ledger, "b", 0)
    monkeypatch.setattr(export_validation, "_next_state", lambda *_: "{}")
    again = open_()
    assert again.recover(export=exported.getvalue().splitlines()).applied == 2
    assert spent(again, "b") == Fraction(3, 4)


def test_an_overtaken_recovery_does_not_change_the_anchor_of_the_other(
    open_: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the other acknowledged since would be missing in an anchor that was begun by the first.

    A backup from between the two would then pass for the present.
    """
    one = open_()
    for name in ("b", "c"):
        one.create_budget(name, rz.PureFilter(1.0))
    two = open_(principal="two")
    marks: list[Anchored | None] = []

    def overtaken(do: Callable[..., None]) -> Callable[..., None]:
        def first(*given: object) -> None:
            if one._committer in given or one._committer.anchor in given:
                monkeypatch.undo()
                assert two.recover().retired == ()
                assert two.spend("b", rz.pure_dp(0.25)).admitted
                marks.append(FileAnchor(tmp).read())
            do(*given)

        return first

    assert isinstance(one._committer.anchor, FileAnchor)
    tmp = one._committer.anchor.path
    for where, name in ((recover_, "_start_anchor"), (FileAnchor, "start")):
        monkeypatch.setattr(where, name, overtaken(getattr(where, name)))
        with pytest.raises(rz.ReadOnlyLedger, match=r"another process has recovered .* open"):
            one.recover()
        assert one.read_only is not None and FileAnchor(tmp).read() == marks[-1]
        assert two.spend("c", rz.pure_dp(0.25)).admitted
        fresh = open_()
        assert fresh.read_only is None and fresh.budget("b").seq >= 1
        one = fresh


def test_a_recovery_waits_for_another_and_then_asks_the_anchor(
    open_: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the anchor said before, budgets would be closed that lack nothing."""
    one, two = open_(), open_(principal="two")
    one.create_budget("b", rz.PureFilter(1.0))
    one.spend("b", rz.pure_dp(0.25))
    lock = type(two.store).lock_schema

    def late(store: Store, connection: Connection) -> None:
        if store is two.store:
            monkeypatch.undo()
            if store.locks_rows:
                assert one.recover().retired == () and one.spend("b", rz.pure_dp(0.25)).admitted
        lock(store, connection)

    if not two.store.locks_rows:
        assert one.recover().retired == () and one.spend("b", rz.pure_dp(0.25)).admitted
    else:
        monkeypatch.setattr(type(two.store), "lock_schema", late)
    assert two.recover(retire=True).retired == ()
    assert two.spend("b", rz.pure_dp(0.5)).admitted


def test_who_only_reads_does_not_recover(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.spend("b", rz.pure_dp(0.25))
    cut(ledger, "b", 0)
    before = rows(ledger)
    reader = open_(read_only=True)
    with pytest.raises(rz.ReadOnlyLedger, match="opened read-only"):
        reader.recover(retire=True)
    assert rows(ledger) == before and reader.read_only is not None


@pytest.mark.parametrize("name", ["", " b", "b\n", "\0", "x" * 1000])
def test_nobody_vouches_for_what_cannot_be_a_budget(open_: Open, name: str) -> None:
    """It would be closed as one of which nothing is left: a budget that has no name."""
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    with pytest.raises(rz.ArgumentError, match="heads must be"):
        ledger.recover(heads={name: "0" * 64}, retire=True)
    with pytest.raises(rz.ArgumentTypeError, match="heads must be"):
        ledger.recover(heads=(5, "0" * 64), retire=True)
    assert [budget.name for budget in ledger.budgets()] == ["b"]


# -- a store that was lost -------------------------------------------------------------------


@pytest.mark.parametrize("kept", ["file", "database"])
def test_a_store_that_was_lost_is_made_anew_from_its_export(tmp_path: Path, kept: str) -> None:
    """The anchor knows whether that is all; and it is never given up for another ledger's."""
    path = tmp_path / "a.db"
    anchor = tmp_path / "anchor" if kept == "file" else f"sqlite:///{tmp_path}/anchors.db"
    with rz.open_ledger(path, anchor=anchor) as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        early = io.StringIO()
        ledger.export(early)
        receipt = ledger.spend("b", rz.pure_dp(0.75), key="k")
        ledger.export(tmp_path / "export.jsonl")
        lost = ledger.id
    path.unlink()
    with rz.open_ledger(path, anchor=anchor) as ledger:
        if kept == "file":
            assert "another ledger" in (ledger.read_only or "")
            with pytest.raises(rz.ReadOnlyLedger, match="belongs to another ledger"):
                ledger.recover(retire=True)
        with pytest.raises(rz.ReadOnlyLedger, match="1 budget may still lack spends"):
            ledger.recover(export=early.getvalue().splitlines())
        assert ledger.id != lost
        assert ledger.recover(export=tmp_path / "export.jsonl").applied == 2
        assert ledger.id == lost and ledger.spend("b", rz.pure_dp(0.75), key="k") == replace(
            receipt, replayed=True
        )
        assert not ledger.spend("b", rz.pure_dp(0.5)).admitted
    with rz.open_ledger(path, anchor=anchor) as ledger:
        assert ledger.read_only is None and ledger.id == lost
        assert ledger.spend("b", rz.pure_dp(0.25)).admitted and ledger.verify().ok
    with rz.open_ledger(tmp_path / "other.db") as other:
        other.create_budget("c", rz.PureFilter(1.0))
        with pytest.raises(BrokenRecord, match="another ledger"):
            other.recover(export=tmp_path / "export.jsonl")


@pytest.mark.needs("pgserver", "psycopg")
def test_the_file_of_one_machine_does_not_tell_that_an_export_is_all(
    schema_url: str, tmp_path: Path
) -> None:
    """Others may have spent what it does not know, from a server that was lost."""
    with rz.open_ledger(schema_url, anchor=tmp_path / "one") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        ledger.export(tmp_path / "export.jsonl")
        head = ledger.budget("b").head
        wipe(ledger)
        with ledger.store.writing() as connection:
            set_fact(connection, "ledger", "fresh")
            connection.commit()
    with rz.open_ledger(schema_url, anchor=tmp_path / "one") as ledger:
        with pytest.raises(rz.ReadOnlyLedger, match="records after 0 may be lost"):
            ledger.recover(export=tmp_path / "export.jsonl")
        done = ledger.recover(export=tmp_path / "export.jsonl", heads={"b": head})
        assert done.retired == () and ledger.spend("b", rz.pure_dp(0.25)).admitted
        assert ledger.history("b")[1].type == "resume"


def test_an_export_that_contradicts_the_store_is_not_taken_over(open_: Open) -> None:
    """Also where the heads agree: a record in between was changed."""
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    for _ in range(3):
        ledger.spend("b", rz.pure_dp(0.125))
    exported = io.StringIO()
    ledger.export(exported)
    text = ledger.history("b")[2].text.replace('"eps 0.125"', '"eps 0.5"').replace("0.125", "0.5")
    r = schema.records
    with ledger.store.writing() as connection:
        connection.execute(update(r).where(r.c.seq == 2).values(text=text))
        connection.commit()
    with pytest.raises(BrokenRecord, match="is not the store's chain at number 2"):
        ledger.recover(export=exported.getvalue().splitlines())


def lost_store(tmp_path: Path, anchor: object, spends: int = 1) -> tuple[str, str]:
    """A ledger at `a.db` with an export, whose store is lost; its id and the head of its budget."""
    with rz.open_ledger(tmp_path / "a.db", anchor=anchor) as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        for _ in range(spends):
            ledger.spend("b", rz.pure_dp(0.25))
        ledger.export(tmp_path / "export.jsonl")
        found = ledger.id, ledger.budget("b").head
    (tmp_path / "a.db").unlink()
    return found


@pytest.mark.parametrize("kept", ["file", "database"])
def test_a_ledger_that_lost_its_own_budgets_becomes_no_other(tmp_path: Path, kept: str) -> None:
    """A backup from before its first budget: the anchor knows what it had."""
    _, head = lost_store(tmp_path, None)
    anchor = tmp_path / "anchor" if kept == "file" else f"sqlite:///{tmp_path}/anchors.db"
    path = tmp_path / "mine.db"
    rz.open_ledger(path, anchor=anchor).close()
    restore = backups.sqlite(str(path), tmp_path / "backup.db")
    with rz.open_ledger(path, anchor=anchor) as ledger:
        ledger.create_budget("mine", rz.PureFilter(1.0))
        ledger.spend("mine", rz.pure_dp(0.75))
        mine = ledger.id
    restore()
    with rz.open_ledger(path, anchor=anchor) as ledger:
        with pytest.raises(rz.ReadOnlyLedger, match="has lost its own budgets"):
            ledger.recover(export=tmp_path / "export.jsonl", heads={"b": head}, retire=True)
        assert ledger.id == mine and ledger.budgets() == () and ledger.read_only is not None
        assert ledger.recover(retire=True).retired == ("mine",)


def test_an_anchor_that_an_export_is_ahead_of_does_not_tell_that_it_is_all(tmp_path: Path) -> None:
    """It is that of an older incarnation: somebody changed to another one since."""
    path, export = tmp_path / "a.db", tmp_path / "export.jsonl"
    with rz.open_ledger(path, anchor=tmp_path / "old") as ledger:
        for name in ("b", "c"):
            ledger.create_budget(name, rz.PureFilter(1.0))
        heads = {each.name: each.head for each in ledger.budgets()}
    with rz.open_ledger(path, anchor=tmp_path / "new") as ledger:
        ledger.recover(heads=heads)
        ledger.export(export)
        ledger.spend("b", rz.pure_dp(0.75))
    path.unlink()
    for name, lacking in (("old", "2 budgets"), ("new", "1 budget")):
        ledger = rz.open_ledger(path, anchor=tmp_path / name)
        with pytest.raises(rz.ReadOnlyLedger, match=f"{lacking} may still lack spends"):
            ledger.recover(export=export)
        ledger.close()


@pytest.mark.parametrize("again", ["here", "opened"])
@pytest.mark.parametrize("kept", ["file", "database"])
def test_becoming_another_ledger_is_done_again_where_it_was_cut(
    tmp_path: Path, kept: str, again: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the anchor of the new store, which knows nothing, was begun anew."""
    lost, head = lost_store(tmp_path, None)
    anchor = tmp_path / "fresh" if kept == "file" else f"sqlite:///{tmp_path}/fresh.db"
    export, path, heads = tmp_path / "export.jsonl", tmp_path / "n.db", {"b": head}
    ledger = rz.open_ledger(path, anchor=anchor)
    made = type(ledger._committer.anchor)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(made, "start", killed)
            with pytest.raises(KeyboardInterrupt):
                ledger.recover(export=export, heads=heads)
        with pytest.raises(rz.ReadOnlyLedger):
            ledger.spend("b", rz.pure_dp(0.25))
        if again == "opened":
            ledger.close()
            ledger = rz.open_ledger(path, anchor=anchor)
            assert ledger.read_only is not None and ledger.id == lost
    assert ledger.recover(heads=heads).retired == ()
    assert ledger.spend("b", rz.pure_dp(0.75)).admitted and ledger.verify().ok
    assert {record.body["ledger"] for record in ledger.history("b")} == {lost}
    ledger.close()
    with rz.open_ledger(path, anchor=anchor) as ledger:
        assert ledger.read_only is None


def test_who_had_the_new_ledger_open_recovers_it_as_what_it_became(tmp_path: Path) -> None:
    """An anchor in a database is that of the other ledger then, for them as well."""
    anchor = f"sqlite:///{tmp_path}/anchors.db"
    lost, _ = lost_store(tmp_path, anchor)
    with (
        rz.open_ledger(tmp_path / "a.db", anchor=anchor) as one,
        rz.open_ledger(tmp_path / "a.db", anchor=anchor) as two,
    ):
        one.recover(export=tmp_path / "export.jsonl")
        with pytest.raises(rz.ReadOnlyLedger, match="open it again"):
            two.create_budget("c", rz.PureFilter(1.0))
        with pytest.raises(rz.ReadOnlyLedger, match="open it again"):
            two.spend("b", rz.pure_dp(0.25))
        two.recover(export=tmp_path / "export.jsonl")
        assert two.id == lost and two.spend("b", rz.pure_dp(0.75)).admitted
        with pytest.raises(rz.ReadOnlyLedger):
            one.spend("b", rz.pure_dp(0.25))
        assert two.verify().ok


@pytest.mark.parametrize("id", ["", "../up", "/tmp/x", "A" * 32])
def test_a_ledger_becomes_none_that_has_no_id(tmp_path: Path, id: str) -> None:
    """Files are named after it."""
    lost, _ = lost_store(tmp_path, None, spends=0)
    (line,) = (tmp_path / "export.jsonl").read_text().splitlines()
    found = Record(from_line(line).text.replace(lost, id))
    with rz.open_ledger(tmp_path / "n.db") as ledger:
        mine = ledger.id
        with pytest.raises(BrokenRecord, match="the ledger id of the export is invalid"):
            ledger.recover(export=lines([found]), heads={"b": found.hash})
        assert ledger.id == mine and ledger.create_budget("c", rz.PureFilter(1.0))


def test_a_ledger_made_anew_is_later_than_any_anchor_that_turns_up(tmp_path: Path) -> None:
    """Nobody knows how often it was recovered before, and an older anchor does not know all."""
    path, export = tmp_path / "a.db", tmp_path / "export.jsonl"
    with rz.open_ledger(path) as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        for _ in range(3):
            ledger.recover()
        ledger.export(export)
        head = ledger.budget("b").head
    path.unlink()
    (tmp_path / "a.db.anchor").rename(tmp_path / "found")
    with rz.open_ledger(path) as ledger:
        ledger.recover(export=export, heads={"b": head})
        restore = backups.sqlite(str(path), tmp_path / "backup.db")
        ledger.spend("b", rz.pure_dp(0.75))
    restore()
    (tmp_path / "found").rename(tmp_path / "a.db.anchor")
    ledger = rz.open_ledger(path)
    with pytest.raises(rz.ReadOnlyLedger, match="may be lost"):
        ledger.recover()
    ledger.close()


@pytest.mark.needs("pgserver", "psycopg")
def test_the_file_of_a_user_is_that_of_the_ledger_that_the_store_became(
    schema_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name has the ledger's id: whoever opens it next looks there."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    lost, head = lost_store(tmp_path, None)
    export = tmp_path / "export.jsonl"
    with rz.open_ledger(schema_url) as ledger:
        fresh = ledger.id
        with pytest.raises(rz.ReadOnlyLedger):
            ledger.recover(export=export)
        assert ledger.id == fresh and str(ledger._committer.anchor).endswith(f"{fresh}.anchor")
        ledger.recover(export=export, heads={"b": head})
        ledger.spend("b", rz.pure_dp(0.25))
        restore = backups.postgres(schema_url, tmp_path / "backup.sql")
        ledger.spend("b", rz.pure_dp(0.5))
        assert (tmp_path / "state" / "residua" / f"{lost}.anchor").exists()
    restore()
    with rz.open_ledger(schema_url) as ledger:
        assert ledger.id == lost and "may have lost spends" in (ledger.read_only or "")


def test_a_ledger_that_was_closed_is_not_opened_by_a_recovery(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    ledger.close()
    with pytest.raises(rz.StoreUnavailable, match="is closed"):
        ledger.recover()
    with pytest.raises(rz.StoreUnavailable, match="is closed"):
        ledger.spend("b", rz.pure_dp(0.25))


@pytest.mark.parametrize("end", ["", "-wal", "-journal", ".anchor", ".moved"])
def test_an_export_is_not_written_over_a_ledger_or_its_anchor(tmp_path: Path, end: str) -> None:
    """Nor over a hard link to one; but over an earlier export."""
    path = tmp_path / "a.db"
    beside = {"-wal": b"\x37\x7f\x06\x82", "-journal": b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"}
    with rz.open_ledger(path) as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        to = tmp_path / f"a.db{end}" if end not in beside else tmp_path / f"other.db{end}"
        if end in beside:
            to.write_bytes(beside[end] + bytes(32))
        elif end == ".moved":
            to.hardlink_to(path)
        before = to.read_bytes()
        with pytest.raises(rz.ArgumentError, match="must not be a database or an anchor"):
            ledger.export(to)
        assert to.read_bytes() == before and ledger.spend("b", rz.pure_dp(0.25)).admitted
        assert [ledger.export(tmp_path / "e.jsonl") for _ in range(2)] == [2, 2]


@pytest.mark.parametrize("kept", ["file", "database"])
def test_nothing_is_acknowledged_by_an_anchor_that_was_begun_anew(
    tmp_path: Path, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who still has the file open that was moved away, while a new one becomes its ledger."""
    path, export = tmp_path / "a.db", tmp_path / "export.jsonl"
    anchor = tmp_path / "anchor" if kept == "file" else f"sqlite:///{tmp_path}/anchors.db"
    old = rz.open_ledger(path, anchor=anchor)
    old.create_budget("b", rz.PureFilter(1.0))
    old.spend("b", rz.pure_dp(0.125))
    old.export(export)
    kept_by = old._committer.anchor
    assert kept_by is not None
    write = kept_by.write

    def late(marks: Marks, check: Check) -> None:
        path.rename(tmp_path / "moved.db")
        with rz.open_ledger(path, anchor=anchor) as new:
            new.recover(export=export)
        write(marks, check)

    monkeypatch.setattr(kept_by, "write", late)
    with pytest.raises(rz.OutcomeUnknown, match="replaced by a recovery"):
        old.spend("b", rz.pure_dp(0.75), key="k")
    monkeypatch.undo()
    for _ in range(2):
        with pytest.raises(rz.LedgerError):
            old.spend("b", rz.pure_dp(0.75), key="k")
    old.close()
    with rz.open_ledger(path, anchor=anchor) as new:
        assert new.read_only is None and new.spend("b", rz.pure_dp(0.75)).admitted
