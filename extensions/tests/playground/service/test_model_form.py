"""The form of a model: what its templates ask, and which parameter is the user's turn."""

from collections.abc import Mapping
from pathlib import Path

import orjson
import pytest

from opensearch_ml_stream.connectors.documents import Action, read_connector
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.extensions.playground.service.model_form import FormParameter, ModelForm, find_model_form

CHAT_DEFAULT = '[{"role":"user","content":"${parameters.inputs}"}]'


def form_of(
    body: str,
    parameters: Mapping[str, str] | None = None,
    url: str = "https://x.example/v1",
    prompt: str | None = None,
    **action: object,
) -> ModelForm:
    predict = {"action_type": "predict", "method": "POST", "url": url, "request_body": body, **action}
    connector = read_connector({"name": "c", "parameters": parameters or {}, "actions": [predict]})
    return find_model_form(connector.action(), ConnectorParameters.compile(connector.parameters), prompt)


@pytest.mark.parametrize(
    ("body", "parameters", "action", "kind", "turn"),
    [
        ('{"messages": ${parameters.messages}}', {}, {}, "chat", "messages"),
        ('{"messages": ${parameters.messages}}', {"messages": CHAT_DEFAULT}, {}, "chat", "messages"),
        (
            '{"contents": ${parameters.contents}}',
            {"contents": '[{"role":"user","parts":[{"text":"${parameters.inputs}"}]}]'},
            {},
            "chat",
            "contents",
        ),
        ('{"prompt": "${parameters.prompt}"}', {}, {}, "prompt", "prompt"),
        ('{"text": "${parameters.inputs}"}', {}, {}, "inputs", "inputs"),
        ('{"q": "${parameters.question}"}', {}, {}, "other", "question"),
        ('{"input": ${parameters.input}}', {}, {}, "embedding", "text_docs"),
        (
            '{"texts": ${parameters.texts}}',
            {},
            {"pre_process_function": "connector.pre_process.cohere.embedding"},
            "embedding",
            "text_docs",
        ),
        ('{"x": "${parameters.x}"}', {}, {}, "other", None),
    ],
)
def test_the_templates_tell_the_users_turn(
    body: str, parameters: dict[str, str], action: dict[str, str], kind: str, turn: str | None
) -> None:
    form = form_of(body, parameters, **action)
    assert (form.kind, form.turn) == (kind, turn)


def test_a_models_settings_may_name_the_parameter_of_the_text() -> None:
    form = form_of('{"x": "${parameters.x}"}', prompt="x")
    assert (form.kind, form.turn) == ("other", "x")


def test_parameters_come_as_the_request_names_them_with_what_stands_for_them() -> None:
    form = form_of(
        '{"model": "${parameters.model}", "messages": ${parameters.messages}, "top_p": ${parameters.top_p:-null}}',
        {"model": "m", "messages": CHAT_DEFAULT, "endpoint": "https://x.example", "unused": "u"},
        "${parameters.endpoint}/v1/${parameters.path:-chat}",
        headers={"X-Team": "${parameters.team}", "Authorization": "Bearer ${credential.key}"},
    )
    assert form.parameters == (
        FormParameter("model", "m", True),
        FormParameter("messages", CHAT_DEFAULT, True),
        FormParameter("top_p", "null"),
        FormParameter("path", "chat"),
        FormParameter("team", None),
        FormParameter("inputs", None),
    )
    assert [one.name for one in form.parameters if one.is_required] == ["team", "inputs"]


def names(url: str, own: Mapping[str, str], **headers: str) -> list[str]:
    form = form_of(
        '{"model": "${parameters.model}"}',
        own,
        url,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )
    return [one.name for one in form.parameters]


def test_what_a_request_may_not_set_is_not_asked() -> None:
    own = {"endpoint": "https://${parameters.region}.example", "region": "r", "account": "a", "model": "m"}
    url = "${parameters.endpoint}/${parameters.account}/${parameters.model}"
    assert names(url, {**own, "org": "o"}, X_Org="${parameters.org}", Host="${parameters.host}") == ["model"]
    assert names("https://${parameters.host}/v1", {}) == ["model"]
    assert names("https://x.${parameters.region}.example/v1", {}) == ["model"]
    assert names("https://x.${parameters.region}.example${parameters.path}", {}) == ["model", "path"]


def test_what_a_request_may_set_is_asked() -> None:
    own = {"endpoint": "https://${parameters.region}.example", "region": "r", "_caller_parameters": '["region"]'}
    assert names("${parameters.endpoint}/${parameters.project}", own) == ["model", "project", "region"]
    assert names("https://x.example${parameters.path}", {}, X_Org="${parameters.org}") == ["model", "path", "org"]


def test_without_a_credential_the_host_is_asked() -> None:
    action = Action("PREDICT", "POST", "https://${parameters.host}/v1", request_body="{}")
    form = find_model_form(action, ConnectorParameters.compile({}), has_credential=False)
    assert [one.name for one in form.parameters] == ["host"]


def test_a_default_counts_wherever_a_template_has_it() -> None:
    form = form_of('{"a": ${parameters.a}, "b": ${parameters.a:-1}}')
    assert form.parameters == (FormParameter("a", "1"),)


def test_an_escaped_placeholder_is_text() -> None:
    assert form_of('{"a": "$${parameters.a}"}').parameters == ()


def test_parameters_that_name_each_other_end() -> None:
    form = form_of('{"a": "${parameters.a}"}', {"a": "${parameters.b}", "b": "${parameters.a.toString()}"})
    assert [one.name for one in form.parameters] == ["a", "b"]


BLUEPRINTS = sorted((Path(__file__).parents[4] / "blueprints").glob("*.json"))


@pytest.mark.parametrize("file", BLUEPRINTS, ids=lambda file: file.stem)
def test_a_shipped_blueprint_asks_for_nothing_but_the_turn(file: Path) -> None:
    connector = read_connector(orjson.loads(file.read_bytes())["connector"])
    form = find_model_form(connector.action(), ConnectorParameters.compile(connector.parameters))
    asked = {one.name for one in form.parameters if one.is_required}
    if file.stem == "cohere-rerank":
        assert (form.kind, asked) == ("other", {"query", "documents", "top_n"})
    elif form.kind == "embedding":
        assert len(asked) == 1  # which the pre-process function fills with the texts
    else:
        assert form.kind in ("chat", "inputs")
        assert asked == {"inputs"}
