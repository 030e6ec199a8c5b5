"""Whatever is sent, the answer is a problem that says what is wrong; never a failure inside."""

from __future__ import annotations

import json

import pytest

from service.running import FILTER, LAPLACE, Service, raw

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy")


@pytest.fixture(scope="module")
def budget(service: Service) -> str:
    service.budget("bad")
    return "bad"


def problem(answer: object, *statuses: int) -> str:
    assert answer.status_code in statuses, answer.text  # type: ignore[attr-defined]
    assert answer.headers["content-type"] == "application/problem+json"  # type: ignore[attr-defined]
    body = answer.json()  # type: ignore[attr-defined]
    assert set(body) == {"type", "title", "status", "detail", "instance"}
    assert body["status"] == answer.status_code  # type: ignore[attr-defined]
    return str(body["detail"])


SPEND = '{"mechanism": {"kind": "laplace", "scale": 4.0}, "key": %s}'


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ('{"mechanism": {"kind": "laplace", "scale": NaN}}', 400, "finite numbers, got NaN"),
        ('{"mechanism": {"kind": "laplace", "scale": Infinity}}', 400, "got Infinity"),
        ('{"mechanism": {"kind": "laplace", "scale": -Infinity}}', 400, "got -Infinity"),
        ('{"mechanism": {"kind": "laplace", "scale": 4}, "ttl": NaN}', 400, "got NaN"),
        ("NaN", 400, "got NaN"),
        ('{"mechanism": {"kind": "pure_dp", "eps": 1e-400}}', 400, "large enough for a float"),
        ('{"mechanism": {"kind": "laplace", "scale": 1e999}}', 422, "scale must be positive"),
        ('{"mechanism": {"kind": "laplace", "scale": -1}}', 422, "scale must be positive"),
        ('{"mechanism": {"kind": "laplace", "scale": "4"}}', 422, "scale must be a number"),
        ('{"mechanism": {"kind": "laplace", "scale": true}}', 422, "scale must be a number"),
        ('{"mechanism": {"kind": "laplace", "scale": null}}', 422, "scale must be a number"),
        ('{"mechanism": {"kind": "laplace", "scale": [4]}}', 422, "scale must be"),
        ('{"mechanism": {"kind": "laplace", "scael": 4}}', 422, "unknown field 'scael'"),
        ('{"mechanism": {"kind": "laplase", "scale": 4}}', 422, "'laplase'"),
        ('{"mechanism": {"scale": 4}}', 422, "kind is missing"),
        ('{"mechanism": {}}', 422, "mechanism: "),
        ('{"mechanism": 4}', 422, "dictionary, got 4"),
        ('{"mechanism": null}', 422, "got None"),
        ("{}", 422, "mechanism: is missing"),
        ("[]", 422, "got []"),
        ("4", 422, "got 4"),
        ("null", 422, "got None"),
        ("", 400, "valid JSON"),
        ("{", 400, "valid JSON"),
        ('{"mechanism": {"kind": "laplace", "scale": 4}} {}', 400, "valid JSON"),
        ('{"mechanism": {"kind": "laplace", "scale": 4}, "speed": 1}', 422, "speed: is not"),
        ('{"mechanism": {"kind": "laplace", "scale": 4, "scale": 5}}', 400, "duplicate fields"),
        (SPEND % '"a", "key": "b"', 400, "duplicate fields"),
        (SPEND % "7", 422, "key: Input should be a valid string, got 7"),
        (SPEND % '""', 422, "got ''"),
        (SPEND % json.dumps("k" * 201), 422, "characters, got 'kkk"),
        (SPEND % '"a\\u0000b"', 422, "key: "),
        (SPEND % '"a\\nb"', 422, "key: "),
        (SPEND % '"\\ud800"', 422, "key"),
        (SPEND % '" a"', 422, "key must be"),
        (SPEND % '"a", "also": "bad"', 422, "got 'bad'"),
        (SPEND % '"a", "also": [1]', 422, "also.0: Input should be a valid string, got 1"),
        (SPEND % '"a", "also": ["none such"]', 404, "none such"),
        (SPEND % '"a", "assume_budget_relation": 1', 422, "boolean, got 1"),
        ('{"mechanism": ' + 2000 * '{"kind":' + "1" + 2000 * "}" + "}", 400, "nested less"),
        (100_000 * "[", 400, "nested less deeply"),
        ('{"mechanism": {"kind": "laplace", "scale": 1' + 5000 * "0" + "}}", 400, "ordinary size"),
        ('{"mechanism": {"kind": "\\ud800"}}', 422, "kind must be one of"),
        ('{"mechanism": {"kind": "laplace", "scale": 4, "\\ud800": 1}}', 422, "unknown field"),
    ],
)  # fmt: skip
def test_bodies(service: Service, budget: str, body: str, status: int, said: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = service.http("POST", f"/v1/budgets/{budget}/spend", content=body, headers=headers)
    assert said in problem(answer, status)


def test_what_was_wrong_spent_nothing(service: Service, budget: str) -> None:
    assert service.http("GET", f"/v1/budgets/{budget}").json()["seq"] == 0


@pytest.mark.parametrize("content", [b"\xff\xfe{}", b'{"mechanism": "\xff"}', b"\x00"])
def test_bodies_that_are_no_text(service: Service, budget: str, content: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = service.http("POST", f"/v1/budgets/{budget}/spend", content=content, headers=headers)
    problem(answer, 400)


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "ä/json"]
)
def test_a_body_must_say_that_it_is_json(service: Service, budget: str, kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind.encode("latin-1")}
    content = json.dumps({"mechanism": LAPLACE})
    answer = service.http("POST", f"/v1/budgets/{budget}/spend", content=content, headers=headers)
    assert "application/json" in problem(answer, 415)


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"filter": {"kind": "gdp_residue", "mu": -1}}, 422, "mu must be"),
        ({"filter": {"kind": "no such"}}, 422, "kind must be one of"),
        ({"filter": {"kind": "update"}}, 422, "kind must be one of"),
        ({"filter": {}}, 422, "filter: "),
        ({"relation": "next-door"}, 422, "next-door"),
        ({"unit": ""}, 422, "unit: "),
        ({"parent": "none such"}, 404, "none such"),
        ({"partition": "p"}, 422, "parent must be given"),
        ({"window": -1.0}, 422, "window: "),
        ({"window": 0}, 422, "window: "),
        ({"window": 0.5}, 422, "window: "),
        ({"shares_data": "yes"}, 422, "shares_data: "),
        ({"name": ""}, 422, "name: "),
        ({"name": "a/b"}, 422, "name: "),
        ({"name": "."}, 422, "name: "),
        ({"name": ".."}, 422, "name: "),
        ({"name": "a\nb"}, 422, "name: "),
        ({"name": "a\u0000"}, 422, "name: "),
        ({"name": " a"}, 422, "name must be"),
        ({"name": "\u202e"}, 422, "name must be"),
        ({"name": "a\u200bb"}, 422, "name must be"),
        ({"name": "a\u202eb"}, 422, "name must be"),
        ({"name": "\ufeffa"}, 422, "name must be"),
        ({"name": "e\u0301"}, 422, "composed form of Unicode"),
        ({"data": "e\u0301"}, 422, "composed form of Unicode"),
        ({"name": "n" * 201}, 422, "name: "),
        ({"name": 7}, 422, "name: "),
        ({"name": ["a"]}, 422, "name: "),
    ],
)
def test_budgets_that_are_not_made(
    service: Service, name: str, fields: dict[str, object], status: int, said: str
) -> None:
    body = {"name": name, "filter": FILTER, **fields}
    answer = service.http("POST", "/v1/budgets", json=body)
    assert said in problem(answer, status)


@pytest.mark.parametrize(
    "name",
    ["ümläut", "бюджет", "预算", "🏦", "a b", "a%2Fb", "a+b", "a?b", "a#b", "a;b", "a&b=c", "...",
     "%", "%00", "<b>", "'; DROP TABLE residua_budgets; --", "\\", "C:\\x", "a'b\"c",
     "\u00e9", "\u05d0\u05d1\u05d2", "\U0001f3f3\ufe0f"],
)  # fmt: skip
def test_names_of_every_script(service: Service, name: str) -> None:
    """What can be created can be read, spent from and listed under that very name."""
    service.budget(name)
    with service.client() as client:
        assert client.budget(name).name == name
        assert client.spend(name, LAPLACE).admitted
        assert [one.seq for one in client.history(name)] == [0, 1]
        assert name in [one.name for one in client.budgets()]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/budgets/../../etc/passwd", "/v1/budgets/%2e%2e/%2e%2e/etc/passwd",
        "/v1/budgets/bad%2Fhistory", "/v1/budgets/bad%00", "/v1/budgets//history", "//v1/budgets",
        "/v1/budgets/bad/", "/v1/budgets/%ff%fe", "/v1/budgets/%C0%AE%C0%AE",
        "/V1/BUDGETS", "/v1/budgets/bad/spend", "/v1", "/", "/static/../../x", "/docs", "/redoc",
        "/openapi.json", "/v1/budgets/" + "x" * 5000, "/%0d%0aSet-Cookie:%20a=b", "*",
        "http://evil.example/v1/budgets",
    ],
)  # fmt: skip
def test_path_tricks(service: Service, budget: str, path: str) -> None:
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    token = service.tokens["admin"]
    found = raw(service.url, f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
    status = int(found.split(b" ", 2)[1])
    if path == "/":  # the pages, which know no header: log in first
        assert status == 303 and b"location: /login" in found.lower(), found[:300]
        return
    assert status in (200, 400, 404, 405, 422), found[:300]
    assert b"root:" not in found and b"\nset-cookie" not in found.lower()
    if status == 200:
        assert path == "http://evil.example/v1/budgets", found[:300]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods(service: Service, budget: str, method: str) -> None:
    problem(service.http(method, f"/v1/budgets/{budget}"), 405)


def test_what_is_no_http(service: Service) -> None:
    for sent in (b"BREW / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\xa5\r\n\r\n", b"GET\r\n\r\n"):
        assert raw(service.url, sent).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=1001", "limit=many", "limit=1e3", "after=-2", "after=99999999999999999999",
     "after=NaN", "admitted=perhaps", "type=spent", "key=" + "k" * 201, "limit=1&limit=-1"],
)  # fmt: skip
def test_queries(service: Service, budget: str, query: str) -> None:
    name, _, value = query.rpartition("&")[2].partition("=")
    said = problem(service.http("GET", f"/v1/budgets/{budget}/history?{query}"), 422)
    assert said.startswith(f"query.{name}") and ("once" in said or f"got '{value[:50]}" in said)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/history?limt=5", "query.limt: is not a field of this request"),
        ("/history?limit=5&Limit=6", "query.Limit: is not"),
        ("/history?limit=5&limit=5", "query.limit: must come once"),
        ("/history?admitted=true&admitted=false", "query.admitted: must come once"),
        ("/history?after=", "query.after"),
        ("/history?=1", "query.: is not"),
        ("/history?" + "&".join(f"x{n}=" for n in range(65)), "at most 64 fields"),
        ("/curves?point=81", "query.point: is not"),
        ("/export?type=spend", "query.type: is not"),
        ("?verbose=1", "query.verbose: is not"),
        ("/check?key=k", "query.key: is not"),
    ],
)
def test_query_fields_that_are_none(service: Service, budget: str, path: str, said: str) -> None:
    """A filter with a typo would show what nobody asked for, so it is refused and named."""
    method = "POST" if path.startswith("/check") else "GET"
    body = {"json": {"mechanism": LAPLACE}} if method == "POST" else {}
    answer = service.http(method, f"/v1/budgets/{budget}{path}", **body)
    problem(answer, 422)
    assert said in answer.json()["detail"]


def test_every_address_names_a_query_field_that_it_does_not_have(service: Service) -> None:
    described = service.http("GET", "/v1/openapi.json", None).json()["paths"]
    for path in ("/v1/health", "/v1/ready", "/v1/me", "/v1/status", "/v1/holds", "/v1/budgets",
                 "/v1/verification", "/v1/export", "/metrics"):  # fmt: skip
        answer = service.http("GET", f"{path}?colour=red")
        problem(answer, 422)
        assert "query.colour: is not a field" in answer.json()["detail"]
        assert "422" in described[path]["get"]["responses"]


def test_lists_may_come_more_than_once(service: Service, budget: str) -> None:
    answer = service.http("GET", f"/v1/budgets/{budget}/history?type=create&type=spend&limit=1")
    assert answer.status_code == 200 and answer.json()["items"][0]["type"] == "create"


@pytest.mark.parametrize("points", ["1", "402", "-1", "x", "1e9"])
def test_curves_of_no_points(service: Service, budget: str, points: str) -> None:
    answer = service.http("GET", f"/v1/budgets/{budget}/curves?points={points}")
    assert problem(answer, 422).endswith(f"got '{points}'")


def test_bodies_that_are_too_large(service: Service, budget: str) -> None:
    largest = service.office.settings.largest_body
    body = json.dumps({"mechanism": LAPLACE, "key": "x" * largest}).encode()
    headers = {"Content-Type": "application/json"}
    path = f"/v1/budgets/{budget}/spend"
    assert str(largest) in problem(service.http("POST", path, content=body, headers=headers), 413)
    pieces = (body[start : start + 4096] for start in range(0, len(body), 4096))
    answer = service.http("POST", path, content=pieces, headers=headers)
    assert str(largest) in problem(answer, 413)


def test_plans_are_patient_but_not_for_ever(service: Service, name: str) -> None:
    service.budget(name)
    for fields in ({"n": 0}, {"n": 10**10}, {"most": -1}, {"most": 10**7}, {"mechanisms": []}):
        body = {"mechanisms": [LAPLACE], **fields}
        problem(service.http("POST", f"/v1/budgets/{name}/plan", json=body), 422)


@pytest.mark.parametrize("key", ["k" * 201, "a\tb"])
def test_headers_that_are_no_keys(service: Service, budget: str, key: str) -> None:
    headers = {"Idempotency-Key": key}
    answer = service.http(
        "POST", f"/v1/budgets/{budget}/spend", json={"mechanism": LAPLACE}, headers=headers
    )
    said = problem(answer, 422)
    assert "Idempotency-Key must be" in said and f"got {key!r}"[:50] in said


def test_a_request_id_is_echoed_unless_it_is_strange(service: Service) -> None:
    for given, kept in (("abc-123", True), ("a b", False), ("x" * 65, False), ('"', False)):
        answer = service.http("GET", "/v1/health", None, headers={"X-Request-ID": given})
        assert (answer.headers["x-request-id"] == given) is kept


def test_many_connections_that_say_nothing(service: Service) -> None:
    import socket

    host, _, port = service.url.removeprefix("http://").partition(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(50)]
    try:
        for one in silent[:25]:
            one.sendall(b"POST /v1/budgets HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n{")
        assert service.http("GET", "/v1/health", None).status_code == 200
    finally:
        for one in silent:
            one.close()
    assert service.http("GET", "/v1/health", None).status_code == 200
