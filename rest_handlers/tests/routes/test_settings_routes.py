"""`_settings` in the shape of OpenSearch's `_cluster/settings`."""

from collections.abc import Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.rest_handlers.application import rest_application
from opensearch_ml_stream.rest_handlers.callers import OpenGate
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory
from opensearch_ml_stream.rest_handlers.resource_endpoint import Entry
from opensearch_ml_stream.rest_handlers.routes.settings import settings_routes
from tests.asgi_exchange import Exchange, send_request

PATH = "/_plugins/_ml/_settings"
CHANGED = {"plugins.ml_commons.stream_enabled": False, "plugins.ml_commons.max_json_size": 7}
DEFAULTS = {
    "plugins.ml_commons.stream_enabled": True,
    "plugins.ml_commons.remote_job.status_field": ("status", "Status"),
    "plugins.ml_commons.master": "key",
}
NESTED = {"plugins": {"ml_commons": {"stream_enabled": "false", "max_json_size": "7"}}}


class ChangedSettings:
    def __init__(self) -> None:
        self.changes: list[Mapping[str, Any]] = []

    async def persistent(self) -> dict[str, Any]:
        return dict(CHANGED)

    def defaults(self) -> dict[str, Any]:
        return dict(DEFAULTS)

    def warnings(self, body: Mapping[str, Any]) -> list[str]:
        return ["[list] is replaced as a whole"] if "list" in body else []

    async def change(self, body: Mapping[str, Any]) -> dict[str, Any]:
        self.changes.append(body)
        if "unknown" in body:
            raise InvalidRequest("unknown setting")
        return {"plugins.ml_commons.stream_enabled": False}


async def ask(method: str, query: str = "", body: object = None, service: ChangedSettings | None = None) -> Exchange:
    routes = settings_routes(service or ChangedSettings(), Entry(OpenGate(), BodyMemory(1000, 10_000)))
    return await send_request(rest_application(routes), method, PATH + query, body)


@pytest.mark.parametrize("query", ["", "/", "?flat_settings=false", "?include_defaults=false"])
async def test_changed_settings_are_nested_strings(query: str) -> None:
    exchange = await ask("GET", query)
    assert (exchange.status, exchange.json()) == (200, {"persistent": NESTED, "transient": {}})


async def test_settings_are_flat_on_request() -> None:
    persistent = {"plugins.ml_commons.stream_enabled": "false", "plugins.ml_commons.max_json_size": "7"}
    assert (await ask("GET", "?flat_settings")).json() == {"persistent": persistent, "transient": {}}


async def test_defaults_are_those_of_settings_that_were_not_changed() -> None:
    exchange = await ask("GET", "?include_defaults=true")
    defaults = {"plugins": {"ml_commons": {"remote_job": {"status_field": ["status", "Status"]}, "master": "key"}}}
    assert exchange.json() == {"persistent": NESTED, "transient": {}, "defaults": defaults}
    exchange = await ask("GET", "?include_defaults&flat_settings=true")
    assert exchange.json()["defaults"] == {
        "plugins.ml_commons.remote_job.status_field": ["status", "Status"],
        "plugins.ml_commons.master": "key",
    }


@pytest.mark.parametrize(
    ("query", "persistent"),
    [
        ("", {"plugins": {"ml_commons": {"stream_enabled": "false"}}}),
        ("?flat_settings=true", {"plugins.ml_commons.stream_enabled": "false"}),
    ],
)
async def test_a_change_is_acknowledged_with_what_was_set(query: str, persistent: dict[str, Any]) -> None:
    service = ChangedSettings()
    body = {"persistent": {"plugins.ml_commons.stream_enabled": False, "a": None}}
    exchange = await ask("PUT", query, body, service)
    assert exchange.json() == {"acknowledged": True, "persistent": persistent, "transient": {}}
    assert list(exchange.json()) == ["acknowledged", "persistent", "transient"]
    assert service.changes == [body]


async def test_a_change_that_is_refused_is_an_error() -> None:
    exchange = await ask("PUT", body={"unknown": 1})
    assert (exchange.status, exchange.reason()) == (400, "unknown setting")
    assert (await ask("PUT")).reason() == "request body is required"


@pytest.mark.parametrize(
    ("method", "query", "reason"),
    [
        ("GET", "?flat_settings=yes", "Failed to parse value [yes] as only [true] or [false] are allowed."),
        ("GET", "?include_defaults=1", "Failed to parse value [1] as only [true] or [false] are allowed."),
        ("PUT", "?include_defaults", f"request [{PATH}] contains unrecognized parameter: [include_defaults]"),
        ("GET", "?timeout=1s", f"request [{PATH}] contains unrecognized parameter: [timeout]"),
    ],
)
async def test_a_wrong_parameter_is_refused(method: str, query: str, reason: str) -> None:
    exchange = await ask(method, query, {"a": 1})
    assert (exchange.status, exchange.reason()) == (400, reason)


async def test_settings_are_got_and_put() -> None:
    exchange = await ask("POST", body={})
    assert (exchange.status, exchange.headers["allow"]) == (405, "GET, PUT")


async def test_a_change_that_drops_something_says_so() -> None:
    assert (await ask("PUT", body={"list": ["a"]})).json()["warnings"] == ["[list] is replaced as a whole"]
    assert "warnings" not in (await ask("PUT", body={"plugins.ml_commons.stream_enabled": False})).json()
