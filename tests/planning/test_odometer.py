"""The odometer: its bound holds at all times at once, whatever is asked next."""

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath as mp
import pytest

import residua as rz
from residua.filters.base import Filter

Answers = tuple[int, ...]
Strategy = Callable[[Answers], float]


def test_the_reading_is_the_formula() -> None:
    odometer = rz.Odometer(alpha=20.0, delta=1e-6)
    for _ in range(7):
        odometer = odometer.after(rz.gaussian(sigma=5.0))
    with mp.workdps(30):
        exact = 7 * 20 / (2 * mp.mpf(25)) + mp.log(mp.mpf(10) ** 6) / 19
        assert exact <= odometer.reading.eps <= exact * (1 + mp.mpf("1e-12"))
    assert (odometer.reading.delta, odometer.reading.queries) == (1e-6, 7)
    assert "by 7 queries" in str(odometer)


def test_bounded_losses_are_never_read_above_their_sum() -> None:
    odometer = rz.Odometer(alpha=20.0, delta=1e-6)
    assert odometer.reading.eps == 0.0
    odometer = odometer.after(rz.laplace(scale=10.0)).after(rz.pure_dp(0.2))
    assert odometer.reading.eps == pytest.approx(0.3, rel=1e-12)
    assert odometer.after(rz.gaussian(sigma=50.0)).reading.eps > 0.3


@pytest.mark.parametrize(
    "strategy",
    [
        lambda answers: 0.9,
        lambda answers: 1.2 if sum(answers) == len(answers) else 0.1,
        lambda answers: 0.2 if 2 * sum(answers) > len(answers) else 1.5,
        lambda answers: 0.3 * (1 + len(answers)),
    ],
)
@pytest.mark.parametrize("alpha", [1.5, 3.0, 8.0])
def test_an_adaptive_analyst_rarely_outruns_it(strategy: Strategy, alpha: float) -> None:
    """The probability that the loss ever exceeds the reading, over every path of answers."""
    rounds, delta = 5, 0.2
    room = mp.log(1 / mp.mpf(delta)) / (alpha - 1)

    def ever_outrun(answers: Answers, spent: Fraction, loss: Fraction, largest: Fraction) -> mp.mpf:
        """From here on, if it has not been outrun yet."""
        odometer = rz.Odometer(alpha, delta, len(answers), spent, largest)
        # Without the sum of the largest losses, which no loss exceeds: that would hide the rest.
        over = loss - spent
        if mp.mpf(over.numerator) / over.denominator > room:
            return mp.mpf(1)
        assert loss <= largest and odometer.reading.eps <= math.nextafter(float(largest), math.inf)
        if len(answers) == rounds:
            return mp.mpf(0)
        eps = Fraction(strategy(answers))
        after = rz.Odometer(alpha, delta).after(rz.pure_dp(float(eps))).spent + spent
        up = 1 / (1 + mp.exp(-mp.mpf(float(eps))))
        return up * ever_outrun((*answers, 1), after, loss + eps, largest + eps) + (
            1 - up
        ) * ever_outrun((*answers, 0), after, loss - eps, largest + eps)

    assert ever_outrun((), Fraction(0), Fraction(0), Fraction(0)) <= delta


def test_black_boxes_count_as_they_say() -> None:
    odometer = rz.Odometer(alpha=5.0, delta=1e-6)
    odometer = odometer.after(rz.mechanisms.Zcdp(0.01)).after(rz.mechanisms.Gaussian(sigma=10.0))
    assert odometer.spent == Fraction(5, 100) + Fraction(5, 200)
    assert odometer.relation == "add-remove"
    with pytest.raises(rz.ArgumentError, match="relation must be add-remove"):
        odometer.after(rz.mechanisms.Gaussian(sigma=10.0), relation="replace-one")


def test_the_order_is_chosen_before_anything_is_asked() -> None:
    odometer = rz.Odometer.expecting(rho=0.1, delta=1e-6)
    assert odometer.alpha == pytest.approx(1 + math.sqrt(math.log(1e6) / 0.1), rel=1e-5)
    with pytest.raises(AttributeError):
        odometer.alpha = 2.0
    for bad in ({"alpha": 1.0}, {"alpha": math.nan}, {"delta": 0.0}, {"delta": 1.0}):
        with pytest.raises(ValueError):
            rz.Odometer(**{"alpha": 2.0, "delta": 0.1, **bad})
    with pytest.raises(rz.ArgumentError, match="finite Rényi divergence"):
        odometer.after(rz.approximate_dp(0.1, 1e-9))


def test_it_is_no_filter() -> None:
    odometer = rz.Odometer(alpha=2.0, delta=0.1)
    assert not isinstance(odometer, Filter)
    assert not hasattr(odometer, "request") and not hasattr(odometer, "remaining")
