"""The pictures of the documentation: every number in a caption against an oracle of its own."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from mpmath import mp, mpf

import adversary_oracles as oracles
import residua as rz
from oracles import gaussian, gaussian_tradeoff
from residua.adversary import natural_attack
from residua.adversary.natural_guarantee import moment_bound
from residua.figures import gallery
from residua.figures.counterexamples import (
    Counterexample,
    gaussian_budgets,
    natural_filter_fails,
)
from residua.figures.gallery import GALLERY, GuaranteePicture, guarantee_by_rounds
from residua.figures.picture import Picture, tradeoff_line
from residua.figures.strategy import COIN, REVEAL, StrategyPicture
from residue_oracles import Check
from snippets import ROOT

Curve = Callable[[mpf], mpf]


@pytest.fixture(scope="module")
def pictures() -> dict[str, Picture]:
    """All of them; the guarantee at the rounds that its caption names."""
    named = {name: make(lambda done, whole: None) for name, make in GALLERY.items()
             if name != GuaranteePicture.name}  # fmt: skip
    return {**named, GuaranteePicture.name: guarantee_by_rounds(rounds=(2, 10, 50))}


# -- the GDP residue ----------------------------------------------------------------------------


def test_the_papers_two_panels() -> None:
    picture = gallery.gdp_residue_panels()
    first, second, _ = picture.panels
    assert (round(first.mu_res, 4), round(first.mu_naive, 4)) == (1.9365, 1.9002)
    assert (round(second.mu_res, 4), round(second.mu_naive, 4)) == (0.8600, 0.7815)
    assert (round(first.gain, 3), round(second.gain, 3)) == (0.036, 0.078)
    for said in ("mu = 1.9002", "1.9365", "0.0363", "mu = 0.7815", "0.8600", "0.0785"):
        assert said in picture.caption


EPS = {"a": "0.5", "b": "0.5", "c": "0.98"}


def _panel(letter: str) -> gallery.ResiduePanel:
    return gallery.gdp_residue_panels().panels["abc".index(letter)]


@pytest.mark.parametrize("letter", EPS)
def test_residues_touch_the_budget_and_no_more(letter: str) -> None:
    """By definition, in ball arithmetic: what is left fits, and a millionth more would not."""
    panel = _panel(letter)
    assert panel.query == rz.pure_dp(float(EPS[letter]))
    with mp.workdps(70):
        e = Fraction(str(mp.nstr(mp.exp(mpf(EPS[letter])), 60)))
    pairs = [(e / (1 + e), 1 / (1 + e)), (1 / (1 + e), e / (1 + e))]
    v = Fraction(panel.mu) ** 2
    check = Check(pairs, v)
    grid = [float(t) for t in np.linspace(-6.0, 8.0, 57)]
    assert check.largest(v - Fraction(panel.mu_res) ** 2, grid)[0] <= 1e-12
    assert check.largest(v - Fraction(panel.mu_res + 1e-5) ** 2, grid)[0] > 0.0


def test_the_third_panel_is_what_the_paper_says_of_its_own() -> None:
    """A pure-DP query on a Gaussian budget, a gain of 0.147, and little of the budget unused."""
    picture = gallery.gdp_residue_panels()
    panel = picture.panels[2]
    assert (panel.mu, panel.query) == (2.0, rz.pure_dp(0.98))
    assert (round(panel.mu_naive, 4), round(panel.mu_res, 4)) == (1.5938, 1.7409)
    assert round(panel.gain, 4) == 0.1471
    with mp.workdps(40):
        nu = -2 * _quantile(1 / (1 + mp.exp(mpf("0.98"))))
        naive = mp.sqrt(4 - nu**2)
    assert panel.mu_naive <= naive
    assert panel.mu_naive == pytest.approx(float(naive), abs=1e-9)
    for said in (
        "mu = 1.5938",
        "1.7409",
        "a gain of 0.1471",
        "parameters behind the paper's third",
    ):
        assert said in picture.caption


@pytest.mark.parametrize(("letter", "most"), [("a", 0.0007), ("b", 0.0037), ("c", 0.0103)])
def test_the_residue_leaves_little_unused(letter: str, most: float) -> None:
    """On a grid over the whole line; beyond it both curves are too close to 0 or to 1 - x."""
    picture = gallery.gdp_residue_panels()
    panel = _panel(letter)
    e = mp.exp(mpf(EPS[letter]))

    def unused(mu: float, t: float) -> mpf:
        x = mp.exp(mpf(t))
        follow = (e * gaussian(mpf(mu), x / e) + gaussian(mpf(mu), x * e)) / (1 + e)
        return gaussian(mpf(panel.mu), x) - follow

    with mp.workdps(30):
        grid = [float(t) for t in np.linspace(-20.0, 20.0, 1601)]
        by_residue = [unused(panel.mu_res, t) for t in grid]
        by_subtraction = [unused(panel.mu_naive, t) for t in grid]
        assert gaussian(mpf(panel.mu), mp.exp(mpf(20))) < 1e-9
    assert -1e-12 <= min(by_residue) <= by_residue[800] <= 1e-9, "it touches the budget at x = 1"
    assert most - 1e-4 < max(by_residue) <= most
    assert f"{most:.4f}" in picture.caption
    assert panel.unused == pytest.approx(float(max(by_residue)), abs=1e-6)
    assert max(by_subtraction) > 5 * max(by_residue)


def test_the_panels_draw_the_residual_budgets() -> None:
    """Six curves in each panel: budget, query, both residual budgets, both compositions."""
    picture = gallery.gdp_residue_panels()
    for panel, axes in zip(picture.panels, picture.draw().axes[:3], strict=True):
        drawn = {str(line.get_label()): line for line in axes.lines}
        assert len(drawn) == 6
        for label, mu in (
            ("budget", panel.mu),
            ("what the GDP filter leaves", panel.mu_naive),
            ("what the residue filter leaves", panel.mu_res),
        ):
            at = np.interp(0.1, *drawn[label].get_data())
            assert at == pytest.approx(float(gaussian_tradeoff(mpf(mu), mpf("0.1"))), abs=1e-3)


def _quantile(p: mpf) -> mpf:
    return mp.sqrt(2) * mp.erfinv(2 * p - 1)


# -- counterexamples ----------------------------------------------------------------------------


def _response(eps: float, delta: float = 0.0) -> Curve:
    def h(x: mpf) -> mpf:
        e, d = mp.exp(mpf(eps)), mpf(delta)
        up, down = (1 - d) * e / (1 + e), (1 - d) / (1 + e)
        return d + max(up - x * down, mpf(0)) + max(down - x * up, mpf(0))

    return h


def _after(eps: float, delta: float, follow: Curve) -> Curve:
    """`R_{eps,delta}` first, then what `follow` is the curve of."""

    def h(x: mpf) -> mpf:
        e, d = mp.exp(mpf(eps)), mpf(delta)
        return d + (1 - d) * (e * follow(x / e) + follow(x * e)) / (1 + e)

    return h


def _better(one: Curve, two: Curve) -> Curve:
    return lambda x: max(one(x), two(x))


ONE = _response(1.0)
CASES = {
    "approximate": (
        lambda: natural_filter_fails().panels[0], (1.404, 0.0208),
        _response(0.0847, 0.478), _response(1.404, 0.0208), _response(1.395, 0.509), 1e-15,
    ),
    "pure": (
        lambda: natural_filter_fails().panels[1], (1.0, 0.0),
        _response(1.2), _after(1.0, 0.0, ONE),
        _better(_after(1.0, 0.0, _response(1.2)), _after(1.0, 0.0, _after(1.0, 0.0, ONE))), 1e-11,
    ),
    "Gaussian": (
        lambda: gaussian_budgets().panels[0], (0.5, 0.0),
        _response(0.78), lambda x: gaussian(mpf("0.8599"), x),
        lambda x: gaussian(mpf(1), x), 2e-4,
    ),
    "Gaussian with delta": (
        lambda: gaussian_budgets().panels[1], (0.84, 0.028),
        _response(0.33, 0.155), _response(0.84, 0.028),
        lambda x: mpf(0.2) + (1 - mpf(0.2)) * gaussian(mpf(1), x), 1e-13,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_counterexamples(name: str) -> None:
    """Delta at the witness by hand; each plan fits at every threshold tried."""
    make, (eps, delta), a, c, budget, near = CASES[name]
    panel = make()
    assert isinstance(panel, Counterexample)
    with mp.workdps(30):
        x = mp.exp(mpf(panel.eps))
        real, promised = _after(eps, delta, _better(a, c))(x), budget(x)
        assert panel.real <= real * (1 + mpf(2) ** -50)
        assert real - panel.real <= near
        assert 0 <= panel.promised - promised + mpf(2) ** -50 <= near + mpf(2) ** -50
        for t in np.linspace(-4.0, 4.0, 81):
            at = mp.exp(mpf(float(t)))
            for plan in (a, c):
                assert _after(eps, delta, plan)(at) <= budget(at) + mpf(10) ** -20
    for number in (real, promised, real - promised):
        assert f"{float(number):.4f}" in panel.summary or near > 1e-5
    assert f"eps = {panel.eps:.3f}" in panel.summary


def test_counterexamples_have_the_known_numbers() -> None:
    approximate, pure = natural_filter_fails().panels
    assert (round(approximate.promised, 3), round(approximate.real, 3)) == (0.509, 0.597)
    assert round(approximate.eps, 3) == 1.395
    assert round(pure.gap, 3) == 0.025
    caption = natural_filter_fails().caption
    assert "delta 0.5970 where 0.5090 is promised at eps = 1.395" in caption
    assert "a gap of 0.0250" in caption
    smooth = gaussian_budgets()
    assert all(panel.gap > 0.02 for panel in smooth.panels)
    for panel in smooth.panels:
        assert f"a gap of {panel.gap:.4f}" in smooth.caption


# -- the strategy and its gain --------------------------------------------------------------


def test_gain_over_rounds_is_that_of_brute_force(pictures: dict[str, Picture]) -> None:
    picture = pictures[StrategyPicture.name]
    assert isinstance(picture, StrategyPicture)
    x = Fraction(math.exp(1.0))
    coin, reveal = oracles.law(COIN), oracles.law(REVEAL)
    with mp.workdps(60):  # e lies strictly between: no composition has a curve of 1/8 in there
        near = Fraction(str(mp.nstr(mp.e, 50)))
    low, high = near - Fraction(1, 10**45), near + Fraction(1, 10**45)

    @cache
    def counted(coins: int, reveals: int) -> bool:
        spent = _composed((coin,) * coins + (reveal,) * reveals)
        verdicts = {oracles.hockey_stick(spent, at) <= Fraction(1, 8) for at in (low, high)}
        assert len(verdicts) == 1
        return verdicts == {True}

    def fits(history: tuple[oracles.Law, ...]) -> bool:
        return counted(history.count(coin), history.count(reveal))

    def allowed(history: tuple[oracles.Law, ...]) -> list[oracles.Law]:
        return [query for query in (coin, reveal) if fits((*history, query))]

    for rounds, (fixed, adaptive) in enumerate(
        zip(picture.fixed[:5], picture.adaptive[:5], strict=True), 1
    ):
        value = oracles.game_value(allowed, rounds, x)
        assert Fraction(adaptive) <= value
        assert adaptive == pytest.approx(float(value), rel=1e-15)
        plans = [
            plan
            for length in range(rounds + 1)
            for plan in combinations_with_replacement((coin, reveal), length)
            if fits(plan)
        ]
        best = max(oracles.hockey_stick(_composed(plan), x) for plan in plans)
        assert fixed == pytest.approx(float(best), rel=1e-9)
        assert fixed <= picture.promised
        if adaptive > picture.promised:
            assert f"{float(value):.4f} in {rounds}" in picture.caption
    assert picture.rounds == 5 and f"{float(value) / 0.125:.2f} times" in picture.caption
    reached = oracles.hockey_stick(oracles.strategy_law(picture.strategy), x)
    assert reached == value, "the tree that is drawn attains it"


def _composed(plan: tuple[oracles.Law, ...]) -> oracles.Law:
    spent: oracles.Law = ((Fraction(1), Fraction(1)),)
    for query in plan:
        spent = oracles.compose(spent, query)
    return spent


# -- the guarantee ------------------------------------------------------------------------------


def _proven_delta(eps: float, target: float) -> mpf:
    """The theorem for the cut that was found, with fifty digits."""
    with mp.workdps(50):
        t, d = mpf(1), mpf(1e-6)
        jump, level, order = map(mpf, moment_bound(1.0, 1e-6, target)[0])
        c = 1 - mp.exp(t - jump)
        assert jump > t and level > t and d / c < 2 * mp.sqrt(c * c - 2 * d)
        risks = [d * mp.exp(order * z) / (1 - mp.exp(t - z)) for z in (level, level + jump)]
        moment = mp.exp(order * level) / (1 - max(risks))
        assert max(risks) < 1
        x = order / (order + 1)
        return c - mp.sqrt(c * c - 2 * d) + (1 - x) * x**order * moment * mp.exp(-order * eps)


def _played(rounds: int, eps: float) -> float:
    """Delta of the strongest known adversary, forwards through its blocks, by direct sums."""
    found = natural_attack(rz.approximate_dp(1.0, 1e-6), rounds, eps)
    up = 1.0 / (1.0 + math.exp(-found.size))

    def flips(n: int) -> np.ndarray:
        law = [math.comb(n, j) * up**j * (1.0 - up) ** (n - j) for j in range(n + 1)]
        return np.array(law)

    mass, copies, reached = np.ones(1), 0, 0.0
    for block in found.blocks:
        mass = np.convolve(mass, flips(block.copies - copies))
        copies, last = block.copies, np.array(block.last)
        z = found.size * (2.0 * np.arange(copies + 1) - copies)
        law = flips(copies)
        for number, ending in enumerate(block.endings):
            losses, shares = _atoms(ending)
            at = np.maximum(-np.expm1(eps - np.add.outer(z, losses)), 0.0) @ shares
            fits = np.maximum(-np.expm1(1.0 - np.add.outer(z, losses)), 0.0) @ shares
            assert law @ fits <= 1e-6 * (1 + 1e-9), "what is asked keeps the budget"
            reached += float(mass[last == number] @ at[last == number])
        mass = np.where(last >= 0, 0.0, mass)
    assert not mass.any(), "it always stops"
    return reached


def _atoms(loss: rz.Pld) -> tuple[np.ndarray, np.ndarray]:
    if loss.is_identity:
        return np.zeros(1), np.ones(1)
    atoms = next(iter(loss.terms)).exact
    shares = np.array([p / atoms.p_den for p in atoms.p])
    return np.array([math.log(atoms.kink(i)) for i in range(len(atoms))]), shares


def test_guarantees_hold_by_the_theorem(pictures: dict[str, Picture]) -> None:
    picture = pictures[GuaranteePicture.name]
    assert isinstance(picture, GuaranteePicture)
    assert list(picture.proven) == sorted(picture.proven, reverse=True)
    for times, eps in zip(picture.times, picture.proven, strict=True):
        shown = _proven_delta(eps, times * 1e-6)
        assert shown <= times * mpf("1e-6") <= shown * (1 + mpf("1e-6")), "just so"
    for times, most in ((2, 3.92), (10, 2.76), (100, 2.17)):
        assert picture.proven[picture.times.index(times)] <= most
        assert f"{most} at {times} delta" in picture.caption


def test_what_the_adversary_reaches_by_direct_sums(pictures: dict[str, Picture]) -> None:
    picture = pictures[GuaranteePicture.name]
    assert isinstance(picture, GuaranteePicture)
    places = [(k, 1.0, picture.reached[picture.rounds.index(k)]) for k in (2, 10)]
    places.append((20, picture.attacked[2], picture.attack[2]))
    for rounds, eps, reached in places:
        played = _played(rounds, eps) / 1e-6
        assert reached <= played <= reached * (1 + 1e-6)
        said = re.search(
            rf"([0-9.]+) in {rounds}\b" if eps == 1.0 else rf"([0-9.]+) delta at {eps:g}\b",
            picture.caption,
        )
        assert said is not None and float(said[1]) <= reached < float(said[1]) + 0.011
    assert picture.reached[-1] > 14.0 and "14.25 in 50" in picture.caption
    for eps, reached in zip(picture.attacked, picture.attack, strict=True):
        assert eps <= np.interp(reached, picture.times, picture.proven)


# -- files --------------------------------------------------------------------------------------


def test_committed_files_are_current(pictures: dict[str, Picture]) -> None:
    """The caption in each file is what a run says today; `make figures` draws them anew."""
    for name, picture in pictures.items():
        path = ROOT / "docs" / "figures" / f"{name}.svg"
        assert path.stat().st_size < 150_000
        root = ElementTree.parse(path).getroot()
        (said,) = [node.text for node in root.iter() if node.tag.endswith("}description")]
        assert said == picture.caption, "run: make figures"
    page = (ROOT / "docs" / "why-the-natural-filter-fails.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(figures/([\w-]+)\.svg\)", page)) == set(GALLERY)
    committed = {path.stem for path in (ROOT / "docs" / "figures").glob("*")}
    # Those of the benchmarks are drawn by `make bench`.
    assert {name for name in committed if not name.startswith("bench-")} == set(GALLERY)


@pytest.mark.parametrize("name", GALLERY)
def test_pictures_are_drawn_without_overlaps(name: str, pictures: dict[str, Picture]) -> None:
    figure = pictures[name].draw()
    FigureCanvasAgg(figure).draw()
    boxes = []
    for axes in figure.axes:
        assert axes.get_xlim()[0] < axes.get_xlim()[1]
        texts = [*axes.texts, axes.title, axes.xaxis.label, axes.yaxis.label]
        boxes += [(t.get_text(), t.get_window_extent()) for t in texts if t.get_text()]
        if axes.get_legend() is not None:
            boxes.append(("legend", axes.get_legend().get_window_extent()))
    boxes += [(t.get_text(), t.get_window_extent()) for t in figure.texts]
    width, height = figure.bbox.width, figure.bbox.height
    for i, (text, box) in enumerate(boxes):
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, text
        for other, others in boxes[i + 1 :]:
            assert not box.overlaps(others), f"{text!r} covers {other!r}"


def test_lines_are_the_curves() -> None:
    for pld, exact in (
        (rz.gaussian(mu=1.3), lambda a: gaussian_tradeoff(mpf("1.3"), a)),
        (rz.approximate_dp(1.395, 0.509), lambda a: _corner(mpf(1.395), mpf(0.509), a)),
    ):
        alpha, beta = tradeoff_line(pld)
        for a in (0.01, 0.05, 0.2, 0.3, 0.45, 0.8):
            drawn = float(np.interp(a, alpha, beta))
            assert drawn == pytest.approx(float(exact(mpf(a))), abs=1e-3)


def _corner(eps: mpf, delta: mpf, alpha: mpf) -> mpf:
    e = mp.exp(eps)
    return max(mpf(0), 1 - delta - e * alpha, (1 - delta - alpha) / e)


def test_numbers_are_plain_data(pictures: dict[str, Picture]) -> None:
    import json

    for picture in pictures.values():
        assert json.loads(json.dumps(picture.numbers(), allow_nan=False))
