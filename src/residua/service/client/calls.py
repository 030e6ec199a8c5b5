"""Calls of the service as values: what is sent, when it may be sent again, how it is read.

Both clients carry out the same calls, one waiting and one not. A call may be repeated freely if it
writes nothing, or if it carries a key: then the service answers a repetition with the receipt it
gave before. Anything else is sent again only when it surely never arrived.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlsplit

from residua import checks
from residua.errors import ArgumentError, ArgumentTypeError, OutcomeUnknown, StoreUnavailable
from residua.service import problems
from residua.version import __version__

T = TypeVar("T")

ATTEMPTS = 5
FIRST_WAIT = 0.05
LONGEST_WAIT = 5.0
_AGAIN = frozenset({429, 502, 503, 504})


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request."""

    method: str
    path: str
    read: Callable[[Any], T]
    body: Mapping[str, Any] | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    repeatable: bool = True
    key: str | None = None
    """The key of a call that may spend, for the message where its outcome stays unknown."""
    text: bool = False
    """Whether the answer is text rather than JSON."""

    @property
    def content(self) -> bytes | None:
        """The body as it is sent."""
        if self.body is None:
            return None
        return json.dumps(self.body, allow_nan=False).encode()


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


Outcome = Failed | Answered


def wait(call: Call[Any], outcome: Outcome, attempt: int, attempts: int) -> float | None:
    """Seconds after which to try again; None to take the outcome as it is."""
    if attempt >= attempts:
        return None
    if isinstance(outcome, Failed):
        return _pause(attempt) if call.repeatable or not outcome.arrived else None
    if outcome.status not in _AGAIN or (outcome.status != 429 and not call.repeatable):
        return None
    given = outcome.data
    name = str(given.get("type", "")) if isinstance(given, Mapping) else ""
    known = name.startswith("urn:residua:")
    if known and not problems.may_pass(name.rpartition(":")[2]):
        return None
    told, pause = outcome.retry_after or "", _pause(attempt)
    return max(pause, min(float(told), LONGEST_WAIT)) if told.isdigit() and attempt > 1 else pause


def _pause(attempt: int) -> float:
    longest: float = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (attempt - 1))
    return longest * random.uniform(0.5, 1.0)


def result(call: Call[T], outcome: Outcome, url: str) -> T:
    """What a call brought, or the exception that it amounts to."""
    if isinstance(outcome, Failed):
        if outcome.arrived and call.method != "GET":
            again = f"ask again with the key {call.key!r}" if call.key else "look before you repeat"
            raise OutcomeUnknown(
                f"{url} was asked and gave no answer ({_named(outcome.error)}); {again}"
            ) from outcome.error
        unspent = "; nothing was spent" if call.key else ""
        raise StoreUnavailable(
            f"{url} cannot be reached ({_named(outcome.error)}){unspent}"
        ) from outcome.error
    if outcome.status >= 300:
        raise problems.raised(outcome.status, outcome.data)
    return call.read(outcome.content.decode() if call.text else outcome.data)


def address(url: Any) -> str:
    """The address of a service, without a slash at its end."""
    if not isinstance(url, str):
        raise ArgumentTypeError(f"url must be the address of a service, got {checks.shown(url)}")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ArgumentError(
            f"url must be the address of a service, http:// or https://, got {checks.shown(url)}"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ArgumentError("url must be an address alone; the token is an argument of its own")
    return url.rstrip("/")


def headers(token: Any) -> dict[str, str]:
    """What every request carries."""
    common = {"User-Agent": f"residua/{__version__}", "Content-Type": "application/json"}
    if token is None:
        return common
    if not isinstance(token, str) or not token.strip() or not token.strip().isascii():
        # The token itself is not shown.
        raise ArgumentError("token must be the text of a token, got something else")
    return {**common, "Authorization": f"Bearer {token.strip()}"}


def segment(name: str) -> str:
    """A name as one segment of a path."""
    return quote(name, safe="")


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
