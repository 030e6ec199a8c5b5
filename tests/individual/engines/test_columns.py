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
from residua.individual import memory
from residua.individual.cost_model import pricing_for
from residua.individual.header import make_header
from residua.individual.losses import fingerprint
from residua.individual.memory import Columns

FILTER = rz.GdpFilter(mu=1.0)
OURS = {memory.__file__, memory.__file__}


def held(texts: bool) -> Columns:
    types = ("string", "int64") if texts else ("int64", "int64")
    made = Columns(make_header(FILTER, "start", True, None).with_types(types))
    made.spend(losses(texts, [3, 1, 5]), pricing_for(FILTER, "nu", None))
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
    pricing, asked = pricing_for(FILTER, "nu", None), losses(texts, people)
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


def test_pairs_of_texts_do_not_run_together() -> None:
    """What separates two keys may be part of either."""
    made = Columns(make_header(FILTER, "start", True, None).with_types(("string", "string")))
    pairs = [("1", "2:3"), ("1:2", "3"), (":", ""), ("", ":"), ("1:1", "1"), ("é", "1")]
    subject, epoch = map(list, zip(*pairs, strict=True))
    asked = pa.table({"subject": subject, "epoch": epoch, "loss": [0.3] * len(pairs)})
    pricing = pricing_for(FILTER, "nu", None)
    assert made.spend(asked, pricing).num_rows == len(pairs)
    made.spend(asked.take([5, 2, 0]), pricing)
    left = made.table()["left"].to_pylist()
    assert left[0] == left[2] == left[5] < left[1] == left[3] == left[4]


def test_a_fingerprint_does_not_depend_on_blocks() -> None:
    count = 40_000
    texts = pa.array([f"person {i}" * (i % 3) for i in range(count)])
    floats = np.random.default_rng(1).random(count)
    whole = fingerprint([texts, floats])
    cuts = [0, 1, 700, 32_768, 32_769, count]
    parts = [fingerprint([texts.slice(a, b - a), floats[a:b]]) for a, b in itertools.pairwise(cuts)]
    first, second = zip(*parts, strict=True)
    assert (sum(first) % 2**64, sum(second) % 2**64) == whole != parts[-1]
