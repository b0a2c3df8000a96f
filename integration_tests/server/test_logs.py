"""What a real sidecar writes on standard error."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import (
    LAST_CHUNK,
    SSE_HEAD,
    Request,
    Script,
    chunk,
    openai_delta,
    sse_event,
)
from integration_tests.support.sidecars import Sidecar, running_sidecar

PROMPT = "what nobody else may read"
BREAKS = "break"


def script(request: Request) -> Script:
    """Two chunks, then an error where the prompt asks for it."""
    end = {"error": {"message": "overloaded"}} if BREAKS in str(request.json()) else "[DONE]"
    last = b"data: [DONE]\n\n" if end == "[DONE]" else sse_event(end)
    return [SSE_HEAD, chunk(openai_delta("Hel")), chunk(openai_delta("lo")), chunk(last), LAST_CHUNK]


def lines(sidecar: Sidecar, message: str, **fields: Any) -> list[dict[str, Any]]:
    """The whole lines of a message that have these fields."""
    # The process writes its last line while it is read.
    whole = [line for line in sidecar.log.read_text().splitlines(keepends=True) if line.endswith("\n")]
    parsed = [json.loads(line) for line in whole if line.startswith("{")]
    return [line for line in parsed if fields.items() | {("message", message)} <= line.items()]


def stream(sidecar: Sidecar, model_id: str, prompt: str, **headers: str) -> str:
    """The response's `X-Request-Id`."""
    response = sidecar.client.post(
        f"/_plugins/_ml/models/{model_id}/_predict/stream", json={"parameters": {"inputs": prompt}}, headers=headers
    )
    return str(response.headers["x-request-id"])


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    settings = {"opensearch_ml_stream.log_format": "json"}
    with running_sidecar(tmp_path_factory.mktemp("logs"), settings=settings) as running:
        yield running


@pytest.fixture(scope="module")
def model_id(sidecar: Sidecar) -> Iterator[str]:
    with background_provider(script) as provider:
        yield sidecar.create_model(openai(provider.url))


def test_a_failed_stream_is_found_by_the_id_that_the_client_got(sidecar: Sidecar, model_id: str) -> None:
    request_id = stream(sidecar, model_id, f"{PROMPT} {BREAKS}", **{"X-Opaque-Id": "search-7"})
    eventually(lambda: lines(sidecar, "request failed", id=request_id))
    (failed,) = lines(sidecar, "request failed", id=request_id)
    assert (failed["opaque_id"], failed["model"]) == ("search-7", model_id)
    assert (failed["level"], failed["status"], failed["chunks"]) == ("WARNING", 424, 2)
    assert "overloaded" in failed["reason"]
    assert PROMPT not in sidecar.log.read_text()


def test_the_access_log_is_turned_on_at_run_time(sidecar: Sidecar, model_id: str) -> None:
    body = {"opensearch_ml_stream.access_log": True}
    sidecar.client.put("/_plugins/_ml/_settings", json=body).raise_for_status()
    request_id = stream(sidecar, model_id, PROMPT)
    eventually(lambda: lines(sidecar, "request", id=request_id))
    (line,) = lines(sidecar, "request", id=request_id)
    assert (line["status"], line["outcome"], line["chunks"], line["client"]) == (200, "ok", 2, "127.0.0.1")
    assert 0 < line["first_byte_ms"] <= line["duration_ms"]
    assert PROMPT not in sidecar.log.read_text()


def test_a_flood_of_errors_is_bounded_and_the_rest_of_the_log_goes_on(sidecar: Sidecar) -> None:
    for number in range(100):
        sidecar.client.get(f"/_plugins/_ml/models/made-up-{number}")
    sidecar.client.get("/_plugins/_ml/models/_search", params={"nonsense": "1"})
    eventually(lambda: lines(sidecar, "request failed", status=400))
    not_found, (other,) = (lines(sidecar, "request failed", status=status) for status in (404, 400))
    assert len(not_found) == 10
    assert not_found[9]["lines_like_this"] == "left out for up to 60 s"
    assert other["lines_left_out_before"] == 90
