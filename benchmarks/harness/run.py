"""What a benchmark is given: the peers, and how much time it may take."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.peers.participants import Field


@dataclass(frozen=True)
class Run:
    """`quick` is a rehearsal: every line of code, few settings, figures of no account."""

    field: Field
    repeats: int = 5
    quick: bool = False

    def few(self, settings: list, most: int) -> list:  # type: ignore[type-arg]
        """All settings, or evenly chosen ones in a rehearsal."""
        return settings if not self.quick else settings[:: max(1, len(settings) // most)][:most]
