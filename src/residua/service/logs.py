"""Logs: one line an event, JSON by default, on standard error.

What is logged of a request is its id, method, path, status and duration, who asked and with which
token's id. Headers, query strings and bodies are never logged, so no secret can be. Nor are the
words of database drivers and of the store, which name users, hosts, schemas and even passwords: of
such an error its kind is logged, and its code.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TextIO

from residua.errors import OutcomeUnknown, ReadOnlyLedger, StoreUnavailable, UnsafeStore

NAME = "residua.service"
_OF_STORES = (StoreUnavailable, UnsafeStore, OutcomeUnknown, ReadOnlyLedger)
log = logging.getLogger(NAME)
_DRIVERS = ("psycopg", "sqlalchemy", "sqlite3")
_WORDLESS = (*_DRIVERS, "residua.ledger.storage")
"""Modules whose exceptions are logged without their words."""
_TOKEN = re.compile(r"(rz_[0-9a-f]{1,12}_)[A-Za-z0-9_-]+")


_ENCODER = json.JSONEncoder(default=str)


class Lines(logging.Formatter):
    """One line an event: a JSON object, or text for people."""

    def __init__(self, as_json: bool):
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        time, level = datetime.fromtimestamp(record.created, UTC), record.levelname.lower()
        said, facts = message(record), getattr(record, "facts", {})
        error = trace(record.exc_info[1]) if record.exc_info else None
        if self._as_json:
            out = {"time": time.isoformat(timespec="milliseconds"), "level": level, "event": said}
            more = {} if error is None else {"exception": error}
            return _ENCODER.encode({**out, **facts, **more})
        shown = " ".join(f"{name}={_plain(value)}" for name, value in facts.items())
        line = f"{time:%H:%M:%S.%f}"[:-3] + f" {level:<7} {_plain(said)} {shown}"
        return line.rstrip() + ("" if error is None else "\n" + error)


def message(record: logging.LogRecord) -> str:
    """The message of a record; for a driver's, which may show connections, without its values."""
    return str(record.msg) if record.name.startswith(_DRIVERS) else record.getMessage()


def trace(error: BaseException | None) -> str:
    """Where an error and its causes arose, without the words of the store and its drivers."""
    parts: list[str] = []
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        kind = type(error)
        said = "" if has_no_message(error) else f": {error}"
        frames = "".join(traceback.format_tb(error.__traceback__))
        parts.append(f"{frames}{kind.__module__}.{kind.__qualname__}{said}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\ncaused by\n".join(parts)


def has_no_message(error: BaseException) -> bool:
    """Whether the words of an error may name where the store is."""
    return isinstance(error, _OF_STORES) or type(error).__module__.startswith(_WORDLESS)


def store_failure(error: BaseException, request: str) -> None:
    """Log that the store failed, if that is what an error says: its kind, and the server's code."""
    if isinstance(error, _OF_STORES):
        cause: Any = error.__cause__
        code = getattr(getattr(cause, "orig", cause), "sqlstate", None)
        kind, of = type(error).__name__, type(cause).__name__ if cause else None
        event("the store failed", level=logging.ERROR, request=request, kind=kind, of=of, code=code)


@contextmanager
def log_to(format: str, level: str, stream: TextIO | None = None) -> Iterator[None]:
    """Log to a stream, standard error by default; afterwards the loggers are as they were.

    The stream may be closed as soon as this ends: no logger refers to it any more.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Lines(format == "json"))
    loggers = [
        logging.getLogger(name) for name in (NAME, "uvicorn", "uvicorn.error", *_DRIVERS[:2])
    ]
    before = [(logger.handlers, logger.propagate, logger.level) for logger in loggers]
    for logger in loggers:
        logger.handlers = [handler] if logger.name != "uvicorn.error" else []
        logger.propagate = logger.name == "uvicorn.error"
        logger.setLevel(level.upper() if logger.name == NAME else "WARNING")
    try:
        yield
    finally:
        for logger, (handlers, propagate, threshold) in zip(loggers, before, strict=True):
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(threshold)


def event(message: str, *, level: int = logging.INFO, **facts: Any) -> None:
    """Log an event with its facts."""
    if log.isEnabledFor(level):
        # As `log.log` does, without looking for the line of code that this is called from.
        log.handle(log.makeRecord(NAME, level, "", 0, message, (), None, extra={"facts": facts}))


def without_secrets(path: str) -> str:
    """A path without a token that a caller put there by mistake."""
    return path if "rz_" not in path else _TOKEN.sub(r"\1…", path)


def _plain(value: object) -> str:
    # A line feed in a path or a name must not start a line of the log.
    return str(value).encode("unicode_escape").decode("ascii")
