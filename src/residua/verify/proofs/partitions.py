"""Whether a partition promises no more than the budget it is a part of.

A partition does not charge its parent: it is the parent's promise for the units in it, so what its
filter guarantees must lie below what the parent's does. Under replace-one a unit may move from one
partition to another, and any two must lie below it together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from residua.provable.forms import LARGEST_SIZE
from residua.provable.partitions import POINTS, unpromised_partition
from residua.verify.arithmetic import BITS, ball, bits, exact, upper, written
from residua.verify.descriptions.configurations import FAMILIES, UNREADABLE, misconfigured
from residua.verify.descriptions.mechanisms import loss_of, response
from residua.verify.losses.factors import Infinite, Loss, Stated, Unknown
from residua.verify.losses.hockey_stick import larger_height
from residua.verify.proofs.additive import renyi
from residua.verify.proofs.concentrated import zcdp
from residua.verify.proofs.gaussian_budget import approximate_gdp_residue, gdp_residue
from residua.verify.proofs.natural import pure_budget
from residua.verify.proofs.order import basic, below, within
from residua.verify.proofs.verdict import Proof, all_of, proven, refuted, undecided


@dataclass(frozen=True)
class Part:
    """A partition's place: its parent's configuration, and those it must fit beside."""

    cap: Any
    beside: tuple[Any, ...] = ()
    alike: bool = False
    """Whether its own filter begins as the parent's does, tables and all."""

    @property
    def plain(self) -> list[Any]:
        return [self.alike, self.cap, *self.beside]

    def prove(self, config: Any) -> Proof:
        """Whether a partition with this configuration keeps the parent's promise."""
        if self.cap is None:
            return undecided("the filter of the parent is not here")
        try:
            for each in (config, self.cap, *self.beside):
                wrong = misconfigured(each)
                if wrong is not None:
                    return refuted(wrong)
            alone = proven("the parent's own filter")
            for each in self.beside if self.alike else (config, *self.beside):
                # Two partitions are compared with the parent together under replace-one alone.
                relation = "replace-one" if self.beside else "add-remove"
                why = unpromised_partition(self.cap, each, relation)
                if why is not None:
                    return undecided(f"no ledger creates this partition: {why}")
            proofs = [alone if self.alike else _under(self.cap, guarantee_of(config))]
            for other in self.beside:
                proofs.append(_under(self.cap, guarantee_of(config) + guarantee_of(other)))
        except Unknown as error:
            return undecided(f"not shown to keep the parent's promise: {error}")
        except Infinite as error:
            return refuted(f"exceeds the parent's promise: {error}")
        except UNREADABLE as error:
            return undecided(f"the filters cannot be read: {error!r}")
        found = all_of(proofs)
        if found.verdict == "proven":
            return proven("the partition promises no more than its parent")
        word = "exceeds" if found.verdict == "refuted" else "not shown to keep"
        return Proof(found.verdict, f"{word} the parent's promise: {found.reason}")


def guarantee_of(config: Mapping[str, Any]) -> Loss:
    """The guarantee of a filter: not a bound but exact, so that more than it is refuted."""
    kind = config["kind"]
    if kind == "pure":
        return response(config["eps"])
    if kind in POINTS:
        return response(config["eps"], config["delta"])
    if kind == "additive_profile" and config["target_eps"] <= LARGEST_SIZE:
        return response(config["target_eps"], config["target_delta"])
    if kind in ("gdp", "gdp_residue"):
        return Loss(variance=written(config["mu"]) ** 2)
    if kind == "approximate_gdp_residue":
        return Loss(variance=written(config["mu"]) ** 2) + response(0.0, config["delta"])
    if kind == "zcdp":
        return Loss(stated=((Stated(written(config["rho"]), Fraction(0)), 1),))
    if kind in ("renyi", "renyi_curve"):
        return Loss(stated=((Stated(None, Fraction(0), _orders(config)), 1),))
    if kind == "union":
        return response(config["eps"], union_delta(config))
    if kind == "natural":
        return _budget(config)
    raise Unknown(f"no formula for what {kind} guarantees")


def union_delta(config: Mapping[str, Any]) -> float:
    """The deltas of all components at the union's `eps`, added up and rounded up to a float.

    Those that are not stated are known to far more digits than a float has.
    """
    total = Fraction(0)
    with bits(BITS):
        for each in config["filters"]:
            if each["kind"] in POINTS:
                total += exact(each.get("delta", 0.0))
                continue
            height = larger_height(guarantee_of(each), ball(exact(config["eps"])))
            if height is None:
                raise Unknown(f"no formula for the delta of {each['kind']}")
            total += upper(height)
    near = float(total)
    return near if Fraction(near) >= total else math.nextafter(near, math.inf)


def _budget(config: Mapping[str, Any]) -> Loss:
    """The budget of a natural filter, where that is what it guarantees."""
    budget, family = loss_of(config["budget"], None), config.get("catalogue")
    if family not in FAMILIES and (family is not None or pure_budget(budget) is None):
        raise Unknown("no formula for what natural guarantees")
    return budget


def _orders(config: Mapping[str, Any]) -> tuple[tuple[Fraction, Fraction], ...]:
    pairs = (
        config["curve"] if config["kind"] == "renyi_curve" else [[config["alpha"], config["rho"]]]
    )
    return tuple((written(alpha), written(rho)) for alpha, rho in pairs)


def _under(cap: Mapping[str, Any], loss: Loss) -> Proof:
    """Whether a loss lies below what a filter guarantees."""
    kind, promise = cap["kind"], guarantee_of(cap)
    if below(loss, promise):
        return proven("below the promise")
    if kind == "approximate_gdp_residue":
        whole = written(cap["mu"]) ** 2, written(cap["delta"])
        return approximate_gdp_residue(whole, (Fraction(0), Fraction(0)), loss)
    if kind == "zcdp":
        return zcdp(written(cap["rho"]), loss)
    if promise.stated:
        return all_of([renyi(alpha, rho, loss) for alpha, rho in _orders(cap)])
    point = promise.point
    if point is not None:
        # By sums as they are written, or by the curve.
        sums = basic((point.written_eps, point.written_delta), loss)
        return sums if sums.verdict == "proven" else within(loss, point.eps, point.delta)
    if promise.factors:
        raise Unknown(f"no formula for what lies below the promise of {kind}")
    return gdp_residue(promise.variance, Fraction(0), loss)
