"""Several calls in one transaction of a ledger, as if they had waited together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import residua as rz
from residua.ledger.domain.receipts import Reservation
from residua.ledger.operations.group_commit import Slot
from residua.ledger.operations.requests import Request
from residua.ledger.operations.spending import Cancel, Commit, Reserve, Spend

VERBS: dict[str, Any] = {"spend": Spend, "reserve": Reserve, "commit": Commit, "cancel": Cancel}


class Call(NamedTuple):
    """A verb of the ledger (`spend`, `reserve`, `commit`, `cancel`) with its arguments."""

    verb: str
    arguments: Mapping[str, Any]
    principal: str | None = None
    """For whom, where not for the principal of the ledger."""


def together(ledger: rz.Ledger, requests: Sequence[Request]) -> list[Any]:
    """Of each request the answer of the committer, or the error that it met."""
    if ledger._committer.closed is not None:
        raise ledger._committer.closed
    queue, slots = ledger._committer._queue, [Slot(each) for each in requests]
    queue._waiting += slots[:-1]
    queue.run(slots[-1])
    return [slot.answer if slot.error is None else slot.error for slot in slots]


def many(ledger: rz.Ledger, calls: Sequence[Call]) -> list[Any]:
    """Of each call its answer, or the error that it met."""
    answers: list[Any] = [None] * len(calls)
    requests: dict[int, Request] = {}
    for place, call in enumerate(calls):
        try:
            principal = call.principal or ledger.principal
            requests[place] = VERBS[call.verb].of(principal, **call.arguments)
        except rz.ResiduaError as error:
            answers[place] = error
    for place, done in zip(requests, together(ledger, list(requests.values())), strict=True):
        answers[place] = replace(done, ledger=ledger) if isinstance(done, Reservation) else done
    return answers
