"""Set-up shared by all tests: how hard hypothesis tries, and what may be skipped.

Profiles, chosen with the environment variable HYPOTHESIS_PROFILE:
  ci        the default: the same modest examples every time
  thorough  many random examples; also what the fixture `thorough` tells long sweeps

A test that drives an optional package says so with `@pytest.mark.needs("package")`. Skipped tests
are listed with their reasons at the end of the run. RESIDUA_TEST_SKIPPED=FILE also writes their
ids to a file, one a line, so that `pytest @FILE` runs exactly those where everything is installed;
with RESIDUA_NO_SKIPS=1 a skip is a failure.
"""

import importlib
import os
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile(
    "ci",
    max_examples=50,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "thorough",
    max_examples=1000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
hypothesis.settings.load_profile(PROFILE)

NO_SKIPS = os.environ.get("RESIDUA_NO_SKIPS") == "1"
SKIPPED = os.environ.get("RESIDUA_TEST_SKIPPED")


@pytest.fixture(scope="session")
def thorough() -> bool:
    """Whether sweeps should run in their long form."""
    return PROFILE == "thorough"


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        if not marker.args:
            raise pytest.UsageError(f'{item.nodeid}: needs wants a module, as in needs("flint")')
        for module in marker.args:
            try:
                importlib.import_module(module)
            except ModuleNotFoundError as error:
                pytest.skip(f"needs {module} ({error.name} is not installed)")
            if module == "pgserver":
                _ensure_user_for_postgres()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if NO_SKIPS and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"nothing may be skipped in this run: {_reason(report)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if NO_SKIPS and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"nothing may be skipped in this run: {_reason(report)}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.getreports("skipped")
    if skipped:
        terminalreporter.section("skipped")
        for report in skipped:
            terminalreporter.line(f"{report.nodeid}: {_reason(report)}")
    if SKIPPED is not None:
        # A module that was skipped while it was collected has its path for an id.
        Path(SKIPPED).write_text("".join(f"{report.nodeid}\n" for report in skipped), "utf-8")


def _ensure_user_for_postgres() -> None:
    """PostgreSQL does not run as root; for root, pgserver adds a user and runs it as that one."""
    if os.name == "posix" and os.geteuid() == 0:
        from pgserver.postgres_server import PostgresServer
        from pgserver.utils import ensure_user_exists

        with PostgresServer._lock:  # Two workers that add the user at once would fail.
            try:
                ensure_user_exists("pgserver")
            except FileNotFoundError:
                pytest.skip("needs useradd (PostgreSQL does not run as root)")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    # A skip's longrepr is (path, line, message).
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
