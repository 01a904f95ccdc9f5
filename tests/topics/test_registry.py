"""The edge to the registry, on what it does when the registry does not answer or refuses."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from jobs.errors import DifferenceError, UnreachableError
from jobs.topics.registry import Registry
from tests.registry import FakeRegistry

SCHEMA = {"type": "record", "name": "R", "fields": []}


def answering(answers: dict[tuple[str, str], tuple[int, Any]]) -> Registry:
    registry = Registry("http://registry")

    def answer(request: httpx.Request) -> httpx.Response:
        status, body = answers[request.method, request.url.path]
        return httpx.Response(status, json=body)

    registry._http = httpx.Client(transport=httpx.MockTransport(answer))
    return registry


def test_schemas_are_known_by_id_and_fetched_once() -> None:
    server = FakeRegistry()
    try:
        server.add("orders-value", 5, SCHEMA)
        registry = Registry(server.url)

        assert registry.schemas("orders-value") == {5: SCHEMA}
        assert registry.schemas("orders-value") == {5: SCHEMA}
        assert registry.schemas("nobody-value") == {}
        assert server.calls == 4
        server.down = True
        with pytest.raises(UnreachableError, match="did not answer"):
            registry.schemas("orders-value")
    finally:
        server.close()


def test_an_incompatible_schema_is_refused_with_the_reason() -> None:
    versions = "/subjects/orders-value/versions"
    refused = {"error_code": 409, "message": "incompatible: note at /fields/7"}
    registry = answering(
        {
            ("PUT", "/config/orders-value"): (200, {}),
            ("POST", versions): (409, refused),
        }
    )

    with pytest.raises(DifferenceError) as error:
        registry.register("orders-value", SCHEMA)
    assert "note" in error.value.why and "default" in error.value.remedy


def test_a_registered_schema_answers_with_its_id() -> None:
    versions = "/subjects/orders-value/versions"
    registry = answering(
        {
            ("PUT", "/config/orders-value"): (200, {}),
            ("POST", versions): (200, {"id": 9}),
        }
    )

    assert registry.register("orders-value", SCHEMA) == 9
