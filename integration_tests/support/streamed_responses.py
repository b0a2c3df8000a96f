"""Whole streams, read from the sidecar and compared with what the provider sent."""

import json
from collections.abc import Mapping
from typing import Any

import httpx
from integration_tests.support.sidecars import Sidecar

from tests.providers.recorded_streams import Recorded


def stream(sidecar: Sidecar, model_id: str, body: Mapping[str, Any], query: str = "") -> httpx.Response:
    """The response to a `_predict/stream`, read to its end."""
    return sidecar.client.post(f"/_plugins/_ml/models/{model_id}/_predict/stream{query}", json=body)


def objects(response: httpx.Response) -> list[dict[str, Any]]:
    """Each object's dataAsMap; an error object fails the test."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in response.text.split("\n") if line]
    assert all("inference_results" in line for line in lines), response.text
    return [line["inference_results"][0]["output"][0]["dataAsMap"] for line in lines]


def assert_says(response: httpx.Response, recorded: Recorded) -> None:
    """The chunks and the terminal object are those of the recorded stream."""
    *chunks, last = objects(response)
    assert "".join(chunk["response"] for chunk in chunks) == recorded.text
    assert "".join(chunk.get("reasoning", "") for chunk in chunks) == recorded.reasoning
    assert _tools(chunks) == recorded.tools
    assert not any(chunk.get("is_last") for chunk in chunks)
    assert (last["response"], last["is_last"]) == ("", True)
    ending = (last["finish_reason"], last.get("native_finish_reason"), last.get("usage"), last.get("model"))
    assert ending == (recorded.finish, recorded.native, recorded.usage, recorded.model)


def _tools(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls put together from their fragments."""
    calls: dict[int, dict[str, Any]] = {}
    for fragment in (fragment for chunk in chunks for fragment in chunk.get("tool_calls", ())):
        call = calls.setdefault(fragment["index"], {"id": None, "name": None, "arguments": ""})
        call["id"] = call["id"] or fragment.get("id")
        call["name"] = call["name"] or fragment.get("name")
        call["arguments"] += fragment.get("arguments", "")
    return [calls[index] for index in sorted(calls)]
