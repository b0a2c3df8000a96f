"""Search for slow request bodies, documents, templates, schemas and charsets."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from typing import Any

import pytest

from opensearch_ml_stream.connectors.client_config import ClientConfig, read_client_config
from opensearch_ml_stream.connectors.documents import Action, connector_document, read_connector
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.connectors.predict import post_process, pre_process, remote_job
from opensearch_ml_stream.connectors.predict.encoded_results import cut_arrays
from opensearch_ml_stream.connectors.predict.inputs import read_predict_input
from opensearch_ml_stream.connectors.predict.merged_calls import RowPath, split_response
from opensearch_ml_stream.connectors.predict.model_interface import InterfaceSchema
from opensearch_ml_stream.connectors.predict.painless import (
    combine_calls,
    define_escape,
    fill_parameters,
    parse_result,
    split_results,
)
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction, find_codec
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters, fill_with_stand_ins
from opensearch_ml_stream.connectors.rendering.unfilled_values import left_in_connector
from opensearch_ml_stream.connectors.response_usage import count_response_tokens
from opensearch_ml_stream.connectors.stream_parameter import read_stream_spec
from opensearch_ml_stream.connectors.stream_spec_lookup import spec_for
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.token_spending import estimate_request_tokens
from tests.slow_inputs.derivations import Grammar
from tests.slow_inputs.search import Subject, check

pytestmark = pytest.mark.slow

_JSON: Grammar = {
    "json": ["<atom>", "[<items>]", "[]", "{<members>}", "{}", "<blank><json>", '"<chars>"'],
    "items": ["<json>", "<items>,<items>"],
    "members": ['"<chars>":<json>', "<members>,<members>"],
    "atom": ["1", "-0.5", "1e400", "<digits>", "<digits>.<digits>", "true", "null", "NaN", "-Infinity", "1E-7"],
    "digits": ["7", "<digits>1"],
    "chars": ["", "<chars><char>"],
    "char": ["a", "é", r"\n", r"\"", r"\\", r"\ud83d", r"\ude00", "😀", "${", "//", "/*", "{", "[", ",", "%", "\n"],
    "blank": [" ", "\n", "/**/", "// x\n", "/*"],
}
_BODY: Grammar = {
    **_JSON,
    "body": ["<json>", '{"<key>":<json>,"parameters":{<parameters>}}', '{"parameters":{<parameters>},"<key>":<json>}'],
    "parameters": ['"<name>":<json>', "<parameters>,<parameters>"],
    "name": ["x", "y", "charset", "_llm_interface", "<chars>"],
    "key": ["text_docs", "query_text", "question", "action_type", "dlq", "parameters", "other"],
}
_TEMPLATE: Grammar = {
    **_BODY,
    "template": ["<piece>", "<template><template>", '{"a":"<template>"}', '{"m":<template>}'],
    "piece": ["<char>", '"', "${parameters.<name>}", "${parameters.<name>:-<template>}", "$${parameters.x}",
              "${parameters.", "${parameters.p1}", "${parameters.x:-", "${credential.key}", "}", ":-null",
              ', "<chars>" : ${parameters.<name>:-null}', "<blank>,<blank>"],
    "url": ["https://h/<path>", "<template>", "http://<path>/v1/chat/completions?<path>"],
    "path": ["a", "/", "<path><path>", "..", "model/", "/converse", "%2F", "[", "]", "@", "?", "#", "<piece>", "<",
             ">", "YOUR "],
}  # fmt: skip
_SCHEMA: Grammar = {
    **_JSON,
    "schema": ["true", "false", "{}", "{<rules>}", '{"$ref":"#"}', '{"$ref":"#/$defs/a"}', "<json>"],
    "schemas": ["<schema>", "<schemas>,<schemas>"],
    "rules": ["<rule>", "<rules>,<rules>"],
    "rule": ['"<one>":<schema>', '"<many>":[<schemas>]', '"<named>":{<named_schemas>}', '"<value>":<json>',
             '"pattern":"<regex>"', '"type":"array"', '"required":["a","b"]',
             '"uniqueItems":true', '"$dynamicRef":"#a"', '"$anchor":"a"'],
    "one": ["items", "not", "if", "then", "additionalProperties", "propertyNames", "contains", "unevaluatedProperties",
            "unevaluatedItems"],
    "many": ["allOf", "anyOf", "oneOf", "prefixItems"],
    "named": ["properties", "patternProperties", "dependentSchemas", "$defs"],
    "named_schemas": ['"<name>":<schema>', "<named_schemas>,<named_schemas>"],
    "name": ["a", "b", "parameters", "<regex>"],
    "value": ["enum", "const", "multipleOf", "maximum", "minItems", "maxLength", "minContains", "type", "$id"],
    "regex": ["a", "^", ".*", "[ab]*a[ab]{1,30}", "(<regex>)", "<regex>+", "<regex>|<regex>", "<regex><regex>",
              "<regex>{1,90}"],
}  # fmt: skip
_CLIENT_SETTINGS = [field.name for field in fields(ClientConfig)]
_SCRIPT: Grammar = {
    **_TEMPLATE,
    "script": ["<token>", "<script><script>", "def f(def a) {<script>} ", "String escape(def x) {<script>}"],
    "token": ["a", ".", " ", "escape(", "{", "}", "(", ")", "<", ">", "[]", '"', "'", "\\", "//", "/*", "*/", "\n",
              "<piece>"],
    "results": ["-", "1:a", "<results><results>", "<digits>:a", ":"],
}  # fmt: skip


_ROWS = RowPath("$[*]", (), ())


def _fill(body: str, template: str, url: str) -> None:
    """Do what a prediction does, and what finds its stream, with the body's parameters."""
    given = read_predict_input(body.encode("utf-8", "surrogatepass"))
    nested = {f"p{level}": f"${{parameters.p{level + 1}}}" * 10 for level in range(1, 10)} | {"p10": template}
    own = ConnectorParameters.compile(nested)
    action = Action("PREDICT", "POST", url, headers={"X-Own": template[:2000]}, request_body=template,
                    supports_structured_output=True)  # fmt: skip
    for spec in (None, SHIPPED.presets["openai/v1/chat/completions"]):
        CompiledAction.compile(action, own, {"key": "secret"}).render(given.parameters, spec)


def _find_spec(url: str, parameter: str) -> None:
    fill_with_stand_ins(url, ConnectorParameters.compile({"x": parameter, "y": url}), {}, str.upper)
    actions = [{"action_type": "predict", "method": "POST", "url": url}]
    connector = {"name": "c", "version": "1", "protocol": "http", "credential": {"key": "v"}, "actions": actions}
    document = connector_document({**connector, "parameters": {"x": parameter, "y": url}})
    list(left_in_connector(document))
    read = read_connector(document)
    try:
        spec_for(read, read.action(), {})
    finally:
        remote_job.batch_action(read, remote_job.STATUS)


def _document(body: str) -> None:
    parsed = jsontext.load_object(body.encode("utf-8", "surrogatepass"), written_numbers=True)
    base: dict[str, Any] = {"name": "c", "version": "1", "protocol": "http", "credential": {"key": "v"}}
    for field in ("parameters", "client_config", "credential"):
        try:
            connector_document({**base, "actions": [], field: parsed})
        except MLStreamError:
            continue
    read_client_config(dict.fromkeys(_CLIENT_SETTINGS, next(iter(parsed.values()), 1)))


def _interface(schema: str, body: str) -> None:
    given = read_predict_input(body.encode("utf-8", "surrogatepass"))
    InterfaceSchema.compile(schema, "input").validate_input(given, [given.parameters])


def _script(source: str, value: str) -> None:
    source = define_escape(fill_parameters(source, {"x": value, "y": source}))
    combine_calls(source, [{"a": 1}])
    action = Action("PREDICT", "POST", "https://h/", pre_process_function=source)
    texts = '{"text_docs":["a","' + value + '"]}'
    pre_process.plan_steps(action, {}, read_predict_input(texts.encode("utf-8", "surrogatepass")))


def _response(body: str) -> None:
    for function in ("connector.post_process.openai.embedding", "connector.post_process.default.rerank",
                     "connector.post_process.mlcommons.passthrough", None):  # fmt: skip
        action = Action("PREDICT", "POST", "https://h/", post_process_function=function)
        try:
            post_process.read_response(action, {}, body.encode("utf-8", "surrogatepass"))
        except MLStreamError:
            continue
    cut_arrays(body.encode("utf-8", "surrogatepass"))
    with suppress(MLStreamError):
        split_response(body.encode("utf-8", "surrogatepass"), _ROWS, [("a",)] * body.count("["))
    parse_result(body, "post_process_function")


def _count_tokens(body: str) -> None:
    data = body.encode("utf-8", "surrogatepass")
    count_response_tokens(data, estimate_request_tokens(data))


_SUBJECTS: tuple[tuple[str, Grammar, tuple[str, ...], Callable[..., object]], ...] = (
    ("predict bodies", _BODY, ("body",), lambda body: read_predict_input(body.encode("utf-8", "surrogatepass"))),
    ("documents", _BODY, ("json",), _document),
    ("templates", _TEMPLATE, ("body", "template", "url"), _fill),
    ("urls", _TEMPLATE, ("url", "template"), _find_spec),
    ("schemas", _SCHEMA, ("schema", "json"), lambda schema, value: InterfaceSchema.compile(schema, "output").validate(
        jsontext.parse(value, "value"))),
    ("interfaces", {**_BODY, **_SCHEMA}, ("schema", "body"), _interface),
    ("stream parameters", _JSON, ("json",), read_stream_spec),
    ("scripts", _SCRIPT, ("script", "chars"), _script),
    ("script results", _SCRIPT, ("results",), lambda text: split_results(text, 1)),
    ("responses", _JSON, ("json",), _response),
    ("tokens", _JSON, ("json",), _count_tokens),
    ("charsets", _JSON, ("chars",), lambda name: "x".encode(find_codec(name))),
)  # fmt: skip


@pytest.mark.parametrize("subject", _SUBJECTS, ids=lambda subject: subject[0])
def test_no_json_takes_more_than_its_time(
    subject: tuple[str, Grammar, tuple[str, ...], Callable[..., object]],
) -> None:
    check(Subject(*subject, refusals=(MLStreamError,)))
