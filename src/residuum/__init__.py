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
    "NaturalCost": "residuum.adversary.natural_cost",
    "natural_cost": "residuum.adversary.natural_cost",
    "NaturalFilter": "residuum.adversary.natural_filter",
    "NaturalRule": "residuum.adversary.natural_rule",
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
    "Ledger": "residuum.ledger.ledger",
    "open_ledger": "residuum.ledger.opening",
    "Receipt": "residuum.ledger.receipts",
    "Reservation": "residuum.ledger.receipts",
    "TooLargeError": "residuum.errors",
    "UnsupportedError": "residuum.errors",
    "Decision": "residuum.filters.decision",
    "Filter": "residuum.filters.filter",
    "ApproximateGdpResidueFilter": "residuum.filters.approximate_gdp_residue",
    "ApproximateZcdpFilter": "residuum.filters.approximate_zcdp",
    "BasicFilter": "residuum.filters.basic",
    "GdpFilter": "residuum.filters.gdp",
    "GdpResidueFilter": "residuum.filters.gdp_residue",
    "AutoFilter": "residuum.filters.auto",
    "MenuFilter": "residuum.filters.menu",
    "PlanFilter": "residuum.filters.plan",
    "PureFilter": "residuum.filters.pure",
    "RenyiCommitFilter": "residuum.filters.renyi_commit",
    "RenyiCurveFilter": "residuum.filters.renyi_curve",
    "RenyiFilter": "residuum.filters.renyi",
    "UpdateFilter": "residuum.filters.update",
    "ZcdpFilter": "residuum.filters.zcdp",
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
    "AdditiveProfileFilter": "residuum.adversary.additive_profile",
    "Discretisation": "residuum.adversary.discretise",
    "discretise": "residuum.adversary.discretise",
    "Guarantee": "residuum.adversary.natural_guarantee",
    "natural_guarantee": "residuum.adversary.natural_guarantee",
    "gdp_parameter": "residuum.pld.gdp_parameter",
    "gdp_residue": "residuum.pld.gdp_residue",
    "gdp_residue_cost": "residuum.pld.gdp_residue",
    "slack_cost": "residuum.pld.gdp_slack",
    "kernel": "residuum.pld.kernel",
    "infimum": "residuum.pld.lattice",
    "supremum": "residuum.pld.lattice",
    "Comparison": "residuum.pld.order",
    "Order": "residuum.pld.order",
    "Witness": "residuum.pld.domination",
    "compare": "residuum.pld.order",
    "RunningComposition": "residuum.pld.running",
    "Pld": "residuum.pld.value",
    "zcdp_parameter": "residuum.pld.zcdp_parameter",
    "how_many": "residuum.planning.how_many",
    "least_noise": "residuum.planning.least_noise",
    "Odometer": "residuum.planning.odometer",
    "Recommendation": "residuum.planning.recommend",
    "recommend": "residuum.planning.recommend",
    "Workload": "residuum.planning.workload",
    "Yardstick": "residuum.planning.yardstick",
    "compare_filters": "residuum.planning.yardstick",
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
    from residuum.adversary.additive_profile import AdditiveProfileFilter
    from residuum.adversary.amplification import amplification
    from residuum.adversary.attack import attack, attack_filter
    from residuum.adversary.discretise import Discretisation, discretise
    from residuum.adversary.filter_rule import as_rule
    from residuum.adversary.freeness import Freeness, find_violation, is_universally_free
    from residuum.adversary.natural_cost import NaturalCost, natural_cost
    from residuum.adversary.natural_filter import NaturalFilter
    from residuum.adversary.natural_guarantee import Guarantee, natural_guarantee
    from residuum.adversary.natural_rule import NaturalRule
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
    from residuum.filters.approximate_gdp_residue import ApproximateGdpResidueFilter
    from residuum.filters.approximate_zcdp import ApproximateZcdpFilter
    from residuum.filters.auto import AutoFilter
    from residuum.filters.basic import BasicFilter
    from residuum.filters.decision import Decision
    from residuum.filters.filter import Filter
    from residuum.filters.gdp import GdpFilter
    from residuum.filters.gdp_residue import GdpResidueFilter
    from residuum.filters.menu import MenuFilter
    from residuum.filters.plan import PlanFilter
    from residuum.filters.pure import PureFilter
    from residuum.filters.renyi import RenyiFilter
    from residuum.filters.renyi_commit import RenyiCommitFilter
    from residuum.filters.renyi_curve import RenyiCurveFilter
    from residuum.filters.update import UpdateFilter
    from residuum.filters.zcdp import ZcdpFilter
    from residuum.ledger.ledger import Ledger
    from residuum.ledger.opening import open_ledger
    from residuum.ledger.receipts import Receipt, Reservation
    from residuum.planning.how_many import how_many
    from residuum.planning.least_noise import least_noise
    from residuum.planning.odometer import Odometer
    from residuum.planning.recommend import Recommendation, recommend
    from residuum.planning.workload import Workload
    from residuum.planning.yardstick import Yardstick, compare_filters
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
    from residuum.pld.gdp_slack import slack_cost
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
    from residuum.pld.running import RunningComposition
    from residuum.pld.value import (
        Pld,
    )
    from residuum.pld.zcdp_parameter import zcdp_parameter
    from residuum.service.client.asynchronous import AsyncClient
    from residuum.service.client.sync import Client
