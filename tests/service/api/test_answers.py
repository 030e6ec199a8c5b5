"""What is sent: JSON that every reader takes, in the shape that the models describe."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import residua as rz
from residua.filters.query import as_mechanism, describe
from residua.ledger.domain.receipts import plain
from residua.service.api import models
from residua.service.api.responses import encode_as
from residua.service.middleware import encode_json
from service.running import Service

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy", "prometheus_client")


@settings(max_examples=100, deadline=None)
@given(st.floats(0.01, 1e3), st.floats(1e-3, 1e3), st.integers(1, 3))
def test_what_is_left_is_said_as_of_a_mechanism(sigma: float, mu: float, n: int) -> None:
    for one in (
        rz.gaussian(mu=mu),
        rz.gaussian(sigma=sigma),
        rz.gaussian(sigma=sigma, sensitivity=mu),
        n * rz.gaussian(mu=mu),
        rz.gaussian(mu=mu) + rz.laplace(scale=sigma),
        rz.gaussian(mu=mu) + rz.gaussian(sigma=sigma),
    ):
        slow = {**as_mechanism(one).to_dict(), "text": describe(one)}
        assert list(plain(one).items()) == list(slow.items())


@pytest.mark.parametrize("value", [math.nan, math.inf, {"a": [-math.inf]}])
def test_no_answer_has_what_json_has_not(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        encode_json(value)


@given(st.text())
def test_no_text_spoils_an_answer(text: str) -> None:
    assert encode_json({"a": text}).isascii() and json.loads(encode_json(text)) == text


@pytest.mark.parametrize("model", [*models.Answer.__subclasses__(), models.Reserved])
def test_an_answer_of_another_shape_is_not_sent(model: type[models.Answer]) -> None:
    example = models.example(model)
    assert json.loads(encode_as(model, example)) == json.loads(json.dumps(example))
    if model is not models.Entry:
        with pytest.raises(ValueError):
            encode_as(model, {**example, "more": 1})
    with pytest.raises(ValueError):
        encode_as(model, {})


def test_one_line_in_the_log_and_one_count(
    service: Service, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    service.budget(name)
    caplog.set_level("INFO", logger="residua.service")

    def counted() -> float:
        labels = {"route": "/v1/budgets/{name}/spend", "method": "POST", "status": "200"}
        registry = service.office.metrics.registry
        return registry.get_sample_value("residua_requests_total", labels) or 0.0

    before = counted()
    body = {"mechanism": {"kind": "laplace", "scale": 4.0}}
    path = f"/v1/budgets/{name}/spend"
    headers = {"X-Request-Id": f"seen-{name}"}
    assert service.http("POST", path, "engine", json=body, headers=headers).is_success
    assert service.http("GET", "/v1/health", None).is_success  # the line comes after the answer
    lines = [getattr(one, "facts", {}) for one in caplog.records]
    (line,) = [one for one in lines if one.get("request") == f"seen-{name}"]
    assert line["by"] == "engine" and line["status"] == 200 and line["path"] == path
    assert counted() == before + 1
    assert service.office.metrics.in_flight._value.get() <= 1
