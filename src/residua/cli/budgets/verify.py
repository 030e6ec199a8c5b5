"""`residua verify`: the second opinion on a ledger."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from residua.cli import output, stores
from residua.cli.command import Result, command
from residua.errors import ArgumentError, BrokenRecord, MissingPackage, StoreUnavailable

if TYPE_CHECKING:
    from residua.verify import Report

_EXPECTED = (
    "it must be an export, a ledger's file or its URL (sqlite:///budgets.db), or the URL of a"
    " service"
)

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@command(app)
def verify(
    ledger: str = stores.DEFAULT,
    expect_head: list[str] | None = None,
    since: Path | None = None,
    jobs: int = 1,
    limit: float | None = None,
    total_limit: float | None = None,
    memory_limit: float | None = None,
    report: Path | None = None,
    sign: Path | None = None,
    anchor: str | None = None,
    token: str | None = None,
) -> Result:
    """Check a ledger and prove every step again.

    First the records are checked: hashes, keys, groups and states. Then every admitted spend is
    proven in ball arithmetic from its recorded description alone, by code that shares no numerics
    with the filters. The report says which heads the chains were verified against: those of the
    anchor, those you gave, or none.

    Exit with status 0 if everything is proven, 1 if a step is refuted or the records are broken,
    and 7 if something stays undecided, as do steps that would exceed a limit. Limits are counted,
    not timed: the verdict is the same on every machine.

    Operands:
      ledger (LEDGER $RESIDUA_STORE): The URL of a ledger or service, or an exported file (or
          RESIDUA_STORE).

    Options:
      expect_head ([BUDGET=][SEQ:]HASH): Check against this head, as on a receipt; may be repeated.
      since: Skip what this earlier report (JSON) has proven.
      jobs: Number of processes.
      limit (SECONDS): Leave a step undecided after this much counted work (default: 60).
      total_limit (SECONDS): Leave all other steps undecided after this much (default: 3600).
      memory_limit (MB): Leave a step undecided beyond this counted memory (default: 1024).
      report: Write the full report to this file, as JSON.
      sign (KEYFILE): Sign the report with this Ed25519 key (PEM).

    Example:
      residua verify sqlite:///budgets.db
      residua verify export.jsonl --expect-head 3f0a… --jobs 2 --report report.json
    """
    if find_spec("flint") is None:
        raise MissingPackage("residua verify", "flint")
    if sign is not None and report is None:
        raise ArgumentError("--sign needs --report")
    options = {
        "expect_head": stores.expected_heads(expect_head),
        "since": _since(since),
        "jobs": jobs,
        "limit": limit,
        "total_limit": total_limit,
        "memory_limit": memory_limit,
    }
    try:
        with output.progress("steps") as show:
            found = _verify(
                ledger, token, anchor, lambda done, whole: show("", done, whole), options
            )
    except (BrokenRecord, OSError) as error:
        print(f"residua verify: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    if report is not None:
        _write(found, report, sign)
    return Result(found.to_dict(), lambda: print(found.text), found.exit_code)


def _verify(
    ledger: str, token: str | None, anchor: str | None, progress: Any, options: dict[str, Any]
) -> "Report":
    from residua.verify import verify_export

    if stores.is_service(ledger):
        with stores.open_store(ledger, token) as client:
            served: Report = client.verify(progress=progress, **options)
        return served
    if not ledger.strip():
        raise ArgumentError(f"LEDGER must not be empty; {_EXPECTED}")
    if "://" not in ledger and not _is_database(Path(ledger)):
        return verify_export(ledger, progress=progress, **options)
    if anchor is not None and "://" not in anchor and not Path(anchor).exists():
        raise ArgumentError(
            f"--anchor (or RESIDUA_ANCHOR) must be this ledger's anchor, got {anchor!r}, and there"
            " is no such file"
        )
    try:
        with stores.ledger_at(ledger, create=False, read_only=True, anchor=anchor) as store:
            found: Report = store.verify(progress=progress, **options)
    except StoreUnavailable as error:
        if anchor is not None and str(error).startswith("the anchor "):
            raise ArgumentError(f"--anchor (or RESIDUA_ANCHOR): {error}") from None
        raise
    if anchor is not None and "anchor" not in found.held_against:
        raise ArgumentError(
            f"--anchor (or RESIDUA_ANCHOR) must be this ledger's anchor, got {anchor!r}, which"
            " has no entry for it"
        )
    return found


def _is_database(path: Path) -> bool:
    from residua.ledger.recovery.export_file import is_database

    try:
        return is_database(path)
    except FileNotFoundError:
        raise ArgumentError(
            f"LEDGER must exist: there is no file {str(path)!r}; {_EXPECTED}"
        ) from None
    except IsADirectoryError:
        raise ArgumentError(
            f"LEDGER must be a file, got the directory {str(path)!r}; {_EXPECTED}"
        ) from None
    except OSError as error:
        raise ArgumentError(f"LEDGER must be a URL or a readable file, got {error}") from None


def _since(path: Path | None) -> Any:
    if path is None:
        return None
    try:
        parsed = json.loads(path.read_text(encoding="utf-8"))
        inner = json.loads(parsed["report"]) if "report" in parsed else parsed
        unproven = {each["budget"] for each in inner["problems"]}
        unproven |= {each["budget"] for each in inner["steps"] if each["verdict"] != "proven"}
        return {
            name: (mark["seq"], mark["hash"])
            for name, mark in inner["heads"].items()
            if name not in unproven
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArgumentError(f"--since must be an earlier report, got {path} ({error!r})") from None


def _write(found: "Report", path: Path, key: Path | None) -> None:
    from residua.verify.signing import signed

    text = found.to_json() if key is None else signed(found, key)
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"--report must be a writable file, got {error}") from None
