"""The short way of a spend: from the bytes of a request to the gate, and back.

An engine sends the same request all day: a spend with a good token and a small body. What the
frame, the application and the server do around a request takes longer than the decision, so such a
request is answered without them, on the connection itself (`protocol.py`). Only what is in order is
taken: whatever is unusual in the slightest is left to the ordinary way, with nothing done yet, so
that every refusal, limit and problem before the gate has one place. Answers, headers, counts and
the line in the log are the same on both ways.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from residua.ledger.api.commands import Call
from residua.ledger.domain.receipts import Receipt
from residua.service import problems
from residua.service.api import models, values
from residua.service.api.reading import check_type
from residua.service.api.routes.asking import one_key
from residua.service.auth.access import Caller
from residua.service.context import Office
from residua.service.dispatch import is_quick
from residua.service.fast_path.bodies import Bodies
from residua.service.middleware import ASKED, HEADERS, encoded, request_id, tell, told
from residua.service.problems import Problem

ROUTE = f"{ASKED}{{name}}/spend"
PATH = re.compile(rf"{ASKED}([A-Za-z0-9._~-]{{1,{models.LONGEST_NAME}}})/spend".encode())
"""Plain names alone: no escapes, and nothing behind them."""
UNUSUAL = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"content-encoding"})
_COMMON = b"".join(b"%s: %s\r\n" % each for each in HEADERS)
Sending = Callable[[int, bytes, bytes], None]
"""Takes a status, lines of headers, and a body."""


@dataclass(frozen=True, slots=True)
class Head:
    """What a head says, once it is known to be in order."""

    path: str
    name: str
    token: tuple[str, str]
    """Its id, and the hash of its secret."""
    key: str | None
    id: bytes | None

    @property
    def recurs(self) -> bool:
        """Whether it has nothing of one request alone."""
        return self.key is None and self.id is None


class ShortWay:
    """Spends that are in order, for one office."""

    def __init__(self, office: Office):
        self._office = office
        self._bodies = Bodies()

    def head(self, path: bytes, headers: list[tuple[bytes, bytes]]) -> Head | None:
        """What the head of a POST says; None for what must go the other way."""
        given, found = dict(headers), PATH.fullmatch(path)
        if found is None or self._office.settings.dev:
            return None
        if len(given) < len(headers) or not UNUSUAL.isdisjoint(given):
            return None
        try:
            check_type(_text(given, b"content-type"))
            token = self._office.gatekeeper.shown(_text(given, b"authorization"))
        except Problem:
            # On the other way it is met again, and told.
            return None
        key = _text(given, b"idempotency-key")
        name = found[1].decode("ascii")
        return Head(path.decode("ascii"), name, token, key, given.get(b"x-request-id"))

    def begun(self, head: Head, body: bytes, send: Sending) -> asyncio.Future[Any] | None:
        """Hand a spend to the gate, to `send` its answer; None for what must go the other way."""
        start = time.perf_counter()
        office = self._office
        try:
            caller = office.gatekeeper.holder(*head.token)
            if caller is None or len(body) > office.settings.largest_body:
                return None
            call = self._call(caller, head, body)
            if call is None:
                return None
            spend = _Spend(office, request_id(head.id), head.path, caller, start, send)
            office.rate.take(caller.token or caller.principal)
            future = office.dispatch.hand(call)
        except Exception:
            return None
        office.metrics.in_flight += 1
        future.add_done_callback(spend.decided)
        return future

    def _call(self, caller: Caller, head: Head, body: bytes) -> Call | None:
        """What the ledger is asked; None where it would take long to decide."""
        ask, name = self._bodies.read(body), head.name
        caller.require("spend", name, *ask.also)
        budgets = [name, *ask.also] if ask.also else name
        if not self._office.ledger.decides_quickly(budgets, ask.query):
            return None
        arguments = {
            "budgets": budgets,
            "query": ask.query,
            "key": one_key(ask.key, head.key),
            "assume_budget_relation": ask.assumed,
        }
        return Call("spend", arguments, caller.principal)


def _text(given: Mapping[bytes, bytes], name: bytes) -> str | None:
    value = given.get(name)
    return None if value is None else value.decode("latin-1")


def _shown(receipt: Receipt) -> bytes:
    return encoded(values.receipt_to_dict(receipt))


class _Spend:
    """A spend that the gate has."""

    __slots__ = ("_caller", "_id", "_office", "_path", "_send", "_start")

    def __init__(
        self, office: Office, id: str, path: str, caller: Caller, start: float, send: Sending
    ):
        self._office, self._id, self._path = office, id, path
        self._caller, self._start, self._send = caller, start, send

    def decided(self, future: asyncio.Future[Any]) -> None:
        """The gate has answered."""
        if future.cancelled():
            self._given_up()
            return
        try:
            receipt = future.result()
            self._office.metrics.decided("spend", receipt.admitted, receipt.replayed)
            if not is_quick(receipt):
                # What is left takes time, and is worked out elsewhere.
                loop = asyncio.get_running_loop()
                later = loop.run_in_executor(self._office.pool, _shown, receipt)
                later.add_done_callback(self._worked_out)
                return
            content = _shown(receipt)
        except Exception as error:
            self._fail(error)
        else:
            self._receipt(content)

    def _worked_out(self, future: asyncio.Future[bytes]) -> None:
        if future.cancelled():
            self._given_up()
            return
        error = future.exception()
        if isinstance(error, Exception):
            self._fail(error)
        else:
            self._receipt(future.result())

    def _receipt(self, content: bytes) -> None:
        head = b"content-length: %d\r\ncontent-type: application/json\r\n" % len(content)
        self._answer(200, head, content)

    def _fail(self, error: Exception) -> None:
        problem = told(error, self._id)
        content = encoded(problems.body(problem, self._id))
        lines = [f"content-type: {problems.MEDIA_TYPE}", f"content-length: {len(content)}"]
        lines += [f"{name.lower()}: {value}" for name, value in problem.headers.items()]
        self._answer(problem.status, "".join(f"{line}\r\n" for line in lines).encode(), content)

    def _answer(self, status: int, head: bytes, content: bytes) -> None:
        own = b"x-request-id: %s\r\n" % self._id.encode()
        self._send(status, head + _COMMON + own, content)
        self._office.metrics.in_flight -= 1
        tell(
            self._office.metrics,
            ROUTE,
            "POST",
            self._path,
            self._id,
            status,
            time.perf_counter() - self._start,
            self._caller,
        )

    def _given_up(self) -> None:
        """The time for a shutdown is over; what the server itself says then."""
        self._office.metrics.in_flight -= 1
        said = b"Internal Server Error"
        head = b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n" % len(said)
        self._send(500, head, said)
