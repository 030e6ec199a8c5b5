"""Who takes part: a peer, or one of the ways it offers, with its options for the adapter."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers.environments import ADAPTERS, Home, find
from benchmarks.peers.worker import Answer, Worker

OURS = "residua"


@dataclass(frozen=True)
class Peer:
    """A package and what pip is told to get it, one call for each group."""

    package: str
    adapter: str
    requirements: tuple[tuple[str, ...], ...]


PEERS = (
    Peer("residua", "residua_adapter", ()),
    Peer("dp-accounting", "dp_accounting_adapter", (("dp-accounting>=0.4.4",),)),
    Peer("prv-accountant", "prv_accountant_adapter", (("prv-accountant>=0.2",),)),
    Peer("opendp", "opendp_adapter", (("opendp>=0.12",),)),
    Peer("autodp", "autodp_adapter", (("autodp>=0.2.3",),)),
    Peer("riskcal", "riskcal_adapter", (("riskcal>=1.2",),)),
    # First torch by itself and by number: without one, gigabytes of GPU libraries would come.
    Peer("opacus", "opacus_adapter", (("torch==2.13.0",), ("opacus>=1.4",))),
    Peer("tmlt.core", "tmlt_core_adapter", (("tmlt.core>=0.13",),)),
)


@dataclass(frozen=True, eq=False)
class Participant:
    """A column of the tables. `options` go to the adapter with every question."""

    label: str
    package: str
    options: dict[str, Any] = field(default_factory=dict)


US = Participant(OURS, "residua")
GOOGLE_FINE = Participant("dp_accounting, grid 1e-4", "dp-accounting", {"grid": 1e-4})
GOOGLE_COARSE = Participant("dp_accounting, grid 1e-3", "dp-accounting", {"grid": 1e-3})
GOOGLE_RDP = Participant("dp_accounting, Rényi", "dp-accounting", {"grid": 0.0})
MICROSOFT = Participant("prv_accountant", "prv-accountant")
OPACUS_PRV = Participant("Opacus, PRV", "opacus", {"which": "prv"})
OPACUS_RDP = Participant("Opacus, Rényi", "opacus", {"which": "rdp"})
OPACUS_GDP = Participant("Opacus, GDP", "opacus", {"which": "gdp"})
AUTODP_RDP = Participant("autodp, Rényi", "autodp", {"which": "rdp"})
AUTODP_AFA = Participant("autodp, transforms", "autodp", {"which": "afa"})
OPENDP = Participant("OpenDP", "opendp")
TMLT = Participant("tmlt.core", "tmlt.core")
RISKCAL_FINE = Participant("riskcal, grid 1e-4", "riskcal", {"grid": 1e-4})
RISKCAL_COARSE = Participant("riskcal, grid 1e-3", "riskcal", {"grid": 1e-3})
RISKCAL_CLOSED = Participant("riskcal, closed form", "riskcal", {"grid": 0.0})

ACCOUNTANTS = (
    US,
    GOOGLE_FINE,
    GOOGLE_COARSE,
    GOOGLE_RDP,
    MICROSOFT,
    OPACUS_PRV,
    OPACUS_RDP,
    OPACUS_GDP,
    AUTODP_RDP,
    AUTODP_AFA,
    OPENDP,
    TMLT,
)
"""All who turn compositions into `(eps, delta)`."""


class Field:
    """All peers of a run: each is looked for when it is first asked, and then keeps its process."""

    def __init__(self, install: bool, invited: Collection[str]):
        self.homes: dict[str, Home] = {}
        self._install, self._invited = install, invited
        self._workers: dict[str, Worker] = {}

    def ask(
        self, who: Participant, operation: str, limit: float = 60.0, **arguments: Any
    ) -> Answer:
        """Ask a participant; one that is not installed answers with the reason."""
        home = self.home(who.package)
        if home.python is None:
            return Answer(cannot=home.why)
        if who.package not in self._workers:
            peer = _PEER[who.package]
            path = _source() if peer.package == OURS else ""
            self._workers[who.package] = Worker(home.python, ADAPTERS / f"{peer.adapter}.py", path)
        return self._workers[who.package].ask(operation, arguments | who.options, limit)

    def home(self, package: str) -> Home:
        """Where a package is; installs it the first time, if this run may."""
        if package not in self._invited:
            return Home(None, why="left out of this run")
        if package not in self.homes:
            peer = _PEER[package]
            self.homes[package] = find(peer.package, peer.requirements, self._install)
        return self.homes[package]

    def close(self) -> None:
        for worker in self._workers.values():
            worker.stop()


_PEER = {peer.package: peer for peer in PEERS}
PACKAGES = tuple(_PEER)


@contextmanager
def open_field(install: bool, invited: Collection[str] = PACKAGES) -> Iterator[Field]:
    """The peers of a run, whose processes end with it."""
    field = Field(install, {OURS, *invited})
    try:
        yield field
    finally:
        field.close()


def _source() -> str:
    """Where this process has the library from: its process is to have the same."""
    import residua

    return str(Path(residua.__file__).resolve().parents[1])
