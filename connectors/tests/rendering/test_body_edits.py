"""Changes to a rendered body: structured output, and the empty sections of Nova's template."""

import json
from dataclasses import replace

import pytest

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.connectors.rendering.body_edits import (
    NOVA_EMBEDDINGS,
    apply_structured_output,
    clean_nova_body,
)
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText

_ACTION = Action("PREDICT", "POST", "http://provider/v1", supports_structured_output=True)


def _structured(body: str, **request: str) -> str:
    return apply_structured_output(_ACTION, request, body)


@pytest.mark.parametrize("field", ["response_format", "generationConfig", "toolConfig"])
def test_a_field_is_set_or_replaced_and_the_rest_keeps_its_text(field: str) -> None:
    asked = {f"_{field}_json": JsonText('{"type": "x", "n": 1.0}')}
    assert _structured('{"t": 1.0E-4}', **asked) == f'{{"t":1.0E-4,"{field}":{{"type": "x", "n": 1.0}}}}'
    assert _structured(f'{{"{field}": 1, "t": 2}}', **asked) == f'{{"{field}":{{"type": "x", "n": 1.0}},"t":2}}'


def test_additions_are_merged_key_by_key() -> None:
    body = '{"generationConfig": {"temperature": 0.10, "topP": 1}}'
    assert _structured(body, _generationConfig_additions_json='{"topP": 2, "mime": "json"}') == (
        '{"generationConfig":{"temperature":0.10,"topP":2,"mime":"json"}}'
    )
    assert _structured("{}", _toolConfig_additions_json='{"a": 1}') == '{"toolConfig":{"a":1}}'
    both = {"_toolConfig_json": '{"a": 0, "b": 0}', "_toolConfig_additions_json": '{"a": 1}'}
    assert _structured("{}", **both) == '{"toolConfig":{"a":1,"b":0}}'


def test_nothing_changes_without_the_flag_without_the_parameters_and_for_other_fields() -> None:
    body = '{"a" : 1}'
    without = replace(_ACTION, supports_structured_output=False)
    assert apply_structured_output(without, {"_response_format_json": "{}"}, body) == body
    assert _structured(body) == body
    assert _structured(body, _messages_json="[]") == body


@pytest.mark.parametrize(
    ("body", "request_", "reason"),
    [
        ("{}", {"_response_format_json": "{oops"}, r"Parameter \[_response_format_json\] must be JSON text"),
        ("{}", {"_response_format_additions_json": "[1]"}, r"Parameter \[_response_format_additions_json\] must be a"),
        ('{"toolConfig": 1}', {"_toolConfig_additions_json": "{}"}, "The field toolConfig of the connector's request_"),
        ("[1]", {"_toolConfig_json": "{}"}, "The connector's request_body must be a JSON object"),
    ],
)
def test_what_cannot_be_merged_is_named(body: str, request_: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        _structured(body, **request_)


_EMPTY = {"text": {"value": None, "truncationMode": None}, "image": {"source": {"bytes": None}, "format": None}}


def _nova(params: object, model: str = NOVA_EMBEDDINGS) -> object:
    body = json.dumps({"taskType": "SINGLE_EMBEDDING", "singleEmbeddingParams": params})
    return json.loads(clean_nova_body({"model": model}, body))["singleEmbeddingParams"]


def test_sections_of_nova_that_nothing_filled_are_left_out() -> None:
    video = {"source": {"bytes": "dg=="}}
    params = {"embeddingDimension": 8, **_EMPTY, "video": video, "audio": {"source": {"bytes": None}}}
    assert _nova(params) == {"embeddingDimension": 8, "video": video}


def test_a_section_with_content_or_without_the_field_stays() -> None:
    params = {"text": {"value": ""}, "image": {"format": "png"}, "audio": {"source": {"s3Location": {"uri": "s3://b"}}}}
    assert _nova(params) == params


def test_other_models_and_other_bodies_are_left_alone() -> None:
    assert _nova(_EMPTY, model="amazon.titan-embed-image-v1") == _EMPTY
    for body in ('{"a" : 1}', "no json", "[1]"):
        assert clean_nova_body({"model": NOVA_EMBEDDINGS}, body) == body


# All of it


def _rendered(template: str, connector: dict[str, str], request: dict[str, str]) -> bytes:
    action = replace(_ACTION, request_body=template)
    return CompiledAction.compile(action, ConnectorParameters.compile(connector), {}).render(request).body


def test_processors_come_before_structured_output() -> None:
    processors = '[{"type": "set_field", "path": "$.toolConfig", "value": {"a": 1}}]'
    request = {"_toolConfig_additions_json": '{"b": 2}'}
    assert _rendered('{"x":"é"}', {"input_processors": processors}, request) == (
        '{"x":"é","toolConfig":{"a":1,"b":2}}'.encode()
    )


def test_empty_sections_are_left_out_of_the_final_body() -> None:
    body = '{"singleEmbeddingParams":{"text":{"value":null},"n":1}}'
    assert _rendered(body, {"model": NOVA_EMBEDDINGS}, {}) == b'{"singleEmbeddingParams":{"n":1}}'


def test_a_body_that_nothing_applies_to_is_sent_as_it_was_rendered() -> None:
    assert _rendered('{ "t" : 1.0E-4 }', {"model": "m"}, {"p": "x"}) == b'{ "t" : 1.0E-4 }'


def test_processors_of_the_request_win_over_the_connectors() -> None:
    connector = {"input_processors": '[{"type": "set_field", "path": "$.a", "value": 1}]'}
    assert _rendered("{}", connector, {"input_processors": ""}) == b"{}"
    assert (
        _rendered("{}", connector, {"input_processors": connector["input_processors"].replace("1", "2")}) == b'{"a":2}'
    )


@pytest.mark.parametrize("action_type", ["BATCH_PREDICT_STATUS", "CANCEL_BATCH_PREDICT"])
def test_a_request_about_a_job_is_not_edited(action_type: str) -> None:
    connector = ConnectorParameters.compile({"input_processors": '[{"type": "set_field", "path": "$.a", "value": 1}]'})
    action = replace(_ACTION, action_type=action_type, request_body="{}")
    assert CompiledAction.compile(action, connector, {}).render({}).body == b"{}"


def test_the_stream_is_enabled_after_the_processors() -> None:
    connector = {"input_processors": '[{"type": "set_field", "path": "$.stream", "value": false}]'}
    compiled = CompiledAction.compile(replace(_ACTION, request_body="{}"), ConnectorParameters.compile(connector), {})
    spec = SHIPPED.presets["ollama/api/chat"]
    assert json.loads(compiled.render({}, spec).body) == {"stream": True}
