"""Connectors with one action, and predictions, for the tests of `_predict`."""

from typing import Any

import httpx
from integration_tests.support.sidecars import Sidecar

SECRET = "sk-secret-1234567890"
ECHO_BODY = '{"inputs": "${parameters.inputs}"}'


def connector(
    endpoint: str, request_body: str = ECHO_BODY, parameters: dict[str, str] | None = None, **action: Any
) -> dict[str, Any]:
    """A connector whose predict action posts to `endpoint`/call."""
    return {
        "name": "c",
        "version": "1",
        "protocol": "http",
        "parameters": {"endpoint": endpoint, **(parameters or {})},
        "credential": {"key": SECRET},
        "actions": [
            {
                "action_type": "predict",
                "method": "POST",
                "url": "${parameters.endpoint}/call",
                "headers": {"Authorization": "Bearer ${credential.key}"},
                "request_body": request_body,
                **action,
            }
        ],
    }


def predict(sidecar: Sidecar, model_id: str, body: dict[str, Any], algorithm: str = "") -> httpx.Response:
    path = f"/_predict/{algorithm}/{model_id}" if algorithm else f"/models/{model_id}/_predict"
    return sidecar.client.post(f"/_plugins/_ml{path}", json=body)


def ask(sidecar: Sidecar, model_id: str, **parameters: Any) -> httpx.Response:
    """A prediction with these parameters."""
    return predict(sidecar, model_id, {"parameters": parameters})


def outputs(response: httpx.Response) -> list[Any]:
    """The `output` of each inference result of a good response."""
    assert response.status_code == 200, response.text
    results = response.json()["inference_results"]
    assert all(result["status_code"] == 200 for result in results)
    return [result["output"] for result in results]


def data_as_map(response: httpx.Response) -> dict[str, Any]:
    """The one dataAsMap of a good response."""
    [[output]] = outputs(response)
    assert output["name"] == "response"
    data: dict[str, Any] = output["dataAsMap"]
    return data


def reason(response: httpx.Response, status: int = 400) -> str:
    """The reason of a response that must have failed with that status."""
    assert response.status_code == status, response.text
    assert SECRET not in response.text
    return str(response.json()["error"]["reason"])
