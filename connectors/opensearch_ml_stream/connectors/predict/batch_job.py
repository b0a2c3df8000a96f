"""Batch jobs: how to ask a provider about one and stop it, and what its status means for our task."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opensearch_ml_stream.connectors.documents import Action, Connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters, Parameters, Template
from opensearch_ml_stream.connectors.syntax.regex import compile_regex

STATUS = "BATCH_PREDICT_STATUS"
CANCEL = "CANCEL_BATCH_PREDICT"

_TRANSFORM_JOB = '{ "TransformJobName" : "${parameters.TransformJobName}"}'


@dataclass(frozen=True, slots=True)
class RemoteJobRules:
    """Settings `plugins.ml_commons.remote_job.*`: the fields that may hold a status, and what its words mean."""

    status_field: tuple[str, ...] = ("status", "Status", "TransformJobStatus")
    completed: str = "(complete|completed|partiallyCompleted)"
    cancelled: str = "(stopped|cancelled)"
    cancelling: str = "(stopping|cancelling)"
    expired: str = "(expired|timeout)"
    failed: str = "(failed)"


def batch_action(connector: Connector, action_type: str) -> Action:
    """The connector's STATUS or CANCEL action, or the one that follows from the URL of its batch_predict action.

    InvalidRequest if there is neither: the provider is not one whose job URLs are known.
    """
    for action in connector.actions:
        if action.action_type == action_type:
            return action
    create = connector.action("BATCH_PREDICT")
    parameters = Parameters(ConnectorParameters.compile(connector.parameters), {})
    url = _known(create.url, parameters)
    cancel = action_type == CANCEL
    bare = replace(
        create,
        action_type=action_type,
        name=None,
        request_body=None,
        pre_process_function=None,
        post_process_function=None,
    )
    if "sagemaker" in url or "/CreateTransformJob" in url:
        verb = "StopTransformJob" if cancel else "DescribeTransformJob"
        url = url.replace("CreateTransformJob", verb)
        return replace(bare, method="POST", url=url, request_body=_TRANSFORM_JOB)
    if "bedrock" in url or "/model-invocation-job" in url:
        return _job_action(bare, f"{url}/${{parameters.processedJobArn}}", "/stop" if cancel else None)
    if any(part in url for part in ("openai", "cohere", "/v1/batches", "/embed-jobs")):
        return _job_action(bare, f"{url}/${{parameters.id}}", "/cancel" if cancel else None)
    wanted = "cancel the batch job" if cancel else "get the batch job details"
    raise InvalidRequest(f"Please configure the action type to {wanted} in the connector")


def task_state(remote_job: Mapping[str, Any], rules: RemoteJobRules | None = None) -> str | None:
    """The task state that the provider's job description stands for, None while the job is under way."""
    rules = rules or RemoteJobRules()
    status = next((remote_job[name] for name in rules.status_field if name in remote_job), None)
    if status is None:
        return None
    for state in ("completed", "cancelled", "cancelling", "expired", "failed"):
        if compile_regex(getattr(rules, state), ignore_case=True).fullmatch(str(status)) is not None:
            return state.upper()
    return None


def job_parameters(remote_job: Mapping[str, Any]) -> dict[str, str]:
    """What a job description fills in the URL and body of STATUS and CANCEL: its strings.

    To be laid over the connector's parameters, not given as the request's: those would be encoded once more. The
    provider's text is no template. SageMaker names its job only by ARN; Bedrock's ARN stands encoded in a URL.
    """
    parameters = {name: value for name, value in remote_job.items() if isinstance(value, str) and "${" not in value}
    transform_job = parameters.get("TransformJobArn")
    if transform_job is not None:
        parameters.setdefault("TransformJobName", transform_job.rpartition("/")[2])
    job = parameters.get("jobArn")
    if job is not None:
        parameters.setdefault("processedJobArn", job.replace("/", "%2F"))
    return parameters


def _job_action(action: Action, url: str, stop: str | None) -> Action:
    return replace(action, method="GET", url=url) if stop is None else replace(action, method="POST", url=url + stop)


def _known(url: str, parameters: Parameters) -> str:
    """The URL with the connector's parameters; InvalidRequest names one that is missing."""
    return Template.compile(url, json=False).render_text(parameters)
