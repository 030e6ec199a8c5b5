"""Examples of every kind of mechanism, each with its JSON.

The JSON is what ledgers hold: a line here may be added, never changed. A new kind adds its own.
"""

from __future__ import annotations

from residua.mechanisms import (
    ApproximateDp,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    FromAtoms,
    FromTradeoff,
    Gaussian,
    Gdp,
    Laplace,
    Mechanism,
    MixtureOfGaussians,
    PoissonSampled,
    PureDp,
    RandomizedResponse,
    Rdp,
    ReportNoisyMax,
    SampledWithoutReplacement,
    SelfComposed,
    SubsampledGaussian,
    TruncatedLaplace,
    Zcdp,
)

GOLDEN: list[tuple[Mechanism, str]] = [
    (Gaussian(sigma=4.0), '{"kind":"gaussian","sensitivity":1.0,"sigma":4.0}'),
    (Gaussian(sigma=0.1, sensitivity=1e-20), '{"kind":"gaussian","sensitivity":1e-20,"sigma":0.1}'),
    (Laplace(2.0), '{"kind":"laplace","scale":2.0,"sensitivity":1.0}'),
    (Laplace(0.3, 0.0), '{"kind":"laplace","scale":0.3,"sensitivity":0.0}'),
    (DiscreteGaussian(sigma=2.0), '{"kind":"discrete_gaussian","sensitivity":1,"sigma":2.0}'),
    (
        DiscreteGaussian(sigma=3.5, sensitivity=4),
        '{"kind":"discrete_gaussian","sensitivity":4,"sigma":3.5}',
    ),
    (DiscreteLaplace(2.0), '{"kind":"discrete_laplace","scale":2.0,"sensitivity":1}'),
    (DiscreteLaplace(2.5, 3), '{"kind":"discrete_laplace","scale":2.5,"sensitivity":3}'),
    (
        TruncatedLaplace(1.0, 8.0),
        '{"bound":8.0,"kind":"truncated_laplace","scale":1.0,"sensitivity":1.0}',
    ),
    (
        TruncatedLaplace(1.0, 1.0, 1.5),
        '{"bound":1.0,"kind":"truncated_laplace","scale":1.0,"sensitivity":1.5}',
    ),
    (RandomizedResponse(eps=1.0), '{"eps":1.0,"kind":"randomized_response","num_buckets":2}'),
    (
        RandomizedResponse(eps=1.0, num_buckets=10),
        '{"eps":1.0,"kind":"randomized_response","num_buckets":10}',
    ),
    (
        RandomizedResponse(num_buckets=4, noise_parameter=0.5),
        '{"kind":"randomized_response","noise_parameter":0.5,"num_buckets":4}',
    ),
    (
        ExponentialMechanism(0.5),
        '{"eps":0.5,"kind":"exponential_mechanism","monotonic":false}',
    ),
    (
        ExponentialMechanism(1.0, True),
        '{"eps":1.0,"kind":"exponential_mechanism","monotonic":true}',
    ),
    (
        ReportNoisyMax(4.0),
        '{"kind":"report_noisy_max","monotonic":false,"noise":"laplace","scale":4.0,'
        '"sensitivity":1.0}',
    ),
    (
        ReportNoisyMax(4.0, "gumbel", 0.5),
        '{"kind":"report_noisy_max","monotonic":false,"noise":"gumbel","scale":4.0,'
        '"sensitivity":0.5}',
    ),
    (
        ReportNoisyMax(2.0, "exponential", monotonic=True),
        '{"kind":"report_noisy_max","monotonic":true,"noise":"exponential","scale":2.0,'
        '"sensitivity":1.0}',
    ),
    (
        SubsampledGaussian(1.0, 0.01),
        '{"kind":"subsampled_gaussian","sampling_rate":0.01,"sensitivity":1.0,"sigma":1.0}',
    ),
    (
        SubsampledGaussian(0.7, 0.25, 0.5),
        '{"kind":"subsampled_gaussian","sampling_rate":0.25,"sensitivity":0.5,"sigma":0.7}',
    ),
    (
        MixtureOfGaussians(1.0, (0.0, 1.0, 2.0), (0.5, 0.25, 0.25)),
        '{"kind":"mixture_of_gaussians","probabilities":[0.5,0.25,0.25],'
        '"sensitivities":[0.0,1.0,2.0],"sigma":1.0}',
    ),
    (
        PoissonSampled(Laplace(1.0), 0.1),
        '{"kind":"poisson_sampled","mechanism":{"kind":"laplace","scale":1.0,"sensitivity":1.0},'
        '"sampling_rate":0.1}',
    ),
    (
        PoissonSampled(DiscreteLaplace(2.0, 2), 0.25),
        '{"kind":"poisson_sampled","mechanism":{"kind":"discrete_laplace","scale":2.0,'
        '"sensitivity":2},"sampling_rate":0.25}',
    ),
    (
        PoissonSampled(Gaussian(sigma=2.0), 0.5),
        '{"kind":"poisson_sampled","mechanism":{"kind":"gaussian","sensitivity":1.0,"sigma":2.0},'
        '"sampling_rate":0.5}',
    ),
    (
        PoissonSampled(ExponentialMechanism(1.0), 0.2),
        '{"kind":"poisson_sampled","mechanism":{"eps":1.0,"kind":"exponential_mechanism",'
        '"monotonic":false},"sampling_rate":0.2}',
    ),
    (
        PoissonSampled(FromAtoms((0.5, -0.25), (0.5, 0.375), 0.125), 0.25),
        '{"kind":"poisson_sampled","mechanism":{"kind":"from_atoms","losses":[0.5,-0.25],'
        '"mass_at_infinity":0.125,"masses":[0.5,0.375]},"sampling_rate":0.25}',
    ),
    (
        SampledWithoutReplacement(Laplace(1.0), 100, 5),
        '{"kind":"sampled_without_replacement","mechanism":{"kind":"laplace","scale":1.0,'
        '"sensitivity":1.0},"sample_size":5,"source_size":100}',
    ),
    (
        SampledWithoutReplacement(RandomizedResponse(eps=1.0, num_buckets=3), 7, 3),
        '{"kind":"sampled_without_replacement","mechanism":{"eps":1.0,'
        '"kind":"randomized_response","num_buckets":3},"sample_size":3,"source_size":7}',
    ),
    (PureDp(0.5), '{"eps":0.5,"kind":"pure_dp"}'),
    (PureDp(0.5, "replace-one"), '{"eps":0.5,"kind":"pure_dp","relation":"replace-one"}'),
    (
        PureDp(0.5, unit="event"),
        '{"eps":0.5,"kind":"pure_dp","unit":"event"}',
    ),
    (ApproximateDp(1.0, 1e-6), '{"delta":1e-06,"eps":1.0,"kind":"approximate_dp"}'),
    (
        ApproximateDp(0.0, 0.25, "zero-out"),
        '{"delta":0.25,"eps":0.0,"kind":"approximate_dp","relation":"zero-out"}',
    ),
    (Gdp(0.5), '{"kind":"gdp","mu":0.5}'),
    (Zcdp(0.125), '{"delta":0.0,"kind":"zcdp","rho":0.125,"xi":0.0}'),
    (
        Zcdp(0.1, 0.2, relation="add-remove"),
        '{"delta":0.0,"kind":"zcdp","relation":"add-remove","rho":0.1,"xi":0.2}',
    ),
    (Zcdp(0.125, delta=1e-6), '{"delta":1e-06,"kind":"zcdp","rho":0.125,"xi":0.0}'),
    (
        Rdp((2.0, 8.0, 32.0), (0.1, 0.4, 1.6)),
        '{"epsilons":[0.1,0.4,1.6],"kind":"rdp","orders":[2.0,8.0,32.0]}',
    ),
    (
        FromAtoms((1.0, -0.5), (0.5, 0.25), 0.25),
        '{"kind":"from_atoms","losses":[1.0,-0.5],"mass_at_infinity":0.25,"masses":[0.5,0.25]}',
    ),
    (
        FromTradeoff((0.0, 0.25, 1.0), (0.875, 0.25, 0.0)),
        '{"alphas":[0.0,0.25,1.0],"betas":[0.875,0.25,0.0],"kind":"from_tradeoff"}',
    ),
    (
        Composed((Gaussian(sigma=4.0), PureDp(0.25))),
        '{"kind":"composed","mechanisms":[{"kind":"gaussian","sensitivity":1.0,"sigma":4.0},'
        '{"eps":0.25,"kind":"pure_dp"}]}',
    ),
    (
        SelfComposed(SubsampledGaussian(1.0, 0.01), 1000),
        '{"count":1000,"kind":"self_composed","mechanism":{"kind":"subsampled_gaussian",'
        '"sampling_rate":0.01,"sensitivity":1.0,"sigma":1.0}}',
    ),
]

EXAMPLES: list[Mechanism] = [mechanism for mechanism, _ in GOLDEN]


def name(mechanism: object) -> str:
    """A short test id."""
    text = repr(mechanism)
    return text if len(text) < 70 else text[:69] + "…"
