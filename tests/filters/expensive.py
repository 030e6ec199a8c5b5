"""Every kind of mechanism, cheap and nasty, and every kind of filter."""

import residua as rz
from residua import mechanisms as m

LAPLACE, GAUSSIAN = m.Laplace(scale=20.0), m.Gaussian(sigma=20.0)

QUERIES = {
    "laplace": (LAPLACE, m.Laplace(scale=1e-3), m.Laplace(scale=1e6)),
    "gaussian": (GAUSSIAN, m.Gaussian(sigma=0.01)),
    "discrete_gaussian": (
        m.DiscreteGaussian(sigma=3.0),
        m.DiscreteGaussian(sigma=1000.0),
        m.DiscreteGaussian(sigma=100.0, sensitivity=50),
    ),
    "discrete_laplace": (
        m.DiscreteLaplace(scale=3.0),
        m.DiscreteLaplace(scale=1000.0, sensitivity=200),
    ),
    "truncated_laplace": (
        m.TruncatedLaplace(scale=1.0, bound=40.0),
        m.TruncatedLaplace(scale=0.01, bound=5.0),
    ),
    "randomized_response": (
        m.RandomizedResponse(eps=0.5, num_buckets=5),
        m.RandomizedResponse(noise_parameter=0.3, num_buckets=1_000_000),
    ),
    "exponential_mechanism": (m.ExponentialMechanism(eps=0.1),),
    "report_noisy_max": (
        m.ReportNoisyMax(scale=10.0),
        m.ReportNoisyMax(scale=0.1, noise="gumbel"),
    ),
    "subsampled_gaussian": (
        m.SubsampledGaussian(sigma=1.0, sampling_rate=0.01),
        m.SubsampledGaussian(sigma=0.06, sampling_rate=0.5),
        m.SubsampledGaussian(sigma=20.0, sampling_rate=1e-8),
    ),
    "mixture_of_gaussians": (
        m.MixtureOfGaussians(2.0, (0.0, 1.0), (0.9, 0.1)),
        m.MixtureOfGaussians(2.0, tuple(i / 256 for i in range(256)), (1 / 256,) * 256),
    ),
    "poisson_sampled": (
        m.PoissonSampled(m.Laplace(scale=5.0), 0.1),
        m.PoissonSampled(m.Laplace(scale=0.01), 0.1),
    ),
    "sampled_without_replacement": (
        m.SampledWithoutReplacement(m.RandomizedResponse(eps=1.0), 100, 10),
        m.SampledWithoutReplacement(m.Laplace(scale=0.02), 100, 10),
    ),
    "pure_dp": (m.PureDp(eps=0.1), m.PureDp(eps=500.0)),
    "approximate_dp": (m.ApproximateDp(eps=0.1, delta=1e-8),),
    "gdp": (m.Gdp(mu=0.1),),
    "zcdp": (m.Zcdp(rho=0.01), m.Zcdp(rho=100.0, xi=1.0, delta=1e-9)),
    "rdp": (
        m.Rdp((2.0, 8.0), (0.01, 0.05)),
        m.Rdp(
            tuple(1.1 + i / 100 for i in range(4000)),
            tuple((1 + i / 100) / 1000 for i in range(4000)),
        ),
    ),
    "from_atoms": (
        m.FromAtoms((-0.1, 0.1), (0.47502081252106, 0.52497918747894)),
        m.FromAtoms(tuple(i / 1000 for i in range(2000)), (1 / 2000,) * 2000),
    ),
    "from_tradeoff": (m.FromTradeoff((0.0, 0.4, 1.0), (1.0, 0.5, 0.0)),),
    "self_composed": (
        m.SelfComposed(m.Laplace(scale=0.05), 2),
        m.SelfComposed(m.Laplace(scale=3.0), 1000),
        m.SelfComposed(m.SubsampledGaussian(sigma=1.0, sampling_rate=0.01), 10_000),
        m.SelfComposed(m.DiscreteGaussian(sigma=50.0), 100),
        m.SelfComposed(m.RandomizedResponse(eps=0.2, num_buckets=7), 500),
        m.SelfComposed(LAPLACE, 2**53),
    ),
    "composed": (
        m.Composed(
            [m.SubsampledGaussian(sigma=20.0 + i, sampling_rate=0.01) for i in range(40)]
        ),
        m.Composed(
            [m.SubsampledGaussian(sigma=5.0 + i / 10, sampling_rate=0.01) for i in range(500)]
        ),
        m.Composed([m.Laplace(scale=20.0 + i) for i in range(3000)]),
        m.Composed(
            [m.Gaussian(sigma=3.0), m.Laplace(scale=4.0), m.DiscreteGaussian(sigma=20.0)]
        ),
    ),
}  # fmt: skip

FILTERS = {
    "pure": lambda: rz.PureFilter(1.0),
    "basic": lambda: rz.BasicFilter(1.0, 1e-6),
    "renyi": lambda: rz.RenyiFilter(8.0, 1.0),
    "renyi_curve": lambda: rz.RenyiCurveFilter({2.0: 0.5, 8.0: 1.0, 64.0: 4.0}),
    "zcdp": lambda: rz.ZcdpFilter(0.5),
    "approximate_zcdp": lambda: rz.ApproximateZcdpFilter(1.0, 1e-6, 5e-7),
    "gdp": lambda: rz.GdpFilter(1.0),
    "gdp_residue": lambda: rz.GdpResidueFilter(1.0),
    "approximate_gdp_residue": lambda: rz.ApproximateGdpResidueFilter(1.0, 1e-6),
    "target_residue": lambda: rz.TargetResidueFilter(1.0, 1e-6, 0.1, 0.1),
    "renyi_commit": lambda: rz.RenyiCommitFilter(1.0, 1e-6),
    "plan": lambda: rz.PlanFilter(1.0, 1e-6, [m.SelfComposed(LAPLACE, 50)]),
    "menu": lambda: rz.MenuFilter(1.0, 1e-6, [LAPLACE, GAUSSIAN]),
    "auto": lambda: rz.AutoFilter(1.0, 1e-6),
    "union": lambda: rz.UnionFilter(
        [rz.PureFilter(1.0), rz.ApproximateGdpResidueFilter.within(1.0, 5e-7)]
    ),
    "natural": lambda: rz.NaturalFilter(rz.gaussian(mu=1.0), catalogue="gaussian"),
    "additive_profile": lambda: rz.AdditiveProfileFilter(1.0, 1e-6, 20),
}
