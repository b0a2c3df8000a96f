"""The ASGI application under a server that knows nothing of it: uvicorn as it comes."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from integration_tests.support import connector_bodies
from integration_tests.support.fake_provider import FakeProvider, openai_stream
from integration_tests.support.streamed_responses import objects

from opensearch_ml_stream.plugin.app import open_sidecar
from opensearch_ml_stream.plugin.settings import Settings


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    settings = Settings(
        store=f"sqlite:///{folder}/store.db",
        trusted_connector_endpoints_regex=(r"^http://127\.0\.0\.1:.*$",),
        private_ip_enabled=True,
    )
    async with open_sidecar(settings, folder) as sidecar:
        server = uvicorn.Server(uvicorn.Config(sidecar.app, lifespan="off", log_config=None))
        with socket.create_server(("127.0.0.1", 0)) as listener:
            serving = asyncio.create_task(server.serve([listener]))
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/_plugins/_ml"
            async with httpx.AsyncClient(base_url=url, timeout=20) as client:
                yield client
            server.should_exit = True
            await serving


@pytest.mark.parametrize("pause", [0.0, 0.01])
async def test_every_chunk_comes_once_and_in_order(tmp_path: Path, pause: float) -> None:
    texts = [f"{number} " for number in range(20)]
    async with served(tmp_path) as client, FakeProvider(openai_stream(texts, pause)) as provider:
        created = await client.post("/connectors/_create", json=connector_bodies.openai(provider.url))
        model = {"name": "m", "function_name": "remote", "connector_id": created.json()["connector_id"]}
        registered = await client.post("/models/_register", json=model)
        path = f"/models/{registered.json()['model_id']}/_predict/stream"
        response = await client.post(path, json={"parameters": {"inputs": "count"}})
    *chunks, last = objects(response)
    assert [chunk["response"] for chunk in chunks] == texts
    assert last["is_last"] is True
