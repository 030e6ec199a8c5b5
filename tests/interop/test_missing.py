"""Without the other libraries: importing us costs nothing, and what is missing is named."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys
for name in {missing!r}:
    sys.modules[name] = None  # as if it were not installed
import residua as rz
rz.interop
loaded = [name for name in ("dp_accounting", "opendp", "torch", "numpy") if sys.modules.get(name)]
assert not loaded, loaded
try:
    {call}
except rz.ResiduaError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("missing", "call", "extra"),
    [
        ("dp_accounting", "rz.interop.from_dp_event", "interop"),
        ("dp_accounting", "rz.interop.PrivacyAccountant", "interop"),
        ("opendp", "rz.interop.from_opendp", "interop"),
        ("opacus", "rz.interop.opacus", "opacus"),
    ],
)
def test_what_is_missing_is_named(missing: str, call: str, extra: str) -> None:
    code = WITHOUT.format(missing=[missing], call=call)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"needs {missing}" in done.stdout
    assert f"pip install 'residua[{extra}]'" in done.stdout


def test_names_are_those_that_are_there() -> None:
    import residua as rz

    assert "from_dp_event" in dir(rz.interop)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = rz.interop.nothing  # type: ignore[attr-defined]
