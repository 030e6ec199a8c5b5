"""Check that a budget is not used, renewed or created once an ancestor was retired.

Each chain has its own numbers, and clocks may be set back, so neither tells what came first in two
chains. A retirement does: it states, for every budget under the retired one, the number of its last
record at that moment. A ledger takes these numbers while it holds the lock on the retired budget,
which everything that writes under it takes, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from residua.verify.chains.chain import ASKING, Chain, parent_of

_RETIRING = ("retire", "recover")


def check_retired(chains: Mapping[str, Chain]) -> None:
    """Check every chain against the retirement of each budget above it."""
    closed = {
        name: [(each.seq, each.body["below"]) for each in chain.records if each.type in _RETIRING]
        for name, chain in chains.items()
    }
    for name, retirements in closed.items():
        for seq, below in retirements:
            _check_named(chains[name], seq, below, chains)
    for chain in chains.values():
        for ancestor in _ancestors(chain, chains):
            for _, below in closed[ancestor]:
                if isinstance(below, Mapping):
                    _check_after(chain, ancestor, below.get(chain.name))


def _check_named(chain: Chain, seq: int, below: Any, chains: Mapping[str, Chain]) -> None:
    """Check that a retirement names records of budgets under it."""
    if not isinstance(below, Mapping):
        chain.wrong(seq, f"below must map budgets to numbers, got {below!r:.60}")
        return
    for name, last in below.items():
        other = chains.get(name)
        if type(last) is not int or last < 0:
            chain.wrong(seq, f"below must map budgets to numbers, got {last!r:.60} for {name!r}")
        elif other is None:
            chain.wrong(seq, f"the budget {name!r} under it is not here")
        elif any(record.type == "recover" for record in other.records):
            continue  # its records were lost, as it says itself
        elif chain.name not in _ancestors(other, chains):
            chain.wrong(seq, f"the budget {name!r} is not under it")
        elif other.at(last) is None:
            chain.wrong(seq, f"the record {name!r} {last}, written before it, is not here")


def _check_after(chain: Chain, ancestor: str, last: Any) -> None:
    """Check that a chain asks for nothing, and begins no window, after its ancestor was retired."""
    if last is None:
        chain.wrong(0, f"created under {ancestor!r}, which was retired")
    elif type(last) is int:
        for record in chain.records:
            if record.seq > last and record.type in (*ASKING, "refresh"):
                chain.wrong(record.seq, f"a {record.type} after {ancestor!r} above it was retired")


def _ancestors(chain: Chain, chains: Mapping[str, Chain]) -> Iterator[str]:
    """The names of the budgets above one whose chains are here, from its parent upwards."""
    seen = {chain.name}
    parent = parent_of(chain, chains)
    while parent is not None and parent.name not in seen:
        yield parent.name
        seen.add(parent.name)
        parent = parent_of(parent, chains)
