"""The same work for everybody, in turns, on inputs that nobody has seen before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.peers.participants import Field, Participant
from benchmarks.peers.worker import Answer

ENOUGH = 12.0
"""Seconds: who has worked that long in one race is not asked again."""


@dataclass(frozen=True)
class Result:
    """Median seconds of the processor and of the clock, and the last answer; or why not."""

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
) -> list[Result]:
    """Everybody on `inputs[0]` to warm up, then in turns on the others; medians of those."""
    times: dict[str, list[Answer]] = {one.label: [] for one in participants}
    spent = {one.label: 0.0 for one in participants}
    out: dict[str, Answer] = {}
    for place, arguments in enumerate(inputs):
        for one in participants:
            if one.label in out or spent[one.label] > ENOUGH:
                continue
            answer = field.ask(one, operation, limit, **arguments)
            if not answer.given:
                out[one.label] = answer
                continue
            spent[one.label] += answer.wall
            # Who takes so long needs no warming up.
            if place or answer.wall > ENOUGH / 2:
                times[one.label].append(answer)
    return [_result(one, times[one.label], out.get(one.label)) for one in participants]


def _result(one: Participant, answers: list[Answer], failed: Answer | None) -> Result:
    if failed is not None or not answers:
        return Result(one, None, None, failed or Answer(error="no answer"))
    cpu, wall = (median(getattr(a, name) for a in answers) for name in ("cpu", "wall"))
    return Result(one, cpu, wall, answers[-1])


def seconds(results: Sequence[Result]) -> dict[str, float]:
    return {r.who.label: r.cpu for r in results if r.cpu is not None}
