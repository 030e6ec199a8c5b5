"""Starting the command: quick, and clear about what is missing."""

import json
import os
import subprocess
import sys

import pytest

from residua.cli.app import PIPE_CLOSED

# Refuses to import the packages named in argv[1], as if they were not installed.
WITHOUT = """
import sys
hidden = sys.argv.pop(1).split(",")
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in hidden else real(name, *rest)
"""
MAIN = "from residua.cli import main; main()"


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, encoding="utf-8", check=False
    )


@pytest.mark.parametrize(
    "arguments", [["--help"], ["delta", "--help"], ["describe", "--help"], ["version"]]
)
def test_help_does_not_load_numpy(arguments: list[str]) -> None:
    code = (
        "import sys, atexit, json\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n" + MAIN
    )
    result = python(code, *arguments)
    assert result.returncode == 0
    loaded = set(json.loads(result.stderr.splitlines()[-1]))
    assert not loaded & {"numpy", "scipy", "matplotlib"}


def test_running_a_command_loads_no_other() -> None:
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: print(*sys.modules, sep='\\n', file=sys.stderr))\n" + MAIN
    )
    loaded = set(python(code, "version").stderr.splitlines())
    assert "residua.cli.tools.machine" in loaded
    assert not loaded & {
        "residua.cli.tools.demo",
        "residua.cli.analysis.loss",
        "residua.cli.analysis.planning",
    }


@pytest.mark.parametrize("hidden", ["typer", "rich", "typer,rich"])
def test_without_typer_it_says_what_to_install(hidden: str) -> None:
    result = python(WITHOUT + MAIN, hidden, "--help")
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert "pip install 'residua[cli]'" in result.stderr
    for name in hidden.split(","):
        assert name in result.stderr


def test_without_matplotlib_the_demo_still_counts() -> None:
    result = python(WITHOUT + MAIN, "matplotlib", "demo")
    assert result.returncode == 0, result.stderr
    assert "pip install 'residua[figures]'" in result.stdout
    assert "every step is proven" in result.stdout
    assert result.stdout.endswith("make serve, or residua serve --store out/demo.db --dev\n")


def test_without_matplotlib_a_description_says_so() -> None:
    result = python(WITHOUT + MAIN, "matplotlib", "describe", "--pure-dp", "eps=1", "--out", "out")
    assert result.returncode == 0, result.stderr
    assert "pip install 'residua[figures]'" in result.stdout


def test_core_needs_numpy_and_scipy_alone() -> None:
    code = WITHOUT + "import residua as rz; print(rz.gaussian(mu=1.0).delta(1.0) > 0)"
    result = python(code, "typer,rich,matplotlib,mpmath,flint,hypothesis,dp_accounting")
    assert result.stdout.strip() == "True", result.stderr


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("residua bud", ["budget"]),
        ("residua budget ", ["create", "list", "show", "retire"]),
        ("residua spend web --lap", ["--laplace"]),
        ("residua spend web --laplace scale=4 --k", ["--key"]),
        ("residua spend web --laplce scale=4 --k", ["--key"]),
        ("residua delta --q", ["--query"]),
    ],
)
def test_shells_can_complete(words: str, offered: list[str]) -> None:
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    result = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'residua'\n" + MAIN],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **asked, "_RESIDUA_COMPLETE": "complete_bash"},
        check=False,
    )
    assert result.stdout.split() == offered, result.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv[0] = 'residua'\n" + MAIN,
         "--show-completion", shell],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        check=False,
    )  # fmt: skip
    assert "_RESIDUA_COMPLETE" in result.stdout, result.stderr


@pytest.mark.skipif(os.name != "posix", reason="pipes of another kind")
@pytest.mark.parametrize(
    "arguments",
    [
        "--help",
        "version",  # waits in a buffer to the end
        "mechanisms",
        "mechanisms --json",  # longer than the buffer
        "delta --laplace scale=2 --eps 1",  # a table
        "delta --laplace scale=2 --eps 1 --json",
    ],
)
def test_a_closed_pipe_has_an_exit_code_of_its_own(arguments: str) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    result = subprocess.run(
        [sys.executable, "-c", MAIN, *arguments.split()],
        stdout=theirs,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        check=False,
    )
    os.close(theirs)
    assert (result.returncode, result.stderr) == (PIPE_CLOSED, "")
