"""The structure of chains: what must hold of the records before any mathematics.

Each chain: every text is a record in canonical form, hashes link, numbers count up, time does not
run backwards; each `before` is the committed state that the records so far leave; refusals, holds,
cancels and expiries move nothing; nothing follows a retirement; windows count up, and none
begins before the last one is over or while something is held; a bound without a declared relation
is recorded with `assumed: true`. Names, times and flags are what a ledger accepts as such.

Across chains: the records of one request name the same group, in which each is where the others
say (`groups.py`); a hold is of one request, and what ends it names all its budgets (`holds.py`);
the ancestors of a quota are in it and the whole of a partition is not, all the way up; no two
partitions of a budget have one label; a key belongs to one request of its principal; nothing is
asked of a budget, or created or renewed under it, after one above it was retired (`retirement.py`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from residua.errors import BrokenRecord
from residua.records import LONGEST_HOLD, Record, canonical, follows, read, state_after
from residua.verify.chains.chain import ASKING, Chain, parent_of
from residua.verify.chains.groups import check_group, members_of, together
from residua.verify.chains.holds import check_ends
from residua.verify.chains.retirement import check_retired
from residua.verify.chains.windows import early, is_time, later, no_window
from residua.verify.descriptions.fields import RELATIONS, is_label, undeclared
from residua.verify.descriptions.mechanisms import units_of
from residua.verify.proofs.partitions import Part

_LONGEST_REASON = 2000
_GROUPED = (*ASKING, "cancel", "expire")


def load(name: str, items: Iterable[Record | str | bytes]) -> Chain:
    """Read a chain and check its links. Bytes are what a store has in place of a text."""
    chain = Chain(name)
    before: Record | None = None
    for place, item in enumerate(items):
        try:
            if isinstance(item, bytes):
                raise BrokenRecord(f"record is not text: {_odd(item)}")
            record = read(item.text if isinstance(item, Record) else item)
        except BrokenRecord as error:
            chain.wrong(place, f"{error}")
            chain.whole, before = False, None
            continue
        if record.budget != name:
            chain.wrong(place, f"the record belongs to the budget {record.budget!r}")
        broken = follows(before, record) if before is not None or place == 0 else None
        if broken is not None:
            if before is not None and record.prev != before.hash and record.seq == before.seq + 1:
                broken = f"record {before.seq} or {record.seq} was changed: {broken}"
            chain.wrong(record.seq, broken)
            chain.whole = False
        if not is_time(record.body["time"]):
            chain.wrong(
                record.seq,
                f"time must be YYYY-MM-DDThh:mm:ss.mmmZ, got {record.body['time']!r:.60}",
            )
        if not _is_name(record.body["by"]):
            chain.wrong(
                record.seq, f"by must be one line of printable text, got {record.body['by']!r:.60}"
            )
        chain.records.append(record)
        before = record
    if not chain.records:
        chain.wrong(None, "the chain has no records")
    return chain


def _odd(stored: bytes) -> str:
    """The difference between stored bytes and the text of a record."""
    at = next((place for place, byte in enumerate(stored) if byte > 0x7F), None)
    return "it is stored as bytes" if at is None else f"byte {at} of it is {stored[at]:#x}"


def check_states(chain: Chain) -> None:
    """States, holds, retirement and windows along one chain."""
    state: Any = None
    held: dict[str, Record] = {}
    retired, generation, began = False, 0, chain.first.get("time")
    following = 0
    for record in chain.records:
        body, kind = record.body, record.type
        if record.seq != following:
            # A record is missing, which was reported; the state after it is unknown.
            state = None
        following = record.seq + 1
        wrong = _Wrong(chain, record.seq)
        if "before" in body and state is not None and body["before"] != state:
            wrong("the state before is not what the records so far leave")
        if kind in ASKING:
            _check_asked(body, kind, wrong)
        elif body.get("before") != body.get("after"):
            wrong(f"a {kind} moves the committed state")
        if retired:
            wrong(f"the budget was retired before this {kind}")
        if "reason" in body and not _is_reason(body["reason"], kind):
            wrong(f"reason must be a text, got {body['reason']!r:.60}")
        id = canonical(body.get("hold"))
        if "hold" in body and type(body["hold"]) is not str:
            wrong(f"hold must be a text, got {body['hold']!r:.60}")
        if kind == "hold" and not (
            is_time(body["expires"]) and is_time(body["time"]) and body["expires"] >= body["time"]
        ):
            wrong(f"a hold ends at {body['expires']!r:.60}")
        if kind == "hold" and body["admitted"]:
            if id in held:
                wrong(f"the hold {body['hold']!r} is made twice")
            held[id] = record
        if kind in ("commit", "cancel", "expire"):
            made = held.get(id)
            if made is None:
                wrong(f"a {kind} of the hold {body['hold']!r}, which is not open")
            elif kind == "commit" and made.body["mechanism"] != body["mechanism"]:
                wrong("the commit is of another mechanism than its hold")
            elif kind == "commit" and made.body["assumed"] != body["assumed"]:
                wrong("the commit does not assume the relation as its hold does")
            elif kind == "commit" and body["admitted"] and _late(made, body["time"]):
                wrong(f"a commit of the hold {body['hold']!r}, whose time was over")
            if body.get("admitted", True):
                held.pop(id, None)
        if held and kind in ("refresh", "retire", "recover"):
            wrong(f"a {kind} while {len(held)} reservations are open")
        if kind == "refresh":
            generation += 1
            window = chain.first.get("window")
            if window is None:
                wrong("a new window of a budget that has none")
            elif not no_window(window):
                soon = early(chain.first["time"], window, began, body["time"])
                if soon is not None:
                    wrong(soon)
            if type(body["generation"]) is not int or body["generation"] != generation:
                wrong(f"generation must be {generation}, got {body['generation']}")
        if kind == "create":
            _check_created(body, wrong)
        if kind in ("create", "refresh"):
            began = body["time"]
        if kind in ("retire", "recover"):
            retired = True
        state = state_after(record)


def _is_name(value: Any) -> bool:
    """Whether this is a name after NFC normalisation."""
    return isinstance(value, str) and is_label(unicodedata.normalize("NFC", value))


def _is_reason(value: Any, kind: str) -> bool:
    """Whether this is a text; a retirement or cancellation needs a non-empty one."""
    if not isinstance(value, str):
        return False
    return kind not in ("retire", "cancel") or (
        bool(value.strip()) and len(value) <= _LONGEST_REASON
    )


def _check_created(body: Mapping[str, Any], wrong: Callable[[str], None]) -> None:
    if body["relation"] not in RELATIONS:
        wrong(f"relation must be a known relation, got {body['relation']!r:.60}")
    if body["window"] is not None and no_window(body["window"]):
        wrong(f"a window of {body['window']!r:.60} seconds")
    for name in ("budget", "unit"):
        if not is_label(body[name]):
            wrong(f"{name} must be one line of printable text, got {body[name]!r:.60}")
    for name in ("data", "parent", "partition"):
        if body[name] is not None and not is_label(body[name]):
            wrong(f"{name} must be one line of printable text, got {body[name]!r:.60}")
    if type(body["library"]) is not str:
        wrong(f"library must be a text, got {body['library']!r:.60}")
    if type(body["shares_data"]) is not bool:
        wrong(f"shares_data must be true or false, got {body['shares_data']!r:.60}")


def _late(hold: Record, time: str) -> bool:
    """Whether a hold's time was over; times are written so that they sort as texts."""
    expires = hold.body["expires"]
    return not isinstance(expires, str) or time >= expires


@dataclass(frozen=True)
class _Wrong:
    chain: Chain
    seq: int

    def __call__(self, what: str) -> None:
        self.chain.wrong(self.seq, what)


def _check_asked(body: Mapping[str, Any], kind: str, wrong: Callable[[str], None]) -> None:
    if type(body["admitted"]) is not bool:
        wrong("the decision is neither yes nor no")
    if type(body["assumed"]) is not bool:
        wrong(f"assumed must be true or false, got {body['assumed']!r:.60}")
    bound = None if body["assumed"] is True else undeclared(body["mechanism"])
    if bound is not None:
        wrong(f"{bound} is known by a bound alone: no relation is declared, and none was assumed")
    if not _is_name(body["key"]):
        wrong(f"key must be one line of printable text, got {body['key']!r:.60}")
    if type(body["request"]) is not str:
        wrong(f"request must be a text, got {body['request']!r:.60}")
    named = {name for name, _ in members_of(body["group"])}
    if body["binding"] is not None and body["binding"] not in sorted(named):
        wrong(f"binding must be a budget of the group, got {body['binding']!r:.60}")
    if body["admitted"] and body["binding"] is not None:
        wrong("admitted, and yet a budget refused")
    if not body["admitted"] and body["binding"] is None:
        wrong("refused, and yet no budget did")
    if body["before"] == body["after"] and body["tables"] != {}:
        wrong("tables are named, and the committed state does not move")
    if body["before"] != body["after"] and (not body["admitted"] or kind == "hold"):
        wrong(f"a {'refusal' if not body['admitted'] else 'hold'} moves the committed state")


# -- across chains ------------------------------------------------------------------------------


def check_across(chains: Mapping[str, Chain]) -> None:
    """Groups, ancestors and keys."""
    keys: dict[tuple[str, str], tuple[Any, ...]] = {}
    ledgers = {chain.records[0].body["ledger"] for chain in chains.values() if chain.records}
    partitioned = {above.name for above, _ in _parts(chains)}
    _check_labels(chains)
    _check_children(chains)
    _check_roots(chains)
    check_retired(chains)
    check_ends(chains)
    for chain in chains.values():
        if len(ledgers) > 1:
            chain.wrong(0, f"the chains are of {len(ledgers)} different ledgers")
        _check_parent(chain, chains)
        for record in chain.records:
            if record.type not in _GROUPED:
                continue
            wrong = _Wrong(chain, record.seq)
            members = check_group(record, chains, wrong)
            body = record.body
            if record.type == "hold" and is_time(body["expires"]):
                made = max(each.body["time"] for each in together(record, chains))
                if is_time(made) and body["expires"] > later(made, LONGEST_HOLD):
                    wrong(f"a hold from {made} to {body['expires']}, longer than any may be")
            if record.type in ASKING:
                _check_line(chain, chains, members, wrong)
                if chain.name in partitioned and body["admitted"]:
                    wrong("a budget that is divided into partitions is charged itself")
                place = (body["request"], record.type, members_of(body["group"]))
                if keys.setdefault((body["by"], canonical(body["key"])), place) != place:
                    wrong(f"the key {body['key']!r} of {body['by']!r} was used for another request")
                if body["relation"] != chain.first.get("relation"):
                    wrong(f"asked under {body['relation']!r}, not under the budget's relation")
                for unit in units_of(body["mechanism"]) if body["admitted"] else ():
                    if unit != chain.first.get("unit"):
                        wrong(f"{unit!r} is declared, which is not the budget's unit")


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


def _check_labels(chains: Mapping[str, Chain]) -> None:
    seen: dict[tuple[str, str], str] = {}
    for above, chain in _parts(chains):
        label = canonical(chain.first["partition"])
        other = seen.setdefault((above.name, label), chain.name)
        if other != chain.name:
            chain.wrong(0, f"the same partition of {above.name!r} as {other!r}")


def _check_children(chains: Mapping[str, Chain]) -> None:
    """Check that the children of a budget are all quotas or all partitions."""
    kinds: dict[str, bool] = {}
    for chain in chains.values():
        above = parent_of(chain, chains)
        if above is not None:
            divides = chain.first.get("partition") is not None
            if kinds.setdefault(above.name, divides) != divides:
                chain.wrong(0, f"quotas and partitions under one budget, {above.name!r}")


def _check_roots(chains: Mapping[str, Chain]) -> None:
    """Caps on the same data add up, and all but the first must say that this is meant."""
    seen: dict[str, str] = {}
    for chain in chains.values():
        first = chain.first
        if first.get("parent") is not None or first.get("data") is None:
            continue
        if first["shares_data"] is not True:
            other = seen.setdefault(canonical(first["data"]), chain.name)
            if other != chain.name:
                chain.wrong(0, f"a cap on the data of {other!r} that does not say so")


def _check_parent(chain: Chain, chains: Mapping[str, Chain]) -> None:
    parent = chain.first.get("parent")
    if parent is None:
        if chain.first.get("partition") is not None:
            chain.wrong(0, "a partition of no budget")
        return
    above = parent_of(chain, chains)
    if above is None or not above.records:
        chain.wrong(0, f"the parent {parent!r} is not here")
        return
    if not above.first:
        chain.wrong(0, f"the chain of the parent {parent!r} does not begin with create")
        return
    for name in ("data", "unit", "relation"):
        if above.first[name] != chain.first[name]:
            chain.wrong(0, f"{name} is not that of the parent {parent!r}")
    own, window = chain.first["window"], above.first["window"]
    if chain.first["partition"] is not None and own is not None and own != window:
        chain.wrong(0, f"the window of a partition differs from that of the parent {parent!r}")
    _check_ancestors(chain, chains)


def _check_ancestors(chain: Chain, chains: Mapping[str, Chain]) -> None:
    above, seen = parent_of(chain, chains), {chain.name}
    while above is not None:
        if above.name in seen:
            chain.wrong(0, f"the budget {above.name!r} is its own ancestor")
            return
        seen.add(above.name)
        above = parent_of(above, chains)


def _check_line(
    chain: Chain, chains: Mapping[str, Chain], members: set[str], wrong: Callable[[str], None]
) -> None:
    """A quota charges what is above it; a partition does not charge the whole it is a part of."""
    below, seen = chain, {chain.name}
    while isinstance(below.first.get("parent"), str):
        parent = below.first["parent"]
        word = "parent" if below is chain else "ancestor"
        whole = below.first.get("partition") is not None
        if not whole and parent not in members:
            wrong(f"the {word} {parent!r} is not charged")
        if whole and parent in members:
            wrong(f"the {word} {parent!r} of a partition is charged")
        above = parent_of(below, chains)
        if above is None:
            return
        if above.name in seen:
            wrong(f"the budget {above.name!r} is its own ancestor")
            return
        seen.add(above.name)
        below = above
