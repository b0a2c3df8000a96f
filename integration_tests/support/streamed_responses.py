"""Whole streams, read from the sidecar and held against what the provider said."""

import json
from collections.abc import Mapping
from typing import Any

import httpx
from integration_tests.support.sidecars import Sidecar

from tests.providers.recorded_streams import Recorded


def stream(sidecar: Sidecar, model_id: str, body: Mapping[str, Any], query: str = "") -> httpx.Response:
    """The answer to a `_predict/stream`, read to its end."""
    return sidecar.client.post(f"/_plugins/_ml/models/{model_id}/_predict/stream{query}", json=body)


def objects(response: httpx.Response) -> list[dict[str, Any]]:
    """Each object's dataAsMap; an error object fails the test."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    read = [json.loads(line) for line in response.text.split("\n") if line]
    assert all("inference_results" in one for one in read), response.text
    return [one["inference_results"][0]["output"][0]["dataAsMap"] for one in read]


def assert_says(response: httpx.Response, recorded: Recorded) -> None:
    """The chunks and the terminal object are those of the recorded stream."""
    *chunks, last = objects(response)
    assert "".join(chunk["response"] for chunk in chunks) == recorded.text
    assert "".join(chunk.get("reasoning", "") for chunk in chunks) == recorded.reasoning
    assert _tools(chunks) == recorded.tools
    assert not any(chunk.get("is_last") for chunk in chunks)
    assert (last["response"], last["is_last"]) == ("", True)
    found = (last["finish_reason"], last.get("native_finish_reason"), last.get("usage"), last.get("model"))
    assert found == (recorded.finish, recorded.native, recorded.usage, recorded.model)


def _tools(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls put together from their fragments."""
    calls: dict[int, dict[str, Any]] = {}
    for call in (call for chunk in chunks for call in chunk.get("tool_calls", ())):
        known = calls.setdefault(call["index"], {"id": None, "name": None, "arguments": ""})
        known["id"] = known["id"] or call.get("id")
        known["name"] = known["name"] or call.get("name")
        known["arguments"] += call.get("arguments", "")
    return [calls[index] for index in sorted(calls)]
