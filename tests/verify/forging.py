"""Ledgers whose records were changed, with numbers and hashes made good again."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

import residua as rz
from residua.records import NOTHING_BEFORE, canonical, digest

Bodies = dict[str, list[dict[str, Any]]]


def bodies_of(ledger: rz.Ledger) -> Bodies:
    """All records as plain data, by budget."""
    return {
        budget.name: [json.loads(record.text) for record in ledger.history(budget.name)]
        for budget in ledger.budgets()
    }


def of_type(bodies: Bodies, budget: str, type: str) -> dict[str, Any]:
    """The last record of a type in a chain."""
    return [body for body in bodies[budget] if body["type"] == type][-1]


def only(body: dict[str, Any], *names: str) -> None:
    """Leave only these budgets in the group of a record."""
    body["group"] = [member for member in body["group"] if member["budget"] in names]


def relinked(bodies: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    """The texts of chains, numbered and linked; groups get the `prev` of the records they name.

    A record is written once all records before those of its group are.
    """
    done: dict[str, list[str]] = {name: [] for name in bodies}

    def prev(name: str, seq: int) -> str:
        return digest(done[name][seq - 1]) if seq else NOTHING_BEFORE

    def known(member: Any) -> bool:
        return (
            isinstance(member, dict)
            and isinstance(member.get("budget"), str)
            and member["budget"] in done
            and type(member.get("seq")) in (int, float)
        )

    waiting = True
    while waiting:
        waiting = False
        for name, chain in bodies.items():
            if len(done[name]) == len(chain):
                continue
            body = copy.deepcopy(chain[len(done[name])])
            body |= {"seq": len(done[name]), "prev": prev(name, len(done[name]))}
            group = body.get("group")
            members = [m for m in group if known(m)] if isinstance(group, list) else []
            if any(
                len(done[m["budget"]]) < min(m["seq"], len(bodies[m["budget"]])) for m in members
            ):
                continue
            for member in members:
                if member["seq"] <= len(done[member["budget"]]):
                    member["prev"] = prev(member["budget"], int(member["seq"]))
            done[name].append(canonical(body))
            waiting = True
    assert all(len(done[name]) == len(chain) for name, chain in bodies.items()), "a circle"
    return done


def export_lines(texts: Mapping[str, list[str]]) -> list[str]:
    """The lines of an export of such chains."""
    return [
        canonical({"hash": digest(text), "record": text}) + "\n"
        for chain in texts.values()
        for text in chain
    ]
