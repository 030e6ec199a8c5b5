"""Planning: how many more fit, with how little noise, and which filter admits most.

rz.how_many(filter, rz.laplace(scale=10.0))
rz.least_noise(filter, rz.gaussian(sigma=1.0), n=52)
rz.compare_filters(1.0, 1e-6, rz.laplace(scale=10.0)).table()
"""

from residuum.planning.how_many import how_many
from residuum.planning.least_noise import least_noise
from residuum.planning.workload import Workload
from residuum.planning.yardstick import Yardstick, compare_filters

__all__ = ["Workload", "Yardstick", "compare_filters", "how_many", "least_noise"]
