"""A composition that grows query by query and is read after each, like an accountant's.

A read of a `Pld` is a pure function, so it computes the node values of every factor again: `k`
reads of a growing composition take `k²` work. `RunningComposition` keeps the node values of its
last contour and multiplies in those of the new queries (`Contour.extended`), so that a read costs
what the new queries cost. Its reads are proven to the same accuracy; as they depend on which
contour was kept, their last digits may differ from those of the `Pld`.
"""

from __future__ import annotations

from threading import RLock
from typing import Any

import numpy as np

from residua import checks
from residua.bounds import Interval
from residua.pld.constructors import identity
from residua.pld.curve import epsilon
from residua.pld.curve.contour.transform import Contour
from residua.pld.families.gaussian_mixture import GaussianMixture
from residua.pld.pld import ACCURACY, Pld, query

_ROOM = 1.6
"""How much longer than needed the period of a contour is made: aliases grow with more queries."""


class RunningComposition:
    """A composition that is added to and read in turn; safe to use from several threads."""

    def __init__(self, start: Pld | None = None):
        self._lock = RLock()
        self._pld = identity() if start is None else query("start", start)
        self._workspace = self._pld._workspace()
        self._since = identity()

    @property
    def pld(self) -> Pld:
        """Everything composed so far."""
        return self._pld

    def compose(self, loss: Pld) -> None:
        """Compose in one more loss."""
        loss = query("loss", loss)
        with self._lock:
            self._pld, self._since = self._pld + loss, self._since + loss

    def delta(self, eps: Any) -> float:
        """The privacy profile at one `eps`, upper bound."""
        return float(self.delta_bounds(eps).hi)

    def delta_bounds(self, eps: Any) -> Interval:
        """Proven interval for `delta(eps)` at one `eps`, as wide as `Pld.delta_bounds`."""
        t = np.array(checks.finite("eps", eps))
        with self._lock:
            return self._current().delta_bounds(t)

    def epsilon(self, delta: Any) -> float:
        """The least `eps >= 0` with `delta(eps) <= delta`, upper bound (inf if there is none)."""
        return float(self.epsilon_bounds(delta).hi)

    def epsilon_bounds(self, delta: Any) -> Interval:
        """Proven interval for `epsilon(delta)` at one `delta`."""
        level = checks.probability("delta", delta)
        with self._lock:
            return Interval(*map(float, epsilon.search(self._current(), level, ACCURACY)))

    def _current(self) -> Pld:
        """A workspace of everything composed so far, with the last contour extended to it."""
        if self._since.is_identity:
            return self._workspace
        kept, self._workspace = self._workspace._evaluator.contours, self._pld._workspace()
        if self._pld.is_infinite:
            self._since = identity()
            return self._workspace
        extended = self._extended(kept)
        evaluator = self._workspace._evaluator
        # Another contour of mixtures keeps the digits; elsewhere a wider read serves.
        if extended is not None and evaluator._has_mixtures and extended.is_stale:
            extended = None
        evaluator.resume_from(extended, _ROOM)
        self._since = identity()
        return self._workspace

    def _extended(self, kept: tuple[Contour, ...]) -> Contour | None:
        since = self._since
        # Node values of mixtures are for lines right of 0, and nothing is added to a skeleton.
        mixed = any(isinstance(factor, GaussianMixture) for factor in since.terms)
        for made in kept:
            if made.absolute is None and (made.line.lam > 0.0 or not mixed):
                g = since.gaussian
                variance, error = (g.variance, g.variance_error) if g else (0.0, 0.0)
                return made.extended(since.terms, variance, error)
        return None
