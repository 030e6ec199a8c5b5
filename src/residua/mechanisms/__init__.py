"""Mechanisms: what people run, described as frozen values that know their privacy loss.

    rz.mechanisms.Laplace(scale=2.0).pld()
    rz.mechanisms.from_json('{"kind": "gaussian", "sigma": 4.0}')

One mechanism a file; each names its dominating pair and where that is from.
"""

from residua.mechanisms.black_boxes.approximate_dp import ApproximateDp
from residua.mechanisms.black_boxes.from_atoms import FromAtoms
from residua.mechanisms.black_boxes.from_tradeoff import FromTradeoff
from residua.mechanisms.black_boxes.gdp import Gdp
from residua.mechanisms.black_boxes.pure_dp import PureDp
from residua.mechanisms.black_boxes.rdp import Rdp
from residua.mechanisms.black_boxes.zcdp import Zcdp
from residua.mechanisms.codec import from_json
from residua.mechanisms.composition.composed import Composed
from residua.mechanisms.composition.self_composed import SelfComposed
from residua.mechanisms.explanation import Explanation
from residua.mechanisms.kinds import KINDS
from residua.mechanisms.mechanism import Mechanism
from residua.mechanisms.noise.discrete_gaussian import DiscreteGaussian
from residua.mechanisms.noise.discrete_laplace import DiscreteLaplace
from residua.mechanisms.noise.gaussian import Gaussian
from residua.mechanisms.noise.laplace import Laplace
from residua.mechanisms.noise.mixture_of_gaussians import MixtureOfGaussians
from residua.mechanisms.noise.truncated_laplace import TruncatedLaplace
from residua.mechanisms.relations import ADD_REMOVE, RELATIONS, REPLACE_ONE, ZERO_OUT
from residua.mechanisms.sampled.poisson_sampled import PoissonSampled
from residua.mechanisms.sampled.sampled_without_replacement import SampledWithoutReplacement
from residua.mechanisms.sampled.subsampled_gaussian import SubsampledGaussian
from residua.mechanisms.selection.exponential_mechanism import ExponentialMechanism
from residua.mechanisms.selection.randomized_response import RandomizedResponse
from residua.mechanisms.selection.report_noisy_max import ReportNoisyMax

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
