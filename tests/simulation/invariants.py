"""What must be true in every world: the promises of the ledger, read from its disks."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from residua.records import NOTHING_BEFORE, Record, digest

CAPACITY = {"a": Fraction(1), "b": Fraction(1, 2), "q": Fraction(2, 5)}
"""What there is of each budget; `q` is a quota of `a`."""


class Books:
    """A store as its image has it, read without the ledger."""

    def __init__(self, image: bytes):
        self.connection = sqlite3.connect(":memory:")
        self.connection.deserialize(image)
        rows = self.connection.execute(
            "SELECT b.name, r.seq, r.hash, r.text FROM residua_records r"
            " JOIN residua_budgets b ON b.id = r.budget_id ORDER BY b.name, r.seq"
        )
        self.chains: dict[str, list[Record]] = {}
        self.hashes: dict[str, list[str]] = {}
        for name, _, hash, text in rows:
            self.chains.setdefault(name, []).append(Record(text))
            self.hashes.setdefault(name, []).append(hash)

    def has_key(self, key: str) -> bool:
        found = self.connection.execute("SELECT 1 FROM residua_keys WHERE key = ?", (key,))
        return found.fetchone() is not None

    def has(self, places: Mapping[str, tuple[int, str]]) -> bool:
        """Whether these records are there."""
        return all(
            len(self.hashes.get(name, ())) > seq and self.hashes[name][seq] == hash
            for name, (seq, hash) in places.items()
        )

    def check(self) -> None:
        """Chains, groups, keys, rows, and that no more was spent or held than there is."""
        seen: set[tuple[str, str, str]] = set()
        for name, chain in self.chains.items():
            prev, time = NOTHING_BEFORE, ""
            for seq, record in enumerate(chain):
                body = record.body
                assert (body["seq"], body["prev"]) == (seq, prev), (name, seq)
                assert digest(record.text) == self.hashes[name][seq], (name, seq)
                assert body["time"] >= time, "times never run backwards"
                prev, time = self.hashes[name][seq], body["time"]
                for member in body.get("group", ()):
                    other = self.chains[member["budget"]][member["seq"]]
                    assert other.body["group"] == body["group"], "all budgets of a group or none"
                if body.get("key") is not None:
                    asked = (name, body["by"], body["key"])
                    assert asked not in seen, "a key is decided once"
                    seen.add(asked)
            self._check_amounts(name, chain)
        self._check_rows()

    def _check_amounts(self, name: str, chain: list[Record]) -> None:
        spent, held = Fraction(0), dict[str, tuple[Fraction, str]]()
        for record in chain:
            body, kind = record.body, record.type
            if kind in ("commit", "cancel", "expire"):
                open_ = body["hold"] in held or body.get("admitted") is False
                assert open_, "a hold ends once, and in every budget"
            if kind in ("cancel", "expire"):
                held.pop(body["hold"])
            if body.get("admitted") is not True:
                continue
            cost = Fraction(str(body["mechanism"]["eps"]))
            if kind == "hold":
                held[body["hold"]] = (cost, body["expires"])
            else:
                if kind == "commit":
                    _, expires = held.pop(body["hold"])
                    assert body["time"] < expires, "a hold is committed before its time is over"
                spent += cost
                left = Fraction(body["after"]["left"][0])
                assert left == CAPACITY[name] - spent, "nothing comes back, nothing is lost"
            assert spent + sum(cost for cost, _ in held.values()) <= CAPACITY[name], name
        self._held = {**getattr(self, "_held", {}), name: set(held)}

    def _check_rows(self) -> None:
        """What the rows say follows from the records."""
        for name, seq, hash, holds in self.connection.execute(
            "SELECT name, head_seq, head_hash, holds FROM residua_budgets"
        ):
            assert (seq, hash) == (len(self.chains[name]) - 1, self.hashes[name][-1])
            assert set(json.loads(holds)) == self._held[name]
        open_ = self.connection.execute("SELECT id FROM residua_holds WHERE status = 'open'")
        assert {id for (id,) in open_} == set().union(*self._held.values())
        asked = {
            (record.body["by"], record.body["key"])
            for chain in self.chains.values()
            for record in chain
            if record.body.get("key") is not None
        }
        keys = self.connection.execute("SELECT principal, key FROM residua_keys").fetchall()
        assert sorted(keys) == sorted(asked)


def mark_covers(marks: Any, places: Mapping[str, tuple[int, str]]) -> bool:
    """Whether an anchor knows of records."""
    return marks is not None and all(
        name in marks.marks and marks.marks[name][0] >= seq for name, (seq, _) in places.items()
    )
