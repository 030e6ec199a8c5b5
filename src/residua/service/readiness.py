"""Whether the store answers: asked at most once a second, however many callers ask.

Anyone may ask, so asking must not cost the store anything; and an answer must come soon, so nobody
waits for a store that is slow, or for other work.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

EVERY = 1.0
"""Seconds for which an answer is good."""
PATIENCE = 2.0
"""Seconds after which a store that does not answer is not ready."""


class Readiness:
    """Looks at the store in a separate thread. Asked from one event loop."""

    def __init__(self, look: Callable[[], object], clock: Callable[[], float] = time.monotonic):
        self._look, self._clock = look, clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="residua-ready")
        self._looking: asyncio.Future[bool] | None = None
        self._begun = float("-inf")

    async def is_ready(self) -> bool:
        """Whether the store answered within the last second, or answers soon."""
        if self._looking is None or (self._looking.done() and self._clock() >= self._begun + EVERY):
            self._begun = self._clock()
            self._looking = asyncio.get_running_loop().run_in_executor(self._thread, self._answers)
        rest = self._begun + PATIENCE - self._clock()
        if not self._looking.done() and rest > 0:
            await asyncio.wait({self._looking}, timeout=rest)
        return self._looking.done() and self._looking.result()

    def _answers(self) -> bool:
        try:
            self._look()
        except Exception:
            # Whatever it is: a store that cannot be read is not ready.
            return False
        return True

    def close(self) -> None:
        """Look no more."""
        self._thread.shutdown(wait=True)
