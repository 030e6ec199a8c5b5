"""How much of random workloads every filter admits: `python -m benchmarks.utility`.

The workloads are drawn as `residua compare` draws them (`residua.planning.suite`), at three
budgets; peers that have a filter are in the same table.
"""
