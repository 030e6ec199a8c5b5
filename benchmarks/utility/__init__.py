"""How much of each workload every filter admits: `python -m benchmarks.utility`.

The workloads are those the product ships (`residua.planning.suite`), at three budgets.
"""
