"""What connectors and callers supply on the way to a provider and back: templates, processors, paths, responses."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from integration_tests.fuzz.bounds import TIMEOUT_SECONDS, corpus, show, tries
from integration_tests.fuzz.mutations import json_values

from opensearch_ml_stream.connectors.documents import Action, connector_document, read_connector
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.connectors.predict import post_process, pre_process
from opensearch_ml_stream.connectors.predict.guardrails.configuration import read_guardrails
from opensearch_ml_stream.connectors.predict.guardrails.patterns import GuardPattern
from opensearch_ml_stream.connectors.predict.guardrails.payload_texts import readable_text, refusing_pattern
from opensearch_ml_stream.connectors.predict.guardrails.stream_filters import PatternFilter
from opensearch_ml_stream.connectors.predict.inputs import read_predict_input
from opensearch_ml_stream.connectors.predict.model_interface import InterfaceSchema
from opensearch_ml_stream.connectors.processors.chain import compile_processors
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.connectors.syntax.filter_path import filter_path

pytestmark = pytest.mark.timeout(TIMEOUT_SECONDS)

NAMES = st.sampled_from(["a", "b", "prompt", "messages", "model", "_stream", "http_body", "charset", "response_filter"])
PIECES = [
    '{"m": ', '"', "}", "[", "]", ",", "\\", "$", "${", "${parameters.}", "$${parameters.a}", "null", "http://h/",
    "?x=", "${credential.k}", "\n", "\ud83d",
]  # fmt: skip
URLS = [
    "http://h/",
    "https://h/${parameters.a}?b=${parameters.b}",
    "http://",
    "http://[",
    "http://[::1]:",
    "ftp://h",
    "",
]
FRAGMENTS = st.lists(
    st.one_of(
        st.sampled_from(PIECES),
        st.builds("${{parameters.{}}}".format, NAMES),
        st.builds("${{parameters.{}:-{}}}".format, NAMES, st.text(max_size=4)),
        st.builds("${{parameters.{}.toString()}}".format, NAMES),
        st.text(max_size=5),
    ),
    max_size=8,
).map("".join)
PARAMETERS = st.dictionaries(NAMES, st.one_of(FRAGMENTS, json_values().map(json.dumps)), max_size=5)
ODD_PATHS = [
    "$", "$.a", "$..a", "$..*", "$..*..*..*", "$[0]", "$[-1]", "$[::2]", "$[?@.a>1]", "$[?count($..*)>1]", "$['a']",
    "$.a[*].b", "a", "", "$[", "$.a.b.c", "$[99999999999999999999]", "$[?match(@.a, '(a|a)*')]",
]  # fmt: skip
PATHS = st.one_of(st.sampled_from(ODD_PATHS), st.text("$.[]*?@()'0a:<>=", max_size=10))
ODD_PATTERNS = ["a", "(a*)*b", "(", "", "(?i)A", "(.)(.)", "\\1", "[", ".*", "\ud83d"]
PATTERNS = st.one_of(st.sampled_from(ODD_PATTERNS), st.text(max_size=6))
KINDS = (
    "to_string", "regex_replace", "regex_capture", "jsonpath_filter", "extract_json", "remove_jsonpath", "conditional",
    "process_and_set", "set_field", "for_each", "unknown",
)  # fmt: skip
INPUT_FIELDS = ["parameters", "text_docs", "query_text", "question", "context", "action_type", "dlq"]
PRE_PROCESS = [
    None,
    "",
    "connector.pre_process.openai.embedding",
    "connector.pre_process.cohere.rerank",
    "${parameters.a}",
]
POST_PROCESS = [
    None, "", "connector.post_process.openai.embedding", "connector.post_process.cohere.rerank",
    "connector.post_process.default.embedding", "connector.post_process.x", "def x", "${parameters.a}",
]  # fmt: skip
SCHEMA_WORDS = [
    "type", "properties", "items", "$ref", "$defs", "anyOf", "pattern", "multipleOf", "enum", "minimum", "required",
    "uniqueItems", "a",
]  # fmt: skip
DOCUMENT_WORDS = [
    "name", "version", "protocol", "parameters", "credential", "actions", "client_config", "max_connection", "headers",
    "read_timeout", "url", "method", "action_type", "request_body", "type", "input_guardrail", "regex", "stop_words",
    "model_id",
]  # fmt: skip


def processor(inner: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[Any]:
    chain = st.just([]) if inner is None else st.lists(inner, max_size=3)
    fields: dict[str, st.SearchStrategy[Any]] = {
        "path": PATHS, "pattern": PATTERNS, "replacement": st.sampled_from(["", "$1", "$99", "\\", "${a}", "aa", "$"]),
        "replace_all": st.booleans(), "groups": st.one_of(st.integers(), st.text(max_size=3), st.lists(st.integers())),
        "extract_type": st.sampled_from(["object", "array", "auto", "x"]), "default": json_values(),
        "escape_json": st.booleans(), "value": json_values(), "output_path": PATHS, "source_path": PATHS,
        "condition": st.sampled_from(["exists", "null", "> 1", "regex:a", "contains:a", "<", "== 1e999", "\x00"]),
        "processors": chain, "path_processors": chain, "default_processors": chain,
        "routes": st.lists(st.dictionaries(st.sampled_from(["a", "exists", "> 1"]), chain, max_size=2), max_size=2),
    }  # fmt: skip
    return st.fixed_dictionaries({"type": st.sampled_from(KINDS)}, optional=fields)


CHAINS = st.lists(st.recursive(processor(), processor, max_leaves=5), max_size=4)


def done(work: Callable[[], object]) -> None:
    """The work is done or refused."""
    try:
        work()
    except MLStreamError as error:
        assert error.status in (400, 424) and len(error.reason) < 20_000


def render(url: str, header: str, body: str, own: dict[str, str], request: dict[str, str]) -> None:
    def work() -> None:
        action = Action("PREDICT", "POST", url, headers={"X-A": header}, request_body=body)
        compiled = CompiledAction.compile(action, ConnectorParameters.compile(own), {"k": "secret"})
        rendered = compiled.render(request, SHIPPED.presets["openai/v1/chat/completions"])
        assert "secret" not in rendered.url and b"secret" not in rendered.body
        assert not set("\r\n\x00") & set(rendered.url + "".join(rendered.headers.values()))

    done(work)


def run_processors(chain: Any, value: Any) -> None:
    def work() -> None:
        json.dumps(compile_processors(json.dumps(chain), "output_processors").run(value, len(json.dumps(value))))

    done(work)


def read_response(function: str | None, parameters: dict[str, str], body: bytes) -> None:
    action = Action("PREDICT", "POST", "http://h", post_process_function=function)

    def work() -> None:
        post_process.check(action, parameters)
        post_process.read_response(action, parameters, body)

    done(work)


@pytest.mark.parametrize("case", corpus("rendering"))
def test_a_template_that_once_failed_is_rendered_or_refused(case: dict[str, Any]) -> None:
    render(case["url"], case["header"], case["body"], case["own"], case["request"])


@pytest.mark.parametrize("case", corpus("processors"))
def test_processors_that_once_failed_run_or_are_refused(case: dict[str, Any]) -> None:
    run_processors(case["chain"], case["value"])


@pytest.mark.parametrize("case", corpus("responses"))
def test_a_response_that_once_failed_is_read_or_refused(case: dict[str, Any]) -> None:
    read_response(case["function"], case["parameters"], case["body"].encode("latin-1"))


@tries(150)
@given(st.tuples(st.sampled_from(URLS), FRAGMENTS).map("".join), FRAGMENTS, FRAGMENTS, PARAMETERS, PARAMETERS)
def test_a_template_is_rendered_or_refused(
    url: str, header: str, body: str, own: dict[str, str], request: dict[str, str]
) -> None:
    show("rendering", url=url, header=header, body=body, own=own, request=request)
    render(url, header, body, own, request)


@tries(150)
@given(CHAINS, json_values())
def test_processors_run_or_are_refused(chain: list[Any], value: Any) -> None:
    show("processors", chain=chain, value=value)
    run_processors(chain, value)


@tries(150)
@given(
    st.sampled_from(POST_PROCESS),
    st.fixed_dictionaries(
        {}, optional={"response_filter": PATHS, "a": FRAGMENTS, "output_processors": CHAINS.map(json.dumps)}
    ),
    st.one_of(json_values().map(json.dumps), st.text(max_size=20)),
)
def test_a_response_is_read_or_refused(function: str | None, parameters: dict[str, str], body: str) -> None:
    data = body.encode("utf-8", "replace")
    show("responses", function=function, parameters=parameters, body=data.decode("latin-1"))
    read_response(function, parameters, data)


@tries(100)
@given(
    st.dictionaries(
        st.sampled_from(INPUT_FIELDS),
        json_values() | st.dictionaries(NAMES, json_values()) | st.lists(st.text(max_size=5)),
        max_size=4,
    ),
    st.sampled_from([None, "remote", "text_embedding", "text_similarity", "x"]),
    st.sampled_from(PRE_PROCESS),
    PARAMETERS,
)
def test_a_predict_body_is_planned_or_refused(
    body: dict[str, Any], algorithm: str | None, function: str | None, own: dict[str, str]
) -> None:
    def work() -> None:
        predict_input = read_predict_input(json.dumps(body).encode(), algorithm)
        action = Action("PREDICT", "POST", "http://h", request_body="{}", pre_process_function=function)
        pre_process.plan_steps(action, own, predict_input)

    done(work)


@tries(100)
@given(json_values(SCHEMA_WORDS), json_values(["a", "b"]))
def test_a_model_interface_is_checked_or_refused(schema: Any, response: Any) -> None:
    def work() -> None:
        InterfaceSchema.compile(json.dumps(schema), "output").validate({"inference_results": response})

    done(work)


@tries(100)
@given(json_values(DOCUMENT_WORDS))
def test_a_document_is_read_or_refused(value: Any) -> None:
    document = value if isinstance(value, dict) else {"actions": value, "client_config": value, "type": value}
    good = {"name": "c", "version": 1, "protocol": "http", "credential": {"k": "v"}, "actions": []}
    done(lambda: read_connector(document))
    done(lambda: connector_document({**good, **document}))
    done(lambda: read_guardrails(document))
    done(lambda: read_guardrails({"type": "local_regex", "input_guardrail": document}))


@tries(100)
@given(json_values(["a", "b", "*", "."]), st.lists(st.text("ab*.-", max_size=12), max_size=4))
def test_filter_path_keeps_only_what_was_there(body: Any, patterns: list[str]) -> None:
    done(lambda: json.dumps(filter_path(body, patterns)))


@tries(100)
@given(PATTERNS, st.lists(st.text("ab(*)\n\u00fc", max_size=6), max_size=5), json_values())
def test_a_guardrail_searches_what_comes_and_keeps_none_of_it(pattern: str, texts: list[str], payload: Any) -> None:
    def work() -> None:
        patterns = [GuardPattern.compile(pattern)]
        refusing_pattern(patterns, json.dumps(payload))
        readable_text(json.dumps(payload))
        search = PatternFilter(patterns, 8)
        released = "".join(search.feed(text) for text in texts) + search.close()
        whole = "".join(texts)
        assert released == whole if search.refused_by is None else whole.startswith(released)

    done(work)
