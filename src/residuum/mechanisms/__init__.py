"""Mechanisms: what people run, described as frozen values that know their privacy loss.

    rz.mechanisms.Laplace(scale=2.0).pld()
    rz.mechanisms.from_json('{"kind": "gaussian", "sigma": 4.0}')

One mechanism a file; each names its dominating pair and where that is from.
"""

from residuum.mechanisms.black_boxes.approximate_dp import ApproximateDp
from residuum.mechanisms.black_boxes.from_atoms import FromAtoms
from residuum.mechanisms.black_boxes.from_tradeoff import FromTradeoff
from residuum.mechanisms.black_boxes.gdp import Gdp
from residuum.mechanisms.black_boxes.pure_dp import PureDp
from residuum.mechanisms.black_boxes.rdp import Rdp
from residuum.mechanisms.black_boxes.zcdp import Zcdp
from residuum.mechanisms.codec import from_json
from residuum.mechanisms.composition.composed import Composed
from residuum.mechanisms.composition.self_composed import SelfComposed
from residuum.mechanisms.explanation import Explanation
from residuum.mechanisms.kinds import KINDS
from residuum.mechanisms.mechanism import Mechanism
from residuum.mechanisms.noise.discrete_gaussian import DiscreteGaussian
from residuum.mechanisms.noise.discrete_laplace import DiscreteLaplace
from residuum.mechanisms.noise.gaussian import Gaussian
from residuum.mechanisms.noise.laplace import Laplace
from residuum.mechanisms.noise.mixture_of_gaussians import MixtureOfGaussians
from residuum.mechanisms.noise.truncated_laplace import TruncatedLaplace
from residuum.mechanisms.relations import ADD_REMOVE, RELATIONS, REPLACE_ONE, ZERO_OUT
from residuum.mechanisms.sampled.poisson_sampled import PoissonSampled
from residuum.mechanisms.sampled.sampled_without_replacement import SampledWithoutReplacement
from residuum.mechanisms.sampled.subsampled_gaussian import SubsampledGaussian
from residuum.mechanisms.selection.exponential_mechanism import ExponentialMechanism
from residuum.mechanisms.selection.randomized_response import RandomizedResponse
from residuum.mechanisms.selection.report_noisy_max import ReportNoisyMax

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
