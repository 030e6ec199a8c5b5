"""What computes one spend on a directory of Parquet files: the part that differs by engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from residua.individual.header import Header
from residua.individual.losses import Findings
from residua.individual.pricing.pricing import Pricing
from residua.individual.spend_request import Order


@dataclass(frozen=True, eq=False)
class Opened:
    """Losses that an engine has made uniform, and what it found when it looked at them."""

    header: Header
    column: str | None
    losses: Any
    findings: list[Findings]


class TableEngine(ABC):
    """Reads a table of budgets, writes the next one and the active set."""

    @abstractmethod
    def open_losses(self, header: Header, order: Order, losses: Any, scratch: Path) -> Opened:
        """Make losses uniform and look at them; temporary files may go to `scratch`."""

    @abstractmethod
    def charge(
        self, opened: Opened, pricing: Pricing, budgets: Path | None, after: Path, active: Path
    ) -> None:
        """Write the budgets after the spend, and who takes part. Duplicate keys are an error."""

    @abstractmethod
    def enroll(self, header: Header, table: Any, budgets: Path | None, after: Path) -> None:
        """Write the budgets with new subjects: a table of keys and `left`."""

    def close(self) -> None:
        """Let go of what was started."""
        return None
