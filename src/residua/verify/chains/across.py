"""The structure across chains.

The records of one request name the same group, in which each is where the others say
(`groups.py`); a hold is of one request, and what ends it names all its budgets (`holds.py`); the
ancestors of a quota are in it and the whole of a partition is not, all the way up; no two
partitions of a budget have one label; a key belongs to one request of its principal.

Nothing is asked of a budget, or created or renewed under it, after one above it was retired.
Each chain has its own numbers, and clocks may be set back, so neither tells what came first in two
chains. A retirement does: it states, for every budget under the retired one, the number of its last
record at that moment. A ledger takes these numbers while it holds the lock on the retired budget,
which everything that writes under it takes, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from residua.records import LONGEST_HOLD, canonical
from residua.verify.chains.chain import (
    REQUEST_TYPES,
    Chain,
    check_group,
    members_of,
    parent_of,
    together,
)
from residua.verify.chains.holds import check_ends
from residua.verify.chains.structure import is_time, later
from residua.verify.chains.tables import check_tables
from residua.verify.descriptions.mechanisms import units_of
from residua.verify.proofs.partitions import Part


def check_across(chains: Mapping[str, Chain]) -> None:
    """Groups, ancestors and keys."""
    keys: dict[tuple[str, str], tuple[Any, ...]] = {}
    ledgers = {chain.records[0].body["ledger"] for chain in chains.values() if chain.records}
    partitioned = {above.name for above, _ in _parts(chains)}
    _check_shared(chains)
    check_retired(chains)
    check_ends(chains)
    check_tables(chains)
    for chain in chains.values():
        if len(ledgers) > 1:
            chain.add_problem(0, f"the chains are of {len(ledgers)} different ledgers")
        _check_parent(chain, chains)
        for record in chain.records:
            if record.type not in (*REQUEST_TYPES, "cancel", "expire"):
                continue
            report = partial(chain.add_problem, record.seq)
            members = check_group(record, chains, report)
            body = record.body
            if record.type == "hold" and is_time(body["expires"]):
                made = max(each.body["time"] for each in together(record, chains))
                if is_time(made) and body["expires"] > later(made, LONGEST_HOLD):
                    report(f"a hold from {made} to {body['expires']}, longer than allowed")
            if record.type in REQUEST_TYPES:
                _check_line(chain, chains, members, report)
                if chain.name in partitioned and body["admitted"]:
                    report("a budget that is divided into partitions is charged itself")
                place = (body["request"], record.type, members_of(body["group"]))
                if keys.setdefault((body["by"], canonical(body["key"])), place) != place:
                    report(
                        f"the key {body['key']!r} of {body['by']!r} was used for another request"
                    )
                if body["relation"] != chain.first.get("relation"):
                    report(f"asked under {body['relation']!r}, not under the budget's relation")
                for unit in units_of(body["mechanism"]) if body["admitted"] else ():
                    if unit != chain.first.get("unit"):
                        report(f"{unit!r} is declared, which is not the budget's unit")


def _parts(chains: Mapping[str, Chain]) -> list[tuple[Chain, Chain]]:
    """All partitions, each after its parent."""
    found = []
    for chain in chains.values():
        above = parent_of(chain, chains)
        if above is not None and chain.first.get("partition") is not None:
            found.append((above, chain))
    return found


def part_of(chain: Chain, chains: Mapping[str, Chain]) -> Part | None:
    """The place that a partition must fit into; None for other budgets."""
    if chain.first.get("partition") is None:
        return None
    above = parent_of(chain, chains)
    if above is None:
        return Part(None)
    beside: dict[str, Any] = {}
    if above.first.get("relation") == "replace-one":
        for parent, other in _parts(chains):
            if parent is above and other is not chain:
                beside[canonical(other.first["filter"])] = other.first["filter"]
    # An additive profile's promise is in its table, not in its configuration.
    alike = all(above.first.get(n) == chain.first[n] for n in ("filter", "tables"))
    return Part(above.first.get("filter"), tuple(beside.values()), alike)


def _check_shared(chains: Mapping[str, Chain]) -> None:
    """Check budgets beside each other.

    Partitions have different labels, the children of a budget are all quotas or all partitions, and
    caps on the same data add up, so that all but the first must say that this is meant.
    """
    labels: dict[tuple[str, str], str] = {}
    kinds: dict[str, bool] = {}
    roots: dict[str, str] = {}
    for chain in chains.values():
        first, above = chain.first, parent_of(chain, chains)
        divides = first.get("partition") is not None
        if above is not None and divides:
            other = labels.setdefault((above.name, canonical(first["partition"])), chain.name)
            if other != chain.name:
                chain.add_problem(0, f"the same partition of {above.name!r} as {other!r}")
        if above is not None and kinds.setdefault(above.name, divides) != divides:
            chain.add_problem(0, f"quotas and partitions under one budget, {above.name!r}")
        is_root = first.get("parent") is None and first.get("data") is not None
        if is_root and first["shares_data"] is not True:
            other = roots.setdefault(canonical(first["data"]), chain.name)
            if other != chain.name:
                chain.add_problem(
                    0, f"a second cap on the data of {other!r} that does not declare this"
                )


def _check_parent(chain: Chain, chains: Mapping[str, Chain]) -> None:
    parent = chain.first.get("parent")
    if parent is None:
        if chain.first.get("partition") is not None:
            chain.add_problem(0, "a partition without a parent")
        return
    above = parent_of(chain, chains)
    if above is None or not above.records:
        chain.add_problem(0, f"the parent {parent!r} is missing")
        return
    if not above.first:
        chain.add_problem(0, f"the chain of the parent {parent!r} does not begin with create")
        return
    for name in ("data", "unit", "relation"):
        if above.first[name] != chain.first[name]:
            chain.add_problem(0, f"{name} is not that of the parent {parent!r}")
    own, window = chain.first["window"], above.first["window"]
    if chain.first["partition"] is not None and own is not None and own != window:
        chain.add_problem(
            0, f"the window of a partition differs from that of the parent {parent!r}"
        )
    *_, top = (chain, *_ancestors(chain, chains))
    if (again := parent_of(top, chains)) is not None:
        chain.add_problem(0, f"the budget {again.name!r} is its own ancestor")


def _check_line(
    chain: Chain, chains: Mapping[str, Chain], members: set[str], report: Callable[[str], None]
) -> None:
    """A quota charges what is above it; a partition does not charge the whole it is a part of."""
    for below in (chain, *_ancestors(chain, chains)):
        parent = below.first.get("parent")
        word = "parent" if below is chain else "ancestor"
        whole = below.first.get("partition") is not None
        if isinstance(parent, str) and not whole and parent not in members:
            report(f"the {word} {parent!r} is not charged")
        if isinstance(parent, str) and whole and parent in members:
            report(f"the {word} {parent!r} of a partition is charged")


def _ancestors(chain: Chain, chains: Mapping[str, Chain]) -> Iterator[Chain]:
    """The chains that are here of the budgets above one, from its parent upwards, each once."""
    seen = {chain.name}
    parent = parent_of(chain, chains)
    while parent is not None and parent.name not in seen:
        yield parent
        seen.add(parent.name)
        parent = parent_of(parent, chains)


# -- retirement ------------------------------------------------------------------------------------


def check_retired(chains: Mapping[str, Chain]) -> None:
    """Check every chain against the retirement of each budget above it."""
    retiring = ("retire", "recover")
    closed = {
        name: [(each.seq, each.body["below"]) for each in chain.records if each.type in retiring]
        for name, chain in chains.items()
    }
    for name, retirements in closed.items():
        for seq, below in retirements:
            _check_named(chains[name], seq, below, chains)
    for chain in chains.values():
        for ancestor in _ancestors(chain, chains):
            for _, below in closed[ancestor.name]:
                if isinstance(below, Mapping):
                    _check_after(chain, ancestor.name, below.get(chain.name))


def _check_named(chain: Chain, seq: int, below: Any, chains: Mapping[str, Chain]) -> None:
    """Check that a retirement names records of budgets under it."""
    if not isinstance(below, Mapping):
        chain.add_problem(seq, f"below must map budgets to numbers, got {below!r:.60}")
        return
    for name, last in below.items():
        other = chains.get(name)
        if type(last) is not int or last < 0:
            chain.add_problem(
                seq, f"below must map budgets to numbers, got {last!r:.60} for {name!r}"
            )
        elif other is None:
            chain.add_problem(seq, f"the budget {name!r} under it is not here")
        elif any(record.type == "recover" for record in other.records):
            continue  # its records were lost, as it says itself
        elif all(above is not chain for above in _ancestors(other, chains)):
            chain.add_problem(seq, f"the budget {name!r} is not under it")
        elif other.at(last) is None:
            chain.add_problem(seq, f"the record {name!r} {last}, written before it, is not here")


def _check_after(chain: Chain, ancestor: str, last: Any) -> None:
    """Check that a chain asks for nothing, and begins no window, after its ancestor was retired."""
    if last is None:
        chain.add_problem(0, f"created under {ancestor!r}, which was retired")
    elif type(last) is int:
        for record in chain.records:
            if record.seq > last and record.type in (*REQUEST_TYPES, "refresh", "table"):
                chain.add_problem(
                    record.seq, f"a {record.type} after {ancestor!r} above it was retired"
                )
