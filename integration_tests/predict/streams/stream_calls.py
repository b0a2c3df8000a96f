"""Streamed predictions of a model over a scripted provider, and the objects of their responses."""

import asyncio
import json
from typing import Any

import httpx
from integration_tests.support import connector_bodies
from integration_tests.support.fake_provider import FakeProvider, Gate, Script
from integration_tests.support.sidecars import Sidecar

QUESTION = {"parameters": {"inputs": "What is the meaning of life?"}}


def stream_path(model_id: str, query: str = "") -> str:
    return f"/_plugins/_ml/models/{model_id}/_predict/stream{query}"


async def openai_model(sidecar: Sidecar, provider_url: str, **fields: Any) -> str:
    """The id of a new model over the shipped connector of OpenAI, pointed at the provider."""
    return await asyncio.to_thread(sidecar.create_model, connector_bodies.openai(provider_url), **fields)


async def piecewise(client: httpx.AsyncClient, model_id: str, until: str, gate: Gate, query: str = "") -> str:
    """The text of the response to the question, whose gate is opened once that much of it has come."""
    text = ""
    async with client.stream("POST", stream_path(model_id, query), json=QUESTION) as response:
        assert response.status_code == 200
        async for piece in response.aiter_text():
            text += piece
            if until in text:
                gate.open()
    return text


async def streamed(client: httpx.AsyncClient, sidecar: Sidecar, script: Script, query: str = "") -> httpx.Response:
    """The whole response to the question, whose provider plays the script."""
    async with FakeProvider(script) as provider:
        model_id = await openai_model(sidecar, provider.url)
        return await client.post(stream_path(model_id, query), json=QUESTION)


def lines(text: str) -> list[dict[str, Any]]:
    """The JSON objects of a stream, one a line; heartbeats are empty lines."""
    return [json.loads(line) for line in text.splitlines() if line]


def data_as_map(event: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = event["inference_results"][0]["output"][0]["dataAsMap"]
    return data
