"""A privacy budget that survives an adaptive analyst.

    import residuum as rz

    spent = rz.gaussian(sigma=4.0) + 3 * rz.laplace(scale=10.0)
    spent.delta(1.0), spent.delta_bounds(1.0)

Plain calls return the safe side; `*_bounds` return a proven interval.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Interval": "residuum.bounds",
    "Verdict": "residuum.bounds",
    "ArgumentError": "residuum.errors",
    "ArgumentTypeError": "residuum.errors",
    "ResiduumError": "residuum.errors",
    "approximate_dp": "residuum.pld.constructors",
    "bounded_range": "residuum.pld.constructors",
    "from_atoms": "residuum.pld.constructors",
    "from_hockey_stick": "residuum.pld.constructors",
    "from_pair": "residuum.pld.constructors",
    "from_tradeoff": "residuum.pld.constructors",
    "gaussian": "residuum.pld.constructors",
    "identity": "residuum.pld.constructors",
    "laplace": "residuum.pld.constructors",
    "mixture_of_gaussians": "residuum.pld.constructors",
    "pure_dp": "residuum.pld.constructors",
    "subsampled_gaussian": "residuum.pld.constructors",
    "compose_tradeoff": "residuum.pld.curves",
    "hockey_stick_from_tradeoff": "residuum.pld.curves",
    "tradeoff_from_hockey_stick": "residuum.pld.curves",
    "gdp_parameter": "residuum.pld.gdp_parameter",
    "gdp_residue": "residuum.pld.gdp_residue",
    "gdp_residue_cost": "residuum.pld.gdp_residue",
    "kernel": "residuum.pld.kernel",
    "infimum": "residuum.pld.lattice",
    "supremum": "residuum.pld.lattice",
    "Comparison": "residuum.pld.order",
    "Order": "residuum.pld.order",
    "Witness": "residuum.pld.domination",
    "compare": "residuum.pld.order",
    "Pld": "residuum.pld.value",
}

_PACKAGES = ("mechanisms",)

__all__ = [
    "__version__",
    "ArgumentError",
    "ArgumentTypeError",
    "Comparison",
    "Interval",
    "Order",
    "Pld",
    "ResiduumError",
    "Verdict",
    "Witness",
    "approximate_dp",
    "bounded_range",
    "compare",
    "compose_tradeoff",
    "from_atoms",
    "from_hockey_stick",
    "from_pair",
    "from_tradeoff",
    "gaussian",
    "gdp_parameter",
    "gdp_residue",
    "gdp_residue_cost",
    "hockey_stick_from_tradeoff",
    "identity",
    "infimum",
    "kernel",
    "laplace",
    "mechanisms",
    "mixture_of_gaussians",
    "pure_dp",
    "subsampled_gaussian",
    "supremum",
    "tradeoff_from_hockey_stick",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"residuum.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'residuum' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from residuum import mechanisms
    from residuum.bounds import (
        Interval,
        Verdict,
    )
    from residuum.errors import (
        ArgumentError,
        ArgumentTypeError,
        ResiduumError,
    )
    from residuum.pld.constructors import (
        approximate_dp,
        bounded_range,
        from_atoms,
        from_hockey_stick,
        from_pair,
        from_tradeoff,
        gaussian,
        identity,
        laplace,
        mixture_of_gaussians,
        pure_dp,
        subsampled_gaussian,
    )
    from residuum.pld.curves import (
        compose_tradeoff,
        hockey_stick_from_tradeoff,
        tradeoff_from_hockey_stick,
    )
    from residuum.pld.domination import Witness
    from residuum.pld.gdp_parameter import (
        gdp_parameter,
    )
    from residuum.pld.gdp_residue import (
        gdp_residue,
        gdp_residue_cost,
    )
    from residuum.pld.kernel import (
        kernel,
    )
    from residuum.pld.lattice import (
        infimum,
        supremum,
    )
    from residuum.pld.order import (
        Comparison,
        Order,
        compare,
    )
    from residuum.pld.value import (
        Pld,
    )
