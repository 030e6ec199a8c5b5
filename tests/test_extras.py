"""Without an extra, whatever needs it names it; `make package` tries that with real wheels."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import residua as rz
from snippets import ROOT

CALLS = (
    {
        "cryptography": "import residua.verify.signing as s; s.check_signature('')",
        "flint": "from residua.verify import verify_records",
        "httpx": "rz.Client",
        "matplotlib": "import residua.figures.picture as style; style.canvas(1, 1)",
        "pyarrow": "rz.individual",
        "sqlalchemy": "rz.open_ledger",
    },
    {
        "duckdb": "rz.individual.create('duckdb:///x.db', filter=rz.PureFilter(1.0))",
        "psycopg": "rz.open_ledger('postgresql://nobody@127.0.0.1:1/x')",
        "pyspark": "rz.individual.create('parquet:x', filter=rz.PureFilter(1.0))",
    },
)
RUN = """
import sys
calls = {calls!r}
sys.modules.update(dict.fromkeys(calls))  # as if they were not installed
import residua as rz
for package, call in calls.items():
    try:
        exec(call)
    except ImportError as error:
        assert isinstance(error, rz.MissingPackage) and error.name == package, repr(error)
        print(error)
"""


@pytest.mark.needs("sqlalchemy", "pyarrow")
@pytest.mark.parametrize("calls", CALLS, ids=["first", "on top"])
def test_what_is_missing_names_its_extra(calls: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(calls=calls)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == len(calls)
    for package, line in zip(calls, said, strict=True):
        extra = rz.MissingPackage.EXTRAS[package]
        assert f"needs {package}" in line and f"pip install 'residua[{extra}]'" in line


def test_every_extra_that_is_named_brings_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    known = project["optional-dependencies"]
    names = {"dp_accounting": "dp-accounting", "flint": "python-flint", "torch": "opacus"}
    names["prometheus_client"] = "prometheus-client"
    for package, extra in rz.MissingPackage.EXTRAS.items():
        wanted = names.get(package, package)
        assert any(line.startswith(wanted) for line in known[extra]), (package, extra)
