"""A state on disk that was damaged is an error, and never one in which budgets start anew."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import residua as rz
from individual.engine_runs import state_of

LOSSES = {"subject": [1, 2, 3], "nu": [0.1, 0.2, 0.3]}


def budgets(root: Path) -> Path:
    name = json.loads((root / "state.json").read_text())["budgets"]
    (part,) = (root / "budgets" / name).glob("*.parquet")
    return part


def flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[40] ^= 255
    path.write_bytes(raw)


def edit(root: Path, **changes: Any) -> None:
    path = root / "state.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def swap(root: Path, old: str, new: str) -> None:
    text = (root / "state.json").read_text()
    assert old in text
    (root / "state.json").write_text(text.replace(old, new))


def first(root: Path, folder: str) -> Path:
    return min((root / folder).iterdir())


DAMAGE: list[tuple[str, Callable[[Path], object], str]] = [
    ("pointer gone", lambda r: (r / "state.json").unlink(), "state.json is missing"),
    ("pointer empty", lambda r: (r / "state.json").write_text(""), "must hold a state"),
    ("pointer cut", lambda r: (r / "state.json").write_text('{"header": {'), "must hold a state"),
    ("pointer a list", lambda r: (r / "state.json").write_text("[1]"), "must hold a state"),
    ("pointer astray", lambda r: edit(r, budgets="../.."), "must hold a state"),
    ("no number", lambda r: edit(r, version="x"), "must hold a state"),
    ("no filter", lambda r: edit(r, header={"format": 1}), "must hold a state"),
    ("future", lambda r: edit(r, header={"format": 2}), "of format 1, got 2"),
    ("another count", lambda r: edit(r, version=7), "state.json is not as it was written"),
    ("another filter", lambda r: swap(r, '"mu": 1.0', '"mu": 3.0'), "not as it was written"),
    ("budgets gone", lambda r: shutil.rmtree(budgets(r).parent), "part-0.parquet is missing"),
    ("a file gone", lambda r: budgets(r).unlink(), "part-0.parquet is missing"),
    ("a file cut", lambda r: budgets(r).write_bytes(b"PAR1"), "is not the file that was written"),
    ("a bit", lambda r: flip(budgets(r)), "a file is damaged"),
    (
        "a file too many",
        lambda r: shutil.copy(budgets(r), budgets(r).with_name("b.parquet")),
        "b.parquet is not the file",
    ),
    ("folder gone", lambda r: shutil.rmtree(r / "budgets"), "No such file or directory"),
    ("a record gone", lambda r: first(r, "spends").unlink(), "must hold 2 records, got 1"),
]


@pytest.mark.parametrize(("damage", "message"), [d[1:] for d in DAMAGE], ids=[d[0] for d in DAMAGE])
def test_nothing_is_spent_from_half_a_state(
    make: Callable[..., Any], tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    state = make("parquet")
    for number in range(2):
        state.spend(LOSSES, spend_id=str(number))
    root = tmp_path / "state"
    damage(root)
    left = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    for work in (
        lambda: rz.individual.open(f"parquet:{root}", engine="numpy").spend(LOSSES, spend_id="9"),
        lambda: make("parquet").spend(LOSSES, spend_id="again"),
        lambda: make("parquet").enroll({"subject": [9]}),
        lambda: make("parquet").export_sensitive_state_never_release(),
    ):
        with pytest.raises((rz.ArgumentError, rz.StateUnavailable), match=message):
            work()
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == left


def test_a_retry_needs_its_record_and_its_set(make: Callable[..., Any], tmp_path: Path) -> None:
    state, root = make("parquet"), tmp_path / "state"
    for number in range(2):
        state.spend(LOSSES, spend_id=str(number))
    first(root, "spends").write_text("{")
    shutil.rmtree(max((root / "active").iterdir()))
    with pytest.raises(rz.StateUnavailable, match="is not a record"):
        state.spend(LOSSES, spend_id="0")
    with pytest.raises(rz.StateUnavailable, match=r"active/.* is missing"):
        state.spend(LOSSES, spend_id="1")
    assert state.spend(LOSSES, spend_id="2").active.num_rows == 3, "new spends do not need them"


def test_files_of_others_stay_where_they_are(make: Callable[..., Any], tmp_path: Path) -> None:
    state, root = make("parquet"), tmp_path / "state"
    state.spend(LOSSES, spend_id="0")
    strangers = [root / folder / ".DS_Store" for folder in ("budgets", "active", "spends")]
    for path in strangers:
        path.write_text("from a file manager")
    (root / "budgets" / "00000009-abcdef").mkdir()
    state.spend(LOSSES, spend_id="1")
    assert all(path.exists() for path in strangers)
    assert len([*(root / "budgets").iterdir()]) == 2, "what a killed spend left is swept away"


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for address in (f"parquet:{tmp_path}/file/state", "parquet:/proc/nowhere/state"):
        with pytest.raises(rz.StateUnavailable, match="cannot be read or written"):
            rz.individual.create(address, filter=rz.GdpFilter(mu=1.0), engine="numpy")
    with pytest.raises(rz.ArgumentError, match="must be a state or empty"):
        rz.individual.create(
            f"parquet:{tmp_path}/file", filter=rz.GdpFilter(mu=1.0), engine="numpy"
        )


@pytest.mark.needs("duckdb")
def test_a_closed_file_says_so(make: Callable[..., Any]) -> None:
    state = make("duckdb")
    state.close()
    with pytest.raises(rz.StateUnavailable, match="is closed"):
        state.spend(LOSSES, spend_id="q")
    with pytest.raises(rz.StateUnavailable, match="is closed"):
        state.enroll({"subject": [1]})


@pytest.mark.needs("duckdb")
def test_a_duckdb_file_alone_is_the_state(make: Callable[..., Any], tmp_path: Path) -> None:
    """The log beside it is merged before a spend returns: without it nobody starts anew."""
    state, other = make("duckdb"), make("duckdb")
    for number in range(3):
        state.spend(LOSSES, spend_id=str(number))
        shutil.copy(tmp_path / "state.db", tmp_path / f"copy-{number}.db")
        copy = make("duckdb", name=f"copy-{number}")
        assert state_of(copy) == state_of(state) == state_of(other)
        assert copy.spend(LOSSES, spend_id=str(number)).active.num_rows == 3
        assert state_of(copy) == state_of(state)


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("place", [0.0, 0.3, 0.6, 0.9])
def test_a_damaged_duckdb_file_is_noticed(
    make: Callable[..., Any], tmp_path: Path, place: float
) -> None:
    """Cut off there: an error, or all that was spent."""
    state = make("duckdb")
    state.spend(LOSSES, spend_id="q")
    expected = state_of(state)
    state.close()
    path = tmp_path / "state.db"
    raw = path.read_bytes()
    path.write_bytes(raw[: int(place * len(raw)) or 100])
    try:
        again = make("duckdb")
        assert state_of(again) == expected
        again.spend(LOSSES, spend_id="r")
    except (rz.ArgumentError, rz.StateUnavailable) as error:
        assert "cannot be" in str(error)
