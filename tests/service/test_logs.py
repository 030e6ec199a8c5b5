"""Logging lasts as long as the service: its stream may be closed afterwards."""

import logging
from pathlib import Path

import pytest

from residua.service import logs

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy")


def test_a_service_that_ended_leaves_the_loggers_as_they_were(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command writes to a stream that is closed when it returns, as under a test runner."""
    from cli.running import run

    names = (logs.NAME, "uvicorn", "uvicorn.error")
    loggers = [logging.getLogger(name) for name in names]
    before = [(list(one.handlers), one.propagate, one.level) for one in loggers]
    store = ("--store", f"sqlite:///{tmp_path}/budgets.db")
    # Refused, since there is no token, but only after logging has begun.
    assert "residua token create" in run("serve", "--host", "0.0.0.0", *store, code=2)
    assert [(list(one.handlers), one.propagate, one.level) for one in loggers] == before
    logs.event("nobody reads this", level=logging.ERROR)
    assert "Logging error" not in capsys.readouterr().err


def test_the_loggers_are_as_they_were_after_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    before = list(logs.log.handlers)
    with pytest.raises(ValueError), logs.log_to("text", "info"):
        logs.event("begun", number=7)
        raise ValueError
    assert logs.log.handlers == before
    assert "begun number=7" in capsys.readouterr().err
