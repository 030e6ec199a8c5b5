"""Caches of texts: the values of the function, and no more characters than they may keep."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from residua import sizes as module
from residua.sizes import sized_cache


def test_what_was_asked_last_is_not_worked_out_again() -> None:
    asked: list[str] = []

    @sized_cache(maxsize=2)
    def upper(text: str) -> str:
        asked.append(text)
        return text.upper()

    assert [upper(one) for one in "abab"] == list("ABAB") and asked == ["a", "b"]
    assert upper("a") == "A" and upper("c") == "C" and asked == ["a", "b", "c"]
    assert upper("a") == "A" and asked == ["a", "b", "c"], "b was used longest ago"
    assert upper("b") == "B" and asked == ["a", "b", "c", "b"]


def test_it_keeps_so_many_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CHARACTERS", 100)
    cached = sized_cache(maxsize=1000)(lambda text, number: (text, number))
    for n in range(50):
        assert cached("x" * n, n) == ("x" * n, n)
        entries, characters = cached.cache_size()  # type: ignore[attr-defined]
        assert characters <= 100 and entries > 0
    assert cached("y" * 101, 0) == ("y" * 101, 0)
    assert cached.cache_size() == (0, 0)  # type: ignore[attr-defined]


def test_the_size_may_be_that_of_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CHARACTERS", 100)
    cached = sized_cache(maxsize=1000, size=len)(lambda n: "x" * n)
    for n in range(40):
        cached(n)
    entries, characters = cached.cache_size()  # type: ignore[attr-defined]
    assert (entries, characters) == (2, 77)
    cached.cache_clear()  # type: ignore[attr-defined]
    assert cached.cache_size() == (0, 0)  # type: ignore[attr-defined]


def test_an_error_is_raised_again() -> None:
    cached = sized_cache(maxsize=10)(int)
    for _ in range(2):
        with pytest.raises(ValueError, match="invalid literal"):
            cached("x")


def test_threads_share_one_object() -> None:
    cached = sized_cache(maxsize=50)(lambda text: [text])
    with ThreadPoolExecutor(8) as threads:
        for name in map(str, range(200)):
            found = list(threads.map(lambda _, name=name: cached(name), range(8)))
            assert all(one is found[0] for one in found)
    entries, characters = cached.cache_size()  # type: ignore[attr-defined]
    assert entries == 50 and characters == sum(len(str(n)) for n in range(150, 200))
