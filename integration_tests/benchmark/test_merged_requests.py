"""The benchmark of batching: its provider counts its calls, and its rows are of settings that a model takes."""

import httpx
from bench.runs.requests.merged_requests import SETTINGS
from bench.traffic.request_load import RequestPlan, measure
from bench.traffic.whole_bodies import EMBEDDING, documents
from bench.traffic.whole_provider import serving

from opensearch_ml_stream.connectors.model_options import read_sidecar_settings


async def test_the_provider_counts_its_calls_and_nothing_else() -> None:
    async with serving(0) as server, httpx.AsyncClient() as client:
        port = server.sockets[0].getsockname()[1]
        body = httpx.Request("POST", "http://x", json={"input": documents(EMBEDDING)}).content.decode()
        report = await measure(RequestPlan(port, "/v1/embeddings", body, EMBEDDING, connections=4, requests=30))
        assert (report["requests"], report["errors"]) == (30, {})
        counts = [(await client.get(f"http://127.0.0.1:{port}/calls")).text for _ in range(2)]
        assert counts == ["30", "30"]


def test_one_row_is_without_batching() -> None:
    read = [read_sidecar_settings({"batching": settings}).batching for settings in SETTINGS.values()]
    assert [settings and settings.max_docs for settings in read] == [None, 8, 64]
