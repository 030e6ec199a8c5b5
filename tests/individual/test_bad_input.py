"""Bad input is a clear error on every engine, and the state stays as it was."""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import residua as rz
from individual.conftest import STORES
from individual.engine_runs import state_of

M = rz.mechanisms
NAN = float("nan")
SECRET = 2**63 + 77

BAD: list[tuple[dict[str, Any], Any, str]] = [
    ({"subject": [1, 2, 1], "nu": [0.1, 0.1, 0.1]}, None, "subject must be unique, got 1 repeated"),
    ({"subject": [8, 9, 8, 8], "nu": [0.1] * 4}, None, "subject must be unique, got 2 repeated"),
    ({"subject": [1, None], "nu": [0.1, 0.1]}, None, "subject must not be null, got 1"),
    ({"subject": [1, 2], "nu": [0.1, NAN]}, None, "nu must be non-negative and finite, got 1"),
    ({"subject": [1, 2], "nu": [0.1, np.inf]}, None, "nu must be non-negative and finite, got 1"),
    ({"subject": [1, 2], "eps": [-0.1, -1.0]}, None, "eps must be non-negative.* got 2 below zero"),
    ({"subject": [1, 2], "nu": [0.1, None]}, None, "nu must not be null, got 1"),
    ({"subject": ["1", "2"], "nu": [0.1, 0.2]}, None, "subject must be int64 as in the state"),
    ({"subject": [1.0, 2.5], "nu": [0.1, 0.2]}, None, "subject must be integers or strings"),
    ({"subject": [1, 2], "nu": ["a", "b"]}, None, "nu must be numbers, got string"),
    ({"subject": [1, 2], "nu": [True, False]}, None, "nu must be numbers, got bool"),
    ({"person": [1, 2], "nu": [0.1, 0.2]}, None, "losses must have the column 'subject'"),
    ({"subject": [1], "nu": [0.1], "eps": [0.1]}, None, "one loss column, got nu and eps"),
    ({"subject": [1], "nuu": [0.1]}, None, "losses take the columns subject, nu, eps, sensitivity"),
    ({"subject": [1]}, None, "losses must have one of the columns nu, eps, sensitivity"),
    ({"subject": [1], "sensitivity": [0.1]}, None, "needs mechanism=, the mechanism"),
    (
        {"subject": [1], "nu": [0.1]},
        rz.pure_dp(0.1),
        "losses must have the column 'sensitivity' or no loss column, got 'nu'",
    ),
    (
        {"subject": [1], "sensitivity": [0.1]},
        rz.pure_dp(0.1),
        "mechanisms.Gaussian or mechanisms.L",
    ),
    ({"subject": [1], "sensitivity": [0.1]}, M.Laplace(2.0, 3.0), "must have sensitivity 1.0"),
    ({"subject": [1]}, "laplace", "mechanism must be a Pld or a mechanism, got 'laplace'"),
    ({"subject": [1], "nu": [Decimal("0.1")]}, None, "nu must be numbers, got decimal128"),
    ({"subject": [datetime.now(UTC)], "nu": [0.1]}, None, "subject must be integers or strings"),
    ({"subject": [b"1"], "nu": [0.1]}, None, "subject must be integers or strings, got binary"),
    (
        {"subject": pa.array([SECRET], pa.uint64()), "nu": [0.1]},
        None,
        "subject must fit int64, got uint64 that does not",
    ),
    (
        {"subject": [1], "sensitivity": [2**53 + 1]},
        M.Gaussian(sigma=1e18),
        "sensitivity must fit double, got int64 that does not",
    ),
]
SECRET_FORMS: list[tuple[Any, str]] = [
    ({"subject": [1, "bob"], "nu": [0.1, 0.1]}, "losses must have columns of one type.* 'subject'"),
    ({"subject": [1, 2], "nu": [0.1, "7.25"]}, "losses must have columns of one type.* 'nu'"),
    ({"subject": [1], "nu": [0.1, 7.25]}, "one length, got {'subject': 1, 'nu': 2}"),
    ({"subject": 1, "nu": 7.25}, "losses must have columns of one type"),
    ({}, "losses must have the column 'subject'"),
    ([1, 7.25], "losses must be an Arrow table, a pandas frame or a path, got <class 'list'>"),
    (None, "losses must be an Arrow table"),
]
"""What is not a table of columns; whatever is in it must not be shown."""


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("engine", STORES)
def test_bad_losses_leave_the_state_as_it_was(make: Callable[..., Any], engine: str) -> None:
    state = make(engine)
    state.spend({"subject": [1, 2, 3], "nu": [0.1, 0.2, 0.3]}, spend_id="good")
    before = state_of(state)
    for columns, mechanism, message in BAD:
        with pytest.raises(rz.ResiduaError, match=message) as caught:
            state.spend(pa.table(columns), spend_id="bad", mechanism=mechanism)
        assert isinstance(caught.value, rz.ArgumentError | rz.ArgumentTypeError)
        assert str(SECRET) not in str(caught.value) and caught.value.__cause__ is None
    for given, message in SECRET_FORMS:
        with pytest.raises(rz.ResiduaError, match=message) as caught:
            state.spend(given, spend_id="bad")
        assert "bob" not in str(caught.value) and "7.25" not in str(caught.value)
    assert state_of(state) == before
    # The id is free: an error is not a spend.
    assert state.spend({"subject": [1], "nu": [0.1]}, spend_id="bad").active.num_rows == 1


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("engine", STORES)
def test_an_error_does_not_say_what_keys_are(make: Callable[..., Any], engine: str) -> None:
    state = make(engine)
    with pytest.raises(rz.ArgumentError, match="1 repeated"):
        state.spend({"subject": ["a", "a"], "nu": [0.1, 0.1]}, spend_id="q")
    with pytest.raises(rz.ArgumentError, match="1 repeated"):
        state.enroll({"subject": ["a", "a"]})
    assert state.export_sensitive_state_never_release().num_columns == 0
    assert state.spend({"subject": [1], "nu": [0.1]}, spend_id="q").active.num_rows == 1


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("engine", STORES)
def test_texts_that_are_none(make: Callable[..., Any], engine: str, tmp_path: Path) -> None:
    """In memory and in a file; whatever the engine says of them is not kept, even as context."""
    raw, ends = b"good" + b"secret\xff", np.array([0, 4, 11], dtype=np.int32)
    subject = pa.StringArray.from_buffers(2, pa.py_buffer(ends), pa.py_buffer(raw))
    table = pa.table({"subject": subject, "nu": [0.1, 0.1]})
    pq.write_table(table, tmp_path / "texts.parquet")
    state = make(engine)
    for given in (table, tmp_path / "texts.parquet"):
        with pytest.raises(rz.ArgumentTypeError, match="UTF-8") as caught:
            state.spend(given, spend_id="q")
        error: BaseException | None = caught.value
        while error is not None:
            assert "secret" not in str(error)
            error = error.__cause__ or error.__context__
    assert state.export_sensitive_state_never_release().num_columns == 0


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("engine", STORES)
def test_ids_and_newcomers(make: Callable[..., Any], engine: str) -> None:
    state = make(engine)
    losses = {"subject": [1, 2], "nu": [0.5, 0.5]}
    state.enroll({"subject": [1], "capacity": [0.25]})
    assert state.spend(losses, spend_id="q").active["subject"].to_pylist() == [2]
    for subjects, message in (
        ({"subject": [1]}, "subjects must be new, got some"),
        ({"subject": [7, 7]}, "must be unique, got 1 repeated"),
        ({"subject": [7], "capacity": [1.5]}, "at most the filter's mu, 1.0, got 1 above"),
        ({"subject": [7], "capacity": [-1.0]}, "capacity must be non-negative and finite, got 1"),
        ({"subject": [7], "capacity": [NAN]}, "capacity must be non-negative and finite, got 1"),
        ({"subject": ["7"]}, "subject must be int64 as in the state, got string"),
        ({"subject": [None]}, "subject"),
        ({"subject": [7], "budget": [0.5]}, "subjects take the columns subject, capacity"),
    ):
        with pytest.raises(rz.ResiduaError, match=message):
            state.enroll(subjects)
    with pytest.raises(rz.ArgumentError, match="'q' was used for another table"):
        state.spend({"subject": [1, 2], "nu": [0.5, 0.4]}, spend_id="q")
    with pytest.raises(rz.ArgumentError, match="'q' was used for another table"):
        state.spend({"subject": [1, 2], "eps": [0.5, 0.5]}, spend_id="q")
    for spend_id in ("", "a\nb", "x" * 600, 17, None):
        with pytest.raises(rz.ResiduaError, match="spend_id must be"):
            state.spend(losses, spend_id=spend_id)
    assert state_of(state)["subject"].to_pylist() == [1, 2]


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("engine", STORES)
def test_bad_files_of_losses(make: Callable[..., Any], engine: str, tmp_path: Path) -> None:
    state = make(engine)
    state.spend({"subject": [1, 2, 3], "nu": [0.1, 0.2, 0.3]}, spend_id="good")
    before = state_of(state)
    (tmp_path / "text.parquet").write_text("subject,nu")
    (tmp_path / "none.parquet").touch()
    (tmp_path / "folder").mkdir()
    for name, column, values in (
        ("key", "nu", {"subject": pa.array([SECRET], pa.uint64()), "nu": [0.1]}),
        ("loss", "sensitivity", {"subject": [1], "sensitivity": [2**53 + 1]}),
    ):
        pq.write_table(pa.table(values), tmp_path / f"{name}.parquet")
        mechanism = M.Gaussian(sigma=1e18) if column == "sensitivity" else None
        with pytest.raises(rz.ResiduaError, match=r"fit|finite") as caught:
            state.spend(tmp_path / f"{name}.parquet", spend_id="bad", mechanism=mechanism)
        assert str(SECRET) not in str(caught.value)
    for name in ("text.parquet", "none.parquet", "folder", "nothing"):
        with pytest.raises(rz.ArgumentError, match="losses must"):
            state.spend(tmp_path / name, spend_id="bad")
    assert state_of(state) == before
    # A name with signs that elsewhere are patterns is a name.
    pq.write_table(pa.table({"subject": [1], "nu": [0.1]}), tmp_path / "x1.parquet")
    pq.write_table(pa.table({"subject": [2], "nu": [0.1]}), tmp_path / "x[1]'*?.parquet")
    active = state.spend(tmp_path / "x[1]'*?.parquet", spend_id="odd").active
    assert active["subject"].to_pylist() == [2]


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("engine", STORES)
def test_odd_tables_that_are_good(make: Callable[..., Any], engine: str) -> None:
    """Nobody, no type, small types, chunks, dictionaries, columns in another order."""
    state = make(engine)
    state.spend({"subject": [1, 2], "nu": [0.1, 0.1]}, spend_id="first")
    before = state_of(state)
    for number, nobody in enumerate(
        (
            {"subject": [], "nu": []},
            {"subject": pa.array([], pa.int64()), "nu": pa.array([], pa.float64())},
        )
    ):
        active = state.spend(nobody, spend_id=f"nobody-{number}").active
        assert active.num_rows == 0 and active.schema.field("subject").type == pa.int64()
    nothing = state.spend(
        {"subject": [1, 2], "sensitivity": [0, 0]}, mechanism=M.Laplace(1.0), spend_id="nothing"
    )
    assert nothing.num_rows == 2 and state_of(state) == before
    for number, table in enumerate(
        (
            {"nu": [0.1, 0.1], "subject": [2, 1]},
            {"subject": pa.array([1, 2], pa.uint8()), "nu": pa.array([0, 0], pa.int16())},
            {"subject": pa.array([1, 2]).dictionary_encode(), "nu": [0.1, 0.1]},
            {"subject": pa.chunked_array([[1], [], [2]]), "nu": pa.chunked_array([[0.1, 0.1]])},
            {"subject": pa.array([1, 2], pa.uint64()), "nu": np.float16([0.5, 0.25])},
        )
    ):
        active = state.spend(table, spend_id=f"odd-{number}").active
        assert sorted(active["subject"].to_pylist()) == [1, 2]
    hundredths = [100 - 1 - 1 - 1 - 1 - 25, 100 - 1 - 1 - 1 - 1 - 6.25]
    assert state_of(state)["left"].to_pylist() == [int(h * 10**16) for h in hundredths]
    ends = {"subject": [-(2**63), 2**63 - 1, 0], "nu": [5e-324, 1e308, 1.0]}
    assert sorted(state.spend(ends, spend_id="ends").active["subject"].to_pylist()) == [-(2**63), 0]


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("engine", STORES)
def test_unknown_subjects(make: Callable[..., Any], engine: str) -> None:
    losses = {"subject": [1, 2, 3], "nu": [0.5, 2.0, 0.0]}
    starts = make(engine, name="starts")
    assert sorted(starts.spend(losses, spend_id="q").active["subject"].to_pylist()) == [1, 3]
    # Someone who is refused is not written down: the capacity is still whole.
    assert state_of(starts)["subject"].to_pylist() == [1, 3]
    excludes = make(engine, name="excludes", unknown="exclude")
    assert excludes.spend(losses, spend_id="q").active.num_rows == 0
    excludes.enroll({"subject": [1]})
    assert excludes.spend(losses, spend_id="r").active["subject"].to_pylist() == [1]


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("engine", ["duckdb", "parquet"])
def test_a_state_keeps_its_filter_and_unit(make: Callable[..., Any], engine: str) -> None:
    make(engine).spend({"subject": ["a"], "nu": [0.5]}, spend_id="q")
    for options, message in (
        ({"filter": rz.GdpResidueFilter(mu=2.0)}, r"is GdpResidueFilter\(mu=1.0\), got GdpResi"),
        ({"filter": rz.PureFilter(eps=1.0)}, "got PureFilter"),
        ({"unknown": "exclude"}, "unknown of the state .* is 'start', got 'exclude'"),
        ({"epochs": True}, "epochs of the state .* is False, got True"),
    ):
        with pytest.raises(rz.ArgumentError, match=message):
            make(engine, **options)
    assert make(engine).spend({"subject": ["a"], "nu": [0.5]}, spend_id="q").active.num_rows == 1


@pytest.mark.needs("duckdb")
def test_what_is_not_a_state(tmp_path: Path) -> None:
    import duckdb

    filter = rz.GdpResidueFilter(mu=1.0)
    (tmp_path / "text.db").write_text("not a database" * 400)
    with duckdb.connect(str(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE meat (x INTEGER)")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "state.json").write_text('{"version": 1}')
    for address, message in (
        (f"duckdb:///{tmp_path}/text.db", "cannot be opened as a DuckDB file"),
        (f"duckdb:///{tmp_path}/other.db", "must hold a state of subjects, got another database"),
        (f"parquet:{tmp_path}/full", "must be a state or empty"),
        (f"parquet:{tmp_path}/broken", "must hold a state of subjects"),
    ):
        engine = "numpy" if address.startswith("parquet") else None
        with pytest.raises(rz.ArgumentError, match=message):
            rz.individual.create(address, filter=filter, engine=engine)
        with pytest.raises(rz.ArgumentError):
            rz.individual.open(address, engine=engine)
    for address in ("memory:", f"duckdb:///{tmp_path}/none.db", f"parquet:{tmp_path}/none"):
        engine = "numpy" if address.startswith("parquet") else None
        with pytest.raises(rz.ArgumentError, match="address must be"):
            rz.individual.open(address, engine=engine)
    assert not (tmp_path / "none.db").exists() and not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"address": "postgresql://x"}, "address must be 'memory:', 'duckdb:///FILE' or"),
        ({"address": "duckdb:///"}, "address must be"),
        (
            {"address": "duckdb:///:memory:?threads=1"},
            "name a file, or be 'memory:', got 'duckdb:///:memory:",
        ),
        ({"address": "memory:x"}, "address must be"),
        ({"address": 3}, "address must be a string"),
        ({"filter": rz.RenyiFilter(2.0, 1.0)}, "filter must be one of PureFilter, ZcdpFilter"),
        ({"filter": "gdp"}, "filter must be a filter"),
        ({"filter": rz.PureFilter(0.0)}, "positive capacity"),
        ({"filter": rz.GdpFilter(1e-24)}, "more than 1e-44"),
        ({"unknown": "ignore"}, "unknown must be one of start, exclude"),
        ({"unit": "person"}, "unit must be one of subject, subject-epoch"),
        ({"unit": "subject-epoch"}, "needs epochs=True"),
        ({"epochs": 1}, "epochs must be true or false"),
        ({"engine": "spark"}, "engine must be one of numpy"),
        ({"spark": object()}, "spark must come with engine='spark'"),
        ({"relation": "replace-one"}, "relation must be add-remove"),
    ],
)
def test_bad_states(arguments: dict[str, Any], message: str) -> None:
    given = {"address": "memory:", "filter": rz.GdpFilter(1.0)} | arguments
    with pytest.raises(rz.ResiduaError, match=message):
        rz.individual.create(given.pop("address"), **given)


def test_bad_levels() -> None:
    state = rz.individual.create("memory:", filter=rz.GdpResidueFilter(mu=1.0))
    losses = {"subject": [1], "eps": [0.1]}
    for levels, message in (
        ([0.2, 0.1], "levels must be positive, finite and increasing"),
        ([0.0, 0.1], "levels must be positive"),
        ([], "levels must be a non-empty"),
        (np.arange(1, 1026) / 1e4, "levels must be at most 1024 values, got 1025"),
    ):
        with pytest.raises(rz.ArgumentError, match=message):
            state.spend(losses, spend_id="q", levels=levels)
    with pytest.raises(rz.ArgumentError, match="levels= needs a column 'eps' or 'sensitivity'"):
        state.spend({"subject": [1], "nu": [0.1]}, spend_id="q", levels=[0.1])
