"""Batch jobs: find the actions that read and cancel a provider's job, and translate its status to a task state."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from opensearch_ml_stream.connectors.documents import BATCH_PREDICT, Action, Connector, check_url_length
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.remote_job_rules import RemoteJobRules
from opensearch_ml_stream.connectors.rendering.caller_parameters import names_in_origin, own_origin
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction, ProviderRequest
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters, Parameters, Template
from opensearch_ml_stream.connectors.rendering.url import find_origin
from opensearch_ml_stream.connectors.syntax.regex import compile_regex

STATUS = "BATCH_PREDICT_STATUS"
CANCEL = "CANCEL_BATCH_PREDICT"

_TRANSFORM_JOB = '{ "TransformJobName" : "${parameters.TransformJobName}"}'


def batch_action(connector: Connector, action_type: str) -> Action:
    """Return the connector's STATUS or CANCEL action, or the one that follows from its BATCH_PREDICT action's URL.

    The URLs of jobs are known for SageMaker, Bedrock, OpenAI and Cohere. InvalidRequest for any other provider.
    """
    for action in connector.actions:
        if action.action_type == action_type:
            return action
    create = connector.action(BATCH_PREDICT)
    parameters = Parameters(ConnectorParameters.compile(connector.parameters), {})
    url = Template.compile(create.url, json=False).render_text(parameters)
    check_url_length(len(url))
    is_cancel = action_type == CANCEL
    action = replace(
        create,
        action_type=action_type,
        name=None,
        request_body=None,
        pre_process_function=None,
        post_process_function=None,
    )
    if "sagemaker" in url or "/CreateTransformJob" in url:
        operation = "StopTransformJob" if is_cancel else "DescribeTransformJob"
        url = url.replace("CreateTransformJob", operation)
        return replace(action, method="POST", url=url, request_body=_TRANSFORM_JOB)
    if "bedrock" in url or "/model-invocation-job" in url:
        return _job_action(action, f"{url}/${{parameters.processedJobArn}}", "/stop" if is_cancel else None)
    if any(part in url for part in ("openai", "cohere", "/v1/batches", "/embed-jobs")):
        return _job_action(action, f"{url}/${{parameters.id}}", "/cancel" if is_cancel else None)
    purpose = "cancel the batch job" if is_cancel else "get the batch job details"
    raise InvalidRequest(f"Please configure the action type to {purpose} in the connector")


def task_state(remote_job: Mapping[str, Any], rules: RemoteJobRules | None = None) -> str | None:
    """Return the task state that a provider's job description stands for, such as COMPLETED; None while it runs."""
    rules = rules or RemoteJobRules()
    status = next((remote_job[name] for name in rules.status_field if name in remote_job), None)
    if status is None:
        return None
    for state in ("completed", "cancelled", "cancelling", "expired", "failed"):
        if compile_regex(getattr(rules, state), ignore_case=True).fullmatch(str(status)) is not None:
            return state.upper()
    return None


def job_request(
    connector: Connector, action: Action, remote_job: Mapping[str, Any], credential: Mapping[str, str]
) -> ProviderRequest:
    """Render a STATUS or CANCEL action's request about the job that a provider has described.

    It goes where the connector itself says, by this action's URL or by that of its BATCH_PREDICT action: InvalidRequest
    for a description that would lead it elsewhere.
    """
    own = ConnectorParameters.compile(connector.parameters)
    url = Template.compile(action.url, json=False)
    kept = names_in_origin(url, own) & own.values.keys()
    # As parameters of a connector: in a URL a request's are percent-encoded, which would encode an ARN twice.
    job = {name: value for name, value in job_parameters(remote_job).items() if name not in kept}
    parameters = ConnectorParameters.compile({**connector.parameters, **job})
    request = CompiledAction.compile(action, parameters, credential).render({})
    creating = [Template.compile(one.url, json=False) for one in connector.actions if one.action_type == BATCH_PREDICT]
    if find_origin(request.url) not in [own_origin(one, own) for one in (url, *creating)]:
        names = ", ".join(f"[{one.name}]" for one in url.placeholders if one.name in job)
        raise InvalidRequest(
            f"The provider's description of its batch job leads to another host, by {names}. If the job is there, "
            f"spell the host out in the url of the connector's {action.action_type} action"
        )
    return request


def job_parameters(remote_job: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters that a job description gives for the URL and body of STATUS and CANCEL: its strings.

    Strings with `${` are left out, since the provider's text is no template. SageMaker identifies its job only by ARN,
    so its name is taken from that; Bedrock's ARN is encoded for the URL.
    """
    parameters = {name: value for name, value in remote_job.items() if isinstance(value, str) and "${" not in value}
    transform_job_arn = parameters.get("TransformJobArn")
    if transform_job_arn is not None:
        parameters.setdefault("TransformJobName", transform_job_arn.rpartition("/")[2])
    job_arn = parameters.get("jobArn")
    if job_arn is not None:
        parameters.setdefault("processedJobArn", job_arn.replace("/", "%2F"))
    return parameters


def _job_action(action: Action, url: str, cancel_suffix: str | None) -> Action:
    if cancel_suffix is None:
        return replace(action, method="GET", url=url)
    return replace(action, method="POST", url=url + cancel_suffix)
