"""How much of each workload every filter admits: `python -m benchmarks.utility`.

The workloads are those the product ships (`residuum.planning.suite`), at three budgets.
"""
