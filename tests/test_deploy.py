"""The systemd unit limits what one service may take, and what it may call."""

from snippets import ROOT


def unit() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    text = (ROOT / "deploy" / "residua@.service").read_text(encoding="utf-8")
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def test_the_unit_has_limits_and_a_filter_of_system_calls() -> None:
    given = unit()
    for name in ("MemoryHigh", "MemoryMax", "MemorySwapMax", "CPUQuota", "TasksMax"):
        assert given[name], name
    allowed, *denied = given["SystemCallFilter"]
    assert allowed == "@system-service" and denied[0].startswith("~") and "@privileged" in denied[0]
    assert given["SystemCallErrorNumber"] == ["EPERM"]
    assert given["NoNewPrivileges"] == ["yes"] and given["UMask"] == ["0077"]
