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
from typing import Any

from residuum.ledger.calls import Call
from residuum.ledger.receipts import Receipt
from residuum.service import models, problems, values
from residuum.service.access import Caller
from residuum.service.bodies import Bodies
from residuum.service.dispatch import is_quick
from residuum.service.frame import ASKED, HEADERS, encoded, request_id, tell, told
from residuum.service.office import Office
from residuum.service.reading import check_type
from residuum.service.routes.asking import one_key

ROUTE = f"{ASKED}{{name}}/spend"
PATH = re.compile(rf"{ASKED}([A-Za-z0-9._~-]{{1,{models.LONGEST_NAME}}})/spend".encode())
"""Plain names alone: no escapes, and nothing behind them."""
UNUSUAL = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"content-encoding"})
_COMMON = b"".join(b"%s: %s\r\n" % each for each in HEADERS)
Sending = Callable[[int, bytes, bytes], None]
"""Takes a status, lines of headers, and a body."""


class ShortWay:
    """Spends that are in order, for one office."""

    def __init__(self, office: Office):
        self._office = office
        self._bodies = Bodies()

    def begun(
        self, path: bytes, headers: list[tuple[bytes, bytes]], body: bytes, send: Sending
    ) -> asyncio.Future[Any] | None:
        """Hand a spend to the gate, to `send` its answer; None for what must go the other way."""
        start = time.perf_counter()
        given, settings = dict(headers), self._office.settings
        found = PATH.fullmatch(path)
        if found is None or settings.dev or len(body) > settings.largest_body:
            return None
        if len(given) < len(headers) or not UNUSUAL.isdisjoint(given):
            return None
        try:
            caller = self._office.gatekeeper.known(_text(given, b"authorization"))
            if caller is None:
                return None
            call = self._call(caller, found[1].decode("ascii"), given, body)
            if call is None:
                return None
            id = request_id(given.get(b"x-request-id"))
            spend = _Spend(self._office, id, path.decode("ascii"), caller, start, send)
            self._office.rate.take(caller.token or caller.principal)
            future = self._office.dispatch.hand(call)
        except Exception:
            # On the other way it is met again, and told.
            return None
        self._office.metrics.in_flight += 1
        future.add_done_callback(spend.decided)
        return future

    def _call(
        self, caller: Caller, name: str, given: Mapping[bytes, bytes], body: bytes
    ) -> Call | None:
        """What the ledger is asked; None where it would take long to decide."""
        check_type(_text(given, b"content-type"))
        ask = self._bodies.read(body)
        caller.require("spend", name, *ask.also)
        budgets = [name, *ask.also] if ask.also else name
        if not self._office.ledger.decides_quickly(budgets, ask.query):
            return None
        arguments = {
            "budgets": budgets,
            "query": ask.query,
            "key": one_key(ask.key, _text(given, b"idempotency-key")),
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
