"""Whatever is changed in a store, the verifier tells it and where, and goes on with the rest."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

import residua as rz
from cli.running import run
from ledger.conftest import Open
from residua.errors import ArgumentError, ArgumentTypeError, BrokenRecord, StoreUnavailable
from residua.ledger.recovery.export import read_export
from residua.ledger.storage import schema
from residua.mechanisms import PureDp
from residua.verify import Report, verify_export

pytestmark = pytest.mark.needs("flint")

_SET = "UPDATE residua_records SET text = CAST(? AS TEXT) WHERE budget_id = 1 AND seq = ?"
_GET = "SELECT CAST(text AS BLOB) FROM residua_records WHERE budget_id = 1 AND seq = ?"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with rz.open_ledger(tmp_path / "a.db") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        ledger.create_budget("c", rz.PureFilter(1.0))
        for _ in range(2):
            ledger.spend("b", PureDp(0.25))
        ledger.spend("c", PureDp(0.25))
    return tmp_path / "a.db"


@pytest.fixture
def store(path: Path) -> Iterator[sqlite3.Connection]:
    """The database itself, past the ledger."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def places(report: Report) -> list[tuple[str, int | None]]:
    return [(problem.budget, problem.seq) for problem in report.problems]


def exported(ledger: rz.Ledger) -> list[str]:
    file = io.StringIO()
    ledger.export(file)
    return file.getvalue().splitlines(keepends=True)


@pytest.mark.parametrize("seq", [0, 1])
def test_every_byte_of_a_record_with_its_high_bit_flipped(
    seq: int, path: Path, store: sqlite3.Connection
) -> None:
    """No text any more: told at the record, and the other records are verified as ever."""
    (kept,) = store.execute(_GET, (seq,)).fetchone()
    with rz.open_ledger(path, read_only=True) as ledger:
        for at in range(len(kept)):
            damaged = kept[:at] + bytes([kept[at] ^ 0x80]) + kept[at + 1 :]
            store.execute(_SET, (damaged, seq))
            report = ledger.verify()
            first = report.problems[0]
            assert (first.budget, first.seq) == ("b", seq) and f"byte {at} " in first.what
            assert all(problem.budget == "b" for problem in report.problems)
            assert report.exit_code == 1
            if seq:
                assert len(report.problems) == 1, "nothing is found fault with but the record"
                assert report.proven == 4 and len(report.steps) == 4


def test_damage_is_exported_as_it_is_and_told_by_whoever_reads_it(
    path: Path, store: sqlite3.Connection
) -> None:
    (kept,) = store.execute(_GET, (1,)).fetchone()
    with rz.open_ledger(path, read_only=True) as ledger:
        for at in range(0, len(kept), 50):
            store.execute(_SET, (kept[:at] + b"\xff" + kept[at + 1 :], 1))
            lines = exported(ledger)
            report = verify_export(lines)
            assert len(lines) == 5 and report.exit_code == 1
            assert any("line 2 " in problem.what for problem in report.problems)
            assert report.text.encode()
            with pytest.raises(BrokenRecord, match="line 2 "):
                read_export(lines)
            with pytest.raises(BrokenRecord, match="'b' 1"):
                ledger.history("b")
            assert len(ledger.history("b", limit=1)) == len(ledger.history("b", after=1)) == 1
    assert "b 1: record is not text" in run("verify", str(path), code=1)


def test_a_head_that_is_no_text_is_a_damaged_store(path: Path, store: sqlite3.Connection) -> None:
    store.execute(_SET, (b"\xff", 2))
    with rz.open_ledger(path, read_only=True) as ledger:
        with pytest.raises(BrokenRecord, match="damaged"):
            ledger.history("b")
        assert ("b", 2) in places(ledger.verify())


def test_a_record_that_is_stored_as_bytes(path: Path, store: sqlite3.Connection) -> None:
    (kept,) = store.execute(_GET, (1,)).fetchone()
    store.execute(_SET.replace("CAST(? AS TEXT)", "?"), (kept, 1))
    with rz.open_ledger(path, read_only=True) as ledger:
        assert places(ledger.verify()) == [("b", 1)]
        assert verify_export(exported(ledger)).ok, "all that it says is there"
        with pytest.raises(BrokenRecord, match="'b' 1"):
            ledger.history("b")


def test_a_name_that_is_no_text(path: Path, store: sqlite3.Connection) -> None:
    store.execute("UPDATE residua_budgets SET name = CAST(? AS TEXT) WHERE id = 1", (b"\xe2",))
    with rz.open_ledger(path, read_only=True) as ledger:
        report = ledger.verify()
    assert report.exit_code == 1 and report.proven == 5
    assert any("belongs to the budget 'b'" in problem.what for problem in report.problems)
    assert "\\udce2 1: " in run("verify", str(path), code=1)
    assert '"\\udce2"' in run("verify", str(path), "--json", code=1)


@pytest.mark.needs("pgserver", "psycopg")
def test_a_server_whose_disk_flips_a_bit(schema_url: str, tmp_path: Path) -> None:
    """The server takes no such text from anyone; a cast that it does not check is the disk."""
    import psycopg

    with rz.open_ledger(schema_url, anchor=tmp_path / "anchor") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
        for _ in range(2):
            ledger.spend("b", PureDp(0.25))
        with psycopg.connect(schema_url, autocommit=True) as server:
            server.execute("CREATE CAST (bytea AS text) WITHOUT FUNCTION")
            try:
                server.execute(
                    "UPDATE residua_records"
                    " SET text = set_byte(textsend(text), 50, 200)::text WHERE seq = 1"
                )
            finally:
                server.execute("DROP CAST (bytea AS text)")
        report = ledger.verify()
        assert places(report) == [("b", 1)] and report.proven == 2
        assert "byte 50 of it is 0xc8" in report.problems[0].what
        assert places(verify_export(exported(ledger)))
        with pytest.raises(BrokenRecord, match="'b' 1"):
            ledger.history("b")


# -- tables -------------------------------------------------------------------------------------


def _with_table(ledger: rz.Ledger) -> str:
    """The hash of a table that three records name."""
    ledger.create_budget("n", rz.NaturalFilter(rz.approximate_dp(1.0, 1e-6), rounds=3))
    for _ in range(2):
        ledger.spend("n", PureDp(0.1))
    (hash,) = set(ledger.history("n")[0].body["tables"].values())
    return str(hash)


def _put(ledger: rz.Ledger, hash: str, content: Any) -> None:
    with ledger.store.writing() as connection:
        mine = schema.tables.c.hash == hash
        connection.execute(update(schema.tables).where(mine).values(content=content))
        connection.commit()


def test_a_table_that_was_changed_is_damage(open_: Open) -> None:
    """Told by its hash, at every record that names it; an export carries it along."""
    ledger = open_()
    hash = _with_table(ledger)
    assert ledger.verify().ok and ledger.verify().proven == 3
    (content,) = read_export(exported(ledger)).tables.values()
    _put(ledger, hash, content[:-1] + bytes([content[-1] ^ 1]))
    for report in (ledger.verify(), verify_export(exported(ledger))):
        assert {("n", 0), ("n", 1), ("n", 2)} <= set(places(report))
        assert report.exit_code == 1
        assert all(hash[:12] in problem.what for problem in report.problems)
    lines = exported(ledger)
    assert "line 1 " in verify_export(lines).problems[0].what
    ledger.create_budget("plain", rz.PureFilter(1.0))
    plain = [line for line in exported(ledger) if '\\"budget\\":\\"plain\\"' in line]
    assert places(verify_export([lines[0], *plain])) == [("?", None)], "though no record names it"
    with pytest.raises(BrokenRecord, match=f"line 1 .* does not hash to {hash}"):
        read_export(exported(ledger))


def test_a_table_that_is_no_bytes_any_more(path: Path, store: sqlite3.Connection) -> None:
    with rz.open_ledger(path) as ledger:
        _with_table(ledger)
        for content in ("text", 10**12, 1.5):
            store.execute("UPDATE residua_tables SET content = ?", (content,))
            assert ("n", 0) in places(ledger.verify())
            assert verify_export(exported(ledger)).exit_code == 1


def test_a_table_that_is_named_by_what_is_no_hash_is_not_looked_for(open_: Open) -> None:
    from residua.ledger.recovery.export import table

    with open_().store.reading() as connection:
        for hash in ("\udcff" * 64, "\0", "", "0" * 64):
            assert table(connection, hash) is None


# -- what is expected ---------------------------------------------------------------------------


def test_a_given_head_is_expected_beside_the_anchor(path: Path, store: sqlite3.Connection) -> None:
    with rz.open_ledger(path) as ledger:
        receipt, held = ledger.spend("b", PureDp(0.1)), ledger.reserve("b", PureDp(0.1))
        for expected in (receipt, held, receipt.head, [receipt, held.head], dict(held.budgets)):
            assert ledger.verify(expect_head=expected).ok
            assert not ledger.verify(expect_head=[expected, "0" * 64]).ok
    store.execute("DELETE FROM residua_records WHERE budget_id = 2 AND seq = 1")
    with rz.open_ledger(path, read_only=True) as ledger:
        for expected in (None, receipt, receipt.head, dict(held.budgets), [], {}):
            assert places(ledger.verify(expect_head=expected)) == [("c", 1)], "the tail of c is cut"
    named = f"b={receipt.seq}:{receipt.head}"
    assert "record 1 is expected" in run("verify", str(path), "--expect-head", named, code=1)


@pytest.mark.parametrize(
    "wrong",
    [5, {"b": 5.0}, {"b": (1,)}, {"b": (True, "0")}, {5: "0"}, [5], ("b", 1), b"0", object()],
)
def test_what_is_no_head_is_an_error_that_names_the_argument(wrong: Any, path: Path) -> None:
    with rz.open_ledger(path, read_only=True) as ledger:
        with pytest.raises(ArgumentTypeError, match="expect_head"):
            ledger.verify(expect_head=wrong)
        with pytest.raises(ArgumentTypeError, match="since"):
            ledger.verify(since=wrong)
        assert ledger.verify(since={"b": 1, "c": (1, ledger.budget("c").head)}).ok


def test_an_anchor_that_cannot_be_read_is_named(path: Path, tmp_path: Path) -> None:
    """A directory is what even root cannot read as a file."""
    with (
        rz.open_ledger(path, read_only=True, anchor=tmp_path) as ledger,
        pytest.raises(StoreUnavailable, match=f"the anchor {tmp_path} cannot be read"),
    ):
        ledger.verify()


def test_an_export_to_where_nothing_can_be_written(path: Path, tmp_path: Path) -> None:
    with rz.open_ledger(path, read_only=True) as ledger:
        for to in (tmp_path / "none" / "e", str(tmp_path)):
            with pytest.raises(ArgumentError, match="to must be a writable file"):
                ledger.export(to)
        for other in (io.BytesIO(), 5, None):
            with pytest.raises(ArgumentTypeError, match="to must be"):
                ledger.export(other)
