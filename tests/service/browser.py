"""A real Chromium for the pages, and what every page must keep to."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 60_000
"""Milliseconds; a busy machine must not fail a test."""
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--no-first-run"]  # fmt: skip
DESK = {"width": 1200, "height": 900}
PHONE = {"width": 360, "height": 740}

ACCESSIBLE = Path(__file__).with_name("accessible.js").read_text("utf-8")
"""What is wrong for who cannot see, or not well: labels, names, headings, landmarks, contrast."""


def chromium(own: str) -> str:
    """Where Chromium is, on the path or fetched by playwright itself; skips where it is not."""
    for name in ("chromium", "chromium-browser", "google-chrome", own):
        found = shutil.which(name)
        if found:
            return found
    pytest.skip("needs Chromium (chromium is not on the path, nor fetched by playwright)")


@contextmanager
def launched() -> Iterator[Any]:
    """A browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = chromium(playwright.chromium.executable_path)
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=PATIENCE)
        yield browser
        browser.close()


class Visit:
    """A visitor with a browser window of their own, whose every complaint is kept."""

    def __init__(self, browser: Any, url: str, **options: Any):
        self.url = url
        self.context = browser.new_context(
            **{"viewport": {"width": 1200, "height": 900}, **options}
        )
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.query: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.query.append(request.url))

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def to(self, path: str) -> None:
        self.page.goto(self.url + path)

    def log_in(self, token: str) -> None:
        self.to("/")
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("main").get_by_role("button", name="Log in").click()
        self.page.get_by_role("heading", name="Budgets", level=1).wait_for()

    def settled(self) -> None:
        """Wait until everything that comes later has come."""
        self.page.wait_for_function(
            "() => !/working out what is left|drawing …/.test(document.body.innerText)"
            " && !document.querySelector('[aria-busy]')"
        )

    def check(self, shot: Path | None = None) -> None:
        """What every page keeps to; with a picture of it."""
        self.settled()
        if shot is not None:
            self.page.screenshot(path=shot, full_page=True)
        assert self.page.evaluate(ACCESSIBLE) == []
        wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert self.page.evaluate(wide) <= 0, "it scrolls sideways"
        assert self.complaints == []
        assert all(one.startswith((self.url, "data:")) for one in self.query), self.query
