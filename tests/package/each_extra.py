"""`make package`: the wheel and the source distribution, and each extra installed alone.

    python tests/package/each_extra.py [EXTRA ...]

Builds both (the wheel from the source distribution), looks into the wheel, and then, in a fresh
environment for each extra and one without any, runs what that extra is for, and asks for everything
else: what is not installed must say which extra brings it. Needs a network, and minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FIRST = {"opacus": ("torch==2.13.0",)}
"""Installed before: torch by its number, without which gigabytes of GPU libraries would come."""

FEATURES = {
    "core": "assert 0 < (rz.gaussian(mu=1.0) + rz.laplace(2.0)).delta(1.0) < 1",
    "filters": "assert rz.GdpResidueFilter(1.0).request(rz.laplace(4.0)).admitted",
    "client": "assert rz.Client('http://127.0.0.1:1', 'rz_no')",
    "ledger": """
        ledger = rz.open_ledger(f'sqlite:///{folder}/budgets.db')
        ledger.create_budget('b', rz.PureFilter(1.0))
        assert ledger.spend('b', rz.mechanisms.PureDp(0.5)).admitted
    """,
    "postgres": """
        try:
            rz.open_ledger('postgresql://nobody@127.0.0.1:1/none')
        except rz.StoreUnavailable:  # nobody is there; the driver is
            pass
    """,
    "verify": """
        from residua.verify import verify_records
        assert verify_records({}, {}).ok
    """,
    "sign": """
        from residua.verify import Report, signing
        try:
            signing.check_signature('no report')
        except rz.ArgumentError as error:
            assert 'text must be a signed report' in str(error)
    """,
    "individual": """
        state = rz.individual.create(f'duckdb:///{folder}/subjects.db', filter=rz.PureFilter(1.0))
        taken = state.spend({'subject': [1, 2], 'eps': [0.5, 2.0]}, spend_id='a')
        assert taken['subject'].to_pylist() == [1]
    """,
    "spark": """
        state = rz.individual.create(f'parquet:{folder}/subjects', filter=rz.PureFilter(1.0))
        taken = state.spend({'subject': [1, 2], 'eps': [0.5, 2.0]}, spend_id='a')
        assert taken['subject'].to_pylist() == [1]
    """,
    "figures": """
        from residua.figures.plots import curves
        curves({'a': rz.gaussian(mu=1.0)}).savefig(f'{folder}/a.png')
    """,
    "dp_accounting": """
        theirs = rz.interop.from_dp_event
        import dp_accounting
        assert theirs(dp_accounting.GaussianDpEvent(2.0)).pld() <= rz.gaussian(mu=0.5)
    """,
    "opendp": """
        theirs = rz.interop.from_opendp
        import opendp.prelude as dp
        dp.enable_features('contrib')
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
        assert theirs(space >> dp.t.then_count() >> dp.m.then_laplace(2.0)).eps == 0.5
    """,
    "opacus": """
        register = rz.interop.opacus
        from opacus import PrivacyEngine
        assert PrivacyEngine(accountant='residua').accountant.get_epsilon(1e-5) == 0.0
    """,
    "command": """
        done = command('delta', '{"kind": "gaussian", "sigma": 6.0}', '--eps', '1', '--json')
        assert 0 < json.loads(done)['delta'] < 1
    """,
    "serve": """
        import urllib.request
        running = subprocess.Popen(
            [residua, 'serve', '--dev', '--port', '0', '--json', '--store',
             f'sqlite:///{folder}/served.db'],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        said = ''
        while not said.rstrip().endswith('}'):
            line = running.stdout.readline()
            if not line:
                raise SystemExit(running.stderr.read())
            said += line
        try:
            with urllib.request.urlopen(json.loads(said)['url'] + '/v1/health') as answer:
                assert answer.status == 200
            with urllib.request.urlopen(json.loads(said)['url'] + '/play') as answer:
                assert b'natural filter' in answer.read()
        finally:
            running.terminate(); running.wait()
    """,
}
"""What can be done, and how one sees that it is."""

WORKS = {
    "": ("core", "filters"),
    "client": ("client",),
    "cli": ("command", "ledger", "client"),
    "service": ("command", "ledger", "serve", "client"),
    "postgres": ("ledger", "postgres"),
    "individual": ("individual",),
    "figures": ("figures",),
    "verify": ("verify",),
    "sign": ("sign",),
    "interop": ("dp_accounting", "opendp"),
    "spark": ("spark",),
    "opacus": ("opacus",),
    "all": (
        "command", "ledger", "serve", "postgres", "individual", "figures", "verify", "sign",
        "dp_accounting", "opendp", "client",
    ),
}  # fmt: skip
"""What each extra is for. The core works everywhere."""

NAMED = {
    "ledger": "service", "postgres": "service", "verify": "verify", "sign": "sign",
    "individual": "individual", "spark": "individual", "figures": "figures",
    "dp_accounting": "interop", "opendp": "interop", "opacus": "opacus", "command": "cli",
    "serve": "cli", "client": "client",
}  # fmt: skip
"""The extra that the error names first, where nothing of it is installed."""

RUN = """
import json, os, subprocess, sys, tempfile, textwrap, warnings
warnings.simplefilter("ignore")
import residua as rz
assert os.path.realpath(rz.__file__).startswith(os.path.realpath(sys.prefix)), rz.__file__
residua = os.path.join(os.path.dirname(sys.executable), "residua")

def command(*arguments):
    done = subprocess.run([residua, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout

name, code = sys.argv[1], textwrap.dedent(sys.argv[2])
with tempfile.TemporaryDirectory() as folder:
    try:
        exec(code, globals() | {"folder": folder})
    except (rz.MissingPackage, SystemExit) as error:
        print(json.dumps({"missing": str(error)}))
    else:
        print(json.dumps({"missing": None}))
"""


def main() -> None:
    wanted = sys.argv[1:] or list(WORKS)
    unknown = [extra for extra in wanted if extra not in WORKS]
    if unknown:
        sys.exit(f"EXTRA must be one of {', '.join(WORKS)}, got {', '.join(unknown)}")
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    development = {"dev", "docs", "bench", "examples"}
    assert set(declared["optional-dependencies"]) - development == set(WORKS) - {""}
    with tempfile.TemporaryDirectory() as made:
        wheel = build(Path(made))
        look_into(wheel, declared["version"])
        for extra in wanted:
            with tempfile.TemporaryDirectory() as place:
                try_extra(extra, wheel, Path(place))
    print("all good")


def build(place: Path) -> Path:
    """The source distribution, and the wheel made from it."""
    python = environment(place / "tools", "build")
    run(python, "-m", "build", "--outdir", str(place / "dist"), str(ROOT))
    (wheel,) = (place / "dist").glob("*.whl")
    (source,) = (place / "dist").glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for needed in ("pyproject.toml", "README.md", "LICENSE", "zensical.toml", "tests/test_docs.py"):
        assert needed in names, f"{source.name} lacks {needed}"
    print(f"built {source.name} and {wheel.name}, {wheel.stat().st_size // 1024} kB")
    return wheel


def look_into(wheel: Path, version: str) -> None:
    """Typed, with the pages, under its version, and with nothing beside the package."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for needed in ("py.typed", "service/pages/", "errors.py"):
        assert any(name.startswith(f"residua/{needed}") for name in names), needed
    beside = {name.partition("/")[0] for name in names}
    assert beside == {"residua", f"residua-{version}.dist-info"}, beside


def try_extra(extra: str, wheel: Path, place: Path) -> None:
    asked = f"{wheel}[{extra}]" if extra else str(wheel)
    python = environment(place, *FIRST.get(extra, ()))
    run(python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", asked)
    run(python, "-m", "pip", "check")
    works, refused = [], []
    for name, code in FEATURES.items():
        missing = attempt(python, name, code)
        if missing is None:
            works.append(name)
            continue
        must = name in WORKS[extra] or name in WORKS[""]
        assert not must, f"[{extra}] {name}: {missing}"
        assert "pip install 'residua[" in missing, f"[{extra}] {name}: {missing}"
        if not extra:
            assert f"residua[{NAMED[name]}]" in missing, f"{name}: {missing}"
        refused.append(name)
    print(f"[{extra}] works: {', '.join(works)}; asks for its extra: {', '.join(refused) or '-'}")


def attempt(python: Path, name: str, code: str) -> str | None:
    """What is said to be missing, or None if it worked. Anything else is an error."""
    done = run(python, "-c", RUN, name, code)
    found: str | None = json.loads(done.splitlines()[-1])["missing"]
    return found


def environment(place: Path, *packages: str) -> Path:
    venv.create(place, with_pip=True)
    python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    for package in packages:
        run(python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", package)
    return python


def run(python: Path, *arguments: str) -> str:
    # Nothing of this checkout may be seen from there.
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as elsewhere:
        done = subprocess.run(
            [str(python), *arguments], cwd=elsewhere, env=clean, capture_output=True, text=True
        )
    if done.returncode:
        sys.exit(f"{' '.join(arguments[:4])[:200]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
