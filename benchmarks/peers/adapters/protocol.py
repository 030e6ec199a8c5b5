"""What every adapter speaks: a task a line on stdin, an answer a line on stdout, both JSON.

    ready                                 once, when everything is imported
    {"operation": "epsilons", "arguments": {...}, "limit": 20.0}
    {"value": [...], "cpu": 0.0123, "wall": 0.0125}
    {"error": "ValueError: ..."}          the peer raised
    {"cannot": "no tradeoff curves"}      it has no such thing

The standard library alone: adapters run in environments of their own, with their peer and nothing
of this project. Times are taken here, around the call, so that neither start-up nor JSON counts.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

MEMORY = 12 << 30
"""Bytes of address space: a peer that asks for more gets an error and the machine stays alive."""


class Cannot(Exception):
    """The peer has nothing for this; says why."""


class Late(Exception):
    """The time allowed for a task is over."""


Operation = Callable[..., Any]


def serve(operations: Mapping[str, Operation]) -> None:
    """Answer until stdin ends. What the peer prints goes to stderr."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)
        signal.signal(signal.SIGALRM, _late)
        out.write("ready\n")
        out.flush()
        for line in sys.stdin:
            out.write(json.dumps(answer(operations, json.loads(line))) + "\n")
            out.flush()


def answer(operations: Mapping[str, Operation], task: Mapping[str, Any]) -> dict[str, Any]:
    """One task; an error of the peer is an answer too."""
    operation = operations.get(task["operation"])
    if operation is None:
        return {"cannot": f"nothing like {task['operation'].replace('_', ' ')}"}
    gc.collect()
    signal.setitimer(signal.ITIMER_REAL, task.get("limit", 0.0))
    try:
        wall, cpu = time.perf_counter(), time.process_time()
        value = operation(**task["arguments"])
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        return {"value": value, "cpu": cpu, "wall": wall}
    except Cannot as reason:
        return {"cannot": str(reason)}
    except Late:
        return {"error": f"no answer in {task['limit']:g} s"}
    except BaseException as error:  # Rust panics are no Exceptions.
        if isinstance(error, KeyboardInterrupt):
            raise
        return {"error": in_short(error)}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def each(read: Callable[[float], float], levels: list[float]) -> list[Any]:
    """`read` at every level; an error stands in the place of its number."""
    found: list[Any] = []
    for level in levels:
        try:
            found.append(float(read(level)))
        except (Cannot, Late):
            raise
        except Exception as error:
            found.append(in_short(error))
    return found


def in_short(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:160]}" if lines else type(error).__name__


def _late(*_: object) -> NoReturn:
    raise Late
