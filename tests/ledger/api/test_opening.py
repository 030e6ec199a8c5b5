"""Opening: addresses, older ledgers and newer ones, unsafe stores."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import inspect, update

import residua as rz
from residua.ledger.storage import schema, sqlite
from residua.ledger.storage.sqlite import network_filesystem
from residua.ledger.storage.store import place

Open = Callable[..., rz.Ledger]


def test_addresses(tmp_path: Path) -> None:
    absolute = tmp_path / "a.db"
    assert place(f"sqlite:///{absolute}").path == absolute
    assert place(absolute).path == place(str(absolute)).path == absolute
    assert place("sqlite:///b.db").path == Path.cwd() / "b.db"
    assert place("postgresql://u:secret@h/d").path is None
    assert "secret" not in str(place("postgresql://u:secret@h/d"))


@pytest.mark.parametrize(
    "url",
    ["", "sqlite://", "sqlite:///:memory:", "mysql://h/d", "x y://z", "sqlite:///file:a?mode"],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(rz.ArgumentError, match="url"):
        rz.open_ledger(url)
    with pytest.raises(rz.ArgumentTypeError, match="url"):
        rz.open_ledger(7)


def test_a_ledger_is_found_again(open_: Open) -> None:
    first = open_()
    first.create_budget("b", rz.PureFilter(1.0))
    again = open_()
    assert again.id == first.id and again.read_only is None
    assert [b.name for b in again.budgets()] == ["b"]


def test_tables_are_as_they_are_used(open_: Open) -> None:
    """Opening makes what the statements name."""
    ledger = open_()
    with ledger.store.connection() as connection:
        found = inspect(connection)
        for table in schema.METADATA.sorted_tables:
            stored = {column["name"] for column in found.get_columns(table.name)}
            assert stored == {column.name for column in table.columns}, table.name


def test_a_newer_ledger_is_a_clear_error_at_opening_and_in_every_transaction(open_: Open) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    with ledger.store.writing() as connection:
        newer = update(schema.meta).where(schema.meta.c.name == "schema")
        connection.execute(newer.values(value=str(schema.VERSION + 1)))
        connection.commit()
    with pytest.raises(rz.NewerLedger, match="newer"):
        ledger.spend("b", rz.pure_dp(0.1))
    with pytest.raises(rz.NewerLedger, match="newer"):
        open_()
    with ledger.store.writing() as connection:
        connection.execute(newer.values(value="1"))
        connection.commit()
    with pytest.raises(rz.NotALedger, match="no released residua"):
        open_()


def test_a_ledger_that_was_recovered_elsewhere_is_a_clear_error_in_every_transaction(
    open_: Open,
) -> None:
    ledger = open_()
    ledger.create_budget("b", rz.PureFilter(1.0))
    with ledger.store.writing() as connection:
        other = update(schema.meta).where(schema.meta.c.name == "incarnation")
        connection.execute(other.values(value="another"))
        connection.commit()
    with pytest.raises(rz.ReadOnlyLedger, match="open it again"):
        ledger.spend("b", rz.pure_dp(0.1))


def test_an_anchor_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "anchor").mkdir()
    with rz.open_ledger(tmp_path / "a.db", anchor=tmp_path / "anchor") as ledger:
        assert ledger.read_only is not None and "anchor" in ledger.read_only
        with pytest.raises(rz.StoreUnavailable, match="anchor"):
            ledger.create_budget("b", rz.PureFilter(1.0))


MOUNTS = """\
1 0 8:1 / / rw - ext4 /dev/sda1 rw
2 1 0:50 / /home rw,relatime shared:2 - nfs4 server:/export rw,vers=4.2
3 2 8:17 / /home/local rw - ext4 /dev/sdb1 rw
4 1 0:51 / /mnt/the\\040share rw - cifs //nas/share rw
"""


def test_network_filesystems() -> None:
    assert network_filesystem(Path("/var/a.db"), MOUNTS) is None
    assert network_filesystem(Path("/home/user/a.db"), MOUNTS) == "nfs4"
    assert network_filesystem(Path("/home/local/a.db"), MOUNTS) is None
    assert network_filesystem(Path("/mnt/the share/a.db"), MOUNTS) == "cifs"


@pytest.mark.parametrize(
    ("kind", "far"),
    [
        ("9p", True), ("ceph", True), ("lustre", True), ("nfs", True), ("smb3", True),
        ("vboxsf", True), ("virtiofs", True), ("fuse.ceph-fuse", True), ("fuse.gcsfuse", True),
        ("fuse.glusterfs", True), ("fuse.juicefs", True), ("fuse.rclone", True),
        ("fuse.s3fs", True), ("fuse.sshfs", True), ("fuse.vmhgfs-fuse", True),
        ("btrfs", False), ("fuse.gocryptfs", False), ("fuseblk", False), ("overlay", False),
        ("tmpfs", False), ("xfs", False), ("zfs", False),
    ],
)  # fmt: skip
def test_a_ledger_on_a_network_filesystem_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, far: bool
) -> None:
    """Of the ledger and of its anchor; whichever way its directory is reached."""
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "far")
    table = tmp_path / "mountinfo"
    line = f"9 1 0:52 / {tmp_path}/far rw - {kind} somewhere rw"
    table.write_text(f"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n{line}\n")
    monkeypatch.setattr(sqlite, "TABLE", table)
    (tmp_path / "file.db").symlink_to(tmp_path / "far" / "c.db")
    for path in (tmp_path / "far" / "a.db", tmp_path / "link" / "b.db", tmp_path / "file.db"):
        if not far:
            rz.open_ledger(path).close()
            continue
        with pytest.raises(rz.UnsafeStore, match=kind):
            rz.open_ledger(path)
        with pytest.raises(rz.UnsafeStore, match=kind):
            rz.open_ledger(tmp_path / "near.db", anchor=f"sqlite:///{path}")
    assert far is not any((tmp_path / "far").iterdir())


def test_an_anchor_that_is_none(tmp_path: Path) -> None:
    for wrong in (5, b"anchor", ["anchor"], 1.5):
        with pytest.raises(rz.ArgumentTypeError, match="anchor must be a path or an address"):
            rz.open_ledger(tmp_path / "a.db", anchor=wrong)


@pytest.mark.parametrize(("column", "value"), [("head_seq", "x"), ("head_hash", b"y")])
def test_a_head_that_is_none_opens_read_only(tmp_path: Path, column: str, value: object) -> None:
    """SQLite keeps whatever it is given."""
    with rz.open_ledger(tmp_path / "a.db") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute(f"UPDATE residua_budgets SET {column} = ?", (value,))
    connection.close()
    with rz.open_ledger(tmp_path / "a.db") as ledger:
        assert ledger.read_only is not None and "an invalid head" in ledger.read_only
        with pytest.raises((rz.ReadOnlyLedger, rz.BrokenRecord)):
            ledger.spend("b", rz.pure_dp(0.5))


# -- anchors that are only read --------------------------------------------------------------


def test_an_anchor_is_not_written_by_whoever_only_reads(tmp_path: Path) -> None:
    kept, where = tmp_path / "kept.db", tmp_path / "a.db"
    with rz.open_ledger(where, anchor=f"sqlite:///{kept}") as ledger:
        ledger.create_budget("b", rz.PureFilter(1.0))
    before = kept.read_bytes()
    with pytest.raises(rz.StoreUnavailable, match="gone"):
        rz.open_ledger(where, anchor=f"sqlite:///{tmp_path}/none.db", read_only=True)
    with rz.open_ledger(where, anchor=f"sqlite:///{kept}", read_only=True) as ledger:
        assert ledger.verify().ok
    assert kept.read_bytes() == before and not (tmp_path / "none.db").exists()
