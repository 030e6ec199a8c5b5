"""Mechanisms: what people run, described as frozen values that know their privacy loss.

    rz.mechanisms.Laplace(scale=2.0).pld()
    rz.mechanisms.from_json('{"kind": "gaussian", "sigma": 4.0}')

One mechanism a file; each names its dominating pair and where that is from.
"""

from residuum.mechanisms.approximate_dp import ApproximateDp
from residuum.mechanisms.codec import from_json
from residuum.mechanisms.composed import Composed
from residuum.mechanisms.discrete_gaussian import DiscreteGaussian
from residuum.mechanisms.discrete_laplace import DiscreteLaplace
from residuum.mechanisms.explanation import Explanation
from residuum.mechanisms.exponential_mechanism import ExponentialMechanism
from residuum.mechanisms.from_atoms import FromAtoms
from residuum.mechanisms.from_tradeoff import FromTradeoff
from residuum.mechanisms.gaussian import Gaussian
from residuum.mechanisms.gdp import Gdp
from residuum.mechanisms.kinds import KINDS
from residuum.mechanisms.laplace import Laplace
from residuum.mechanisms.mechanism import Mechanism
from residuum.mechanisms.mixture_of_gaussians import MixtureOfGaussians
from residuum.mechanisms.poisson_sampled import PoissonSampled
from residuum.mechanisms.pure_dp import PureDp
from residuum.mechanisms.randomized_response import RandomizedResponse
from residuum.mechanisms.rdp import Rdp
from residuum.mechanisms.relations import ADD_REMOVE, RELATIONS, REPLACE_ONE, ZERO_OUT
from residuum.mechanisms.report_noisy_max import ReportNoisyMax
from residuum.mechanisms.sampled_without_replacement import SampledWithoutReplacement
from residuum.mechanisms.self_composed import SelfComposed
from residuum.mechanisms.subsampled_gaussian import SubsampledGaussian
from residuum.mechanisms.truncated_laplace import TruncatedLaplace
from residuum.mechanisms.zcdp import Zcdp

__all__ = [
    "ADD_REMOVE",
    "KINDS",
    "RELATIONS",
    "REPLACE_ONE",
    "ZERO_OUT",
    "ApproximateDp",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Explanation",
    "ExponentialMechanism",
    "FromAtoms",
    "FromTradeoff",
    "Gaussian",
    "Gdp",
    "Laplace",
    "Mechanism",
    "MixtureOfGaussians",
    "PoissonSampled",
    "PureDp",
    "RandomizedResponse",
    "Rdp",
    "ReportNoisyMax",
    "SampledWithoutReplacement",
    "SelfComposed",
    "SubsampledGaussian",
    "TruncatedLaplace",
    "Zcdp",
    "from_json",
]
