"""Values that a connector leaves to its user, and placeholders that nothing fills: which count, what a call says."""

from datetime import UTC, datetime
from typing import Any

import pytest

from opensearch_ml_stream.connectors.documents import Action, connector_document
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction, ProviderRequest
from opensearch_ml_stream.connectors.rendering.sigv4 import sign
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.connectors.rendering.unfilled_values import is_to_be_given, left_in_connector


def document(**fields: Any) -> dict[str, Any]:
    action = {"action_type": "predict", "method": "POST", "url": "https://${parameters.endpoint}/v1"}
    body = {"name": "c", "version": 1, "protocol": "http", "credential": {"key": "k"}, "actions": [action]}
    return connector_document({**body, "parameters": {"endpoint": "h.example"}, **fields})


def call(url: str, parameters: dict[str, str], request: dict[str, str], **headers: str) -> ProviderRequest:
    action = Action("PREDICT", "POST", url, headers=headers, request_body="{}")
    credential = {"key": "YOUR API KEY", "other": "k"}
    return CompiledAction.compile(action, ConnectorParameters.compile(parameters), credential).render(request)


@pytest.mark.parametrize("value", ["<region>", " <YOUR RESOURCE NAME> ", "YOUR API KEY", "REPLACE_WITH_YOUR_KEY"])
def test_a_value_that_stands_for_the_users_own_is_to_be_given(value: str) -> None:
    assert is_to_be_given(value)


@pytest.mark.parametrize("value", ["", "sk-1", "your api key", "<s>[INST] x", "AKIAYOUR", 7, None])
def test_any_other_value_is_one(value: object) -> None:
    assert not is_to_be_given(value)


def test_each_value_that_is_left_is_named_with_its_place() -> None:
    left = document(
        name="<YOUR CONNECTOR NAME>",
        parameters={"endpoint": "<YOUR RESOURCE NAME>.openai.azure.com/", "user": "<YOUR USER>", "team": "YOUR TEAM"},
        credential={"key": "<YOUR API KEY>", "other": "sk-1"},
        actions=[{
            "action_type": "predict", "method": "POST", "url": "https://${parameters.endpoint}/<deployment>",
            "headers": {"api-key": "${credential.key}", "x-org": "<your organization>"},
        }],
    )  # fmt: skip
    assert list(left_in_connector(left)) == [
        "[name] is not filled in: <YOUR CONNECTOR NAME>",
        "[parameters.endpoint] is not filled in: <YOUR RESOURCE NAME>",
        "[parameters.user] is not filled in: <YOUR USER>",
        "[parameters.team] is not filled in: YOUR TEAM",
        "[credential.key] is not filled in",
        "[actions.0.url] is not filled in: <deployment>",
        "[actions.0.headers.x-org] is not filled in: <your organization>",
    ]


def test_a_value_that_another_parameter_brings_into_the_url_is_named() -> None:
    left = document(parameters={"endpoint": "${parameters.resource}.example", "resource": "<resource>"})
    assert list(left_in_connector(left)) == ["[parameters.resource] is not filled in: <resource>"]


def test_angle_brackets_outside_of_the_url_may_be_meant() -> None:
    parameters = {"endpoint": "h.example", "stop": "</s>", "prompt": "<s>[INST] Replace <b>your</b> x", "json": ["<a>"]}
    assert list(left_in_connector(document(parameters=parameters))) == []


@pytest.mark.parametrize("request_", [{}, {"prompt": "x"}])
def test_a_call_to_a_url_that_is_not_filled_in_names_the_value(request_: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        call("https://${parameters.endpoint}/v1", {"endpoint": "<YOUR RESOURCE NAME>.openai.azure.com"}, request_)
    assert refused.value.reason == (
        "The connector's url (<YOUR RESOURCE NAME>) is not filled in: replace the placeholder in the connector by your "
        "own value"
    )


def test_a_caller_who_gives_the_value_is_served_and_may_use_angle_brackets() -> None:
    url, parameters = "https://h.example/${parameters.model}?q=${parameters.q}", {"model": "<YOUR MODEL_ID>"}
    assert call(url, parameters, {"model": "m", "q": "<b>"}).url == "https://h.example/m?q=%3Cb%3E"
    with pytest.raises(InvalidRequest, match="<YOUR MODEL_ID>"):
        call(url, parameters, {"q": "<b>"})


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("Bearer ${credential.key}", "The connector's credential [key] is not filled in"),
        ("Bearer <YOUR ACCESS TOKEN>", "The connector's header 'authorization' (<YOUR ACCESS TOKEN>) is not filled in"),
    ],
)
def test_a_call_with_a_header_that_is_not_filled_in_is_refused(header: str, says: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        call("https://h.example", {}, {}, authorization=header)
    assert refused.value.reason.startswith(says)


def test_a_credential_that_no_header_holds_is_not_looked_at() -> None:
    assert call("https://h.example", {}, {}, authorization="Bearer ${credential.other}").url == "https://h.example"


@pytest.mark.parametrize("name", ["access_key", "secret_key", "session_token"])
def test_a_request_is_not_signed_with_a_key_that_is_not_filled_in(name: str) -> None:
    request = ProviderRequest("POST", "https://h.example", {}, b"{}")
    credential = {"access_key": "A", "secret_key": "S", name: "<PLEASE ADD YOUR KEY>"}
    with pytest.raises(InvalidRequest, match=rf"credential \[{name}\] is not filled in"):
        sign(request, credential, "us-east-1", "bedrock", datetime(2026, 1, 1, tzinfo=UTC))


CREDENTIALS = "credentials are filled into an action's headers, as ${credential.k}, and nowhere else"


@pytest.mark.parametrize(
    ("action", "parameters", "where", "advice"),
    [
        ({"headers": {"A": "Bearer ${credentials.k}"}}, {}, "header 'A'", "write ${credential.k}"),
        ({"headers": {"A": "Bearer ${Credential.k}"}}, {}, "header 'A'", "write ${credential.k}"),
        ({"headers": {"A": "${credential.k} ${ credential.k }"}}, {}, "header 'A'", "write ${credential.k}"),
        ({"headers": {"A": "${parameter.x}"}}, {}, "header 'A'", "write ${parameters.x}"),
        ({"url": "https://h/v1?key=${credential.k}"}, {}, "url", CREDENTIALS),
        ({"url": "https://h/${model}"}, {}, "url", "a parameter is written ${parameters.model}"),
        ({"request_body": '{"k":"${credential.k}"}'}, {}, "request_body", CREDENTIALS),
        ({"request_body": '{"p":"${ parameters.p }"}'}, {}, "request_body", "write ${parameters.p}"),
        ({"request_body": '{"p":"${parameters.p:none}"}'}, {}, "request_body", "write ${parameters.p}"),
        ({"request_body": '{"p":"${parameters.p }"}'}, {}, "request_body", "write ${parameters.p}"),
        ({"request_body": '{"t":${t}}'}, {}, "request_body", "a parameter is written ${parameters.t}"),
        ({"headers": {"A": "${parameters.t}"}}, {"t": "Bearer ${credential.k}"}, "parameter [t]", CREDENTIALS),
        ({"request_body": None}, {"http_body": '{"k":"${parameter.k}"}'}, "request_body", "write ${parameters.k}"),
    ],
)  # fmt: skip
def test_a_placeholder_that_nothing_fills_is_named_at_creation_and_refused_when_called(
    action: dict[str, Any], parameters: dict[str, str], where: str, advice: str
) -> None:
    given: dict[str, Any] = {"url": "https://h.example", "request_body": "{}", "headers": {}, **action}
    left = document(parameters=parameters, actions=[{"action_type": "predict", "method": "POST", **given}])
    (warning,) = left_in_connector(left)
    assert warning.startswith(f"[actions.0]: {where} has the placeholder ${{") and warning.endswith(f": {advice}")
    compiled = CompiledAction.compile(
        Action("PREDICT", "POST", **given), ConnectorParameters.compile(parameters), {"k": "secret"}
    )
    with pytest.raises(InvalidRequest) as refused:
        compiled.render({"p": "x"})
    assert refused.value.reason == f"The connector's {warning.removeprefix('[actions.0]: ')}"


@pytest.mark.parametrize(
    "text",
    [
        "costs ${5}",
        "${parameters.p:-${parameters.q}}",
        "$${parameters.p}",
        "${ a + b }",
        "echo $HOME",
        "${parameters.p}",
    ],
)
def test_what_is_no_placeholder_of_another_form_is_left_alone(text: str) -> None:
    action = {
        "action_type": "predict",
        "method": "POST",
        "url": "https://h.example",
        "request_body": f'{{"p":"{text}"}}',
    }
    assert list(left_in_connector(document(parameters={}, actions=[action]))) == []


def test_a_prompt_may_hold_names_in_braces() -> None:
    parameters = {"endpoint": "h.example", "system": "Say ${HOME} as ${x}"}
    action = {
        "action_type": "predict", "method": "POST", "url": "https://${parameters.endpoint}",
        "request_body": '{"system":"${parameters.system}"}',
    }  # fmt: skip
    assert list(left_in_connector(document(parameters=parameters, actions=[action]))) == []
