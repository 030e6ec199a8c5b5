"""Mechanisms: what people run, described as frozen values that know their privacy loss.

    rz.mechanisms.Laplace(scale=2.0).pld()
    rz.mechanisms.from_json('{"kind": "gaussian", "sigma": 4.0}')

Each names its dominating pair and where that is from. A new mechanism is a class in the module of
its family and an entry in `codec.KINDS`.
"""

from residua.mechanisms.black_boxes import (
    ApproximateDp,
    FromAtoms,
    FromTradeoff,
    Gdp,
    PureDp,
    Rdp,
    Zcdp,
)
from residua.mechanisms.codec import KINDS, from_json
from residua.mechanisms.composition import Composed, SelfComposed
from residua.mechanisms.mechanism import Explanation, Mechanism
from residua.mechanisms.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    MixtureOfGaussians,
    TruncatedLaplace,
)
from residua.mechanisms.relations import ADD_REMOVE, RELATIONS, REPLACE_ONE, ZERO_OUT
from residua.mechanisms.sampled import (
    PoissonSampled,
    SampledWithoutReplacement,
    SubsampledGaussian,
)
from residua.mechanisms.selection import ExponentialMechanism, RandomizedResponse, ReportNoisyMax

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
