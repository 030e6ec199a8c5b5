"""Random filters and queries over all kinds and the whole range of parameters, ends included."""

from __future__ import annotations

import math
import random

import residua as rz
from residua import mechanisms as m
from residua import provable, sizes
from residua.adversary.natural_filter import AdditiveProfileFilter
from residua.provable import forms

FILTERS = (
    "pure", "basic", "renyi", "renyi_curve", "zcdp", "approximate_zcdp", "gdp", "gdp_residue",
    "approximate_gdp_residue", "renyi_commit", "auto", "menu", "plan", "natural",
    "additive_profile", "union",
)  # fmt: skip
SLOW = ("auto", "menu", "approximate_gdp_residue", "union")
"""Filters that take seconds to decide."""
_MADE_OF_OTHERS = ("composed", "self_composed", "poisson_sampled", "sampled_without_replacement")
LEAVES = tuple(kind for kind in m.KINDS if kind not in _MADE_OF_OTHERS)


class Draw(random.Random):
    """Random values, most of them ordinary, some anywhere in a range, some at its ends."""

    def size(self, low: float, high: float) -> float:
        """A number whose logarithm is uniform."""
        return min(max(10.0 ** self.uniform(math.log10(low), math.log10(high)), low), high)

    def wide(self, low: float, high: float, least: float, most: float) -> float:
        """From `low` to `high` most of the time, else from `least` to `most`, or one of these."""
        place = self.random()
        if place < 0.7:
            return self.size(low, high)
        return self.size(least, most) if place < 0.95 else self.choice((least, most))

    def eps(self) -> float:
        return self.wide(1e-3, 5.0, forms.LEAST_SIZE, forms.LARGEST_SIZE)

    def noise(self, sensitivity: float, most: float = forms.LARGEST_SIZE) -> float:
        return sensitivity / self.wide(1e-3, 3.0, forms.LEAST_SIZE, most)

    def sensitivity(self) -> float:
        return self.choice((1.0, 1.0, 0.0, self.size(1e-3, 1e3)))

    def rate(self) -> float:
        return self.choice((0.0, 1.0, 0.5, self.wide(1e-4, 1.0, *forms.RANGES["sampling_rate"])))

    def delta(self) -> float:
        return self.choice((0.0, self.wide(1e-9, 1e-3, forms.RANGES["delta"][0], 0.9)))

    # -- mechanisms ---------------------------------------------------------------------

    def mechanism(self, depth: int = 0) -> m.Mechanism:
        place = self.random()
        if depth < 2 and place < 0.1:
            parts = [self.mechanism(depth + 1) for _ in range(self.randint(1, 4))]
            if set.intersection(*(set(part.supported) for part in parts)):
                return m.Composed(tuple(parts))
        if depth < 2 and place < 0.2:
            count = self.choice((0, 1, 2, 5, 20, 100, 10**4, 10**6))
            return m.SelfComposed(self.mechanism(depth + 1), count)
        if depth < 2 and place < 0.27:
            inner = self.mechanism(2)
            if {"add-remove", "zero-out"} & set(inner.supported):
                return m.PoissonSampled(inner, self.rate())
        if depth < 2 and place < 0.32:
            size, inner = self.choice((1, 10, 1000, 10**6)), self.mechanism(2)
            if "replace-one" in inner.supported:
                return m.SampledWithoutReplacement(inner, size, self.randint(0, size))
        return self.leaf(self.choice(LEAVES))

    def leaf(self, kind: str) -> m.Mechanism:
        largest = forms.RANGES["sensitivity of discrete_laplace"][1]
        s, k = self.sensitivity(), self.choice((0, 1, 1, 2, 3, 10, 50, largest))
        if kind == "gaussian":
            return m.Gaussian(sigma=self.noise(s or 1.0), sensitivity=s)
        if kind == "laplace":
            return m.Laplace(self.noise(s or 1.0), s)
        if kind == "discrete_gaussian":
            sigma = self.wide(0.5, 50.0, *forms.RANGES["sigma of discrete_gaussian"])
            if self.random() < 0.3:
                sigma, k = self.size(1e-2, 1e9), self.choice((k, self.randint(1, 10**6)))
            return m.DiscreteGaussian(sigma=sigma, sensitivity=k)
        if kind == "discrete_laplace":
            if self.random() < 0.3:
                k = self.randint(1, 10**9)
            return m.DiscreteLaplace(self.noise(k or 1), k)
        if kind == "truncated_laplace":
            scale = self.noise(s or 1.0)
            bound = self.wide(1.0, 60.0, forms.LEAST_SIZE, forms.LARGEST_SIZE)
            return m.TruncatedLaplace(scale, scale * bound, s)
        if kind == "randomized_response":
            buckets = self.choice((2, 2, 3, 10, 1000, sizes.LARGEST_PROVABLE_COUNT))
            if self.random() < 0.6:
                return m.RandomizedResponse(eps=self.eps(), num_buckets=buckets)
            return m.RandomizedResponse(
                num_buckets=buckets, noise_parameter=self.choice((1.0, self.random()))
            )
        if kind == "exponential_mechanism":
            return m.ExponentialMechanism(self.eps(), self.random() < 0.5)
        if kind == "report_noisy_max":
            noise = self.choice(("laplace", "gumbel", "exponential"))
            return m.ReportNoisyMax(self.noise(s or 1.0), noise, s, self.random() < 0.5)
        if kind == "subsampled_gaussian":
            return m.SubsampledGaussian(self.noise(s or 1.0, 20.0), self.rate(), s)
        if kind == "mixture_of_gaussians":
            return self._mixture()
        if kind == "pure_dp":
            return m.PureDp(self.choice((0.0, self.eps(), self.eps())))
        if kind == "approximate_dp":
            return m.ApproximateDp(self.choice((0.0, self.eps(), self.eps())), self.delta())
        if kind == "gdp":
            return m.Gdp(self.eps())
        if kind == "zcdp":
            rho = self.wide(1e-6, 1.0, *forms.RANGES["rho"])
            xi, delta = self.choice((0.0, self.eps())), self.choice((0.0, 0.0, self.delta()))
            return m.Zcdp(self.choice((0.0, rho, rho, rho)), xi, delta)
        if kind == "rdp":
            orders = sorted(1.0 + self.size(1e-2, 100.0) for _ in range(self.randint(1, 5)))
            rho = self.size(1e-6, 1.0)
            return m.Rdp(tuple(orders), tuple(rho * order for order in orders))
        if kind == "from_atoms":
            return self._atoms()
        assert kind == "from_tradeoff", f"random instances of {kind} are missing"
        return self._tradeoff()

    def _mixture(self) -> m.Mechanism:
        weights = [self.random() for _ in range(self.randint(1, 5))]
        shifts = [self.choice((0.0, self.random(), self.size(1e-3, 1.0))) for _ in weights]
        sigma = self.noise(1.0, forms.RANGES["sensitivity / sigma of subsampled_gaussian"][1])
        return m.MixtureOfGaussians(
            sigma, tuple(shifts), tuple(weight / sum(weights) for weight in weights)
        )

    def _atoms(self) -> m.Mechanism:
        count = self.randint(1, 6)
        p, q = (
            [max(self.random(), 1e-3) ** self.choice((1, 1, 8, 90)) for _ in range(count)]
            for _ in range(2)
        )
        lost, gone = self.delta(), self.delta()
        p = [each / sum(p) * (1.0 - lost) for each in p]
        q = [each / sum(q) * (1.0 - gone) for each in q]
        return m.FromAtoms(tuple(map(lambda a, b: math.log(a / b), p, q)), tuple(p), lost)

    def _tradeoff(self) -> m.Mechanism:
        eps = self.size(1e-3, 3.0)
        alphas = sorted({0.0, 1.0, *(self.random() for _ in range(self.randint(1, 8)))})
        betas = [max(0.0, 1 - math.exp(eps) * a, math.exp(-eps) * (1 - a)) for a in alphas]
        return m.FromTradeoff(tuple(alphas), (*betas[:-1], 0.0))

    # -- filters ------------------------------------------------------------------------

    def filter(self, kind: str) -> rz.Filter:
        eps, delta = self.wide(0.1, 5.0, 1e-3, 50.0), self.size(1e-10, 1e-2)
        if kind == "pure":
            return rz.PureFilter(self.wide(0.1, 10.0, forms.LEAST_SIZE, 600.0))
        if kind == "basic":
            slack = self.choice((delta, 0.5, 0.0))
            return rz.BasicFilter(self.wide(0.1, 10.0, forms.LEAST_SIZE, 600.0), slack)
        if kind == "renyi":
            low, high = provable.FILTER_RANGES["alpha - 1"]
            alpha = 1.0 + self.wide(0.1, 50.0, 2 * low, high / 2)
            return rz.RenyiFilter(alpha, self.wide(0.1, 50.0, 1e-9, 1e6))
        if kind == "renyi_curve":
            orders = [1.0 + self.wide(0.1, 50.0, 1e-3, 1e4) for _ in range(self.randint(1, 4))]
            return rz.RenyiCurveFilter({a: self.wide(0.1, 50.0, 1e-6, 1e6) for a in orders})
        if kind == "zcdp":
            return rz.ZcdpFilter(self.wide(0.01, 50.0, 1e-12, 1e6))
        if kind == "approximate_zcdp":
            aside, way = self.choice((0.5, 0.1)), self.choice(("best", "whitehouse"))
            return rz.ApproximateZcdpFilter(eps, delta, delta * aside, way)
        if kind in ("gdp", "gdp_residue"):
            mu = self.wide(0.1, 10.0, *provable.FILTER_RANGES["mu"])
            return rz.GdpFilter(mu) if kind == "gdp" else rz.GdpResidueFilter(mu)
        if kind == "approximate_gdp_residue":
            return rz.ApproximateGdpResidueFilter(self.wide(0.1, 10.0, 1e-6, 60.0), self.delta())
        if kind == "renyi_commit":
            return rz.RenyiCommitFilter(eps, delta)
        if kind == "auto":
            return rz.AutoFilter(self.choice((0.5, 1.0, 3.0)), self.choice((1e-6, 1e-9)))
        if kind == "menu":
            prices = self.choice(((100,), None))
            return rz.MenuFilter(self.choice((1.0, 3.0)), 1e-6, (rz.pure_dp(0.25),), prices)
        if kind == "plan":
            one = self.choice((m.PureDp(0.05), m.Laplace(20.0), m.Gaussian(sigma=20.0)))
            return rz.PlanFilter(1.0, 1e-6, (one, m.PureDp(0.03)) * self.randint(2, 10))
        if kind == "natural":
            return self._natural()
        if kind == "union":
            return self._union()
        assert kind == "additive_profile", f"random instances of {kind} are missing"
        return AdditiveProfileFilter(self.size(0.1, 3.0), delta, self.randint(1, 20))

    def _union(self) -> rz.Filter:
        kinds = self.sample([kind for kind in FILTERS if kind not in SLOW], self.randint(1, 4))
        components = [self.filter(each) for each in kinds]
        stated = [getattr(each, "eps", 0.0) for each in components]
        stated += [getattr(each, "target_eps", 0.0) for each in components]
        return rz.UnionFilter(tuple(components), min(max(*stated, self.size(0.1, 5.0)), 600.0))

    def _natural(self) -> rz.Filter:
        place = self.random()
        if place < 0.3:
            return rz.NaturalFilter(rz.pure_dp(self.size(0.1, 10.0)))
        if place < 0.6:
            return rz.NaturalFilter(rz.gaussian(mu=self.size(0.1, 5.0)), None, "gaussian")
        if place < 0.7:
            budget = rz.approximate_dp(0.0, self.size(1e-6, 0.1))
            return rz.NaturalFilter(budget, None, "pure_delta")
        budget = rz.approximate_dp(self.size(0.1, 3.0), self.size(1e-6, 1e-2))
        return rz.NaturalFilter(budget, self.randint(1, 20))
