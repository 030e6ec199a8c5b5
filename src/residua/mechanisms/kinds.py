"""The kinds of mechanism, by the name they have in JSON."""

from __future__ import annotations

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

KINDS: dict[str, type[Mechanism]] = {
    cls.kind: cls
    for cls in (
        Gaussian,
        Laplace,
        DiscreteGaussian,
        DiscreteLaplace,
        TruncatedLaplace,
        RandomizedResponse,
        ExponentialMechanism,
        ReportNoisyMax,
        SubsampledGaussian,
        MixtureOfGaussians,
        PoissonSampled,
        SampledWithoutReplacement,
        PureDp,
        ApproximateDp,
        Gdp,
        Zcdp,
        Rdp,
        FromAtoms,
        FromTradeoff,
        Composed,
        SelfComposed,
    )
}
