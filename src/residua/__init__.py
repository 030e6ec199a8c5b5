"""A privacy budget that survives an adaptive analyst.

    import residua as rz

    spent = rz.gaussian(sigma=4.0) + 3 * rz.laplace(scale=10.0)
    spent.delta(1.0), spent.delta_bounds(1.0)

Plain calls return the safe side; `*_bounds` return a proven interval.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from residua.version import __version__

_HOME = {
    "amplification": "residua.adversary.amplification",
    "attack": "residua.adversary.attack",
    "attack_filter": "residua.adversary.attack",
    "as_rule": "residua.adversary.filter_rule",
    "Freeness": "residua.adversary.freeness",
    "find_violation": "residua.adversary.freeness",
    "is_universally_free": "residua.adversary.freeness",
    "NaturalCost": "residua.adversary.natural.cost",
    "natural_cost": "residua.adversary.natural.cost",
    "NaturalFilter": "residua.adversary.natural.filter",
    "NaturalRule": "residua.adversary.natural.rule",
    "HistoryRule": "residua.adversary.rule",
    "Rule": "residua.adversary.rule",
    "simulate": "residua.adversary.simulate",
    "Strategy": "residua.adversary.strategy",
    "UpdateRule": "residua.adversary.update_rule",
    "WorstCase": "residua.adversary.worst_case",
    "worst_case": "residua.adversary.worst_case",
    "Interval": "residua.bounds",
    "Verdict": "residua.bounds",
    "AccessDenied": "residua.errors",
    "ArgumentError": "residua.errors",
    "ArgumentTypeError": "residua.errors",
    "BudgetError": "residua.errors",
    "ResiduaError": "residua.errors",
    "ServiceError": "residua.errors",
    "AlreadySpent": "residua.errors",
    "BrokenRecord": "residua.errors",
    "BudgetExists": "residua.errors",
    "Contended": "residua.errors",
    "KeyReused": "residua.errors",
    "LedgerError": "residua.errors",
    "MechanismFailed": "residua.errors",
    "MissingPackage": "residua.errors",
    "NewerLedger": "residua.errors",
    "NotALedger": "residua.errors",
    "OutcomeUnknown": "residua.errors",
    "ReadOnlyLedger": "residua.errors",
    "Refused": "residua.errors",
    "RetiredBudget": "residua.errors",
    "StateUnavailable": "residua.errors",
    "StoreUnavailable": "residua.errors",
    "UnknownBudget": "residua.errors",
    "UnknownHold": "residua.errors",
    "UnsafeStore": "residua.errors",
    "AsyncClient": "residua.service.client.asynchronous",
    "Client": "residua.service.client.sync",
    "Ledger": "residua.ledger.api.ledger",
    "open_ledger": "residua.ledger.api.opening",
    "Receipt": "residua.ledger.domain.receipts",
    "Reservation": "residua.ledger.domain.receipts",
    "TooLargeError": "residua.errors",
    "UnsupportedError": "residua.errors",
    "Balance": "residua.filters.balance",
    "Decision": "residua.filters.decision",
    "Filter": "residua.filters.base",
    "ApproximateGdpResidueFilter": "residua.filters.residue.approximate_gdp_residue",
    "ApproximateZcdpFilter": "residua.filters.additive.approximate_zcdp",
    "BasicFilter": "residua.filters.additive.basic",
    "GdpFilter": "residua.filters.additive.gdp",
    "GdpResidueFilter": "residua.filters.residue.gdp_residue",
    "AutoFilter": "residua.filters.union.auto",
    "MenuFilter": "residua.filters.potential.menu",
    "PlanFilter": "residua.filters.potential.plan",
    "PureFilter": "residua.filters.additive.pure",
    "RenyiCommitFilter": "residua.filters.potential.renyi_commit",
    "RenyiCurveFilter": "residua.filters.additive.renyi_curve",
    "RenyiFilter": "residua.filters.additive.renyi",
    "TargetResidueFilter": "residua.filters.residue.target_residue",
    "UnionFilter": "residua.filters.union.union",
    "UpdateFilter": "residua.filters.residue.update",
    "ZcdpFilter": "residua.filters.additive.zcdp",
    "ApproximateDp": "residua.mechanisms.black_boxes.approximate_dp",
    "Composed": "residua.mechanisms.composition.composed",
    "DiscreteGaussian": "residua.mechanisms.noise.discrete_gaussian",
    "DiscreteLaplace": "residua.mechanisms.noise.discrete_laplace",
    "ExponentialMechanism": "residua.mechanisms.selection.exponential_mechanism",
    "FromAtoms": "residua.mechanisms.black_boxes.from_atoms",
    "FromTradeoff": "residua.mechanisms.black_boxes.from_tradeoff",
    "Gaussian": "residua.mechanisms.noise.gaussian",
    "Gdp": "residua.mechanisms.black_boxes.gdp",
    "Laplace": "residua.mechanisms.noise.laplace",
    "Mechanism": "residua.mechanisms.mechanism",
    "MixtureOfGaussians": "residua.mechanisms.noise.mixture_of_gaussians",
    "PoissonSampled": "residua.mechanisms.sampled.poisson_sampled",
    "PureDp": "residua.mechanisms.black_boxes.pure_dp",
    "RandomizedResponse": "residua.mechanisms.selection.randomized_response",
    "Rdp": "residua.mechanisms.black_boxes.rdp",
    "ReportNoisyMax": "residua.mechanisms.selection.report_noisy_max",
    "SampledWithoutReplacement": "residua.mechanisms.sampled.sampled_without_replacement",
    "SelfComposed": "residua.mechanisms.composition.self_composed",
    "SubsampledGaussian": "residua.mechanisms.sampled.subsampled_gaussian",
    "TruncatedLaplace": "residua.mechanisms.noise.truncated_laplace",
    "Zcdp": "residua.mechanisms.black_boxes.zcdp",
    "approximate_dp": "residua.pld.constructors",
    "bounded_range": "residua.pld.constructors",
    "from_atoms": "residua.pld.constructors",
    "from_hockey_stick": "residua.pld.constructors",
    "from_pair": "residua.pld.constructors",
    "from_tradeoff": "residua.pld.constructors",
    "gaussian": "residua.pld.constructors",
    "identity": "residua.pld.constructors",
    "laplace": "residua.pld.constructors",
    "mixture_of_gaussians": "residua.pld.constructors",
    "pure_dp": "residua.pld.constructors",
    "subsampled_gaussian": "residua.pld.constructors",
    "compose_tradeoff": "residua.pld.curve.piecewise_linear",
    "hockey_stick_from_tradeoff": "residua.pld.curve.piecewise_linear",
    "tradeoff_from_hockey_stick": "residua.pld.curve.piecewise_linear",
    "AdditiveProfileFilter": "residua.adversary.natural.additive_profile",
    "Discretisation": "residua.adversary.natural.discretise",
    "discretise": "residua.adversary.natural.discretise",
    "Guarantee": "residua.adversary.natural.guarantee",
    "natural_guarantee": "residua.adversary.natural.guarantee",
    "gdp_parameter": "residua.pld.residue.gdp_parameter",
    "gdp_residue": "residua.pld.residue.gdp_residue",
    "gdp_residue_cost": "residua.pld.residue.gdp_residue",
    "slack_cost": "residua.pld.residue.slack",
    "kernel": "residua.pld.lattice.kernel",
    "infimum": "residua.pld.lattice.supremum",
    "supremum": "residua.pld.lattice.supremum",
    "Comparison": "residua.pld.order.compare",
    "Order": "residua.pld.order.compare",
    "Witness": "residua.pld.order.domination",
    "compare": "residua.pld.order.compare",
    "RunningComposition": "residua.pld.running_composition",
    "Pld": "residua.pld.pld",
    "zcdp_parameter": "residua.pld.residue.zcdp_parameter",
    "how_many": "residua.planning.how_many",
    "least_noise": "residua.planning.least_noise",
    "Odometer": "residua.planning.odometer",
    "Recommendation": "residua.planning.recommend",
    "recommend": "residua.planning.recommend",
    "Workload": "residua.planning.workload",
    "FilterComparison": "residua.planning.comparison",
    "SuiteComparison": "residua.planning.comparison",
    "compare_filters": "residua.planning.comparison",
}

_PACKAGES = ("adversary", "figures", "filters", "individual", "interop", "mechanisms", "planning")

__all__ = [
    "__version__",
    "AccessDenied",
    "AdditiveProfileFilter",
    "AlreadySpent",
    "ApproximateDp",
    "ApproximateGdpResidueFilter",
    "ApproximateZcdpFilter",
    "ArgumentError",
    "ArgumentTypeError",
    "AsyncClient",
    "AutoFilter",
    "Balance",
    "BasicFilter",
    "BrokenRecord",
    "BudgetError",
    "BudgetExists",
    "Client",
    "Comparison",
    "Composed",
    "Contended",
    "Decision",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Discretisation",
    "ExponentialMechanism",
    "Filter",
    "FilterComparison",
    "Freeness",
    "FromAtoms",
    "FromTradeoff",
    "Gaussian",
    "Gdp",
    "GdpFilter",
    "GdpResidueFilter",
    "Guarantee",
    "HistoryRule",
    "Interval",
    "KeyReused",
    "Laplace",
    "Ledger",
    "LedgerError",
    "Mechanism",
    "MechanismFailed",
    "MenuFilter",
    "MissingPackage",
    "MixtureOfGaussians",
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
    "PoissonSampled",
    "PureDp",
    "PureFilter",
    "RandomizedResponse",
    "Rdp",
    "ReadOnlyLedger",
    "Receipt",
    "Recommendation",
    "Refused",
    "RenyiCommitFilter",
    "RenyiCurveFilter",
    "RenyiFilter",
    "ReportNoisyMax",
    "Reservation",
    "ResiduaError",
    "RetiredBudget",
    "Rule",
    "RunningComposition",
    "SampledWithoutReplacement",
    "SelfComposed",
    "ServiceError",
    "StateUnavailable",
    "StoreUnavailable",
    "Strategy",
    "SuiteComparison",
    "SubsampledGaussian",
    "TargetResidueFilter",
    "TooLargeError",
    "TruncatedLaplace",
    "UnionFilter",
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
    "Zcdp",
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
        return import_module(f"residua.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'residua' has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOME[name]), name)
    except ModuleNotFoundError as error:
        from residua.errors import MissingPackage

        raise MissingPackage.behind(error, f"residua.{name}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from residua import adversary, figures, filters, individual, interop, mechanisms, planning
    from residua.adversary.amplification import amplification
    from residua.adversary.attack import attack, attack_filter
    from residua.adversary.filter_rule import as_rule
    from residua.adversary.freeness import Freeness, find_violation, is_universally_free
    from residua.adversary.natural.additive_profile import AdditiveProfileFilter
    from residua.adversary.natural.cost import NaturalCost, natural_cost
    from residua.adversary.natural.discretise import Discretisation, discretise
    from residua.adversary.natural.filter import NaturalFilter
    from residua.adversary.natural.guarantee import Guarantee, natural_guarantee
    from residua.adversary.natural.rule import NaturalRule
    from residua.adversary.rule import HistoryRule, Rule
    from residua.adversary.simulate import simulate
    from residua.adversary.strategy import Strategy
    from residua.adversary.update_rule import UpdateRule
    from residua.adversary.worst_case import WorstCase, worst_case
    from residua.bounds import (
        Interval,
        Verdict,
    )
    from residua.errors import (
        AccessDenied,
        AlreadySpent,
        ArgumentError,
        ArgumentTypeError,
        BrokenRecord,
        BudgetError,
        BudgetExists,
        Contended,
        KeyReused,
        LedgerError,
        MechanismFailed,
        MissingPackage,
        NewerLedger,
        NotALedger,
        OutcomeUnknown,
        ReadOnlyLedger,
        Refused,
        ResiduaError,
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
    from residua.filters.additive.approximate_zcdp import ApproximateZcdpFilter
    from residua.filters.additive.basic import BasicFilter
    from residua.filters.additive.gdp import GdpFilter
    from residua.filters.additive.pure import PureFilter
    from residua.filters.additive.renyi import RenyiFilter
    from residua.filters.additive.renyi_curve import RenyiCurveFilter
    from residua.filters.additive.zcdp import ZcdpFilter
    from residua.filters.balance import Balance
    from residua.filters.base import Filter
    from residua.filters.decision import Decision
    from residua.filters.potential.menu import MenuFilter
    from residua.filters.potential.plan import PlanFilter
    from residua.filters.potential.renyi_commit import RenyiCommitFilter
    from residua.filters.residue.approximate_gdp_residue import ApproximateGdpResidueFilter
    from residua.filters.residue.gdp_residue import GdpResidueFilter
    from residua.filters.residue.target_residue import TargetResidueFilter
    from residua.filters.residue.update import UpdateFilter
    from residua.filters.union.auto import AutoFilter
    from residua.filters.union.union import UnionFilter
    from residua.ledger.api.ledger import Ledger
    from residua.ledger.api.opening import open_ledger
    from residua.ledger.domain.receipts import Receipt, Reservation
    from residua.mechanisms.black_boxes.approximate_dp import ApproximateDp
    from residua.mechanisms.black_boxes.from_atoms import FromAtoms
    from residua.mechanisms.black_boxes.from_tradeoff import FromTradeoff
    from residua.mechanisms.black_boxes.gdp import Gdp
    from residua.mechanisms.black_boxes.pure_dp import PureDp
    from residua.mechanisms.black_boxes.rdp import Rdp
    from residua.mechanisms.black_boxes.zcdp import Zcdp
    from residua.mechanisms.composition.composed import Composed
    from residua.mechanisms.composition.self_composed import SelfComposed
    from residua.mechanisms.mechanism import Mechanism
    from residua.mechanisms.noise.discrete_gaussian import DiscreteGaussian
    from residua.mechanisms.noise.discrete_laplace import DiscreteLaplace
    from residua.mechanisms.noise.gaussian import Gaussian
    from residua.mechanisms.noise.laplace import Laplace
    from residua.mechanisms.noise.mixture_of_gaussians import MixtureOfGaussians
    from residua.mechanisms.noise.truncated_laplace import TruncatedLaplace
    from residua.mechanisms.sampled.poisson_sampled import PoissonSampled
    from residua.mechanisms.sampled.sampled_without_replacement import SampledWithoutReplacement
    from residua.mechanisms.sampled.subsampled_gaussian import SubsampledGaussian
    from residua.mechanisms.selection.exponential_mechanism import ExponentialMechanism
    from residua.mechanisms.selection.randomized_response import RandomizedResponse
    from residua.mechanisms.selection.report_noisy_max import ReportNoisyMax
    from residua.planning.comparison import FilterComparison, SuiteComparison, compare_filters
    from residua.planning.how_many import how_many
    from residua.planning.least_noise import least_noise
    from residua.planning.odometer import Odometer
    from residua.planning.recommend import Recommendation, recommend
    from residua.planning.workload import Workload
    from residua.pld.constructors import (
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
    from residua.pld.curve.piecewise_linear import (
        compose_tradeoff,
        hockey_stick_from_tradeoff,
        tradeoff_from_hockey_stick,
    )
    from residua.pld.lattice.kernel import kernel
    from residua.pld.lattice.supremum import infimum, supremum
    from residua.pld.order.compare import Comparison, Order, compare
    from residua.pld.order.domination import Witness
    from residua.pld.pld import Pld
    from residua.pld.residue.gdp_parameter import gdp_parameter
    from residua.pld.residue.gdp_residue import gdp_residue, gdp_residue_cost
    from residua.pld.residue.slack import slack_cost
    from residua.pld.residue.zcdp_parameter import zcdp_parameter
    from residua.pld.running_composition import RunningComposition
    from residua.service.client.asynchronous import AsyncClient
    from residua.service.client.sync import Client
