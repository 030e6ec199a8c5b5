"""Random requests made from the description: no failure inside, no answer it does not describe."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from service.running import LAPLACE, Service, serving

pytestmark = pytest.mark.needs("fastapi", "uvicorn", "httpx", "sqlalchemy", "schemathesis")

SHORT, LONG = 6, 150
"""Requests to each route."""


def test_random_requests_are_answered_as_described(tmp_path: Path, thorough: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import schemathesis

        # Before there are threads: 3.11 may fail to parse a module while another thread parses.
        import schemathesis.specs.openapi.schemas
        from schemathesis.checks import not_a_server_error
        from schemathesis.specs.openapi.checks import (
            content_type_conformance,
            response_schema_conformance,
            status_code_conformance,
        )

    checked = [
        not_a_server_error,
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    ]
    with serving(f"sqlite:///{tmp_path}/b.db", tmp_path / "anchor") as service:
        known = _prepared(service)
        schema = schemathesis.openapi.from_dict(
            service.http("GET", "/v1/openapi.json", None).json()
        )
        schema.config.update(base_url=service.url)
        headers = {"Authorization": f"Bearer {service.tokens['admin']}"}
        for result in schema.get_all_operations():
            operation = result.ok()
            if operation.path == "/v1/verification" and operation.method == "post":
                continue  # starts work that the other answers would wait for
            cases = operation.as_strategy()

            @hypothesis.settings(
                max_examples=LONG if thorough else SHORT,
                database=None,
                derandomize=not thorough,
                deadline=None,
                suppress_health_check=list(hypothesis.HealthCheck),
            )
            @hypothesis.given(case=cases, real=hypothesis.strategies.booleans())
            def ask(case: Any, real: bool) -> None:
                # Half of them for a budget or a reservation that there is.
                for parameter, values in known.items():
                    if real and parameter in (case.path_parameters or {}):
                        case.path_parameters[parameter] = values
                case.call_and_validate(headers=headers, checks=checked, timeout=60)

            ask()


def _prepared(service: Service) -> dict[str, str]:
    service.budget("web")
    hold = service.http("POST", "/v1/budgets/web/reserve", json={"mechanism": LAPLACE}).json()
    return {"name": "web", "id": hold["id"]}
