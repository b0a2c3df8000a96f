"""Batch jobs of a provider through the sidecar's API: started, followed, cancelled, limited."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.fake_provider import FakeProvider, Request, Script, head, json_response
from integration_tests.support.predict_calls import SECRET, connector, reason
from integration_tests.support.sidecars import Sidecar, running_sidecar

BATCH_BODY = '{"input_file_id": "${parameters.input_file_id}", "completion_window": "24h"}'


def batch_connector(endpoint: str, path: str = "/v1/batches", *actions: dict[str, Any]) -> dict[str, Any]:
    body = connector(endpoint)
    headers = body["actions"][0]["headers"]
    batch = {"action_type": "batch_predict", "method": "POST", "url": "${parameters.endpoint}" + path}
    body["actions"] += [{**batch, "headers": headers, "request_body": BATCH_BODY}, *actions]
    return body


class Jobs:
    """A provider of one batch job, as OpenAI has it."""

    def __init__(self) -> None:
        self.status = "validating"

    def __call__(self, request: Request) -> Script:
        if request.path.endswith("/cancel"):
            self.status = "cancelling"
        return json_response({"id": "batch_1", "status": self.status, "counts": {"failed": 0}})


@contextmanager
def jobs_of(sidecar: Sidecar, script: Callable[[Request], Script] | None = None) -> Iterator[tuple[FakeProvider, str]]:
    """A provider of jobs, and a model that begins them there."""
    with background_provider(script or Jobs()) as provider:
        yield provider, sidecar.create_model(batch_connector(provider.url))


def begin(sidecar: Sidecar, model_id: str, **fields: Any) -> httpx.Response:
    body = {"parameters": {"input_file_id": "file-1"}, **fields}
    return sidecar.client.post(f"/_plugins/_ml/models/{model_id}/_batch_predict", json=body)


def begun(sidecar: Sidecar, model_id: str) -> str:
    """The id of a new job's task."""
    response = begin(sidecar, model_id)
    assert response.status_code == 200, response.text
    return str(response.json()["task_id"])


def task(sidecar: Sidecar, task_id: str) -> dict[str, Any]:
    response = sidecar.client.get(f"/_plugins/_ml/tasks/{task_id}")
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.json()
    return document


def test_a_job_becomes_a_task_that_holds_the_providers_response(sidecar: Sidecar) -> None:
    with jobs_of(sidecar) as (provider, model_id):
        response = begin(sidecar, model_id, dlq={"bucket": "b", "region": "r"})
        shown = task(sidecar, response.json()["task_id"])
    job = {"id": "batch_1", "status": "validating", "counts": {"failed": 0}, "dlq": {"bucket": "b", "region": "r"}}
    assert response.json() == {"task_id": response.json()["task_id"], "status": "CREATED", "remote_job": job}
    expected = {
        "model_id": model_id,
        "task_type": "BATCH_PREDICTION",
        "function_name": "REMOTE",
        "state": "CREATED",
        "input_type": "REMOTE",
        "is_async": False,
        "remote_job": job,
    }
    assert expected.items() <= shown.items()
    assert shown["create_time"] == shown["last_update_time"] > 1_700_000_000_000
    assert len(shown["worker_node"]) == 1
    begin_call, status_call = provider.requests
    assert (begin_call.method, begin_call.path) == ("POST", "/v1/batches")
    assert begin_call.json() == {"input_file_id": "file-1", "completion_window": "24h"}
    assert (status_call.method, status_call.path) == ("GET", "/v1/batches/batch_1")
    assert status_call.headers["authorization"] == f"Bearer {SECRET}"


def test_a_finished_job_is_not_looked_up_again(sidecar: Sidecar) -> None:
    jobs = Jobs()
    with jobs_of(sidecar, jobs) as (provider, model_id):
        task_id = begun(sidecar, model_id)
        jobs.status = "completed"
        first, second = task(sidecar, task_id), task(sidecar, task_id)
    assert first == second
    assert (first["state"], first["remote_job"]["status"]) == ("COMPLETED", "completed")
    assert len(provider.requests) == 2


@pytest.mark.parametrize("verb", ["_cancel", "_cancel_batch"])
def test_a_job_is_stopped_at_the_provider(sidecar: Sidecar, verb: str) -> None:
    jobs = Jobs()
    with jobs_of(sidecar, jobs) as (provider, model_id):
        task_id = begun(sidecar, model_id)
        response = sidecar.client.post(f"/_plugins/_ml/tasks/{task_id}/{verb}")
        assert (response.status_code, response.json()) == (200, {"status": "OK"})
        assert (provider.requests[1].method, provider.requests[1].path) == ("POST", "/v1/batches/batch_1/cancel")
        assert task(sidecar, task_id)["state"] == "CANCELLING"
        jobs.status = "cancelled"
        assert task(sidecar, task_id)["state"] == "CANCELLED"


def test_actions_of_the_connector_come_before_those_that_are_derived(sidecar: Sidecar) -> None:
    def script(request: Request) -> Script:
        if request.path.startswith("/stop"):
            return [head(204, content_length="0")]  # some send no body
        return json_response({"name": "j/1", "Status": "Complete"} if request.method == "GET" else {"name": "j/1"})

    own = [
        {
            "action_type": "batch_predict_status",
            "method": "GET",
            "url": "${parameters.endpoint}/see/${parameters.name}",
        },
        {"action_type": "cancel_batch_predict", "method": "POST", "url": "${parameters.endpoint}/stop"},
    ]
    with background_provider(script) as provider:
        task_id = begun(sidecar, sidecar.create_model(batch_connector(provider.url, "/jobs", *own)))
        assert sidecar.client.post(f"/_plugins/_ml/tasks/{task_id}/_cancel").json() == {"status": "OK"}
        assert task(sidecar, task_id)["state"] == "COMPLETED"
    assert [request.path for request in provider.requests] == ["/jobs", "/stop", "/see/j/1"]


def test_a_provider_of_unknown_jobs_needs_an_action_for_their_status(sidecar: Sidecar) -> None:
    with background_provider(json_response({"id": "1"})) as provider:
        task_id = begun(sidecar, sidecar.create_model(batch_connector(provider.url, "/jobs")))
        response = sidecar.client.get(f"/_plugins/_ml/tasks/{task_id}")
    assert reason(response) == "Please configure the action type to get the batch job details in the connector"


def test_a_job_that_the_provider_refuses_has_no_task(sidecar: Sidecar) -> None:
    query = {"query": {"term": {"model_id": ""}}}
    with jobs_of(sidecar, lambda request: json_response({"error": "no such file"}, 404)) as (_, model_id):
        assert "no such file" in reason(begin(sidecar, model_id), 424)
        query["query"]["term"]["model_id"] = model_id
        hits = sidecar.client.post("/_plugins/_ml/tasks/_search", json=query).json()["hits"]["hits"]
    assert [hit["_source"]["task_type"] for hit in hits if "remote_job" in hit["_source"]] == []


def test_a_task_outlives_its_model(sidecar: Sidecar) -> None:
    with jobs_of(sidecar) as (provider, model_id):
        task_id = begun(sidecar, model_id)
        sidecar.post(f"/models/{model_id}/_undeploy", {})
        assert sidecar.client.delete(f"/_plugins/_ml/models/{model_id}").status_code == 200
        eventually(lambda: begin(sidecar, model_id).status_code == 404)  # workers look at the store once a second
        requests = len(provider.requests)
        shown = task(sidecar, task_id)
        assert len(provider.requests) == requests
    assert (shown["state"], shown["remote_job"]["id"]) == ("CREATED", "batch_1")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"parameters": {}}, "input_file_id"),
        ({"text_docs": ["x"]}, "_batch_predict takes parameters"),
    ],
)
def test_a_job_that_cannot_be_begun_is_refused(sidecar: Sidecar, body: dict[str, Any], words: str) -> None:
    with jobs_of(sidecar) as (provider, model_id):
        response = sidecar.client.post(f"/_plugins/_ml/models/{model_id}/_batch_predict", json=body)
    assert words in reason(response)
    assert provider.requests == []


def test_a_connector_without_a_batch_action_is_named(sidecar: Sidecar) -> None:
    model_id = sidecar.create_model(connector("http://127.0.0.1:1"))
    assert reason(begin(sidecar, model_id)) == "no BATCH_PREDICT action found in connector c"


@pytest.mark.opensearch
def test_unfinished_jobs_are_counted_in_a_cluster_too(tmp_path: Path, opensearch_url: str, index_prefix: str) -> None:
    settings = {
        "opensearch_ml_stream.index_prefix": index_prefix,
        "plugins.ml_commons.max_batch_inference_tasks": "1",
    }
    jobs = Jobs()
    with (
        running_sidecar(tmp_path, opensearch_url, settings) as sidecar,
        jobs_of(sidecar, jobs) as (_, model_id),
    ):
        task_id = begun(sidecar, model_id)
        message = reason(begin(sidecar, model_id), 429)
        jobs.status = "completed"
        assert task(sidecar, task_id)["state"] == "COMPLETED"
        assert begin(sidecar, model_id).status_code == 200
    assert "1 are not finished" in message
    assert "plugins.ml_commons.max_batch_inference_tasks" in message
