"""Captions in pictures: names of PLDs are readable, and whole."""

import pytest

from residua.figures.counterexamples import natural_filter_fails
from residua.figures.picture import wrap


@pytest.mark.parametrize("letters", [20, 40, 142])
def test_captions_have_no_raw_subscripts(letters: int) -> None:
    caption = natural_filter_fails().caption
    lines = wrap(caption, letters)
    assert "R_{1.395, 0.509}" in caption
    assert any("R(1.395, 0.509)" in line for line in lines)
    assert any("R(1.2)" in line for line in lines)
    assert not any(sign in line for line in lines for sign in "_{}$")
    assert max(map(len, lines)) <= letters
