"""Adversaries: what a rule really costs against an analyst who looks before asking.

Read it in this order:

    rule                          what an analyst may ask next
    natural_rule, update_rule,
    plan_rule, filter_rule        sound and doubtful rules
    any_order_renyi,
    optimal_conversion,
    several_budgets, shared_delta,
    revived_union, replay_rule    rules that are not sound, for demonstration
    finite, coarsen               queries as rational atoms, on a stated side
    worst_case                    the exact value of a rule
    strategy, simulate            the adversary that attains it, on paper and for real
    freeness, amplification       when the natural filter is free, and why it is not
    natural_cost, natural_filter,
    buckets, natural_guarantee    the natural filter, told truthfully
    discretise, additive_profile  profiles of losses, and the filter that adds them up
    attack, suite                 every filter must survive, every unsound rule must fall

What is used most is at the top level (`rz.worst_case`). These are the parts of the proofs:

    rz.adversary.natural_update(catalogue, rounds)    the update of the free natural filter
    rz.adversary.tail_mass, generalised_response      sizes of losses, and the PLD of a profile
    rz.adversary.largest_total, overflow              how much of a size passes, how often it occurs
    rz.adversary.view, post_processed, failure_bound  the additive filter from randomized responses
"""

from residua.adversary.natural.buckets import largest_total, overflow
from residua.adversary.natural.discretise import generalised_response, tail_mass
from residua.adversary.natural.guarantee import Plan
from residua.adversary.natural.post_processing import View, failure_bound, post_processed, view
from residua.adversary.update_rule import natural_update

__all__ = [
    "Plan",
    "View",
    "failure_bound",
    "generalised_response",
    "largest_total",
    "natural_update",
    "overflow",
    "post_processed",
    "tail_mass",
    "view",
]
