"""How far a warm `_predict/stream` walks through the code before its first chunk is on its way."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType

import httpx
import pytest
from integration_tests.structure.modules import PACKAGE
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import FakeProvider, openai_stream

from opensearch_ml_stream.plugin.app import open_sidecar
from opensearch_ml_stream.plugin.server import worker
from opensearch_ml_stream.plugin.server.http1.limits import ConnectionLimits
from opensearch_ml_stream.plugin.server.worker import Server
from opensearch_ml_stream.plugin.settings import Settings

# The parsed head of a request, its model and the compiled templates of its connector are looked up in caches.
MAX_MODULES = 33
MAX_DEPTH = 12


class Walk:
    """A profile function that collects the package's modules and its deepest stack, until the first chunk."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.deepest: list[str] = []
        self.done = False

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if self.done or event != "call" or not _name(frame):
            return
        self.modules.add(_name(frame))
        stack: list[str] = []
        caller: FrameType | None = frame
        while caller is not None:
            if _name(caller):
                stack.append(f"{_name(caller)}: {caller.f_code.co_name}")
            caller = caller.f_back
        if len(stack) > len(self.deepest):
            self.deepest = stack
        self.done = frame.f_code.co_name == "write_chunk"


def _name(frame: FrameType) -> str:
    """The frame's module, "" if it is not the package's."""
    name = str(frame.f_globals.get("__name__", ""))
    return name.removeprefix(f"{PACKAGE}.") if name.startswith(f"{PACKAGE}.") else ""


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[str]:
    """A worker in this process; the URL of its API."""
    settings = Settings(
        store=f"sqlite:///{folder}/store.db",
        trusted_connector_endpoints_regex=(r"^http://127\.0\.0\.1:.*$",),
        private_ip_enabled=True,
    )
    async with open_sidecar(settings, folder) as sidecar:
        server = Server(sidecar, grace=1, limits=ConnectionLimits())
        with socket.create_server(("127.0.0.1", 0)) as listener:
            serving = asyncio.create_task(server.serve([listener]))
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/_plugins/_ml"
            server.stop()
            await serving


async def test_a_warm_stream_passes_few_modules_and_few_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "SWEEP_SECONDS", 3600)  # which is no part of a stream
    walks = [Walk() for _ in range(3)]  # what runs at times beside a request is not in all of them
    async with (
        FakeProvider(openai_stream(["Hello", " world"], 0.02)) as provider,
        served(tmp_path) as url,
        httpx.AsyncClient(timeout=20) as client,
    ):
        created = await client.post(f"{url}/connectors/_create", json=openai(provider.url))
        model = {"name": "m", "function_name": "remote", "connector_id": created.json()["connector_id"]}
        model_id = (await client.post(f"{url}/models/_register", json=model)).json()["model_id"]
        path, body = f"{url}/models/{model_id}/_predict/stream", {"parameters": {"inputs": "say hello"}}
        for _ in range(2):
            (await client.post(path, json=body)).raise_for_status()
        for walk in walks:
            sys.setprofile(walk)
            try:
                response = await client.post(path, json=body)
            finally:
                sys.setprofile(None)
            last = json.loads(response.text.splitlines()[-1])
            assert last["inference_results"][0]["output"][0]["dataAsMap"]["is_last"]
    assert all(walk.done for walk in walks)
    modules = set.intersection(*[walk.modules for walk in walks])
    deepest = min([walk.deepest for walk in walks], key=len)
    assert len(modules) <= MAX_MODULES, sorted(modules)
    assert len(deepest) <= MAX_DEPTH, deepest
