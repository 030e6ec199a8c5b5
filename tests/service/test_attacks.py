"""What a hostile caller tries: others' budgets, smuggled requests, markup, slow connections."""

from __future__ import annotations

import io
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from fastapi.routing import APIRoute

import residua as rz
from residua.service import auth, logs
from residua.service.pages import budget, home, manage, play
from residua.service.problems import problem_of
from service.running import LAPLACE, Service, process, raw

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy", "jinja2")

MARKUP = "<img src=x onerror=alert(1)>\"'&"
QUERY = {"kind": "laplace", "laplace.scale": "4", "laplace.sensitivity": "1"}


@contextmanager
def entered(service: Service, token: str) -> Iterator[tuple[httpx.Client, dict[str, str]]]:
    """A browser's session, and the code of its forms."""
    with httpx.Client(base_url=service.url, timeout=60) as visitor:
        assert visitor.post("/login", data={"token": token}).status_code == 303
        code = re.search(r'name="form_code" value="(\w+)"', visitor.get("/").text)
        assert code is not None
        yield visitor, {"form_code": code[1]}


def test_pages_of_budgets_out_of_scope(service: Service, name: str) -> None:
    """No address of the pages says anything of another's budget, not even that there is one."""
    other = f"x{name}"
    for each in (name, other):
        service.budget(each)
    service.spend(other, key="a-key-of-others")
    hold = service.http("POST", f"/v1/budgets/{other}/reserve", json={"mechanism": LAPLACE}).json()
    with entered(service, service.token("engine", budgets=[name])) as (visitor, code):
        for there in (other, f"{other}-is-not-there"):
            for end in ("", "/left", "/curves.json", "?only=refused", "?record=1", "/retire"):
                found = visitor.get(f"/budgets/{there}{end}")
                assert found.status_code == 403, end
            for end in ("what-if", "spend", "retire"):
                sent = visitor.post(
                    f"/budgets/{there}/{end}", data={**code, **QUERY, "reason": "r"}
                )
                assert sent.status_code == 403, end
        for id in (hold["id"], "0" * 32):
            assert visitor.get(f"/holds/{id}/cancel").status_code == 404
            assert visitor.post(f"/holds/{id}/cancel", data=code).status_code == 404
        assert other not in visitor.get("/").text
        assert "a-key-of-others" not in visitor.get(f"/budgets/{name}").text
    assert service.office.ledger.budget(other).seq == 2


def test_a_session_ends_with_its_token(service: Service) -> None:
    text = service.token("admin")
    with entered(service, text) as (visitor, _):
        service.office.tokens.revoke(text.split("_")[1])
        deadline = time.monotonic() + 60
        while visitor.get("/").status_code != 303 and time.monotonic() < deadline:
            time.sleep(auth.KEPT / 4)
        assert visitor.get("/").headers["location"].startswith("/login")
    past = datetime.now(UTC) - timedelta(days=2)
    made, expired = auth.new_token("admin", days=1, now=past)
    service.office.tokens.add(made)
    with httpx.Client(base_url=service.url, cookies={"residua_session": expired}) as visitor:
        assert visitor.get("/").headers["location"].startswith("/login")


def test_markup_is_shown_and_never_run(service: Service, name: str) -> None:
    """In names, units, labels, principals, keys and reasons: on every page it is text."""
    there = f"{MARKUP.replace('/', '')}{name}"
    service.budget(there, unit=MARKUP, data=MARKUP + name)
    ledger = service.office.ledger.as_principal(MARKUP)
    ledger.spend(there, rz.mechanisms.PureDp(eps=9.0), key=MARKUP)
    hold = ledger.reserve(there, rz.laplace(scale=9.0))
    ledger.cancel(hold.id, MARKUP)
    open_hold = ledger.reserve(there, rz.laplace(scale=9.0))
    with entered(service, service.tokens["admin"]) as (visitor, code):
        address = f"/budgets/{httpx.URL('/').copy_with(path='/' + there).raw_path.decode()[1:]}"
        pages = [
            visitor.get("/"),
            visitor.get(address),
            visitor.get(f"{address}?only=refused"),
            visitor.get(f"{address}/retire"),
            visitor.get(f"/holds/{open_hold.id}/cancel"),
            visitor.get("/new-budget"),
            visitor.post("/new-budget", data={**code, "name": MARKUP, "kind": MARKUP}),
            visitor.post(f"{address}/what-if", data={**code, "kind": MARKUP, "n": MARKUP}),
            visitor.get(f"/login?next=/{MARKUP}"),
        ]
    for found in pages:
        assert found.status_code in (200, 422)
        assert "<img src=x" not in found.text
        assert "&lt;img" in found.text or found.url.path == "/login"
        assert "default-src 'none'" in found.headers["content-security-policy"]


def test_a_token_in_a_path_is_not_logged(service: Service) -> None:
    stream = io.StringIO()
    text = service.tokens["engine"]
    with logs.log_to("json", "debug", stream):
        service.http("GET", f"/v1/budgets/{text}", "engine")
        service.http("GET", f"/login/{text}/x", None)
    written = stream.getvalue()
    assert written.count(text.split("_")[1]) >= 2, "its id is no secret"
    assert text.split("_", 2)[2] not in written


@pytest.mark.parametrize(
    "heads",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: -5",
        "Content-Length: 5 5",
        "Content-Length: +5",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding:\tchunked\r\nTransfer-Encoding: xchunked",
        "Content-Length : 5",
        "X: a\r\n b\r\nContent-Length: 5, 5",
    ],
)
def test_smuggled_requests(service: Service, name: str, heads: str) -> None:
    """Two servers that read one request differently would see a second one in its body."""
    service.budget(name)
    token = service.tokens["admin"]
    spend = (
        f"POST /v1/budgets/{name}/spend HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\n"
    )
    body = '{"mechanism": {"kind": "laplace", "scale": 4.0}}'
    hidden = f"{spend}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}"
    outer = (
        f"POST /v1/budgets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n{heads}\r\n\r\n"
    )
    found = raw(service.url, f"{outer}0\r\n\r\n{hidden}".encode(), patience=2.0)
    answers = re.findall(rb"^HTTP/1\.1 (\d+)", found, re.MULTILINE)
    assert all(status.startswith(b"4") for status in answers), found[:500]
    assert service.office.ledger.budget(name).seq == 0


def test_who_sends_no_request_is_let_go(tmp_path: Path) -> None:
    """Silent, or a byte at a time: closed, while others are answered on connections they keep."""
    with process(f"sqlite:///{tmp_path}/b.db", RESIDUA_HEAD_WITHIN="0.5") as running:
        host, _, port = running.url.removeprefix("http://").partition(":")
        with httpx.Client(base_url=running.url, timeout=60) as client:
            assert client.get("/v1/health").status_code == 200
            slow = [socket.create_connection((host, int(port)), timeout=60) for _ in range(20)]
            try:
                for one in slow[:10]:
                    one.sendall(b"GET /v1/health HTTP/1.1\r\nX-Slow: ")
                ended = [one.recv(1) for one in slow]
            except ConnectionResetError:
                ended = []
            finally:
                for one in slow:
                    one.close()
            assert not any(ended), "nobody was answered"
            assert client.get("/v1/health").status_code == 200


def test_a_head_without_end(service: Service) -> None:
    """Refused before it has filled the memory; on the same service others are answered."""
    host, _, port = service.url.removeprefix("http://").partition(":")
    for begun in (b"GET /v1/health HTTP/1.1\r\nHost: a\r\nX: ", b"GET /"):
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            sent = 0
            try:
                connection.sendall(begun)
                while sent < 50_000_000:
                    connection.sendall(b"a" * 65536)
                    sent += 65536
            except OSError:
                pass
            assert sent < 20_000_000
    # On a connection that was used before, and beside a body that is large but allowed.
    large = {"Content-Type": "application/json"}
    body = b'{"mechanism": ' + b" " * 200_000 + b"1}"
    for _ in range(3):
        answer = service.http("POST", "/v1/budgets/none/spend", content=body, headers=large)
        assert answer.status_code == 422
    long = service.http("GET", "/v1/health", None, headers={"X": "a" * 30_000})
    assert long.status_code == 200


def test_errors_of_other_libraries_say_nothing() -> None:
    from sqlalchemy.exc import ArgumentError

    assert problem_of(ArgumentError("postgresql://owner:secret@db.internal/budgets")) is None


FOREIGN = (
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "OURS"},
    {"Origin": "https://elsewhere.example"},
    {"Origin": "null"},
)
"""What browsers say of a form on a page of another site."""


def test_no_form_of_another_site_is_accepted(service: Service, name: str) -> None:
    """Whatever the route, and though the browser sends the cookie and the code was found out."""
    service.budget(name)
    hold = service.http("POST", f"/v1/budgets/{name}/reserve", json={"mechanism": LAPLACE}).json()
    parts = budget, home, manage, play
    every = [each for part in parts for each in part.router.routes if isinstance(each, APIRoute)]
    routes = {each.path for each in every if "POST" in each.methods}
    assert {"/login", "/logout", "/budgets/{name}/spend", "/holds/{id}/cancel"} < routes
    made = {"name": f"new-{name}", "filter": "pure", "pure.eps": "1", "reason": "r", **QUERY}
    with (
        entered(service, service.token("admin")) as (visitor, code),
        entered(service, service.token("admin")) as (_, of_another),
    ):
        seq = service.office.ledger.budget(name).seq
        for route in sorted(routes):
            path = route.format(name=name, id=hold["id"])
            form = {**made, "token": service.tokens["admin"]}
            for header in FOREIGN:
                told = {k: v.replace("OURS", service.url) for k, v in header.items()}
                sent = visitor.post(path, data={**form, **code}, headers=told)
                assert sent.status_code == 403 and "set-cookie" not in sent.headers, (path, told)
            if route == "/login":
                continue  # There is no session yet that a code could be of.
            for wrong in ({}, {"form_code": ""}, of_another):
                sent = visitor.post(path, data={**form, **wrong})
                assert sent.status_code == 403 and "set-cookie" not in sent.headers, (path, wrong)
        ledger = service.office.ledger
        assert ledger.budget(name).seq == seq and hold["id"] in ledger.budget(name).holds
        assert f"new-{name}" not in {one.name for one in ledger.budgets()}
        ours = {"Origin": service.url, "Sec-Fetch-Site": "same-origin"}
        done = visitor.post(f"/budgets/{name}/retire", data={**made, **code}, headers=ours)
        assert done.status_code == 303 and ledger.budget(name).seq > seq
