"""Lists of budgets are whole: on a narrow terminal, and where they are piped."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import residua as rz
from cli.running import run
from residua.cli.output import columns

NAMES = ("web", "a budget with a name of some length", "Rényi", "closed")
LEFT = (
    "mu 1",
    "rho 0.5 at order 2, 0.5 at order 3, 0.5 at order 8",
    "rho 0.535454",
    "",
)
ROWS = [
    (name, state, "12", "renyi_curve", left)
    for name, state, left in zip(NAMES, ("open", "open", "open", "retired"), LEFT, strict=True)
]
HEADINGS = ("name", "state", "records", "filter", "left")


@pytest.mark.parametrize("width", [30, 60, 80, 100, 200])
def test_columns_wrap_and_are_never_cut(width: int) -> None:
    lines = columns(HEADINGS, ROWS, width)
    for name, state, *_ in ROWS:
        assert any(line.startswith(name) and state in line.split() for line in lines)
    said = " ".join(" ".join(lines).split())
    assert all(word in said for left in LEFT for word in left.split())
    if width >= 80:
        assert max(map(len, lines)) <= width


def test_piped_columns_are_a_line_each() -> None:
    lines = columns(HEADINGS, ROWS)
    assert len(lines) == len(ROWS) + 1
    assert all(line.endswith(row[-1] or row[-2]) for line, row in zip(lines[1:], ROWS, strict=True))


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "budgets.db"
    with rz.open_ledger(path) as books:
        books.create_budget(NAMES[1], rz.ApproximateZcdpFilter(1.0, 1e-6))
        books.spend(NAMES[1], rz.mechanisms.Laplace(scale=40.0))
        books.create_budget("web", rz.GdpResidueFilter(mu=1.0))
        books.create_budget("closed", rz.BasicFilter(1.0, 1e-6))
        books.retire("closed", "over")
    return path


@pytest.mark.needs("sqlalchemy")
def test_piped_lists_say_what_is_left_in_words(ledger: Path) -> None:
    with rz.open_ledger(ledger, read_only=True) as books:
        left = str(books.budget(NAMES[1]).balance)
    lines = run("budget", "list", "--store", str(ledger)).splitlines()[1:]
    assert lines[0].startswith(NAMES[1]) and lines[0].endswith(left)
    assert left == (
        "98 % left; largest query eps 0.219739; 77 more like the last admitted one;"
        " guarantee (eps 1, delta 1e-06)"
    )
    web = lines[1].split(maxsplit=4)
    assert web[:4] == ["web", "open", "1", "gdp_residue"]
    assert web[4] == "100 % left; largest query eps 0.806965; guarantee mu 1"
    assert lines[2].split()[:2] == ["closed", "retired"]


@pytest.mark.needs("sqlalchemy")
@pytest.mark.skipif(os.name != "posix", reason="a terminal of our own")
def test_a_terminal_of_80_columns_shows_everything(ledger: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    code = "from residua.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "budget", "list", "--store", str(ledger)],
        stdout=theirs, stdin=theirs, env={**os.environ, "COLUMNS": "80"},
    ) as process:  # fmt: skip
        os.close(theirs)
        seen = b""
        try:
            while more := os.read(ours, 65536):
                seen += more
        except OSError:  # how Linux says that the other side is closed
            pass
    os.close(ours)
    lines = seen.decode().splitlines()
    assert process.returncode == 0 and max(map(len, lines)) <= 80
    assert any(line.startswith(NAMES[1] + "  open") for line in lines)
    assert any(line.startswith("closed") and "retired" in line for line in lines)
    assert "more like the last admitted one; guarantee" in " ".join(" ".join(lines).split())


@pytest.mark.needs("sqlalchemy")
def test_nothing_spent_reads_so(ledger: Path) -> None:
    at = ("--store", str(ledger))
    shown = run("budget", "show", "web", *at)
    made = run("budget", "create", "new", "--filter", "gdp_residue mu=1", *at)
    for text in (shown, made):
        fields = dict(line.split(maxsplit=1) for line in text.splitlines())
        assert fields["balance"].startswith("100 % left; ")
        assert fields["details"] == "mu² 1 of 1" and "spent" not in fields
    assert "identity()" not in shown + made
    zcdp = run("budget", "show", NAMES[1], *at)
    assert "ZcdpBudget(" not in zcdp
