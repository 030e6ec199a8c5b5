"""Logs: one line an event, JSON by default, on standard error.

What is logged of a request is its id, method, path, status and duration, who asked and with which
token's id. Headers, query strings and bodies are never logged, so no secret can be.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TextIO

NAME = "residua.service"
log = logging.getLogger(NAME)
_TOKEN = re.compile(r"(rz_[0-9a-f]{1,12}_)[A-Za-z0-9_-]+")


_ENCODER = json.JSONEncoder(default=str)


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        out: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            out["exception"] = self.formatException(record.exc_info)
        return _ENCODER.encode(out)


class Plain(logging.Formatter):
    """For people."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        facts = " ".join(
            f"{name}={_plain(value)}" for name, value in getattr(record, "facts", {}).items()
        )
        line = (
            f"{time} {record.levelname.lower():<7} {_plain(record.getMessage())} {facts}".rstrip()
        )
        return line + ("\n" + self.formatException(record.exc_info) if record.exc_info else "")


@contextmanager
def log_to(format: str, level: str, stream: TextIO | None = None) -> Iterator[None]:
    """Log to a stream, standard error by default; afterwards the loggers are as they were.

    The stream may be closed as soon as this ends: no logger refers to it any more.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if format == "json" else Plain())
    loggers = [logging.getLogger(name) for name in (NAME, "uvicorn", "uvicorn.error")]
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
    """A path without what somebody put there who took it for the place of a token."""
    return path if "rz_" not in path else _TOKEN.sub(r"\1…", path)


def _plain(value: object) -> str:
    # A line feed in a path or a name must not start a line of the log.
    return str(value).encode("unicode_escape").decode("ascii")
