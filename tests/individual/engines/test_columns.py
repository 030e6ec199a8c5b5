"""Columns in memory change at one stroke: whatever stops a spend, they are old or new."""

import itertools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import residua as rz
from individual.engines import state_of
from residua.individual.cost_model import quote
from residua.individual.engines import memory
from residua.individual.engines.memory import Columns
from residua.individual.header import header
from residua.individual.losses import combine_fingerprints, fingerprint

FILTER = rz.GdpFilter(mu=1.0)
OURS = {memory.__file__, memory.__file__}


def held(texts: bool) -> Columns:
    types = ("string", "int64") if texts else ("int64", "int64")
    made = Columns(header(FILTER, "start", True, None).with_types(types))
    made.spend(losses(texts, [3, 1, 5]), quote(FILTER, "nu", None))
    return made


def losses(texts: bool, people: list[int]) -> pa.Table:
    subject = [f"person {p}" for p in people] if texts else people
    return pa.table({"subject": subject, "epoch": people, "loss": [0.3] * len(people)})


def stopped_at(step: int, work: Callable[[], object]) -> bool:
    """Run it, and interrupt it before the given line of the columns; whether it got that far."""
    lines = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        if frame.f_code.co_filename not in OURS:
            return None
        lines += event == "line"
        if lines > step:
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize(
    "people", [[5, 9, 3, 2], [3, 1, 5], [5, 1]], ids=["newcomers", "aligned", "some"]
)
def test_an_interrupt_leaves_old_or_new(texts: bool, people: list[int]) -> None:
    pricing, asked = quote(FILTER, "nu", None), losses(texts, people)
    old, new = held(texts).table(), held(texts)
    new.spend(asked, pricing)
    step, interrupted = 0, True
    while interrupted:
        state = held(texts)
        interrupted = stopped_at(step, lambda s=state: s.spend(asked, pricing))
        assert state.table() in (old, new.table()), step
        step += 1
    assert step > 10 and state.table() == new.table()
    # And it can be used as before.
    state.spend(losses(texts, [7, 5]), pricing)
    new.spend(losses(texts, [7, 5]), pricing)
    assert state.table() == new.table()


def test_too_many_epochs_charge_no_subject(
    make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the limit two keys would have one code."""
    monkeypatch.setattr(memory, "MOST_EPOCHS", 3)
    state = make("memory", epochs=True)
    state.spend({"subject": [1, 1, 1, 2], "epoch": [0, 1, 2, 0], "nu": [0.1] * 4}, spend_id="q")
    before = state_of(state)
    for number in range(2):
        with pytest.raises(rz.TooLargeError, match="epochs must be at most 3"):
            state.spend({"subject": [1], "epoch": [3], "nu": [0.5]}, spend_id=f"r{number}")
    assert state_of(state) == before


def test_a_fingerprint_does_not_depend_on_blocks() -> None:
    count = 40_000
    texts = pa.array([f"person {i}" * (i % 3) for i in range(count)])
    floats = np.random.default_rng(1).random(count)
    whole = combine_fingerprints([fingerprint([texts, floats])])
    cuts = [0, 1, 700, 32_768, 32_769, count]
    parts = [fingerprint([texts.slice(a, b - a), floats[a:b]]) for a, b in itertools.pairwise(cuts)]
    assert combine_fingerprints(parts) == whole != combine_fingerprints(parts[:-1])
