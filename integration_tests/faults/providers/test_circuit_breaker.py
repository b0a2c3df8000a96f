"""A provider that is down is left alone by all workers of a server, and called again when it is back; others answer."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from integration_tests.support import connector_bodies
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.fake_provider import Request, Script, json_response, openai_stream
from integration_tests.support.sidecars import Sidecar, running_sidecar

SETTINGS = {
    "opensearch_ml_stream.circuit_breaker_failures": "3",
    "opensearch_ml_stream.circuit_breaker_seconds": "1",
}


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    folder: Path = tmp_path_factory.mktemp("breaker")
    with running_sidecar(folder, settings=SETTINGS, arguments=("--workers", "2")) as sidecar:
        yield sidecar


class Provider:
    """Overloaded until it `is_up`."""

    def __init__(self) -> None:
        self.is_up = False

    def __call__(self, request: Request) -> Script:
        if self.is_up:
            return openai_stream(["a"])
        return json_response({"error": {"message": "overloaded"}}, 503)


def test_it_is_left_alone_after_three_failures_and_called_again_when_it_is_back(two_workers: Sidecar) -> None:
    provider = Provider()
    with background_provider(provider) as running:
        model_id = two_workers.create_model(connector_bodies.openai(running.url))

        def stream() -> httpx.Response:
            url = f"{two_workers.url}/_plugins/_ml/models/{model_id}/_predict/stream"
            return httpx.post(
                url, json={"parameters": {"inputs": "x"}}, timeout=20, verify=False
            )  # on a connection of its own

        def is_left_alone() -> bool:
            """Not while a call tries whether the provider is back."""
            before = len(running.requests)
            response = stream()
            if response.json()["error"]["type"] != "provider_unavailable_exception":
                return False
            assert response.status_code == 424
            assert int(response.headers["retry-after"]) > 0
            return len(running.requests) == before

        for _ in range(3):
            assert stream().json()["error"]["provider_status"] == 503
        for _ in range(6):  # so that both workers are asked
            eventually(is_left_alone)
        provider.is_up = True
        eventually(lambda: stream().status_code == 200)
        last = json.loads(stream().text.splitlines()[-1])
        assert last["inference_results"][0]["output"][0]["dataAsMap"]["is_last"]
    metrics = two_workers.client.get("/metrics").text
    changes = [line for line in metrics.splitlines() if line.startswith("mlstream_circuit_breaker_changes_total")]
    assert len(changes) == 2


def test_a_fallback_model_answers_for_one_whose_provider_is_down_and_is_named(two_workers: Sidecar) -> None:
    with background_provider(Provider()) as down, background_provider(openai_stream(["a", "b"])) as up:
        fallback = two_workers.create_model(connector_bodies.openai(up.url))
        settings = {"fallback_model_ids": [fallback]}
        model_id = two_workers.create_model(connector_bodies.openai(down.url), _sidecar=settings)
        for wire, start in (("json", ""), ("sse", "data: ")):
            url = f"{two_workers.url}/_plugins/_ml/models/{model_id}/_predict/stream?format={wire}"
            response = httpx.post(url, json={"parameters": {"inputs": "x"}}, timeout=20, verify=False)
            objects = [json.loads(line.removeprefix(start)) for line in response.text.splitlines() if line]
            last = objects[-1]["inference_results"][0]["output"][0]["dataAsMap"]
            assert (response.status_code, len(objects), last["model_id"]) == (200, 3, fallback)
        assert len(down.requests) == 2
