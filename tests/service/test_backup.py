"""Backup and restore as the documentation says: a restored ledger never un-spends."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

import backups
import residua as rz
from residua.errors import ReadOnlyLedger
from service.running import LAPLACE, serving

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy")


@pytest.mark.parametrize(
    "kind",
    ["sqlite", pytest.param("postgres", marks=pytest.mark.needs("pgserver", "psycopg"))],
)
def test_restored_behind_its_anchor(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    anchor = tmp_path / "anchor"
    if kind == "sqlite":
        store, backup = f"sqlite:///{tmp_path}/budgets.db", backups.sqlite
    else:
        store, backup = request.getfixturevalue("postgres"), backups.postgres
    with serving(store, anchor) as service:
        service.budget("web")
        service.budget("untouched")
        service.spend("web", key="before")
        restore = backup(store, tmp_path / "backup")
        late = service.spend("web", key="after").json()
        lines, known = service.http("GET", "/v1/export").text, service.tokens
    restore()

    with serving(store, anchor, known) as service:
        refused = service.spend("web", key="later")
        assert refused.status_code == 503
        assert refused.json()["type"].endswith(":read-only-ledger")
        for told in ("web", "recover"):
            assert told in refused.json()["detail"], "it says what to do"
        asked = {"mechanism": LAPLACE}
        checked = service.http("POST", "/v1/budgets/web/check", json=asked)
        assert checked.status_code == 503
        assert checked.json()["type"].endswith(":read-only-ledger"), "as a spend would be"
        assert "nothing would be admitted now" in checked.json()["detail"]
        assert service.http("GET", "/v1/ready", None).status_code == 503
        assert "recover" in service.http("GET", "/v1/status").json()["read_only"]
        assert "residua_ledger_read_only 1.0" in service.http("GET", "/metrics").text
        assert service.http("GET", "/v1/budgets/web").json()["seq"] == 1, "reading goes on"
        with httpx.Client(base_url=service.url, timeout=60) as visitor:
            visitor.post("/login", data={"token": service.tokens["admin"]})
            for page in ("/", "/budgets/web"):
                shown = visitor.get(page).text
                assert "The ledger is read-only" in shown
            code = re.search(r'name="form_code" value="(\w+)"', shown)[1]
            form = {"kind": "laplace", "laplace.scale": "4", "laplace.sensitivity": "1"}
            tried = visitor.post("/budgets/web/what-if", data={**form, "form_code": code})
            assert "nothing would be admitted now" in tried.text
        with service.client() as client, pytest.raises(ReadOnlyLedger):
            client.spend("untouched", LAPLACE)

    exported = tmp_path / "export.jsonl"
    exported.write_text(lines, encoding="utf-8")
    with rz.open_ledger(store, anchor=anchor) as ledger:
        assert ledger.read_only is not None
        ledger.recover(export=exported)
    with serving(store, anchor, known) as service:
        again = service.spend("web", key="after").json()
        assert again["replayed"] and again["head"] == late["head"], "nothing comes back"
        assert service.spend("web", key="later").json()["admitted"]


def test_a_ledger_without_its_anchor_is_read_only(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/budgets.db"
    with serving(store, tmp_path / "anchor") as service:
        service.budget("web")
    (tmp_path / "anchor").unlink()
    with serving(store, tmp_path / "anchor", service.tokens) as service:
        assert service.spend("web").status_code == 503
