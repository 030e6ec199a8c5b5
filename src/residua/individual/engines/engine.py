"""What every engine offers: spend, enroll, export. Each call is atomic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from residua.individual.header import Header
from residua.individual.result import SpendResult
from residua.individual.spend_request import Order


class Store(ABC):
    """A state in some engine. Subclasses are one a file."""

    header: Header
    where: str
    """The address, as it was given."""

    @abstractmethod
    def spend(self, order: Order, losses: Any) -> SpendResult:
        """Charge losses and return the active set; durable before it returns.

        A spend with an id that was used before returns the set of that time, marked `replayed`; if
        its losses were others, it is an error. Bad losses are an error, and the state is untouched.
        """

    @abstractmethod
    def enroll(self, subjects: Any) -> None:
        """Add subjects, with capacities of their own if the table has them."""

    @abstractmethod
    def everything(self) -> Any:
        """The whole state: keys and what is left, in units."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections."""
