"""A privacy budget that survives an adaptive analyst.

    import residua as rz

    spent = rz.gaussian(sigma=4.0) + 3 * rz.laplace(scale=10.0)
    spent.delta(1.0), spent.delta_bounds(1.0)

Plain calls return the safe side; `*_bounds` return a proven interval.
"""

from residua.lazy_names import lazy_names
from residua.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
