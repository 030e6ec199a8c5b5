"""A demonstration replaces what a demonstration made, and nothing else."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import residua as rz
from residua.cli.tools.demo import _beside, _filters, _serving, data_of, demo_path

pytestmark = pytest.mark.needs("sqlalchemy")

FILTERS = _filters()


def demonstration(path: Path) -> None:
    with rz.open_ledger(path) as ledger:
        for name, filter in FILTERS.items():
            ledger.create_budget(name, filter, data=data_of(name))


def own(path: Path) -> None:
    with rz.open_ledger(path) as ledger:
        ledger.create_budget("census", rz.GdpResidueFilter(mu=1.0))


def both(path: Path) -> None:
    demonstration(path)
    own(path)


def renamed(path: Path) -> None:
    """The names of a demonstration, with filters of one's own."""
    with rz.open_ledger(path) as ledger:
        for name in FILTERS:
            ledger.create_budget(name, rz.GdpResidueFilter(mu=1.0), data=data_of(name))


def empty(path: Path) -> None:
    rz.open_ledger(path).close()


def other(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE budgets (name TEXT)")
        connection.commit()


def text(path: Path) -> None:
    path.write_text("notes")


def nothing(path: Path) -> None:
    path.touch()


def folder(path: Path) -> None:
    path.mkdir()


def anchor(path: Path) -> None:
    """What is left of a ledger that was moved."""
    path.with_name(path.name + ".anchor").write_text("kept")


@pytest.mark.parametrize(
    "made", [own, both, renamed, empty, other, text, nothing, folder, anchor]
)  # fmt: skip
def test_what_is_not_a_demonstration_stays(made: object, tmp_path: Path) -> None:
    made(tmp_path / "demo.db")
    before = {file: file.is_file() and file.read_bytes() for file in tmp_path.iterdir()}
    path, kept = demo_path(tmp_path, FILTERS)
    assert path == tmp_path / "demo-2.db" and not path.exists()
    assert [file.name.removesuffix(".anchor") for file in kept] == ["demo.db"]
    assert {file: file.is_file() and file.read_bytes() for file in tmp_path.iterdir()} == before
    assert str(kept[0]) in _beside(kept) and "\n" not in _beside(kept)


def test_an_earlier_demonstration_makes_demo_path(tmp_path: Path) -> None:
    demonstration(tmp_path / "demo.db")
    mine = tmp_path / "demo.db.backup"
    mine.write_text("mine")
    assert demo_path(tmp_path, FILTERS) == (tmp_path / "demo.db", [])
    assert list(tmp_path.iterdir()) == [mine]
    assert _beside([]) == ""


def test_names_go_on(tmp_path: Path) -> None:
    own(tmp_path / "demo.db")
    text(tmp_path / "demo-2.db")
    demonstration(tmp_path / "demo-3.db")
    path, kept = demo_path(tmp_path, FILTERS)
    assert path.name == "demo-3.db"
    assert [file.name for file in kept] == ["demo.db", "demo-2.db"]


@pytest.mark.parametrize("path", ["out/demo.db", "out/demo-2.db", "elsewhere/demo.db"])
def test_make_is_named_where_it_serves_this_ledger(path: str) -> None:
    said = _serving(Path(path))
    assert said.endswith(f"residua serve --store {path} --dev")
    assert ("make serve" in said) == (path == "out/demo.db")
