"""Who may do what: roles, scopes, tokens that ended, and what never gets out."""

from __future__ import annotations

import io
import sqlite3
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import residua as rz
from residua.errors import ArgumentError
from residua.service import auth, logs
from residua.service.auth import PERMISSIONS, Authenticator
from residua.service.problems import Problem
from residua.service.serving import check
from residua.service.settings import Settings
from service.running import FILTER, LAPLACE, Service, raw, serving

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy")

ASK = {"mechanism": LAPLACE}
ROUTES: dict[str, Any] = {
    "read": [
        ("GET", "/v1/budgets", None),
        ("GET", "/v1/budgets/{b}", None),
        ("GET", "/v1/budgets/{b}/history", None),
        ("GET", "/v1/budgets/{b}/export", None),
        ("GET", "/v1/budgets/{b}/curves?points=2", None),
        ("GET", "/v1/holds", None),
        ("GET", "/v1/verification", None),
    ],
    "check": [("POST", "/v1/budgets/{b}/check", ASK)],
    "plan": [("POST", "/v1/budgets/{b}/plan", {"mechanisms": [LAPLACE], "most": 2})],
    "spend": [
        ("POST", "/v1/budgets/{b}/spend", ASK),
        ("POST", "/v1/budgets/{b}/reserve", ASK),
        ("POST", "/v1/holds/nothing/commit", {}),
        ("POST", "/v1/holds/nothing/cancel", {"reason": "none"}),
    ],
    "manage": [
        ("POST", "/v1/budgets", {"name": "{b}", "filter": FILTER}),
        ("POST", "/v1/budgets/{b}/refresh", None),
        ("POST", "/v1/budgets/{b}/retire", {"reason": "over"}),
    ],
    "audit": [
        ("GET", "/v1/status", None),
        ("GET", "/v1/export", None),
        ("GET", "/metrics", None),
    ],
}
OPEN = {
    ("GET", "/v1/health"),
    ("GET", "/v1/ready"),
    ("GET", "/v1/me"),
    ("POST", "/v1/verification"),
}


@pytest.fixture(scope="module")
def budget(service: Service) -> str:
    service.budget("matrix")
    return "matrix"


@pytest.mark.parametrize("role", auth.ROLES)
@pytest.mark.parametrize("permission", PERMISSIONS)
def test_roles(service: Service, budget: str, role: str, permission: str) -> None:
    """Each role is let through exactly where its permissions say."""
    for method, path, body in ROUTES[permission]:
        answer = service.http(method, path.format(b=budget), role, json=body)
        allowed = role in PERMISSIONS[permission]
        assert (answer.status_code != 403) is allowed, (role, method, path, answer.text)
        assert answer.status_code < 500


def test_the_matrix_has_every_route(service: Service) -> None:
    described = service.http("GET", "/v1/openapi.json", None).json()
    every = {(m.upper(), p) for p, methods in described["paths"].items() for m in methods}
    listed = {
        (method, path.partition("?")[0].replace("{b}", "{name}").replace("nothing", "{id}"))
        for routes in ROUTES.values()
        for method, path, _ in routes
    }
    assert every == listed | OPEN


def test_nothing_answers_without_a_token(service: Service, budget: str) -> None:
    routes = [route for routes in ROUTES.values() for route in routes]
    for method, path, body in routes:
        answer = service.http(method, path.format(b=budget), None, json=body)
        assert answer.status_code == 401, (method, path)
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.headers["content-type"] == "application/problem+json"


def test_a_bad_body_does_not_come_before_the_token(service: Service, budget: str) -> None:
    answer = service.http("POST", f"/v1/budgets/{budget}/spend", None, content=b"{nonsense")
    assert answer.status_code == 401
    answer = service.http("GET", f"/v1/budgets/{budget}/history?limit=-7", None)
    assert answer.status_code == 401


@pytest.mark.parametrize(
    "header",
    [
        "", "Bearer", "Bearer  x", "Basic YTpi", "Bearer rz_000000000000_" + 43 * "A",
        "Bearer rz_zz_zz", "Bearer " + 5000 * "a", "bearer\trz",
    ],
)  # fmt: skip
def test_what_is_no_token(service: Service, header: str) -> None:
    answer = service.http("GET", "/v1/me", None, headers={"Authorization": header})
    assert answer.status_code == 401


def test_a_wrong_secret_for_a_known_id(service: Service) -> None:
    text = service.token("admin")
    wrong = text[:-1] + ("A" if text[-1] != "A" else "B")
    assert service.http("GET", "/v1/me", text).status_code == 200
    answer = service.http("GET", "/v1/me", wrong)
    unknown = service.http("GET", "/v1/me", "rz_0123456789ab_" + 43 * "x")
    assert answer.status_code == unknown.status_code == 401
    assert answer.json()["detail"] == unknown.json()["detail"], "nothing to learn from trying"


def test_scope(service: Service, name: str) -> None:
    for end in ("one", "two"):
        service.budget(f"{name}-{end}")
    one = service.token("analyst", budgets=[f"{name}-one"])
    team = service.token("engine", budgets=[f"{name}-*"], principal=f"team {name}")
    assert service.http("GET", f"/v1/budgets/{name}-one", one).status_code == 200
    elsewhere = service.http("GET", f"/v1/budgets/{name}-two", one)
    nowhere = service.http("GET", f"/v1/budgets/{name}-three", one)
    assert elsewhere.status_code == nowhere.status_code == 403
    assert elsewhere.json()["detail"].replace("two", "three") == nowhere.json()["detail"]
    seen = service.http("GET", "/v1/budgets", one).json()["items"]
    assert [budget["name"] for budget in seen] == [f"{name}-one"]
    for verb in ("check", "plan", "history", "curves", "export"):
        method = "POST" if verb in ("check", "plan") else "GET"
        body = {"mechanisms": [LAPLACE]} if verb == "plan" else ASK
        answer = service.http(method, f"/v1/budgets/{name}-two/{verb}", one, json=body)
        assert answer.status_code == 403, verb
    assert service.spend(f"{name}-two", team).json()["admitted"]
    assert service.spend("matrix-of-others", team).status_code == 403
    both = service.spend(f"{name}-one", team, also=["matrix-of-others"])
    assert both.status_code == 403, "every budget that is named counts"


def test_holds_of_others_are_out_of_scope(service: Service, name: str) -> None:
    service.budget(f"{name}-a")
    service.budget(f"{name}-b")
    mine = service.token("engine", budgets=[f"{name}-a"])
    path = f"/v1/budgets/{name}-%s/reserve"
    other = service.http("POST", path % "b", json=ASK).json()["id"]
    own = service.http("POST", path % "a", mine, json=ASK).json()["id"]
    shown = service.http("GET", "/v1/holds", mine).json()["items"]
    assert [one["id"] for one in shown] == [own]
    for end in ("commit", "cancel"):
        answer = service.http("POST", f"/v1/holds/{other}/{end}", mine, json={})
        assert answer.status_code == 403
    assert service.http("POST", f"/v1/holds/{own}/commit", mine, json={}).json()["admitted"]


@pytest.mark.parametrize("end", ["open", "committed", "cancelled"])
def test_what_became_of_holds_of_others_is_out_of_scope(
    service: Service, name: str, end: str
) -> None:
    """Not even its receipt, for an engine that knows its id; nor whether there is one."""
    for there in ("a", "b"):
        service.budget(f"{name}-{there}")
    mine = service.token("engine", budgets=[f"{name}-a"])
    hold = service.http("POST", f"/v1/budgets/{name}-b/reserve", json=ASK).json()["id"]
    if end != "open":
        verb = "commit" if end == "committed" else "cancel"
        assert service.http("POST", f"/v1/holds/{hold}/{verb}", json={}).is_success
    for verb in ("commit", "cancel"):
        other = service.http("POST", f"/v1/holds/{hold}/{verb}", mine, json={})
        nothing = service.http("POST", f"/v1/holds/{'0' * 32}/{verb}", mine, json={})
        assert other.status_code == nothing.status_code == 403
        assert other.json()["detail"] == nothing.json()["detail"]
        assert f"{name}-b" not in other.text and "head" not in other.json()


def test_an_own_hold_is_committed_again_from_scope(service: Service, name: str) -> None:
    service.budget(name)
    mine = service.token("engine", budgets=[name])
    colleague = service.token("engine", budgets=[f"{name}*"])
    hold = service.http("POST", f"/v1/budgets/{name}/reserve", mine, json=ASK).json()["id"]
    first = service.http("POST", f"/v1/holds/{hold}/commit", mine, json={}).json()
    assert first["admitted"] and not first["replayed"]
    for token in (mine, colleague):
        again = service.http("POST", f"/v1/holds/{hold}/commit", token, json={}).json()
        assert again["replayed"] and again["head"] == first["head"]


def test_revoked_tokens_open_nothing(service: Service) -> None:
    text = service.token("admin")
    assert service.http("GET", "/v1/me", text).status_code == 200
    service.office.tokens.revoke(text.split("_")[1])
    time.sleep(1.05)
    assert service.http("GET", "/v1/me", text).status_code == 401


def test_a_busy_token_opens_nothing_a_second_after_it_was_revoked() -> None:
    """However often it is used meanwhile, and whichever process revoked it."""
    made, text = auth.new_token("engine")
    at, stored, header = [0.0], [made], f"Bearer {text}"
    keeper = Authenticator(lambda id: stored[0], False, clock=lambda: at[0])
    revoked, last = 2.05, 0.0
    for tick in range(50):
        at[0] = tick / 10
        if at[0] > revoked:
            stored[0] = replace(made, revoked=datetime.now(UTC))
        with suppress(Problem):
            assert (keeper.known(header) or keeper.caller(header)).role == "engine"
            last = at[0]
    assert 2.0 <= last <= revoked + 1.0


def test_expired_tokens_open_nothing(service: Service) -> None:
    past = datetime.now(UTC) - timedelta(days=2)
    made, text = auth.new_token("admin", days=1, now=past)
    service.office.tokens.add(made)
    assert service.http("GET", "/v1/me", text).status_code == 401
    made, text = auth.new_token("admin", days=3, now=past)
    service.office.tokens.add(made)
    assert service.http("GET", "/v1/me", text).status_code == 200


def test_a_token_expires_while_it_is_remembered() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    made, text = auth.new_token("engine", days=1, now=now)
    at = [now]
    keeper = Authenticator(lambda id: made, False, clock=lambda: 0.0, now=lambda: at[0])
    assert keeper.caller(f"Bearer {text}").role == "engine"
    at[0] = now + timedelta(days=1)
    with pytest.raises(Problem):
        keeper.known(f"Bearer {text}")


def test_tokens_are_looked_up_again_after_a_while() -> None:
    made, text = auth.new_token("engine")
    at, asked = [0.0], []
    keeper = Authenticator(lambda id: (asked.append(id), made)[1], False, clock=lambda: at[0])  # type: ignore[func-returns-value]
    for _ in range(5):
        keeper.caller(f"Bearer {text}")
    assert len(asked) == 1
    at[0] = auth.KEPT + 0.1
    assert keeper.known(f"Bearer {text}") is None
    keeper.caller(f"Bearer {text}")
    assert len(asked) == 2


def test_secrets_are_not_in_the_store(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor") as service:
        for role in auth.ROLES:
            assert service.http("GET", "/v1/me", role).status_code == 200
        texts = list(service.tokens.values())
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for text in texts:
        assert text.split("_", 2)[2].encode() not in content
    rows = sqlite3.connect(tmp_path / "b.db").execute("SELECT hash FROM residua_tokens").fetchall()
    assert {hash for (hash,) in rows} == {auth.secret_hash(text.split("_", 2)[2]) for text in texts}


def test_secrets_are_not_in_logs(service: Service, budget: str) -> None:
    stream = io.StringIO()
    with logs.log_to("json", "debug", stream):
        secret = service.tokens["engine"].split("_", 2)[2]
        service.spend(budget, "engine")
        service.http("GET", f"/v1/budgets/{budget}?token={service.tokens['engine']}", "engine")
        service.http("GET", "/v1/me", service.tokens["engine"] + "x")
    text = stream.getvalue()
    assert '"path": "/v1/budgets/matrix/spend"' in text and '"by": "engine"' in text
    assert secret not in text


def test_without_a_token_only_for_development(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor", dev=True) as service:
        assert service.http("GET", "/v1/me", None).json()["principal"] == "local"
        assert service.http("GET", "/v1/me", "auditor").json()["role"] == "auditor"
        assert service.http("GET", "/v1/me", "rz_no").status_code == 401
        for headers in (
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Host": "evil.example"},
            {"Host": "127.0.0.1.evil.example"},
        ):
            answer = service.http("GET", "/v1/me", None, headers=headers)
            assert answer.status_code == 403, headers
        local = {"Origin": service.url}
        assert service.http("GET", "/v1/me", None, headers=local).status_code == 200
        form = service.http("POST", "/v1/budgets", None, data={"name": "by form"})
        assert form.status_code == 415, "a form of another site sends no JSON"
        assert b" 403 " in raw(service.url, b"GET /v1/me HTTP/1.0\r\n\r\n")


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.org"])
def test_development_stays_on_loopback(host: str) -> None:
    with pytest.raises(ArgumentError, match="dev must stay on a loopback address"):
        Settings(dev=True, host=host)


def test_beyond_loopback_only_with_tokens(tmp_path: Path) -> None:
    from residua.service.context import open_context

    ledger = rz.open_ledger(f"sqlite:///{tmp_path}/b.db")
    office = open_context(Settings(host="0.0.0.0"), ledger)
    try:
        with pytest.raises(
            ArgumentError, match="create a token with: residua token create --role admin"
        ):
            check(office)
        past = datetime.now(UTC) - timedelta(days=2)
        office.tokens.add(auth.new_token("admin", days=1, now=past)[0])
        with pytest.raises(ArgumentError, match="no valid token"):
            check(office)
        office.tokens.add(auth.new_token("admin")[0])
        check(office)
    finally:
        office.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"role": "root"}, "role must be one of admin"),
        ({"role": "engine", "principal": "a\nb"}, "name must be"),
        ({"role": "engine", "principal": ""}, "name must be"),
        ({"role": "engine", "budgets": ["*"]}, "budget must be a name"),
        ({"role": "engine", "budgets": ["a*b"]}, "budget must be a name"),
        ({"role": "auditor", "budgets": ["web"]}, "scope must be empty for the role auditor"),
        ({"role": "engine", "days": 0}, "days must be"),
        ({"role": "engine", "days": float("nan")}, "days must be"),
    ],
)
def test_tokens_that_are_not_made(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        auth.new_token(**options)


def test_each_token_is_another() -> None:
    texts = {auth.new_token("engine")[1] for _ in range(200)}
    assert len(texts) == 200
    assert all(auth.parse_token(text) is not None for text in texts)
