"""The vertical line that a contour sums on, and what depends on it alone (`transform.py`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from residua.bounds import Floats
from residua.pld.arithmetic.ulp_bounds import U


@dataclass(frozen=True)
class Line:
    """The nodes `λ + iω`, `ω = 0, step, …`, and what depends on them alone."""

    lam: float
    step: float
    count: int
    tau: float
    points: Floats
    """Real points at which moments are kept for the alias bound."""

    @cached_property
    def tilts(self) -> Floats:
        """The line's own, and then the points."""
        return np.concatenate([[self.lam], self.points])

    @property
    def edge(self) -> float:
        """The first frequency left out, rounded down."""
        return self.count * self.step * (1.0 - 8.0 * U)

    @cached_property
    def omega(self) -> Floats:
        return np.arange(float(self.count)) * self.step

    @cached_property
    def kernel(self) -> NDArray[np.complex128]:
        """`2 / (T s (s+1))`, half of it at the real node: the sum over `±k` in one."""
        lam, omega = self.lam, self.omega
        square = lam * (lam + 1.0) - omega * omega + 1j * (omega * (2.0 * lam + 1.0))
        return np.asarray(self._scale / square, dtype=np.complex128)

    @cached_property
    def lower_kernel(self) -> NDArray[np.complex128]:
        """The same for `1/(s(s+1)) - κ`."""
        return self.kernel - self.kappa * self._scale

    @cached_property
    def _scale(self) -> Floats:
        scale = np.full(self.count, self.step / math.pi)
        scale[0] *= 0.5
        return scale

    @cached_property
    def kernel_size(self) -> Floats:
        return np.abs(self.kernel)

    @cached_property
    def kernel_reach(self) -> Floats:
        """How fast each term turns with `t`, at most."""
        return self.omega * self.kernel_size

    @cached_property
    def lower_kernel_size(self) -> Floats:
        return self.kernel_size + self.kappa * self._scale

    @cached_property
    def kernel_sums(self) -> tuple[float, float, float, float]:
        """Sums of the kernel's modulus, and of `ω` times it; then those of the lower kernel."""
        size, bent = self.kernel_size, self.lower_kernel_size
        reach = self.kernel_reach
        sums = (size.sum(), reach.sum(), bent.sum(), bent @ self.omega)
        return tuple(float(total) * (1.0 + 1e-9) for total in sums)  # type: ignore[return-value]

    @cached_property
    def kappa(self) -> float:
        return _kappa(self.tau)

    @cached_property
    def alias_sides(self) -> tuple[Floats, Floats]:
        """The log weights right of the line, and left of it; infinite on the other side."""
        gaps, right, _ = self.alias_gaps
        return np.where(right, gaps, math.inf), np.where(right, math.inf, gaps)

    @cached_property
    def alias_gaps(self) -> tuple[Floats, NDArray[np.bool_], float]:
        """Log weight of each point (`A`, geometric series), its side; the bound from `D <= 1`.

        (The complement's is the point 0.)
        """
        period = 2.0 * math.pi / self.step * (1.0 - 16.0 * U)
        r = self.points
        gap = np.abs(r - self.lam) * period
        flat = math.inf
        if self.lam > 0.0:
            flat = math.exp(-self.lam * period) / -math.expm1(-self.lam * period)
        return log_peak(r) - gap - np.log(-np.expm1(-gap)) + 1e-12, r > self.lam, flat


def _kappa(tau: float) -> float:
    """`τ (2Φ(τ/2) - 1) / φ(τ/2)`, rounded up; zero without a smoothing Gaussian."""
    if tau == 0.0:
        return 0.0
    middle = math.erf(tau / (2.0 * math.sqrt(2.0)))
    return tau * middle * math.sqrt(2.0 * math.pi) * math.exp(tau * tau / 8.0) * (1.0 + 64.0 * U)


def log_peak(r: Floats) -> Floats:
    """`ln A(r)`, `A(r) = r^r / (1+r)^(1+r)` for `r > 0`; 0, the complement's, for `r <= 0`."""
    r = np.where(r > 0.0, r, 1e-300)
    return np.asarray(-r * np.log1p(1.0 / r) - np.log1p(r))
