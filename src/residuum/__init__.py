"""A privacy budget that survives an adaptive analyst.

    import residuum as rz

    spent = rz.gaussian(sigma=4.0) + 3 * rz.laplace(scale=10.0)
    spent.delta(1.0), spent.delta_bounds(1.0)

Plain calls return the safe side; `*_bounds` return a proven interval.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from residuum.version import __version__

_HOME = {
    "amplification": "residuum.adversary.amplification",
    "attack": "residuum.adversary.attack",
    "attack_filter": "residuum.adversary.attack",
    "as_rule": "residuum.adversary.filter_rule",
    "Freeness": "residuum.adversary.freeness",
    "find_violation": "residuum.adversary.freeness",
    "is_universally_free": "residuum.adversary.freeness",
    "NaturalCost": "residuum.adversary.natural.cost",
    "natural_cost": "residuum.adversary.natural.cost",
    "NaturalFilter": "residuum.adversary.natural.filter",
    "NaturalRule": "residuum.adversary.natural.rule",
    "HistoryRule": "residuum.adversary.rule",
    "Rule": "residuum.adversary.rule",
    "simulate": "residuum.adversary.simulate",
    "Strategy": "residuum.adversary.strategy",
    "UpdateRule": "residuum.adversary.update_rule",
    "WorstCase": "residuum.adversary.worst_case",
    "worst_case": "residuum.adversary.worst_case",
    "Interval": "residuum.bounds",
    "Verdict": "residuum.bounds",
    "AccessDenied": "residuum.errors",
    "ArgumentError": "residuum.errors",
    "ArgumentTypeError": "residuum.errors",
    "BudgetError": "residuum.errors",
    "ResiduumError": "residuum.errors",
    "ServiceError": "residuum.errors",
    "AlreadySpent": "residuum.errors",
    "BrokenRecord": "residuum.errors",
    "BudgetExists": "residuum.errors",
    "KeyReused": "residuum.errors",
    "LedgerError": "residuum.errors",
    "MechanismFailed": "residuum.errors",
    "MissingPackage": "residuum.errors",
    "NewerLedger": "residuum.errors",
    "NotALedger": "residuum.errors",
    "OutcomeUnknown": "residuum.errors",
    "ReadOnlyLedger": "residuum.errors",
    "Refused": "residuum.errors",
    "RetiredBudget": "residuum.errors",
    "StateUnavailable": "residuum.errors",
    "StoreUnavailable": "residuum.errors",
    "UnknownBudget": "residuum.errors",
    "UnknownHold": "residuum.errors",
    "UnsafeStore": "residuum.errors",
    "AsyncClient": "residuum.service.client.asynchronous",
    "Client": "residuum.service.client.sync",
    "Ledger": "residuum.ledger.api.ledger",
    "open_ledger": "residuum.ledger.api.opening",
    "Receipt": "residuum.ledger.domain.receipts",
    "Reservation": "residuum.ledger.domain.receipts",
    "TooLargeError": "residuum.errors",
    "UnsupportedError": "residuum.errors",
    "Decision": "residuum.filters.decision",
    "Filter": "residuum.filters.base",
    "ApproximateGdpResidueFilter": "residuum.filters.residue.approximate_gdp_residue",
    "ApproximateZcdpFilter": "residuum.filters.additive.approximate_zcdp",
    "BasicFilter": "residuum.filters.additive.basic",
    "GdpFilter": "residuum.filters.additive.gdp",
    "GdpResidueFilter": "residuum.filters.residue.gdp_residue",
    "AutoFilter": "residuum.filters.potential.auto",
    "MenuFilter": "residuum.filters.potential.menu",
    "PlanFilter": "residuum.filters.potential.plan",
    "PureFilter": "residuum.filters.additive.pure",
    "RenyiCommitFilter": "residuum.filters.potential.renyi_commit",
    "RenyiCurveFilter": "residuum.filters.additive.renyi_curve",
    "RenyiFilter": "residuum.filters.additive.renyi",
    "UpdateFilter": "residuum.filters.residue.update",
    "ZcdpFilter": "residuum.filters.additive.zcdp",
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
    "compose_tradeoff": "residuum.pld.curve.piecewise_linear",
    "hockey_stick_from_tradeoff": "residuum.pld.curve.piecewise_linear",
    "tradeoff_from_hockey_stick": "residuum.pld.curve.piecewise_linear",
    "AdditiveProfileFilter": "residuum.adversary.natural.additive_profile",
    "Discretisation": "residuum.adversary.natural.discretise",
    "discretise": "residuum.adversary.natural.discretise",
    "Guarantee": "residuum.adversary.natural.guarantee",
    "natural_guarantee": "residuum.adversary.natural.guarantee",
    "gdp_parameter": "residuum.pld.residue.gdp_parameter",
    "gdp_residue": "residuum.pld.residue.gdp_residue",
    "gdp_residue_cost": "residuum.pld.residue.gdp_residue",
    "slack_cost": "residuum.pld.residue.slack",
    "kernel": "residuum.pld.lattice.kernel",
    "infimum": "residuum.pld.lattice.supremum",
    "supremum": "residuum.pld.lattice.supremum",
    "Comparison": "residuum.pld.order.compare",
    "Order": "residuum.pld.order.compare",
    "Witness": "residuum.pld.order.domination",
    "compare": "residuum.pld.order.compare",
    "RunningComposition": "residuum.pld.running_composition",
    "Pld": "residuum.pld.pld",
    "zcdp_parameter": "residuum.pld.residue.zcdp_parameter",
    "how_many": "residuum.planning.how_many",
    "least_noise": "residuum.planning.least_noise",
    "Odometer": "residuum.planning.odometer",
    "Recommendation": "residuum.planning.recommend",
    "recommend": "residuum.planning.recommend",
    "Workload": "residuum.planning.workload",
    "Yardstick": "residuum.planning.comparison",
    "compare_filters": "residuum.planning.comparison",
}

_PACKAGES = ("adversary", "figures", "filters", "individual", "interop", "mechanisms", "planning")

__all__ = [
    "__version__",
    "AccessDenied",
    "AdditiveProfileFilter",
    "AlreadySpent",
    "ApproximateGdpResidueFilter",
    "ApproximateZcdpFilter",
    "ArgumentError",
    "ArgumentTypeError",
    "AsyncClient",
    "AutoFilter",
    "BasicFilter",
    "BrokenRecord",
    "BudgetExists",
    "BudgetError",
    "Client",
    "Comparison",
    "Decision",
    "Discretisation",
    "Filter",
    "Freeness",
    "GdpFilter",
    "GdpResidueFilter",
    "Guarantee",
    "HistoryRule",
    "Interval",
    "KeyReused",
    "Ledger",
    "LedgerError",
    "MechanismFailed",
    "MissingPackage",
    "MenuFilter",
    "NaturalCost",
    "NaturalFilter",
    "NaturalRule",
    "NewerLedger",
    "NotALedger",
    "Odometer",
    "Order",
    "OutcomeUnknown",
    "PlanFilter",
    "Pld",
    "PureFilter",
    "ReadOnlyLedger",
    "Receipt",
    "Refused",
    "Recommendation",
    "RenyiCommitFilter",
    "RenyiCurveFilter",
    "RenyiFilter",
    "Reservation",
    "ResiduumError",
    "RetiredBudget",
    "Rule",
    "RunningComposition",
    "ServiceError",
    "StateUnavailable",
    "StoreUnavailable",
    "Strategy",
    "TooLargeError",
    "UnknownBudget",
    "UnknownHold",
    "UnsafeStore",
    "UnsupportedError",
    "UpdateFilter",
    "UpdateRule",
    "Verdict",
    "Witness",
    "Workload",
    "WorstCase",
    "Yardstick",
    "ZcdpFilter",
    "adversary",
    "amplification",
    "approximate_dp",
    "as_rule",
    "attack",
    "attack_filter",
    "bounded_range",
    "compare",
    "compare_filters",
    "compose_tradeoff",
    "discretise",
    "figures",
    "filters",
    "find_violation",
    "from_atoms",
    "from_hockey_stick",
    "from_pair",
    "from_tradeoff",
    "gaussian",
    "gdp_parameter",
    "gdp_residue",
    "gdp_residue_cost",
    "hockey_stick_from_tradeoff",
    "how_many",
    "identity",
    "individual",
    "infimum",
    "interop",
    "is_universally_free",
    "kernel",
    "laplace",
    "least_noise",
    "mechanisms",
    "mixture_of_gaussians",
    "natural_cost",
    "natural_guarantee",
    "open_ledger",
    "planning",
    "pure_dp",
    "recommend",
    "simulate",
    "slack_cost",
    "subsampled_gaussian",
    "supremum",
    "tradeoff_from_hockey_stick",
    "worst_case",
    "zcdp_parameter",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"residuum.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'residuum' has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOME[name]), name)
    except ModuleNotFoundError as error:
        from residuum.errors import MissingPackage

        raise MissingPackage.behind(error, f"residuum.{name}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from residuum import adversary, figures, filters, individual, interop, mechanisms, planning
    from residuum.adversary.amplification import amplification
    from residuum.adversary.attack import attack, attack_filter
    from residuum.adversary.filter_rule import as_rule
    from residuum.adversary.freeness import Freeness, find_violation, is_universally_free
    from residuum.adversary.natural.additive_profile import AdditiveProfileFilter
    from residuum.adversary.natural.cost import NaturalCost, natural_cost
    from residuum.adversary.natural.discretise import Discretisation, discretise
    from residuum.adversary.natural.filter import NaturalFilter
    from residuum.adversary.natural.guarantee import Guarantee, natural_guarantee
    from residuum.adversary.natural.rule import NaturalRule
    from residuum.adversary.rule import HistoryRule, Rule
    from residuum.adversary.simulate import simulate
    from residuum.adversary.strategy import Strategy
    from residuum.adversary.update_rule import UpdateRule
    from residuum.adversary.worst_case import WorstCase, worst_case
    from residuum.bounds import (
        Interval,
        Verdict,
    )
    from residuum.errors import (
        AccessDenied,
        AlreadySpent,
        ArgumentError,
        ArgumentTypeError,
        BrokenRecord,
        BudgetError,
        BudgetExists,
        KeyReused,
        LedgerError,
        MechanismFailed,
        MissingPackage,
        NewerLedger,
        NotALedger,
        OutcomeUnknown,
        ReadOnlyLedger,
        Refused,
        ResiduumError,
        RetiredBudget,
        ServiceError,
        StateUnavailable,
        StoreUnavailable,
        TooLargeError,
        UnknownBudget,
        UnknownHold,
        UnsafeStore,
        UnsupportedError,
    )
    from residuum.filters.additive.approximate_zcdp import ApproximateZcdpFilter
    from residuum.filters.additive.basic import BasicFilter
    from residuum.filters.additive.gdp import GdpFilter
    from residuum.filters.additive.pure import PureFilter
    from residuum.filters.additive.renyi import RenyiFilter
    from residuum.filters.additive.renyi_curve import RenyiCurveFilter
    from residuum.filters.additive.zcdp import ZcdpFilter
    from residuum.filters.base import Filter
    from residuum.filters.decision import Decision
    from residuum.filters.potential.auto import AutoFilter
    from residuum.filters.potential.menu import MenuFilter
    from residuum.filters.potential.plan import PlanFilter
    from residuum.filters.potential.renyi_commit import RenyiCommitFilter
    from residuum.filters.residue.approximate_gdp_residue import ApproximateGdpResidueFilter
    from residuum.filters.residue.gdp_residue import GdpResidueFilter
    from residuum.filters.residue.update import UpdateFilter
    from residuum.ledger.api.ledger import Ledger
    from residuum.ledger.api.opening import open_ledger
    from residuum.ledger.domain.receipts import Receipt, Reservation
    from residuum.planning.comparison import Yardstick, compare_filters
    from residuum.planning.how_many import how_many
    from residuum.planning.least_noise import least_noise
    from residuum.planning.odometer import Odometer
    from residuum.planning.recommend import Recommendation, recommend
    from residuum.planning.workload import Workload
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
    from residuum.pld.curve.piecewise_linear import (
        compose_tradeoff,
        hockey_stick_from_tradeoff,
        tradeoff_from_hockey_stick,
    )
    from residuum.pld.lattice.kernel import kernel
    from residuum.pld.lattice.supremum import infimum, supremum
    from residuum.pld.order.compare import Comparison, Order, compare
    from residuum.pld.order.domination import Witness
    from residuum.pld.pld import Pld
    from residuum.pld.residue.gdp_parameter import gdp_parameter
    from residuum.pld.residue.gdp_residue import gdp_residue, gdp_residue_cost
    from residuum.pld.residue.slack import slack_cost
    from residuum.pld.residue.zcdp_parameter import zcdp_parameter
    from residuum.pld.running_composition import RunningComposition
    from residuum.service.client.asynchronous import AsyncClient
    from residuum.service.client.sync import Client
