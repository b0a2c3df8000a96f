"""The whole sidecar of one worker over a store in memory, called through its ASGI application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from opensearch_ml_stream.plugin.app import open_sidecar
from opensearch_ml_stream.plugin.extension import Contribution, Core, Extension
from opensearch_ml_stream.plugin.observation import Observation, Observer
from opensearch_ml_stream.plugin.settings import Settings

ACTION = {"action_type": "predict", "method": "POST", "url": "https://api.openai.com/v1", "request_body": "{}"}
CONNECTOR = {"name": "c", "version": "1", "protocol": "http", "credential": {"k": "v"}, "actions": [ACTION]}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    settings = Settings(store="sqlite:///:memory:", max_body_size=1_000)
    async with open_sidecar(settings, tmp_path) as sidecar:
        transport = httpx.ASGITransport(sidecar.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield client


async def sent(client: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
    response = await client.request(method, f"/_plugins/_ml{path}", json=body)
    assert response.status_code == 200, response.text
    return response.json()


async def test_a_sidecar_is_ready_and_has_metrics(client: httpx.AsyncClient) -> None:
    assert (await client.get("/_health/ready")).status_code == 200
    assert "mlstream_streams_open 0.0" in (await client.get("/metrics")).text


async def test_models_settings_and_predictions_are_over_one_store(client: httpx.AsyncClient) -> None:
    connector_id = (await sent(client, "POST", "/connectors/_create", CONNECTOR))["connector_id"]
    body = {"name": "m", "function_name": "remote", "connector_id": connector_id}
    model_id = (await sent(client, "POST", "/models/_register", body))["model_id"]
    await sent(client, "PUT", "/_settings", {"persistent": {"plugins.ml_commons.remote_inference.enabled": False}})
    response = await client.post(f"/_plugins/_ml/models/{model_id}/_predict", json={"parameters": {}})
    assert response.status_code == 400
    assert "Remote Inference is currently disabled" in response.text
    assert 'mlstream_predictions_total{model_id="unknown",status="400"} 1.0' in (await client.get("/metrics")).text


class RefusalFile(Observer):
    """Writes refused predictions into a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def refused(self, prediction: Observation) -> None:
        self._path.write_text(f"stream={prediction.is_stream} outcome={type(prediction.outcome).__name__}")


@asynccontextmanager
async def open_refusals(core: Core) -> AsyncIterator[Contribution]:
    yield Contribution(observers=(RefusalFile(core.folder / "refused"),))


async def test_the_observers_of_an_extension_are_told_of_predictions(tmp_path: Path) -> None:
    refusals = Extension("refusals", "Write down what is refused.", open=f"{__name__}:open_refusals")
    async with open_sidecar(Settings(store="sqlite:///:memory:"), tmp_path, extensions=[refusals]) as sidecar:
        transport = httpx.ASGITransport(sidecar.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            body = {"parameters": {"inputs": "x"}}
            response = await client.post("/_plugins/_ml/models/none/_predict/stream", json=body)
    assert response.status_code == 404
    assert (tmp_path / "refused").read_text() == "stream=True outcome=NotFound"


async def test_the_settings_given_are_in_force(client: httpx.AsyncClient) -> None:
    response = await client.post("/_plugins/_ml/connectors/_create", json={"name": "x" * 1_000})
    assert response.status_code == 413


async def test_the_bound_name_and_the_listed_names_and_origins_are_those_of_the_settings(tmp_path: Path) -> None:
    settings = Settings(
        store="sqlite:///:memory:",
        host="Sidecar.example.",
        security="none",
        allowed_hosts=("ml.example.com",),
        cors_origins=("https://app.example.com",),
    )
    async with open_sidecar(settings, tmp_path) as sidecar:
        transport = httpx.ASGITransport(sidecar.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            hosts = ("sidecar.example:9510", "ml.example.com", "other.example")
            statuses = [(await client.get("/", headers={"Host": host})).status_code for host in hosts]
            assert statuses == [200, 200, 421]
            origins = ("https://app.example.com", "https://other.example")
            statuses = [(await client.get("/", headers={"Origin": origin})).status_code for origin in origins]
            assert statuses == [200, 403]
