"""The kinds of mechanism, by the name they have in JSON."""

from __future__ import annotations

from residuum.mechanisms.approximate_dp import ApproximateDp
from residuum.mechanisms.composed import Composed
from residuum.mechanisms.discrete_gaussian import DiscreteGaussian
from residuum.mechanisms.discrete_laplace import DiscreteLaplace
from residuum.mechanisms.exponential_mechanism import ExponentialMechanism
from residuum.mechanisms.from_atoms import FromAtoms
from residuum.mechanisms.from_tradeoff import FromTradeoff
from residuum.mechanisms.gaussian import Gaussian
from residuum.mechanisms.gdp import Gdp
from residuum.mechanisms.laplace import Laplace
from residuum.mechanisms.mechanism import Mechanism
from residuum.mechanisms.mixture_of_gaussians import MixtureOfGaussians
from residuum.mechanisms.poisson_sampled import PoissonSampled
from residuum.mechanisms.pure_dp import PureDp
from residuum.mechanisms.randomized_response import RandomizedResponse
from residuum.mechanisms.rdp import Rdp
from residuum.mechanisms.report_noisy_max import ReportNoisyMax
from residuum.mechanisms.sampled_without_replacement import SampledWithoutReplacement
from residuum.mechanisms.self_composed import SelfComposed
from residuum.mechanisms.subsampled_gaussian import SubsampledGaussian
from residuum.mechanisms.truncated_laplace import TruncatedLaplace
from residuum.mechanisms.zcdp import Zcdp

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
