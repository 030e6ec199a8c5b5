"""Calls of the service as values: the request, when to retry it, and how to read the answer.

Both clients carry out the same calls, one waiting and one not. A call may be repeated freely if it
writes nothing, or if it carries a key: then the service answers a repetition with the receipt it
gave before. Anything else is sent again only when it surely never arrived. As soon as one attempt
may have been carried out without an answer, there are two ends: an answer, or `OutcomeUnknown`.

Connections are httpx's: kept open and used again, through proxies if there are any. What must not
be sent twice goes over a new connection: one that was idle may have been closed at the other end. A
process that forks leaves its connections to the parent: on a shared one, each would read the
other's receipts.
"""

from __future__ import annotations

import json
import os
import random
import re
import ssl
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlsplit

import httpx

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError, OutcomeUnknown, StoreUnavailable
from residua.ledger.domain import arguments
from residua.service import problems
from residua.version import __version__

T = TypeVar("T")

RETRY_FOR = 60.0
"""Seconds in which an unknown outcome is asked for again: a service that restarts is back by then.
"""
FIRST_WAIT, LONGEST_WAIT = 0.05, 5.0
"""Seconds before the second attempt, twice as many before each later one, and at most."""
_UNSURE = frozenset({"outcome-unknown", "internal-error"})
"""Problems of the service that do not say whether anything was written."""


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request."""

    method: str
    path: str
    read: Callable[[Any], T]
    body: Mapping[str, Any] | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    repeatable: bool = True
    writes: bool = False
    """Whether the service writes something, so that the outcome matters."""
    key: str | None = None
    """The key of a call that may spend, for the message where its outcome stays unknown."""
    text: bool = False
    """Whether the answer is text rather than JSON."""

    def __iter__(self) -> Generator[Call[Any], Any, T]:
        """The steps of a method that makes this call alone."""
        found: T = yield self
        return found

    def request(self, url: str) -> dict[str, Any]:
        """The arguments of httpx for a service at an address."""
        content = None if self.body is None else json.dumps(self.body, allow_nan=False).encode()
        return {"method": self.method, "url": url + self.path, "params": self.params,
                "content": content}  # fmt: skip


def once(path: str, read: Callable[[Any], Any], body: dict[str, Any] | None) -> Call[Any]:
    """A call that writes without a key: it must not be sent twice."""
    return Call("POST", path, read, body, repeatable=False, writes=True)


def keyed(
    path: str, read: Callable[[Any], Any], body: dict[str, Any], given: str | None
) -> Call[Any]:
    """A call that writes once, however often it is sent; an answer to another key is refused."""
    key = arguments.key(given)

    def own(data: Any) -> Any:
        found = read(data)
        if found.key != key:
            raise OutcomeUnknown(
                f"the answer belongs to another request, with the key {found.key!r};"
                f" repeat the call with the key {key!r}"
            )
        return found

    return Call("POST", path, own, {**body, "key": key}, key=key, writes=True)


def page_of(read: Callable[[Any], Any]) -> Callable[[Any], tuple[list[Any], Any]]:
    """Read a page: its items, and what to ask for next."""
    return lambda data: ([read(one) for one in data["items"]], data["next"])


def nothing(_data: Any) -> None:
    """Read an answer that says nothing."""


@dataclass(frozen=True)
class Failed:
    """An attempt that brought no answer."""

    error: Exception
    arrived: bool
    """Whether the request may have arrived."""


@dataclass(frozen=True)
class Answered:
    """An attempt that brought one."""

    status: int
    content: bytes
    retry_after: str | None = None

    @property
    def data(self) -> Any:
        """The answer as JSON; None where it is none."""
        try:
            return json.loads(self.content)
        except ValueError:
            return None

    @property
    def problem(self) -> str | None:
        """The name of a problem of ours; None where something else answered."""
        given = self.data
        name = str(given.get("type", "")) if isinstance(given, Mapping) else ""
        return problems.name_in(name)


Outcome = Failed | Answered


@dataclass(frozen=True)
class Retries:
    """How often and how long calls are repeated."""

    attempts: int | None = None
    """Attempts in all; None for five, and once the outcome is unknown, for `seconds`."""
    seconds: float = RETRY_FOR


class Attempts(Generic[T]):
    """The attempts of one call, and what they amount to."""

    def __init__(
        self,
        call: Call[T],
        url: str,
        retries: Retries,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._call, self._url, self._retries, self._clock = call, url, retries, clock
        self._begun, self._made = clock(), 0
        self._unsure = False
        """Whether an attempt may have been carried out of which no answer tells."""

    def pause(self, outcome: Outcome) -> float | None:
        """Seconds after which to try again; None to take what there is."""
        self._made += 1
        self._unsure |= self._call.writes and _is_unsure(outcome)
        if not self._may_repeat(outcome):
            return None
        longest: float = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (self._made - 1))
        pause = longest * random.uniform(0.5, 1.0)
        told = (outcome.retry_after or "") if isinstance(outcome, Answered) else ""
        if told.isdigit() and self._made > 1:
            pause = max(pause, min(float(told), LONGEST_WAIT))
        return pause if self._has_time(pause) else None

    def _may_repeat(self, outcome: Outcome) -> bool:
        call = self._call
        if isinstance(outcome, Failed):
            return call.repeatable or not outcome.arrived
        again = (429, 502, 503, 504) if call.repeatable else (429,)
        if outcome.status not in again:
            return False
        kind = problems.KINDS.get(outcome.problem or "")
        return outcome.problem is None or (kind is not None and kind.may_pass)

    def _has_time(self, pause: float) -> bool:
        if self._retries.attempts is not None:
            return self._made < self._retries.attempts
        if self._unsure:
            return self._clock() + pause - self._begun <= self._retries.seconds
        return self._made < 5

    def result(self, outcome: Outcome) -> T:
        """The result of the call; raises the exception that an error answer names."""
        try:
            return self._read(outcome)
        except OutcomeUnknown:
            raise
        except Exception as error:
            if not self._unsure:
                raise
            raise self._unknown(error) from error

    def _read(self, outcome: Outcome) -> T:
        call = self._call
        if isinstance(outcome, Failed):
            unspent = "; nothing was spent" if call.key else ""
            raise StoreUnavailable(
                f"{self._url} cannot be reached ({_named(outcome.error)}){unspent}"
            ) from outcome.error
        if outcome.status >= 300:
            raise problems.exception_of(outcome.status, outcome.data)
        # It was carried out, and if the answer cannot be read, its result is unknown.
        self._unsure |= call.writes
        return call.read(outcome.content.decode() if call.text else outcome.data)

    def _unknown(self, error: Exception) -> OutcomeUnknown:
        key = self._call.key
        again = f"repeat the call with the key {key!r}" if key else "check before you repeat it"
        return OutcomeUnknown(
            f"{self._url} gave no answer that tells the outcome"
            f" ({_named(error.__cause__ or error)}); {again}"
        )


def _is_unsure(outcome: Outcome) -> bool:
    if isinstance(outcome, Failed):
        return outcome.arrived
    if outcome.status < 500:
        return False
    # An answer that is not ours, but a proxy's, does not say how far the request came.
    return outcome.problem is None or outcome.problem in _UNSURE


def address(url: Any) -> str:
    """The address of a service, without a slash at its end."""
    if not isinstance(url, str):
        raise ArgumentTypeError(f"url must be the address of a service, got {checks.shown(url)}")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not _is_host(url):
        raise ArgumentError(
            f"url must be the address of a service, http:// or https://, got {checks.shown(url)}"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ArgumentError("url must be only an address; pass the token as the argument `token`")
    return url.rstrip("/")


def _is_host(url: str) -> bool:
    """Whether an address has a host, and a port if any, that a request can be sent to."""
    try:
        parts = urlsplit(url)
        return bool(httpx.URL(url).host) and parts.port != 0 and not re.search(r"\s", url)
    except (httpx.InvalidURL, ValueError):
        return False


def headers(token: Any) -> dict[str, str]:
    """The headers of every request."""
    common = {"User-Agent": f"residua/{__version__}", "Content-Type": "application/json"}
    if token is None:
        return common
    text = token.strip() if isinstance(token, str) else ""
    if not (text and text.isascii() and text.isprintable()):
        # The token itself is not shown.
        raise ArgumentError("token must be a string like rz_ID_SECRET, got something else")
    return {**common, "Authorization": f"Bearer {text}"}


def segment(name: str) -> str:
    """A name as one segment of a path."""
    return quote(name, safe="")


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
"""Errors of an attempt that had no connection to the service: its request was not sent."""

H = TypeVar("H", httpx.Client, httpx.AsyncClient)


class Sessions(Generic[H]):
    """Two httpx clients, with and without connection reuse; made again after a fork."""

    def __init__(
        self,
        kind: Callable[..., H],
        headers: dict[str, str],
        timeout: float,
        connections: int,
        proxy: str | None,
    ):
        shared: dict[str, Any] = {
            "headers": headers,
            # A caller that waits for a pooled connection has sent nothing yet, so it may wait.
            "timeout": httpx.Timeout(timeout, pool=None),
            "http2": find_spec("h2") is not None,
            "proxy": proxy,
        }
        # The service keeps idle connections for longer than this.
        kept = httpx.Limits(
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=10.0,
        )
        single = httpx.Limits(max_connections=connections, max_keepalive_connections=0)

        def both() -> tuple[H, H]:
            trusted = ssl.create_default_context()
            return (
                kind(limits=kept, verify=trusted, **shared),
                kind(limits=single, verify=trusted, **shared),
            )

        self._make: Callable[[], tuple[H, H]] = both
        self._left: list[tuple[H, H]] = []
        self._begin()

    def _begin(self) -> None:
        try:
            self.both: tuple[H, H] = self._make()
        except (ValueError, httpx.InvalidURL) as error:
            raise ArgumentError(
                "proxy must be a URL (check the argument and the environment variables):"
                f" the given one cannot be used ({type(error).__name__})"
            ) from None
        # The last thing: until then no thread of a child takes what is there for its own.
        self._process = os.getpid()

    def of(self, call: Call[Any]) -> H:
        """The client that a call goes through."""
        if self._process != os.getpid():
            # Kept and never used: to close them would be to speak on the parent's connections.
            self._left.append(self.both)
            self._begin()
        return self.both[0 if call.repeatable else 1]


def answer_of(response: httpx.Response) -> Answered:
    """The result of an attempt."""
    told = response.headers.get("retry-after")
    return Answered(response.status_code, response.content, told)


def failure_of(error: httpx.HTTPError) -> Failed:
    """The error of an attempt without an answer."""
    return Failed(error, arrived=not isinstance(error, NOT_SENT))
