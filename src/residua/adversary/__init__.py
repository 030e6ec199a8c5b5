"""Adversaries: what a rule really costs against an analyst who looks before asking.

Read it in this order:

    rule                     what an analyst may ask next: histories, plans, filters, updates
    finite                   queries as rational atoms, on a stated side
    worst_case               the exact value of a rule
    strategy                 the adversary that attains it, on paper and simulated
    attack                   a rule against its promise; every filter must survive the suite
    freeness                 when the natural filter is free, and why it is not
    natural_guarantee        what the natural filter really guarantees
    strongest                its strongest known adversary
    natural_filter           that filter, and the one that adds up losses of each size
    discretise, buckets      sizes of losses, and what they guarantee
    unsound                  rules that look safe and are not, for demonstration

What is used most is at the top level (`rz.worst_case`). These are the parts of the proofs:

    rz.adversary.natural_update(catalogue, rounds)    the update of the free natural filter
    rz.adversary.tail_mass, generalised_response      sizes of losses, and the PLD of a profile
    rz.adversary.guarantee_curve(budget, deltas)      what natural filters of any budget guarantee
    rz.adversary.natural_attack(budget, rounds)       the strongest known attack, proven
    rz.adversary.largest_total, overflow              how much of a size passes, how often it occurs
"""

from residua.adversary.buckets import Plan
from residua.adversary.discretise import (
    generalised_response,
    largest_total,
    overflow,
    tail_mass,
)
from residua.adversary.natural_guarantee import guarantee_curve
from residua.adversary.rule import natural_update
from residua.adversary.strongest import natural_attack

__all__ = [
    "Plan",
    "generalised_response",
    "guarantee_curve",
    "largest_total",
    "natural_attack",
    "natural_update",
    "overflow",
    "tail_mass",
]
