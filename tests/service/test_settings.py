"""Settings: where they come from, which one counts, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from residuum.errors import ArgumentError
from residuum.service.settings import Settings, gather


def test_flags_over_environment_over_file_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('port = 1000\nhost = "127.0.0.2"\nrate = 5\nlog_format = "text"\n')
    environment = {"RESIDUUM_CONFIG": str(file), "RESIDUUM_PORT": "2000", "RESIDUUM_RATE": "7.5",
                   "RESIDUUM_TOKEN": "not a setting", "PATH": "/bin"}  # fmt: skip
    made = gather({"port": 3000, "host": None}, environment)
    assert made == Settings(port=3000, host="127.0.0.2", rate=7.5, log_format="text")
    assert gather({}, {}) == Settings()


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"RESIDUUM_PROT": "1"}, "no setting RESIDUUM_PROT; did you mean RESIDUUM_PORT?"),
        ({"RESIDUUM_PORT": "many"}, "RESIDUUM_PORT must be a whole number, got 'many'"),
        ({"RESIDUUM_PORT": "1.5"}, "RESIDUUM_PORT must be a whole number, got '1.5'"),
        ({"RESIDUUM_PORT": "70000"}, "port must be between 0 and 65535, got 70000"),
        ({"RESIDUUM_RATE": "nan"}, "rate must be between 0 and 1e[+]09, got nan"),
        ({"RESIDUUM_DEV": "perhaps"}, "RESIDUUM_DEV must be true or false, got 'perhaps'"),
        ({"RESIDUUM_LOG_FORMAT": "xml"}, "log_format must be one of json, text, got 'xml'"),
        ({"RESIDUUM_TLS_CERT": "c.pem"}, "got no tls_key"),
        ({"RESIDUUM_DEV": "1", "RESIDUUM_HOST": "0.0.0.0"}, "dev must stay on a loopback"),
        ({"RESIDUUM_CONFIG": "/no/such"}, "config must be a file to read, got /no/such"),
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
