"""Settings of the service: flags over environment over file over defaults, every error by name.

A setting `port` is `--port` on the command line, `RESIDUA_PORT` in the environment and `port` in
a TOML file (`--config FILE`, or `RESIDUA_CONFIG`). Settings are checked once, before anything
listens; an unknown name is an error, so that a typo cannot weaken security.
"""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from residua.errors import ArgumentError

PREFIX = "RESIDUA_"
ELSEWHERE = frozenset({"token", "config", "fault", "no_skips"})
"""Names in the environment with our prefix that are not settings of the service."""
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off", ""})


def _between(low: float, high: float, *, default: Any) -> Any:
    wanted = f"between {low:g} and {high:g}"
    return dataclasses.field(
        default=default, metadata={"check": (lambda value: low <= value <= high, wanted)}
    )


def _one_of(*choices: str, default: str) -> Any:
    wanted = f"one of {', '.join(choices)}"
    return dataclasses.field(default=default, metadata={"check": (choices.__contains__, wanted)})


@dataclass(frozen=True)
class Settings:
    """The settings of a service. Sizes in bytes, times in seconds, rates in requests a second."""

    store: str = "sqlite:///budgets.db"
    host: str = "127.0.0.1"
    port: int = _between(0, 65535, default=8321)
    dev: bool = False
    """Callers of the loopback address without a token are admins."""
    anchor: str | None = None
    accept_async_standby: bool = False
    largest_body: int = _between(1024, 64 * 1024 * 1024, default=256 * 1024)
    rate: float = _between(0, 1e9, default=1000.0)
    """Requests a second for each token, on average; 0 for no limit."""
    burst: int = _between(1, 10**9, default=2000)
    threads: int = _between(1, 256, default=8)
    """Threads for reading the store: histories, exports, what checks and plans need."""
    workers: int = _between(1, 256, default=2)
    """Processes for what takes long to compute: slow decisions, plans, curves."""
    worker_memory: int = _between(256, 1_000_000, default=1024)
    """Megabytes that each of them may have."""
    compute_within: float = _between(0.1, 3600, default=20.0)
    """Seconds that a request may wait for one of them, and then have it."""
    grace: float = _between(0, 3600, default=30.0)
    """How long a shutdown waits for requests that are being answered."""
    head_within: float = _between(0.1, 3600, default=20.0)
    """Seconds in which a connection must have sent the head of a request."""
    verify_every: float = _between(0, 1e9, default=0.0)
    """Seconds between verifications in the background; 0 for none."""
    log_format: str = _one_of("json", "text", default="json")
    log_level: str = _one_of("debug", "info", "warning", "error", default="info")
    tls_cert: str | None = None
    tls_key: str | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            is_good, wanted = field.metadata.get("check", (lambda _: True, ""))
            if not is_good(value):
                raise ArgumentError(f"{field.name} must be {wanted}, got {value!r}")
        if (self.tls_cert is None) != (self.tls_key is None):
            missing = "tls_key" if self.tls_key is None else "tls_cert"
            raise ArgumentError(f"tls_cert and tls_key must be given together, got no {missing}")
        if self.dev and not self.is_loopback:
            raise ArgumentError(
                f"dev must stay on a loopback address, because it asks for no token: host must be"
                f" 127.0.0.1, ::1 or localhost, got {self.host!r}"
            )

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def url(self) -> str:
        """Where it answers."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls_cert else 'http'}://{host}:{self.port}"


FIELDS = {field.name: field for field in dataclasses.fields(Settings)}


def gather(
    flags: Mapping[str, Any], environment: Mapping[str, str], config: str | None = None
) -> Settings:
    """Settings from flags (None where not given), environment and file."""
    values: dict[str, Any] = {}
    path = config or environment.get(PREFIX + "CONFIG")
    if path:
        values |= from_file(Path(path))
    values |= from_environment(environment)
    values |= {name: value for name, value in flags.items() if value is not None}
    return Settings(**values)


def from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """The settings that the environment has."""
    found: dict[str, Any] = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX):
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name in ELSEWHERE or name.startswith("test_"):
            continue
        _known(name, variable, {PREFIX + known.upper() for known in FIELDS})
        found[name] = _typed(name, text, variable)
    return found


def from_file(path: Path) -> dict[str, Any]:
    """The settings that a TOML file has."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArgumentError(f"config must be a readable file, got {path} ({error})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ArgumentError(f"config must be TOML, got {path} ({error})") from None
    found = {}
    for name, value in given.items():
        _known(name, f"{name} in {path}", set(FIELDS))
        found[name] = _typed(name, value, f"{name} in {path}")
    return found


def _known(name: str, shown: str, names: set[str]) -> None:
    if name in FIELDS:
        return
    near = difflib.get_close_matches(shown.split(" ")[0], names, n=1)
    advice = f"did you mean {near[0]}?" if near else f"the settings are {', '.join(sorted(names))}"
    raise ArgumentError(f"there is no setting {shown}; {advice}")


def _typed(name: str, value: Any, shown: str) -> Any:
    kind = str(FIELDS[name].type)
    try:
        if kind == "bool":
            return _flag(value)
        if kind in ("int", "float"):
            if isinstance(value, bool):
                raise ValueError
            number = float(value)
            if kind == "float":
                return number
            if number != int(number):
                raise ValueError
            return int(number)
    except (ValueError, TypeError, OverflowError):
        wanted = {"bool": "true or false", "int": "a whole number", "float": "a number"}[kind]
        raise ArgumentError(f"{shown} must be {wanted}, got {value!r}") from None
    if not isinstance(value, str):
        raise ArgumentError(f"{shown} must be text, got {value!r}")
    return value


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    raise ValueError
