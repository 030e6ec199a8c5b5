"""One peer's process: asked a task at a time, started again if it dies or hangs."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
START = 300.0
"""Seconds that the imports of a peer may take."""
GRACE = 20.0
"""Seconds beyond its limit after which a process that does not answer is killed."""


@dataclass(frozen=True)
class Answer:
    """A value with its times in seconds, or what stood in the way of one."""

    value: Any = None
    cpu: float = 0.0
    wall: float = 0.0
    error: str = ""
    cannot: str = ""

    @property
    def given(self) -> bool:
        return not (self.error or self.cannot)


class Worker:
    """The process of one adapter, one thread of numerics to each."""

    def __init__(self, python: Path, adapter: Path, path: str = ""):
        self._command = [str(python), str(adapter)]
        self._environment = os.environ | ONE_THREAD
        self._environment.pop("PYTHONPATH", None)
        if path:
            self._environment["PYTHONPATH"] = path
        self._process: subprocess.Popen[str] | None = None

    def ask(self, operation: str, arguments: dict[str, Any], limit: float = 60.0) -> Answer:
        process = self._process or self._start()
        if process is None:
            return Answer(cannot=f"{self._command[-1]} does not start")
        assert process.stdin is not None and process.stdout is not None
        task = {"operation": operation, "arguments": arguments, "limit": limit}
        try:
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.flush()
            line = _line(process, limit + GRACE)
        except BrokenPipeError:
            line = ""
        if not line:
            self.stop()
            return Answer(error=f"no answer in {limit:g} s, or the process died")
        return Answer(**json.loads(line))

    def _start(self) -> subprocess.Popen[str] | None:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self._environment,
        )
        if _line(self._process, START) != "ready\n":
            self.stop()
        return self._process

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _line(process: subprocess.Popen[str], seconds: float) -> str:
    """The next line; empty if the process ended or says nothing for so long."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ)
        return process.stdout.readline() if waiting.select(seconds) else ""
