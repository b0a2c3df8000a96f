"""What a real sidecar writes on standard error."""

import json
from pathlib import Path
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
JSON_LOG = {"opensearch_ml_stream.log_format": "json"}
BREAKS = "break"


def script(request: Request) -> Script:
    """Two chunks, then an error where the prompt asks for it."""
    end = {"error": {"message": "overloaded"}} if BREAKS in str(request.json()) else "[DONE]"
    last = b"data: [DONE]\n\n" if end == "[DONE]" else sse_event(end)
    return [SSE_HEAD, chunk(openai_delta("Hel")), 0.05, chunk(openai_delta("lo")), 0.05, chunk(last), LAST_CHUNK]


def lines(sidecar: Sidecar, message: str) -> list[dict[str, Any]]:
    # The process writes its last line while it is read.
    whole = [line for line in sidecar.log.read_text().splitlines(keepends=True) if line.endswith("\n")]
    parsed = [json.loads(line) for line in whole if line.startswith("{")]
    return [line for line in parsed if line["message"] == message]


def stream(sidecar: Sidecar, model_id: str, prompt: str, **headers: str) -> str:
    """The response's `X-Request-Id`."""
    response = sidecar.client.post(
        f"/_plugins/_ml/models/{model_id}/_predict/stream", json={"parameters": {"inputs": prompt}}, headers=headers
    )
    return str(response.headers["x-request-id"])


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_failed_stream_is_found_by_the_id_that_the_client_got(tmp_path: Path, workers: str) -> None:
    settings = {**JSON_LOG, "opensearch_ml_stream.workers": workers}
    with background_provider(script) as provider, running_sidecar(tmp_path, settings=settings) as sidecar:
        model_id = sidecar.create_model(openai(provider.url))
        stream(sidecar, model_id, PROMPT)
        request_id = stream(sidecar, model_id, f"{PROMPT} {BREAKS}", **{"X-Opaque-Id": "search-7"})
        eventually(lambda: lines(sidecar, "request failed"))
        (failed,) = lines(sidecar, "request failed")
        sidecar.stop()
    assert (failed["id"], failed["opaque_id"], failed["model"]) == (request_id, "search-7", model_id)
    assert (failed["level"], failed["status"], failed["chunks"]) == ("WARNING", 424, 2)
    assert "overloaded" in failed["reason"]
    assert lines(sidecar, "request") == []
    assert lines(sidecar, "stopped")
    assert PROMPT not in sidecar.log.read_text()


def test_the_access_log_is_turned_on_at_run_time(tmp_path: Path) -> None:
    with background_provider(script) as provider, running_sidecar(tmp_path, settings=JSON_LOG) as sidecar:
        model_id = sidecar.create_model(openai(provider.url))
        body = {"opensearch_ml_stream.access_log": True}
        sidecar.client.put("/_plugins/_ml/_settings", json=body).raise_for_status()
        request_id = stream(sidecar, model_id, PROMPT)
        eventually(lambda: [line for line in lines(sidecar, "request") if line["id"] == request_id])
        (line,) = [line for line in lines(sidecar, "request") if line["id"] == request_id]
    assert (line["status"], line["outcome"], line["chunks"], line["client"]) == (200, "ok", 2, "127.0.0.1")
    assert 0 < line["first_byte_ms"] <= line["duration_ms"]
    assert PROMPT not in sidecar.log.read_text()


def test_a_flood_of_errors_is_bounded_and_the_rest_of_the_log_goes_on(tmp_path: Path) -> None:
    with running_sidecar(tmp_path, settings=JSON_LOG) as sidecar:
        for number in range(100):
            sidecar.client.get(f"/_plugins/_ml/models/made-up-{number}")
        sidecar.client.get("/_plugins/_ml/models/_search", params={"nonsense": "1"})
        eventually(lambda: lines(sidecar, "request failed")[-1:][0]["status"] == 400)
        failed = lines(sidecar, "request failed")
    assert [line["status"] for line in failed] == [404] * 10 + [400]
    assert failed[9]["lines_like_this"] == "left out for up to 60 s"
    assert failed[10]["lines_left_out_before"] == 90
