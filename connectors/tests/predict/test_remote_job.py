"""Batch jobs of providers: asking, stopping, and what a status means."""

import pytest

from opensearch_ml_stream.connectors.documents import Action, Connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.remote_job import (
    CANCEL,
    STATUS,
    batch_action,
    job_parameters,
    job_request,
    task_state,
)
from opensearch_ml_stream.connectors.predict.remote_job_rules import RemoteJobRules
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest

_HEADERS = {"Authorization": "Bearer x"}


def _connector(url: str, *actions: Action, **parameters: str) -> Connector:
    create = Action("BATCH_PREDICT", "POST", url, headers=_HEADERS, request_body='{"a":1}')
    return Connector("c", "1", "http", parameters, {}, (create, *actions))


def _request(url: str, action_type: str, job: dict[str, object]) -> ProviderRequest:
    connector = _connector(url, host="provider")
    return job_request(connector, batch_action(connector, action_type), job, {})


@pytest.mark.parametrize(
    ("url", "job", "status", "cancel"),
    [
        (
            "https://api.openai.com/v1/batches",
            {"id": "batch_1"},
            ("GET", "https://api.openai.com/v1/batches/batch_1", b""),
            ("POST", "https://api.openai.com/v1/batches/batch_1/cancel", b""),
        ),
        (
            "http://${parameters.host}/v1/embed-jobs",
            {"id": "j"},
            ("GET", "http://provider/v1/embed-jobs/j", b""),
            ("POST", "http://provider/v1/embed-jobs/j/cancel", b""),
        ),
        (
            "https://bedrock.us-east-1.amazonaws.com/model-invocation-job",
            {"jobArn": "arn:aws:bedrock:x:1:job/a"},
            ("GET", "https://bedrock.us-east-1.amazonaws.com/model-invocation-job/arn:aws:bedrock:x:1:job%2Fa", b""),
            (
                "POST",
                "https://bedrock.us-east-1.amazonaws.com/model-invocation-job/arn:aws:bedrock:x:1:job%2Fa/stop",
                b"",
            ),
        ),
        (
            "https://api.sagemaker.us-east-1.amazonaws.com/CreateTransformJob",
            {"TransformJobArn": "arn:aws:sagemaker:x:1:transform-job/my-job"},
            (
                "POST",
                "https://api.sagemaker.us-east-1.amazonaws.com/DescribeTransformJob",
                b'{ "TransformJobName" : "my-job"}',
            ),
            (
                "POST",
                "https://api.sagemaker.us-east-1.amazonaws.com/StopTransformJob",
                b'{ "TransformJobName" : "my-job"}',
            ),
        ),
    ],
)
def test_the_urls_of_a_known_providers_job_follow_from_where_it_was_made(
    url: str, job: dict[str, object], status: tuple[str, str, bytes], cancel: tuple[str, str, bytes]
) -> None:
    for action_type, expected in ((STATUS, status), (CANCEL, cancel)):
        request = _request(url, action_type, job)
        assert (request.method, request.url, request.body) == expected
        assert request.headers["Authorization"] == "Bearer x"


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("http://gateway/CreateTransformJob", "http://gateway/DescribeTransformJob"),
        ("http://gateway/model-invocation-job", "http://gateway/model-invocation-job/a%2Fb"),
        ("http://gateway/v1/batches", "http://gateway/v1/batches/i"),
    ],
)
def test_a_provider_behind_a_gateway_is_known_by_its_path(url: str, status: str) -> None:
    job: dict[str, object] = {"id": "i", "jobArn": "a/b", "TransformJobName": "t"}
    assert _request(url, STATUS, job).url == status


def test_an_action_of_the_connector_itself_comes_first() -> None:
    own = Action(STATUS, "GET", "http://provider/mine")
    assert batch_action(_connector("https://api.openai.com/v1/batches", own), STATUS) is own


def _about(job: dict[str, object], status_url: str, **parameters: str) -> str:
    status = Action(STATUS, "GET", status_url, headers={"A": "${credential.key}"})
    connector = _connector("https://${parameters.host}/jobs", status, host="own.example", **parameters)
    request = job_request(connector, status, job, {"key": "secret"})
    assert request.headers["A"] == "secret"
    return request.url


@pytest.mark.parametrize(
    ("job", "url"),
    [
        ({"host": "evil.example", "id": "1"}, "https://${parameters.host}/jobs/${parameters.id}"),
        ({"region": "evil.example/", "id": "1"}, "https://${parameters.region}own.example/jobs/${parameters.id}"),
        ({"base": "https://evil.example", "id": "1"}, "${parameters.base}/jobs/${parameters.id}"),
        ({"status_url": "https://own.example/jobs/1"}, "${parameters.status_url}"),
        ({"status_url": "HTTPS://OWN.example:443/jobs/1"}, "${parameters.status_url}"),
    ],
)
def test_a_job_is_where_it_was_made_or_where_the_connector_says(job: dict[str, object], url: str) -> None:
    asked = _about(job, url, region="", base="https://${parameters.host}")
    assert asked.lower().replace(":443", "") == "https://own.example/jobs/1"


def test_an_action_for_jobs_may_spell_out_another_host() -> None:
    assert _about({"id": "1"}, "https://status.example/${parameters.id}") == "https://status.example/1"


@pytest.mark.parametrize(
    ("job", "url"),
    [
        ({"status_url": "https://evil.example/jobs/1"}, "${parameters.status_url}"),
        ({"status_url": "http://own.example/jobs/1"}, "${parameters.status_url}"),
        ({"status_url": "https://own.example:8443/jobs/1"}, "${parameters.status_url}"),
        ({"status_url": "https://own.example@evil.example/1"}, "${parameters.status_url}"),
        ({"status_url": ".evil.example/1"}, "https://own.example${parameters.status_url}"),
        ({"status_url": "8443/1"}, "https://own.example:${parameters.status_url}"),
        ({"status_url": "evil"}, "https://${parameters.status_url}.own.example/1"),
    ],
)
def test_no_description_of_a_job_leads_to_another_host(job: dict[str, object], url: str) -> None:
    with pytest.raises(InvalidRequest, match=r"leads to another host, by \[status_url\]"):
        _about(job, url)


@pytest.mark.parametrize(
    ("action_type", "reason"),
    [
        (STATUS, "Please configure the action type to get the batch job details in the connector"),
        (CANCEL, "Please configure the action type to cancel the batch job in the connector"),
    ],
)
def test_an_unknown_providers_job_needs_an_action_in_the_connector(action_type: str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        batch_action(_connector("http://provider/jobs"), action_type)


def test_a_connector_without_a_batch_action_is_named() -> None:
    with pytest.raises(InvalidRequest, match="no BATCH_PREDICT action found in connector c"):
        batch_action(Connector("c", "1", "http", {}, {}, ()), STATUS)


@pytest.mark.parametrize(
    ("job", "state"),
    [
        ({"status": "completed"}, "COMPLETED"),
        ({"status": "Complete"}, "COMPLETED"),
        ({"status": "PartiallyCompleted"}, "COMPLETED"),
        ({"TransformJobStatus": "Stopped"}, "CANCELLED"),
        ({"TransformJobStatus": "Stopping"}, "CANCELLING"),
        ({"status": "cancelling"}, "CANCELLING"),
        ({"Status": "expired"}, "EXPIRED"),
        ({"status": "failed"}, "FAILED"),
        ({"status": "in_progress"}, None),
        ({"status": None}, None),
        ({"id": "x"}, None),
    ],
)
def test_a_jobs_status_becomes_a_task_state_or_says_that_it_is_running(
    job: dict[str, object], state: str | None
) -> None:
    assert task_state(job) == state


def test_the_settings_say_where_the_status_is_and_what_its_words_mean() -> None:
    rules = RemoteJobRules(status_field=("phase",), completed="(done|ok)")
    assert task_state({"status": "completed", "phase": "OK"}, rules) == "COMPLETED"
    assert task_state({"phase": "completed"}, rules) is None


def test_what_a_provider_says_about_a_job_is_never_a_template() -> None:
    assert job_parameters({"id": "${parameters.key}", "n": 5, "status": "x"}) == {"status": "x"}
