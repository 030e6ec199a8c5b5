"""Planning: how many more fit, with how little noise, and which filter admits most.

rz.how_many(filter, rz.laplace(scale=10.0))
rz.least_noise(filter, rz.gaussian(sigma=1.0), n=52)
rz.compare_filters(1.0, 1e-6, rz.laplace(scale=10.0)).table()
rz.recommend(1.0, 1e-6, rz.laplace(scale=10.0), n=52)
rz.planning.frontier(filter)

`Odometer` is not a filter: it reports what was lost and refuses nothing.
"""

from residua.planning.comparison import FilterComparison, SuiteComparison, Summary, compare_filters
from residua.planning.how_many import Frontier, count_more, frontier, how_many, least_noise
from residua.planning.odometer import Odometer, Reading
from residua.planning.recommend import Recommendation, recommend
from residua.planning.suite import draw_suite, draw_workload
from residua.planning.workload import Workload

__all__ = [
    "FilterComparison",
    "Frontier",
    "Odometer",
    "Reading",
    "Recommendation",
    "SuiteComparison",
    "Summary",
    "Workload",
    "compare_filters",
    "draw_suite",
    "draw_workload",
    "frontier",
    "count_more",
    "how_many",
    "least_noise",
    "recommend",
]
