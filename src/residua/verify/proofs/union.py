"""Unions: every component by the proofs of its filter, and the rule of unions on top.

If the analysts of component `j` are within `(eps, delta_j)`, those of the union are within
`(eps, Σ delta_j)`: on every transcript some component is live to the end, and the whole loss is its
loss. That needs no more than this. A component that is live after a step was live before it, and
its own rule allows the step; a component that is stopped stays so; one at least is live. To stop a
component is always sound.

What a component is called here is its place; its tables are named `"<place>.<name>"`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from residua.verify.descriptions.states import State
from residua.verify.proofs.verdict import Proof, all_of, proven, refuted

Tables = Mapping[str, bytes]
FirstProof = Callable[[Any, Any, Tables], Proof]
StepProof = Callable[[int, Any, Any, Any], Proof]


def first(config: Mapping[str, Any], state: State, tables: Tables, prove: FirstProof) -> Proof:
    """Whether every component begins as its own filter does; none is stopped yet."""
    proofs = []
    for place, (component, part) in enumerate(_pairs(config, state)):
        if part is None:
            return refuted(f"component {place} is stopped at the start")
        proofs.append(_named(place, prove(component, part, tables_at(place, tables))))
    return all_of(proofs)


def step(config: Mapping[str, Any], before: State, after: State, prove: StepProof) -> Proof:
    """Whether the live components are some of those before, each moved by a proven step."""
    proofs, stopped = [], []
    pairs = zip(_pairs(config, before), after["parts"], strict=True)
    for place, ((component, one), two) in enumerate(pairs):
        if two is None:
            stopped += [str(place)] if one is not None else []
        elif one is None:
            return refuted(f"component {place} comes back after it was stopped")
        else:
            proofs.append(_named(place, prove(place, component, one, two)))
    if not proofs:
        return refuted("no component of the union is live")
    ended = [proven(f"stops {', '.join(stopped)}")] if stopped else []
    return all_of([*proofs, *ended])


def tables_at(place: int, tables: Tables) -> Tables:
    """The tables of one component, by the names that its own filter has for them."""
    mark = f"{place}."
    return {
        name.removeprefix(mark): table for name, table in tables.items() if name.startswith(mark)
    }


def _pairs(config: Mapping[str, Any], state: State) -> list[tuple[Any, Any]]:
    return list(zip(config["filters"], state["parts"], strict=True))


def _named(place: int, proof: Proof) -> Proof:
    return Proof(proof.verdict, f"component {place}: {proof.reason}")
