"""Every route does what the description says, over a real connection."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import residua as rz
from residua.errors import TooExpensive
from residua.records import from_line
from residua.service.api.routes import planning
from residua.service.api.routes.planning import widest
from service.running import FILTER, LAPLACE, Service

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy")


def test_a_budget_from_creation_to_retirement(service: Service, name: str) -> None:
    body = {"name": name, "filter": FILTER, "relation": "add-remove", "unit": "person"}
    made = service.http("POST", "/v1/budgets", json=body)
    assert made.status_code == 201
    shown = service.http("GET", f"/v1/budgets/{name}").json()
    assert made.json() == shown
    assert shown["filter"] == FILTER and shown["seq"] == 0 and not shown["retired"]
    assert name in [one["name"] for one in service.http("GET", "/v1/budgets").json()["items"]]
    again = service.http("POST", "/v1/budgets", json=body)
    assert again.status_code == 409 and again.json()["type"].endswith(":budget-exists")
    closed = service.http("POST", f"/v1/budgets/{name}/retire", json={"reason": "study ended"})
    assert closed.status_code == 200 and closed.json()["retired"]
    refused = service.spend(name)
    assert refused.status_code == 409 and refused.json()["type"].endswith(":retired-budget")


@pytest.mark.parametrize("filter", [{"kind": "zcdp", "rho": 0.5}, {"kind": "pure", "eps": 1.0}])
def test_what_is_spent_is_in_the_balance_alone(
    service: Service, name: str, filter: dict[str, object]
) -> None:
    service.budget(name, filter=filter)
    service.spend(name, mechanism={"kind": "laplace", "scale": 1.004})
    shown = service.http("GET", f"/v1/budgets/{name}").json()
    balance = shown["balance"]
    assert (
        "spent" not in shown and balance["details"][0]["left"] < balance["details"][0]["capacity"]
    )
    with service.client() as client:
        assert client.budget(name).spent is not None
    if filter["kind"] == "pure":
        assert 0.0 < balance["share"] < 0.01 and balance["text"].startswith("< 1 % left; ")


def test_budgets_come_in_pages(service: Service, name: str) -> None:
    for place in range(3):
        service.budget(f"{name}-{place}")
    found, after = [], None
    for _ in range(100):
        params = {"limit": 2, **({} if after is None else {"after": after})}
        page = service.http("GET", "/v1/budgets", params=params).json()
        found += [one["name"] for one in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert found == sorted(set(found)) and {f"{name}-{place}" for place in range(3)} <= set(found)


def test_another_relation_is_a_refusal(service: Service, name: str) -> None:
    service.budget(name)
    query = {"kind": "pure_dp", "eps": 0.01, "relation": "replace-one"}
    for verb in ("check", "spend", "reserve"):
        found = service.http("POST", f"/v1/budgets/{name}/{verb}", json={"mechanism": query})
        assert found.status_code == 200, found.text
        said = found.json()
        assert said["admitted"] is False and said["largest"] is None
        assert "the budget's relation is add-remove" in said["reason"]
    plan = service.http("POST", f"/v1/budgets/{name}/plan", json={"mechanisms": [query]})
    assert plan.status_code == 200, plan.text
    assert plan.json()["how_many"] == 0 and plan.json()["least_noise"] is None
    with service.client() as client:
        refused = client.spend(name, query)
        assert not refused.admitted and refused.largest is None


def test_spend_says_what_the_filter_says(service: Service, name: str) -> None:
    service.budget(name)
    desk = rz.GdpResidueFilter(mu=1.0)
    for _ in range(60):
        answer = service.spend(name)
        assert answer.status_code == 200
        decision = desk.request(rz.mechanisms.Laplace(scale=4.0))
        said = answer.json()
        assert said["admitted"] is decision.admitted
        if not decision.admitted:
            break
    assert not said["admitted"], "it must end with a refusal"
    assert said["reason"].startswith("refused: ") and "would fit" in said["reason"]
    assert said["binding"] == name and said["replayed"] is False
    assert said["remaining"]["sensitivity"] <= 0.25


def test_what_is_reported_as_left_can_be_spent(service: Service, name: str) -> None:
    service.budget(name)
    left = service.spend(name).json()["remaining"]
    del left["text"]
    assert service.spend(name, mechanism=left).json()["admitted"]


def test_a_check_spends_nothing(service: Service, name: str) -> None:
    service.budget(name)
    asked = {"mechanism": LAPLACE}
    first = service.http("POST", f"/v1/budgets/{name}/check", json=asked).json()
    assert first["admitted"] and first["largest"] is None
    too_much = {"mechanism": {"kind": "laplace", "scale": 0.5}}
    refused = service.http("POST", f"/v1/budgets/{name}/check", json=too_much).json()
    assert not refused["admitted"] and refused["largest"]["kind"] == "laplace"
    fitting = {"mechanism": refused["largest"]}
    assert service.http("POST", f"/v1/budgets/{name}/check", json=fitting).json()["admitted"]
    assert service.http("GET", f"/v1/budgets/{name}").json()["seq"] == 0


def test_a_key_is_replayed_from_body_or_header(service: Service, name: str) -> None:
    service.budget(name)
    first = service.spend(name, key=f"{name}-1").json()
    path = f"/v1/budgets/{name}/spend"
    by_header = {"Idempotency-Key": f"{name}-1"}
    again = service.http("POST", path, json={"mechanism": LAPLACE}, headers=by_header).json()
    assert first["replayed"] is False and again["replayed"] is True
    assert {**again, "replayed": False} == first
    both = {"mechanism": LAPLACE, "key": f"{name}-1"}
    assert service.http("POST", path, json=both, headers=by_header).json()["replayed"]
    conflict = service.http("POST", path, json={**both, "key": "other"}, headers=by_header)
    assert conflict.status_code == 422 and "Idempotency-Key" in conflict.json()["detail"]
    other = service.spend(name, key=f"{name}-1", mechanism={"kind": "laplace", "scale": 9.0})
    assert other.status_code == 409 and other.json()["type"].endswith(":key-reused")
    assert service.http("GET", f"/v1/budgets/{name}").json()["seq"] == 1


def test_refusals_are_sticky_for_their_key(service: Service, name: str) -> None:
    service.budget(name)
    much = {"kind": "laplace", "scale": 0.5}
    first = service.spend(name, key=f"{name}-1", mechanism=much).json()
    again = service.spend(name, key=f"{name}-1", mechanism=much).json()
    assert not first["admitted"] and again["replayed"] and not again["admitted"]


def test_reservations(service: Service, name: str) -> None:
    service.budget(name)
    path = f"/v1/budgets/{name}/reserve"
    hold = service.http("POST", path, json={"mechanism": LAPLACE, "ttl": 600}).json()
    assert hold["admitted"]
    waiting = service.http("GET", "/v1/holds").json()["items"]
    assert [one["budgets"] for one in waiting if one["id"] == hold["id"]] == [[name]]
    done = service.http("POST", f"/v1/holds/{hold['id']}/commit")
    assert done.status_code == 200 and done.json()["admitted"] and not done.json()["replayed"]
    again = service.http("POST", f"/v1/holds/{hold['id']}/commit", json={})
    assert again.json()["replayed"] and again.json()["head"] == done.json()["head"]
    late = service.http("POST", f"/v1/holds/{hold['id']}/cancel", json={"reason": "too late"})
    assert late.status_code == 404 and late.json()["type"].endswith(":unknown-hold")
    other = service.http("POST", path, json={"mechanism": LAPLACE}).json()
    gone = service.http("POST", f"/v1/holds/{other['id']}/cancel")
    assert gone.status_code == 204 and gone.content == b""


def test_several_budgets_take_all_or_none(service: Service, name: str) -> None:
    service.budget(f"{name}-a")
    service.budget(f"{name}-b", filter={"kind": "pure", "eps": 0.1})
    said = service.spend(f"{name}-a", also=[f"{name}-b"]).json()
    assert not said["admitted"] and said["binding"] == f"{name}-b"
    assert set(said["remaining"]) == set(said["budgets"]) == {f"{name}-a", f"{name}-b"}
    shown = service.http("GET", f"/v1/budgets/{name}-a").json()
    assert shown["remaining"] == shown["capacity"]


def test_history_in_pages_and_by_filter(service: Service, name: str) -> None:
    service.budget(name)
    for place in range(4):
        service.spend(name, key=f"{name}-{place}")
    service.spend(name, token="engine", mechanism={"kind": "laplace", "scale": 0.5})
    path = f"/v1/budgets/{name}/history"
    found, after = [], None
    while True:
        params = {"limit": 2, **({} if after is None else {"after": after})}
        page = service.http("GET", path, params=params).json()
        found += page["items"]
        after = page["next"]
        if after is None:
            break
    assert [one["seq"] for one in found] == list(range(6))
    assert found[0]["type"] == "create" and found[0]["admitted"] is None
    assert [one["key"] for one in found[1:5]] == [f"{name}-{place}" for place in range(4)]
    assert found[1]["mechanism"] == {**LAPLACE, "sensitivity": 1.0}
    for params, seqs in [
        ({"admitted": "false"}, [5]),
        ({"admitted": "true", "after": 2}, [3, 4]),
        ({"type": "create"}, [0]),
        ({"key": f"{name}-2"}, [3]),
        ({"by": "engine"}, [5]),
    ]:
        items = service.http("GET", path, params=params).json()["items"]
        assert [one["seq"] for one in items] == seqs, params


def test_exports_are_records_whose_hashes_agree(service: Service, name: str) -> None:
    service.budget(name)
    service.spend(name)
    answer = service.http("GET", f"/v1/budgets/{name}/export")
    assert answer.headers["content-type"] == "application/jsonl"
    chain = [from_line(line) for line in answer.text.splitlines()]
    assert [one.seq for one in chain] == [0, 1]
    whole = service.http("GET", "/v1/export", "auditor").text.splitlines()
    assert set(answer.text.splitlines()) <= set(whole)


def test_a_client_writes_exports_where_it_can(service: Service, name: str, tmp_path: Path) -> None:
    service.budget(name)
    service.spend(name)
    with service.client() as client:
        lines = client.export(tmp_path / "all.jsonl")
        assert len((tmp_path / "all.jsonl").read_text().splitlines()) == lines >= 2
        with pytest.raises(rz.ArgumentError, match="to must be a writable file"):
            client.export(tmp_path / "none" / "all.jsonl")
        with pytest.raises(rz.ArgumentTypeError, match="to must be a path or a text file, got 5"):
            client.export(5)


def test_curves(service: Service, name: str) -> None:
    service.budget(name)
    service.spend(name)
    found = service.http("GET", f"/v1/budgets/{name}/curves", params={"points": 11}).json()
    with service.client() as client:
        capacity, left = rz.gaussian(mu=1.0), client.budget(name).remaining
    for part, pld in (("capacity", capacity), ("guarantee", capacity), ("remaining", left)):
        stick, tradeoff = found[part]["hockey_stick"], found[part]["tradeoff"]
        assert len(stick["eps"]) == len(tradeoff["alpha"]) == 11
        for eps, delta in zip(stick["eps"], stick["delta"], strict=True):
            assert delta == pld.delta(eps)
        for alpha, beta in zip(tradeoff["alpha"], tradeoff["beta"], strict=True):
            assert beta == max(0.0, pld.tradeoff(alpha))
    assert found["spent"] is not None and found["seq"] == 1


def test_plan_counts_what_spending_admits(service: Service, name: str) -> None:
    service.budget(name)
    path = f"/v1/budgets/{name}/plan"
    body = {"mechanisms": [{"kind": "laplace", "scale": 3.0}], "n": 2}
    said = service.http("POST", path, json=body).json()
    admitted = 0
    while service.spend(name, mechanism=body["mechanisms"][0]).json()["admitted"]:
        admitted += 1
    assert said["how_many"] == said["rounds"] == admitted and not said["counting_ended"]
    assert said["least_noise"][0]["scale"] < 3.0
    none = service.http("POST", path, json=body).json()
    assert none["how_many"] == 0 and none["least_noise"][0]["scale"] > 3.0


def test_a_plan_of_too_much_work_names_the_limit(service: Service, name: str) -> None:
    service.budget(name, filter={"kind": "auto", "eps": 1.0, "delta": 1e-6})
    path, asked = f"/v1/budgets/{name}/plan", {"mechanisms": [{"kind": "laplace", "scale": 20.0}]}
    for _ in range(2):  # The second time much of it comes from caches.
        answer = service.http("POST", path, json={**asked, "n": 10_000})
        assert answer.status_code == 422, answer.text
        assert answer.json()["type"].endswith(":too-expensive")
        assert "the plan takes more than 3,000 million operations" in answer.json()["detail"]
    assert service.http("POST", path, json=asked).json()["how_many"] == 23


@pytest.mark.parametrize(
    ("most_work", "n", "fits"),
    [(10**6, 1, False), (10**8, 30, False), (planning.MOST_WORK, 1, True)],
)
def test_a_plan_does_not_depend_on_what_was_computed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_work: int, n: int, fits: bool
) -> None:
    monkeypatch.setattr(planning, "MOST_WORK", most_work)
    queries = [rz.Laplace(scale=40.0), rz.Gaussian(sigma=40.0)]
    with rz.open_ledger(tmp_path / "b.db") as ledger:
        ledger.create_budget("b", rz.AutoFilter(1.0, 1e-6))
        budget = ledger.budget("b").detached()
    found: list[object] = []
    for _ in range(2):
        try:
            found.append(planning.plan_of(budget, queries, n, 1000))
        except TooExpensive as error:
            found.append(str(error))
    assert found[0] == found[1]
    assert isinstance(found[0], dict) == fits


def test_who_am_i(service: Service) -> None:
    said = service.http("GET", "/v1/me", "analyst").json()
    assert said["role"] == said["principal"] == "analyst" and said["scope"] is None
    assert said["permissions"] == ["check", "plan", "read"]


def test_probes_need_no_token(service: Service) -> None:
    assert service.http("GET", "/v1/health", None).json()["status"] == "ok"
    assert service.http("GET", "/v1/ready", None).json()["status"] == "ready"


def test_metrics(service: Service, name: str) -> None:
    service.budget(name)
    service.spend(name)
    text = service.http("GET", "/metrics", "auditor").text
    assert 'residua_decisions_total{outcome="admitted",verb="spend"}' in text
    assert 'route="/v1/budgets/{name}/spend"' in text
    assert name not in text, "names of budgets are not for whoever reads metrics"


def test_status(service: Service, name: str) -> None:
    service.budget(name, data=f"data of {name}")
    said = service.http("GET", "/v1/status", "auditor").json()
    assert said["read_only"] is None and said["promises"]
    assert name in [one["name"] for one in said["budgets"]]
    assert f"data of {name}" in said["data"]


@pytest.mark.needs("flint")
def test_verification(service: Service, name: str) -> None:
    """In the background by the service, and by a client that does not trust it."""
    service.budget(name, filter={"kind": "pure", "eps": 1.0})
    pure = {"kind": "pure_dp", "eps": 0.25}
    receipt = service.spend(name, mechanism=pure).json()
    assert service.http("POST", "/v1/verification", "analyst").status_code == 403
    seen = []
    for _ in range(2):
        assert service.http("POST", "/v1/verification", "auditor").status_code == 202
        while (said := service.http("GET", "/v1/verification", "analyst").json())["running"]:
            time.sleep(0.01)
        seen.append(said)
        service.spend(name, mechanism=pure)
    assert all(one["ok"] and one["refuted"] == 0 and one["finished"] for one in seen)
    assert seen[1]["proven"] == seen[0]["proven"] + 1, "what was proven is not proven again"
    # Its words name budgets that may be out of an analyst's scope.
    assert seen[1]["said"] is None
    assert service.http("GET", "/v1/verification", "auditor").json()["said"]
    assert "residua_ledger_verified 1.0" in service.http("GET", "/metrics", "auditor").text
    with service.client("auditor") as client:
        assert client.verify(expect_head={name: (receipt["seq"], receipt["head"])}).ok
        assert not client.verify(expect_head={name: (99, receipt["head"])}).ok


def test_every_call_is_attributed(service: Service, name: str) -> None:
    service.budget(name)
    service.spend(name, token="engine")
    items = service.http("GET", f"/v1/budgets/{name}/history").json()["items"]
    assert [one["by"] for one in items] == ["admin", "engine"]


def test_keys_belong_to_who_brings_them(service: Service, name: str) -> None:
    service.budget(name)
    first = service.spend(name, token="engine", key="mine").json()
    other = service.spend(name, token="admin", key="mine").json()
    assert not first["replayed"] and not other["replayed"] and other["seq"] == first["seq"] + 1


def test_the_description_is_complete(service: Service) -> None:
    described = service.http("GET", "/v1/openapi.json", None).json()
    assert described["components"]["securitySchemes"]
    names = described["components"]["schemas"]
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            where = f"{method} {path}"
            assert operation["summary"] and operation["description"], where
            if path not in ("/v1/health", "/v1/ready"):
                assert {"401", "403", "429"} <= set(operation["responses"]), where
            for status, response in operation["responses"].items():
                if int(status) >= 400:
                    assert list(response["content"]) == ["application/problem+json"], where
                elif "application/json" in response.get("content", {}) and path != "/v1/status":
                    answered = response["content"]["application/json"]["schema"]
                    assert names[_named(answered)]["examples"], f"{where} shows no answer"
            if "requestBody" in operation:
                schema = operation["requestBody"]["content"]["application/json"]["schema"]
                text = json.dumps(names[_named(schema)])
                assert "examples" in text, f"{where} shows no example"
                assert '"additionalProperties": false' in text, f"{where} takes unknown fields"


@pytest.mark.parametrize(
    ("pld", "low", "high"),
    [
        (rz.approximate_dp(1.0, 1e-6), 1.0, 1.3),
        (rz.pure_dp(1.0), 0.99, 1.01),
        (rz.approximate_dp(0.0, 0.3), 0.0, 0.2),
        (rz.identity(), 0.0, 0.2),
    ],
)
def test_curves_end_where_nothing_happens_any_more(pld: rz.Pld, low: float, high: float) -> None:
    assert low <= widest([pld]) <= high


@pytest.mark.needs("jsonschema_rs")
def test_the_description_has_what_the_library_writes(service: Service) -> None:
    """Every mechanism and filter as its own codec writes it is one of the kinds described."""
    import jsonschema_rs

    from mechanisms.examples import EXAMPLES
    from residua.filters.codec import KINDS
    from service.pages.test_pages import FILTERS

    described = service.http("GET", "/v1/openapi.json", None).json()
    for name, written in (
        ("Mechanism", [one.to_dict() for one in EXAMPLES]),
        ("Filter", FILTERS),
    ):
        root = {"$ref": f"#/components/schemas/{name}", "components": described["components"]}
        schema = jsonschema_rs.validator_for(root)
        for one in written:
            assert schema.is_valid(json.loads(json.dumps(one))), one
        assert not schema.is_valid({"kind": "no such"})
    for name, schema in described["components"]["schemas"].items():
        root = {"$ref": f"#/components/schemas/{name}", "components": described["components"]}
        for example in schema.get("examples", ()):
            jsonschema_rs.validate(root, example)
    titles = [one["title"] for one in described["components"]["schemas"]["Filter"]["anyOf"]]
    assert set(titles) == set(KINDS)


def _named(schema: dict[str, object]) -> str:
    text = json.dumps(schema)
    return text.partition("#/components/schemas/")[2].partition('"')[0]
