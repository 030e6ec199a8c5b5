"""What `import residua` offers: each name is loaded from its module when it is first used.

`__init__.py` reads this file, and so do type checkers: a public name is declared here alone.
"""

from residua import (
    adversary as adversary,
    figures as figures,
    filters as filters,
    individual as individual,
    interop as interop,
    mechanisms as mechanisms,
    planning as planning,
)
from residua.adversary.attack import (
    Attack as Attack,
    attack as attack,
    attack_filter as attack_filter,
    natural_cost as natural_cost,
)
from residua.adversary.freeness import (
    Freeness as Freeness,
    find_violation as find_violation,
    is_universally_free as is_universally_free,
)
from residua.adversary.natural_filter import (
    AdditiveProfileFilter as AdditiveProfileFilter,
)
from residua.adversary.discretise import (
    Discretisation as Discretisation,
    discretise as discretise,
)
from residua.adversary.natural_filter import NaturalFilter as NaturalFilter
from residua.adversary.natural_guarantee import (
    Guarantee as Guarantee,
    natural_guarantee as natural_guarantee,
)
from residua.adversary.rule import (
    HistoryRule as HistoryRule,
    NaturalRule as NaturalRule,
    Rule as Rule,
    UpdateRule as UpdateRule,
    as_rule as as_rule,
)
from residua.adversary.strategy import simulate as simulate
from residua.adversary.strategy import Strategy as Strategy
from residua.adversary.worst_case import WorstCase as WorstCase, worst_case as worst_case
from residua.bounds import Interval as Interval, Verdict as Verdict
from residua.errors import (
    AccessDenied as AccessDenied,
    AlreadySpent as AlreadySpent,
    ArgumentError as ArgumentError,
    ArgumentTypeError as ArgumentTypeError,
    BrokenRecord as BrokenRecord,
    BudgetError as BudgetError,
    BudgetExists as BudgetExists,
    Contended as Contended,
    KeyReused as KeyReused,
    LedgerError as LedgerError,
    MechanismFailed as MechanismFailed,
    MissingPackage as MissingPackage,
    NewerLedger as NewerLedger,
    NotALedger as NotALedger,
    OutcomeUnknown as OutcomeUnknown,
    ReadOnlyLedger as ReadOnlyLedger,
    Refused as Refused,
    ResiduaError as ResiduaError,
    RetiredBudget as RetiredBudget,
    ServiceError as ServiceError,
    StateUnavailable as StateUnavailable,
    StoreUnavailable as StoreUnavailable,
    TooExpensive as TooExpensive,
    TooLargeError as TooLargeError,
    UnknownBudget as UnknownBudget,
    UnknownHold as UnknownHold,
    UnsafeStore as UnsafeStore,
    UnknownTable as UnknownTable,
    UnsupportedError as UnsupportedError,
)
from residua.data.session import open_session as open_session
from residua.filters.additive.zcdp import ApproximateZcdpFilter as ApproximateZcdpFilter
from residua.filters.additive.basic import BasicFilter as BasicFilter, PureFilter as PureFilter
from residua.filters.additive.gdp import GdpFilter as GdpFilter
from residua.filters.additive.renyi import RenyiFilter as RenyiFilter
from residua.filters.additive.renyi import RenyiCurveFilter as RenyiCurveFilter
from residua.filters.additive.zcdp import ZcdpFilter as ZcdpFilter
from residua.filters.balance import Balance as Balance
from residua.filters.base import Filter as Filter
from residua.filters.decision import Decision as Decision
from residua.filters.potential.menu import MenuFilter as MenuFilter
from residua.filters.potential.plan import PlanFilter as PlanFilter
from residua.filters.potential.renyi_commit import RenyiCommitFilter as RenyiCommitFilter
from residua.filters.residue.approximate_gdp_residue import (
    ApproximateGdpResidueFilter as ApproximateGdpResidueFilter,
)
from residua.filters.residue.gdp_residue import GdpResidueFilter as GdpResidueFilter
from residua.filters.residue.target_residue import TargetResidueFilter as TargetResidueFilter
from residua.filters.residue.update import UpdateFilter as UpdateFilter
from residua.filters.union.auto import AutoFilter as AutoFilter
from residua.filters.union.union import UnionFilter as UnionFilter
from residua.ledger.api.ledger import Ledger as Ledger
from residua.ledger.api.opening import open_ledger as open_ledger
from residua.ledger.domain.receipts import Receipt as Receipt, Reservation as Reservation
from residua.mechanisms.black_boxes import (
    ApproximateDp as ApproximateDp,
    FromAtoms as FromAtoms,
    FromTradeoff as FromTradeoff,
    Gdp as Gdp,
    PureDp as PureDp,
    Rdp as Rdp,
    Zcdp as Zcdp,
)
from residua.mechanisms.composition import Composed as Composed, SelfComposed as SelfComposed
from residua.mechanisms.mechanism import Mechanism as Mechanism
from residua.mechanisms.noise import (
    DiscreteGaussian as DiscreteGaussian,
    DiscreteLaplace as DiscreteLaplace,
    Gaussian as Gaussian,
    Laplace as Laplace,
    MixtureOfGaussians as MixtureOfGaussians,
    TruncatedLaplace as TruncatedLaplace,
)
from residua.mechanisms.sampled import (
    PoissonSampled as PoissonSampled,
    SampledWithoutReplacement as SampledWithoutReplacement,
    SubsampledGaussian as SubsampledGaussian,
)
from residua.mechanisms.selection import (
    ExponentialMechanism as ExponentialMechanism,
    RandomizedResponse as RandomizedResponse,
    ReportNoisyMax as ReportNoisyMax,
)
from residua.planning.comparison import (
    FilterComparison as FilterComparison,
    SuiteComparison as SuiteComparison,
    compare_filters as compare_filters,
)
from residua.planning.how_many import how_many as how_many
from residua.planning.how_many import least_noise as least_noise
from residua.planning.odometer import Odometer as Odometer
from residua.planning.recommend import Recommendation as Recommendation, recommend as recommend
from residua.planning.workload import Workload as Workload
from residua.pld.constructors import (
    approximate_dp as approximate_dp,
    bounded_range as bounded_range,
    from_atoms as from_atoms,
    from_hockey_stick as from_hockey_stick,
    from_pair as from_pair,
    from_tradeoff as from_tradeoff,
    gaussian as gaussian,
    identity as identity,
    laplace as laplace,
    mixture_of_gaussians as mixture_of_gaussians,
    pure_dp as pure_dp,
    subsampled_gaussian as subsampled_gaussian,
)
from residua.pld.curve.tradeoff import (
    compose_tradeoff as compose_tradeoff,
    hockey_stick_from_tradeoff as hockey_stick_from_tradeoff,
    tradeoff_from_hockey_stick as tradeoff_from_hockey_stick,
)
from residua.pld.lattice import kernel as kernel
from residua.pld.lattice import infimum as infimum, supremum as supremum
from residua.pld.order.compare import Comparison as Comparison, Order as Order, compare as compare
from residua.pld.order import Witness as Witness
from residua.pld.pld import Pld as Pld
from residua.pld.residue.gdp_parameter import gdp_parameter as gdp_parameter
from residua.pld.residue.gdp_residue import (
    gdp_residue as gdp_residue,
    gdp_residue_cost as gdp_residue_cost,
)
from residua.pld.residue.slack import slack_cost as slack_cost
from residua.pld.residue.gdp_parameter import zcdp_parameter as zcdp_parameter
from residua.pld.running_composition import RunningComposition as RunningComposition
from residua.service.client.client import AsyncClient as AsyncClient
from residua.service.client.client import Client as Client
from residua.version import __version__ as __version__
