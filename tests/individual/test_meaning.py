"""What a spend means: epochs, exhaustion, the guarantee, and what is never shown."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import residua as rz


def test_spent_subjects_stay_spent(make: Callable[..., Any]) -> None:
    state = make("memory")
    losses = {"subject": [1, 2], "nu": [1.0, 0.1]}
    assert state.spend(losses, spend_id="0").active["subject"].to_pylist() == [1, 2]
    for number in range(1, 100):
        assert state.spend(losses, spend_id=str(number)).active["subject"].to_pylist() == [2]
    assert state.spend(losses, spend_id="100").active.num_rows == 0
    # A loss of nothing is no loss: those who are spent take part as everybody does.
    nothing = {"subject": [1, 2], "nu": [0.0, 0.0]}
    assert state.spend(nothing, spend_id="free").active.num_rows == 2


def test_epochs_are_charged_on_their_own(make: Callable[..., Any]) -> None:
    state = make("memory", epochs=True)
    first = {"subject": ["a", "a"], "epoch": [1, 2], "nu": [1.0, 0.5]}
    assert state.spend(first, spend_id="1").active.num_rows == 2
    both = {"subject": ["a", "a", "b"], "epoch": [1, 2, 1], "nu": [0.5, 0.5, 0.5]}
    active = state.spend(both, spend_id="2").active.to_pydict()
    assert active == {"subject": ["a", "b"], "epoch": [2, 1]}, "an empty week does not stop others"
    assert state.unit == "subject-epoch"


def test_all_or_none_where_the_unit_is_the_subject(make: Callable[..., Any]) -> None:
    state = make("memory", epochs=True, unit="subject")
    first = {"subject": ["a", "a"], "epoch": [1, 2], "nu": [1.0, 0.5]}
    assert state.spend(first, spend_id="1").active.num_rows == 2
    both = {"subject": ["a", "a", "b"], "epoch": [1, 2, 1], "nu": [0.5, 0.5, 0.5]}
    assert state.spend(both, spend_id="2").active.to_pydict() == {"subject": ["b"], "epoch": [1]}
    left = state.export_sensitive_state_never_release().to_pydict()
    assert left["epoch"][:2] == [1, 2]
    assert left["left"][1] == 750_000_000_000_000_000, "nothing was taken from the other epoch"
    assert state.guarantee_over(3) == 3 * rz.gaussian(mu=1.0)


@pytest.mark.needs("duckdb")
@pytest.mark.parametrize("engine", ["memory", "duckdb", "parquet"])
def test_nothing_is_shown_by_accident(make: Callable[..., Any], engine: str) -> None:
    state = make(engine)
    state.spend({"subject": [123456, 2], "nu": [1.0, 0.1]}, spend_id="q")
    text = repr(state) + str(state) + f"{state}"
    assert "123456" not in text and "rows" not in text
    other = make(engine, name="empty")
    assert repr(other).replace("empty", "state") == repr(state), "no counts, no versions"
    assert not hasattr(state, "__len__") and not hasattr(state, "__iter__")
    public = {name for name in dir(state) if not name.startswith("_")}
    assert public == {
        "close", "enroll", "export_sensitive_state_never_release", "filter", "guarantee",
        "guarantee_over", "spend", "unit",
    }  # fmt: skip
    for losses in (
        {"subject": [123456] * 2, "nu": [0.1] * 2},
        {"subject": [123456], "nu": [-7.25]},
    ):
        with pytest.raises(rz.ArgumentError) as caught:
            state.spend(losses, spend_id="r")
        assert "123456" not in str(caught.value) and "7.25" not in str(caught.value)


def test_what_is_exported(make: Callable[..., Any]) -> None:
    state = make("memory")
    assert state.export_sensitive_state_never_release().num_rows == 0
    state.spend({"subject": ["a"], "nu": [0.6]}, spend_id="q")
    table = state.export_sensitive_state_never_release()
    assert table.schema.metadata == {b"unit_digits": b"18", b"parameter": b"mu"}
    assert table["left"].to_pylist() == [640_000_000_000_000_000]
    assert 0.8 * (1 - 1e-14) <= table["remaining"].to_pylist()[0] <= 0.8


def test_tables_are_those_of_their_time() -> None:
    """Neither later spends nor the caller's own memory change what was returned or kept."""
    state = rz.individual.create("memory:", filter=rz.GdpFilter(mu=1.0))
    people, losses = np.arange(5), np.full(5, 0.1)
    state.enroll({"subject": people.copy()})
    state.spend({"subject": people, "nu": losses}, spend_id="q")
    exported = state.export_sensitive_state_never_release()
    before = exported["left"].to_pylist()
    people[:], losses[:] = 9, 0.9
    state.spend({"subject": [0, 1], "nu": [0.5, 2.0]}, spend_id="r")
    assert exported["left"].to_pylist() == before
    again = state.spend({"subject": np.arange(5), "nu": np.full(5, 0.1)}, spend_id="q").active
    assert again["subject"].to_pylist() == [0, 1, 2, 3, 4]


def test_a_repr_can_be_pasted_back() -> None:
    state = rz.individual.create("memory:", filter=rz.PureFilter(eps=1.0), epochs=True)
    again = eval(
        repr(state), {"individual": rz.individual, **vars(rz.filters), "PureFilter": rz.PureFilter}
    )
    assert repr(again) == repr(state)


def test_memory_is_eight_bytes_of_budget_a_subject() -> None:
    from residua.individual.cost_model import pricing_for
    from residua.individual.header import make_header
    from residua.individual.memory import Columns

    filter = rz.GdpResidueFilter(mu=1.0)
    columns = Columns(make_header(filter, "start", False, None).with_types(("int64",)))
    losses = pa.table({"subject": range(1000), "loss": [0.1] * 1000})
    assert columns.spend(losses, pricing_for(filter, "nu", None)).num_rows == 1000
    assert columns.table()["left"].nbytes == 8 * 1000
