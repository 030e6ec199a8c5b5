"""Adversaries: what a rule really costs against an analyst who looks before asking.

Read it in this order:

    rule                          what an analyst may ask next
    natural_rule, update_rule,
    plan_rule, filter_rule        sound and doubtful rules
    any_order_renyi,
    optimal_conversion,
    several_budgets, replay_rule  rules that are not sound, for demonstration
    finite, coarsen               queries as rational atoms, on a stated side
    worst_case                    the exact value of a rule
    strategy, simulate            the adversary that attains it, on paper and for real
    freeness, amplification       when the natural filter is free, and why it is not
    natural_cost, natural_filter,
    buckets, natural_guarantee    the natural filter, told truthfully
    discretise, additive_profile  profiles of losses, and the filter that adds them up
    attack, suite                 every filter must survive, every unsound rule must fall
"""
