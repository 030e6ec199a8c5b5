"""Chains of records made by running filters directly: what a ledger would write, without one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import residua as rz
from residua.filters.potential.renyi_commit import Commit
from residua.ledger.domain.described_query import describe_query
from residua.mechanisms.mechanism import Mechanism
from residua.records import NOTHING_BEFORE, Record, canonical, digest, record

_START = datetime(2026, 1, 1)


def plain(filter: rz.Filter, state: Any) -> Any:
    """A state as a record holds it."""
    return json.loads(filter.state_to_json(state))


def described(query: Any) -> Any:
    """A query as a record holds it."""
    if isinstance(query, Commit):
        to = query.to
        if isinstance(to, rz.Filter):
            return {"kind": "commit", "to": to.to_dict()}
        return {"kind": "commit", "to": [rz.filters.query.as_mechanism(to).to_dict()]}
    assert isinstance(query, Mechanism)
    return query.to_dict()


@dataclass
class Written:
    """One budget's chain as it grows, and the tables it names."""

    filter: rz.Filter
    name: str = "b"
    relation: str = "add-remove"
    parent: str | None = None
    partition: str | None = None
    window: float | None = None
    records: list[Record] = field(default_factory=list)
    tables: dict[str, bytes] = field(default_factory=dict)
    clock: int = 0
    """Seconds since the beginning; each record takes one."""
    held: dict[str, Any] = field(default_factory=dict)
    """The queries of the open holds."""

    def __post_init__(self) -> None:
        self.state = self.filter.initial()
        fields = {
            "filter": json.loads(self.filter.to_json()),
            "library": "test",
            "relation": self.relation,
            "unit": "person",
            "data": None,
            "parent": self.parent,
            "partition": self.partition,
            "window": self.window,
            "shares_data": False,
            "tables": self.named(self.state),
            "state": plain(self.filter, self.state),
        }
        self.append("create", fields)

    def named(self, state: Any) -> dict[str, str]:
        found = self.filter.tables(state)
        self.tables |= {digest(content): content for content in found.values()}
        return {name: digest(content) for name, content in found.items()}

    @property
    def place(self) -> dict[str, Any]:
        prev = self.records[-1].hash if self.records else NOTHING_BEFORE
        return {"budget": self.name, "seq": len(self.records), "prev": prev}

    def append(self, type: str, fields: dict[str, Any], by: str = "me") -> Record:
        self.clock += 1
        place = self.place
        common = {
            "v": 1,
            "ledger": "l",
            "budget": self.name,
            "seq": place["seq"],
            "prev": place["prev"],
            "time": (_START + timedelta(seconds=self.clock)).strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            "by": by,
        }
        made = record(type, common, fields)
        self.records.append(made)
        return made

    def holds(self, after: Any) -> list[dict[str, Any]]:
        """What a record says of the open holds; one that does not fit moves nothing."""
        common, tables, found, state = plain(self.filter, after), self.named(after), [], after
        for query in self.held.values():
            decision = self.filter.decide(state, query, relation=self.relation)
            state = decision.state if decision.admitted else state
            shown = plain(self.filter, state)
            own = {name: value for name, value in shown.items() if value != common[name]}
            others = self.named(state)
            found.append(own if others == tables else {**own, "tables": others})
        return found

    def asking(self, query: Any, key: str, group: Sequence[Any], admitted: bool) -> dict[str, Any]:
        mechanism = described(query)
        return {
            "key": key,
            "request": digest(canonical([mechanism, [m["budget"] for m in group]])),
            "mechanism": mechanism,
            "relation": self.relation,
            "assumed": describe_query(query).undeclared is not None,
            "group": list(group),
            "admitted": admitted,
            "binding": None if admitted else self.name,
            "reason": "",
        }

    def spend(self, query: Any, key: str | None = None) -> bool:
        """Decide, record, and move on if admitted."""
        decision = self.filter.decide(self.state, query, relation=self.relation)
        spend_together([self], query, key or f"{self.name}-{len(self.records)}", decision.admitted)
        return decision.admitted

    def texts(self) -> list[str]:
        return [each.text for each in self.records]


def spend_together(members: list[Written], query: Any, key: str, admitted: bool = True) -> None:
    """One spend on several budgets, recorded on all."""
    group = [member.place for member in sorted(members, key=lambda m: m.name)]
    for member in members:
        before = member.state
        decision = member.filter.decide(before, query, relation=member.relation)
        after = decision.state if admitted else before
        fields = member.asking(query, key, group, admitted)
        fields["before"] = plain(member.filter, before)
        fields["after"] = plain(member.filter, after)
        moved = fields["before"] != fields["after"]
        fields["tables"] = member.named(after) if moved else {}
        fields["holds"] = member.holds(after) if admitted else []
        member.append("spend", fields)
        member.state = after


def written_by(filter: rz.Filter, queries: Sequence[Any], **options: Any) -> Written:
    """A chain of spends."""
    chain = Written(filter, **options)
    for query in queries:
        chain.spend(query)
    return chain


def rehashed(chain: Written, changed: dict[int, dict[str, Any]]) -> list[str]:
    """The chain with some fields changed and all hashes made good again."""
    texts: list[str] = []
    for each in chain.records:
        body = json.loads(each.text)
        body |= changed.get(each.seq, {})
        if texts:
            body["prev"] = digest(texts[-1])
        if body.get("group"):
            body["group"] = [{**g, "prev": body["prev"]} for g in body["group"]]
        texts.append(canonical(body))
    return texts


def is_released(chain: Written, hold: str, how: str = "cancel") -> None:
    chain.held.pop(hold, None)
    state = plain(chain.filter, chain.state)
    fields = {
        "hold": hold,
        "reason": "late",
        "group": [chain.place],
        "before": state,
        "after": state,
    }
    chain.append(how, fields)
