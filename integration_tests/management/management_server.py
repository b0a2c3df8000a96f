"""The management API alone, served on a free loopback port."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import uvicorn
from starlette.types import ASGIApp

from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.registry import Registry, build_registry
from opensearch_ml_stream.plugin.registry.deployment_state_store import DeploymentStateStore
from opensearch_ml_stream.plugin.registry.model_deployment import ModelDeployment
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.store import Store
from opensearch_ml_stream.rest_handlers.application import rest_application
from opensearch_ml_stream.rest_handlers.callers import OpenGate
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory
from opensearch_ml_stream.rest_handlers.resource_endpoint import Entry
from opensearch_ml_stream.rest_handlers.routes.resources import management_routes

SETTINGS = Settings(
    trusted_connector_endpoints_regex=(r"^http://127\.0\.0\.1:.*$",), private_ip_enabled=True, max_body_size=20_000
)


SECRET = "sk-very-secret"
CONNECTOR: dict[str, Any] = {
    "name": "c",
    "version": 1,
    "protocol": "http",
    "parameters": {"host": "127.0.0.1:9", "temperature": 0.7, "flag": True, "list": ["a", 1]},
    "credential": {"key": SECRET},
    "actions": [
        {
            "action_type": "predict",
            "method": "POST",
            "url": "http://${parameters.host}/v1",
            "headers": {"Authorization": "Bearer ${credential.key}"},
            "request_body": '{"inputs": "${parameters.inputs}"}',
        }
    ],
    "client_config": {"read_timeout": 5},
}


def open_test_registry(store: Store, settings: Settings = SETTINGS) -> Registry:
    cipher, live = Cipher(store), LiveSettings(settings)
    deployment = ModelDeployment(store, cipher, live, now_millis, DeploymentStateStore(store, now_millis))
    return build_registry(store, cipher, live, now_millis, deployment)


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[str]:
    """The URL at which the application is served while the block runs."""
    # With its protocol named, asyncio turns Nagle's algorithm off; else each response waits 40 ms for an ACK.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="critical"))
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


class Api:
    """A client of the API; paths are below `/_plugins/_ml`."""

    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        self.http = http
        self.url = url

    async def __call__(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        if body is not None:
            options["json"] = body
        return await self.http.request(method, f"{self.url}/_plugins/_ml{path}", **options)

    async def ok(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """The JSON response of a call that must succeed."""
        response = await self(method, path, body, **options)
        assert response.status_code == 200, response.text
        return response.json()

    async def refused(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, str]:
        """Status and reason of a call that must fail with OpenSearch's error object."""
        response = await self(method, path, body, **options)
        error = response.json()["error"]
        assert error["root_cause"] == [{"type": error["type"], "reason": error["reason"]}]
        assert response.json()["status"] == response.status_code
        return response.status_code, error["reason"]


@asynccontextmanager
async def management_api(registry: Registry) -> AsyncIterator[Api]:
    entry = Entry(OpenGate(), BodyMemory(SETTINGS.max_body_size, SETTINGS.max_total_body_size))
    app = rest_application(management_routes(registry, entry))
    async with served(app) as url, httpx.AsyncClient(verify=False) as http:
        yield Api(http, url)


async def make_connector(api: Api, **fields: Any) -> str:
    return str((await api.ok("POST", "/connectors/_create", {**CONNECTOR, **fields}))["connector_id"])


async def make_model(api: Api, path: str = "/models/_register", **fields: Any) -> str:
    if "connector" not in fields:
        fields.setdefault("connector_id", await make_connector(api))
    return str((await api.ok("POST", path, {"name": "m", "function_name": "remote", **fields}))["model_id"])
