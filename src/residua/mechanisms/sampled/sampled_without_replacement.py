"""A mechanism run on a sample of fixed size, drawn without replacement.

Replace-one only: the sizes are public. With `γ = sample_size / source_size` and `(A, B)` the
mechanism's pair for a replaced record, the curve for `x >= 1` is that of `(1-γ) B + γ A` against
`B`, and the same for the reversal (Zhu, Dong and Wang 2022, theorem 11). No single pair of data
sets attains both halves (Lebeda, Regehr, Kamath and Steinke 2024): this PLD is a supremum.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from residua import checks
from residua.bounds import float_down, float_up
from residua.mechanisms.mechanism import Mechanism, Side, mechanism
from residua.mechanisms.relations import REPLACE_ONE
from residua.pld.amplification import sampling
from residua.pld.pld import Pld


@dataclass(frozen=True)
class SampledWithoutReplacement(Mechanism):
    """`mechanism` on `sample_size` of `source_size` records, all subsets equally likely."""

    mechanism: Mechanism
    source_size: int
    sample_size: int

    kind: ClassVar[str] = "sampled_without_replacement"
    relations: ClassVar[tuple[str, ...]] = (REPLACE_ONE,)
    pair: ClassVar[str] = "x ≥ 1: (1-γ) B + γ A | B, for its pair A | B; x < 1: mirrored"
    reference: ClassVar[str] = "Zhu, Dong and Wang 2022, theorem 11"

    def __post_init__(self) -> None:
        mechanism("mechanism", self.mechanism)
        checks.require(
            REPLACE_ONE in self.mechanism.supported,
            "mechanism",
            "one with a replace-one pair, to be sampled without replacement",
            self.mechanism,
        )
        source = checks.count("source_size", self.source_size)
        sample = checks.count("sample_size", self.sample_size)
        checks.require(source >= 1, "source_size", "at least 1", source)
        checks.require(sample <= source, "sample_size", f"at most source_size={source}", sample)
        checks.set_fields(self, source_size=source, sample_size=sample)

    def _plds(self, relation: str, accuracy: float, side: Side) -> dict[str, Pld]:
        inner = self.mechanism.pld(relation=relation, accuracy=accuracy, side=side)
        share = Fraction(self.sample_size, self.source_size)
        # A larger rate loses more.
        rate = float_up(share) if side == "above" else float_down(share)
        return {"replace": sampling.without_replacement(inner, rate, accuracy, side)}
