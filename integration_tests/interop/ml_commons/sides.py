"""The two that serve one cluster's models: the sidecar, and ML Commons itself; both speak the same API."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from integration_tests.support.conditions import eventually

STREAMING = "openai/v1/chat/completions"  # ML Commons streams what names this interface


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two, called over HTTP."""

    name: str
    client: httpx.Client

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        """The response, whatever its status, to a call below `/_plugins/_ml`."""
        return self.client.request(method, f"/_plugins/_ml{path}", json=body)

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The body of a call that must succeed."""
        response = self.call(method, path, body)
        assert response.status_code == 200, f"{self.name}: {method} {path}: {response.text}"
        answer: dict[str, Any] = response.json()
        return answer

    def create_model(self, connector: Mapping[str, Any], **fields: Any) -> str:
        """The id of a model over a new connector."""
        connector_id = self.ask("POST", "/connectors/_create", connector)["connector_id"]
        body = {"name": "beside", "function_name": "remote", "connector_id": connector_id, **fields}
        return str(self.ask("POST", "/models/_register", body)["model_id"])

    def deploy(self, model_id: str) -> None:
        """Deploys the model; ML Commons says so in its document a little after it has responded."""
        self.ask("POST", f"/models/{model_id}/_deploy")
        here = {"bool": {"filter": [{"ids": {"values": [model_id]}}, {"term": {"model_state": "DEPLOYED"}}]}}
        eventually(lambda: self.find(query=here)["hits"]["hits"])

    def state(self, model_id: str) -> str:
        """The model's state, as this side shows it."""
        return str(self.ask("GET", f"/models/{model_id}")["model_state"])

    def find(self, **body: Any) -> dict[str, Any]:
        """The response to a search of models."""
        return self.ask("POST", "/models/_search", body)

    def predict(self, model_id: str, text: str = "hello") -> httpx.Response:
        return self.call("POST", f"/models/{model_id}/_predict", {"parameters": {"inputs": text}})

    def predicted(self, model_id: str, text: str = "hello") -> dict[str, Any]:
        """The provider's JSON of a prediction that must succeed."""
        response = self.predict(model_id, text)
        assert response.status_code == 200, f"{self.name}: {response.text}"
        data: dict[str, Any] = response.json()["inference_results"][0]["output"][0]["dataAsMap"]
        return data

    def streamed(self, model_id: str) -> list[str]:
        """The texts of a prediction's stream, which must end well."""
        body = {"parameters": {"inputs": "hello", "_llm_interface": STREAMING}}
        response = self.call("POST", f"/models/{model_id}/_predict/stream", body)
        events = [json.loads(line[len("data:") :]) for line in response.text.splitlines() if line.startswith("data:")]
        assert events and all("inference_results" in event for event in events), f"{self.name}: {response.text}"
        datas = [event["inference_results"][0]["output"][0]["dataAsMap"] for event in events]
        assert [data["is_last"] for data in datas] == [False] * (len(datas) - 1) + [True]
        return [data["content"] for data in datas[:-1]]


def reason(response: httpx.Response, status: int) -> str:
    """The reason of a response that must have failed with that status."""
    assert response.status_code == status, response.text
    return str(response.json()["error"]["reason"])
