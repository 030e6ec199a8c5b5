"""The same work for everybody, in turns, on inputs that nobody has seen before."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.peers.participants import Field, Participant
from benchmarks.peers.worker import Answer

ENOUGH = 10.0
"""Seconds of the processor: who has worked that long in one race is not asked again."""


@dataclass(frozen=True)
class Result:
    """Median seconds of the processor and of the clock, and the first answer; or why not.

    The first, because it is the one that everybody gives to the same input.
    """

    who: Participant
    cpu: float | None
    wall: float | None
    answer: Answer

    @property
    def why(self) -> str:
        return self.answer.cannot or self.answer.error


def race(
    field: Field,
    participants: Sequence[Participant],
    operation: str,
    inputs: Sequence[dict[str, Any]],
    limit: float = 60.0,
    limits: Mapping[Participant, float] | None = None,
) -> list[Result]:
    """Everybody on `inputs[0]` to warm up, then in turns on the others; medians of those."""
    times: dict[str, list[Answer]] = {one.label: [] for one in participants}
    first: dict[str, Answer] = {}
    spent = {one.label: 0.0 for one in participants}
    out: dict[str, Answer] = {}
    for place, arguments in enumerate(inputs):
        for one in participants:
            if one.label in out or spent[one.label] > ENOUGH:
                continue
            allowed = (limits or {}).get(one, limit)
            answer = field.ask(one, operation, allowed, **arguments)
            # A long run is seen to live.
            print(".", end="", file=sys.stderr, flush=True)
            if not answer.given:
                out[one.label] = answer
                continue
            first.setdefault(one.label, answer)
            spent[one.label] += answer.cpu
            # Who takes so long needs no warming up.
            if place or answer.cpu > ENOUGH / 2:
                times[one.label].append(answer)
    return [
        _result(one, times[one.label], first.get(one.label), out.get(one.label))
        for one in participants
    ]


def _result(
    one: Participant, timed: list[Answer], first: Answer | None, failed: Answer | None
) -> Result:
    if first is None or not timed:
        return Result(one, None, None, failed or Answer(error="no answer"))
    cpu, wall = (median(getattr(a, name) for a in timed) for name in ("cpu", "wall"))
    return Result(one, cpu, wall, first)


def seconds(results: Sequence[Result]) -> dict[str, float]:
    return {r.who.label: r.cpu for r in results if r.cpu is not None}
