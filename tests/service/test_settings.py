"""Settings: where they come from, which one counts, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from residua.errors import ArgumentError
from residua.service.settings import Settings, gather


def test_flags_over_environment_over_file_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('port = 1000\nhost = "127.0.0.2"\nrate = 5\nlog_format = "text"\n')
    environment = {"RESIDUA_CONFIG": str(file), "RESIDUA_PORT": "2000", "RESIDUA_RATE": "7.5",
                   "RESIDUA_TOKEN": "not a setting", "PATH": "/bin"}  # fmt: skip
    made = gather({"port": 3000, "host": None}, environment)
    assert made == Settings(port=3000, host="127.0.0.2", rate=7.5, log_format="text")
    assert gather({}, {}) == Settings()


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"RESIDUA_PROT": "1"}, "no setting RESIDUA_PROT; did you mean RESIDUA_PORT?"),
        ({"RESIDUA_PORT": "many"}, "RESIDUA_PORT must be a whole number, got 'many'"),
        ({"RESIDUA_PORT": "1.5"}, "RESIDUA_PORT must be a whole number, got '1.5'"),
        ({"RESIDUA_PORT": "70000"}, "port must be between 0 and 65535, got 70000"),
        ({"RESIDUA_RATE": "nan"}, "rate must be between 0 and 1e[+]09, got nan"),
        ({"RESIDUA_DEV": "perhaps"}, "RESIDUA_DEV must be true or false, got 'perhaps'"),
        ({"RESIDUA_LOG_FORMAT": "xml"}, "log_format must be one of json, text, got 'xml'"),
        ({"RESIDUA_TLS_CERT": "c.pem"}, "got no tls_key"),
        ({"RESIDUA_DEV": "1", "RESIDUA_HOST": "0.0.0.0"}, "dev must stay on a loopback"),
        ({"RESIDUA_CONFIG": "/no/such"}, "config must be a readable file, got /no/such"),
    ],
)
def test_what_is_wrong_is_named(environment: dict[str, str], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        gather({}, environment)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prot = 1", "no setting prot in .*; did you mean port?"),
        ("port = true", "port in .* must be a whole number, got True"),
        ("host = 1", "host in .* must be text, got 1"),
        ("port = ", "config must be TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    with pytest.raises(ArgumentError, match=said):
        gather({}, {}, str(file))


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("example.org", False), ("", False)],
)  # fmt: skip
def test_loopback(host: str, loopback: bool) -> None:
    assert Settings(host=host).is_loopback is loopback
