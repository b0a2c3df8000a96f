"""Guardrails of a model: what they stop, streamed and whole, and that a guard that cannot be checked stops all."""

import json
from typing import Any

import httpx
import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import Request, Script, json_response, openai_stream
from integration_tests.support.predict_calls import ask, connector, data_as_map, reason
from integration_tests.support.sidecars import Sidecar, running_sidecar
from opensearchpy import OpenSearch

INPUT = "guardrails triggered for user input"
OUTPUT = "guardrails triggered for LLM output"
BY_PATTERN = " by regex[0]"


def stream(sidecar: Sidecar, model_id: str, **parameters: Any) -> httpx.Response:
    return sidecar.client.post(f"/_plugins/_ml/models/{model_id}/_predict/stream", json={"parameters": parameters})


def guarded(**sides: Any) -> dict[str, Any]:
    return {"guardrails": {"type": "local_regex", **{f"{side}_guardrail": guard for side, guard in sides.items()}}}


def test_a_regular_expression_stops_the_body_that_would_be_sent(sidecar: Sidecar) -> None:
    with background_provider(json_response({"ok": 1})) as provider:
        model_id = sidecar.create_model(connector(provider.url), **guarded(input={"regex": [".*bomb.*"]}))
        assert reason(ask(sidecar, model_id, inputs="build a bomb")) == INPUT + BY_PATTERN
        assert provider.requests == []
        assert data_as_map(ask(sidecar, model_id, inputs="bake a cake")) == {"ok": 1}


def test_another_charset_does_not_hide_a_prompt(sidecar: Sidecar) -> None:
    with background_provider(json_response({})) as provider:
        model_id = sidecar.create_model(connector(provider.url), **guarded(input={"regex": [".*bomb.*"]}))
        assert reason(ask(sidecar, model_id, inputs="a bomb", charset="utf-16")) == INPUT + BY_PATTERN
    assert provider.requests == []


def test_a_stream_is_stopped_before_it_begins(sidecar: Sidecar) -> None:
    with background_provider(openai_stream(["fine"])) as provider:
        model_id = sidecar.create_model(openai(provider.url), **guarded(input={"regex": [".*bomb.*"]}))
        assert reason(stream(sidecar, model_id, inputs="a bomb")) == INPUT + BY_PATTERN
        assert provider.requests == []
        assert stream(sidecar, model_id, inputs="a cake").status_code == 200


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "content",
    [
        r"a \u0062omb",
        r"first line\nbomb\nlast line",
        [{"type": "text", "text": "a bo"}, {"type": "text", "text": "mb"}],
    ],
)
def test_neither_escapes_nor_newlines_nor_parts_hide_a_prompt(
    sidecar: Sidecar, streamed: bool, content: str | list[dict[str, str]]
) -> None:
    text = f'"{content}"' if isinstance(content, str) else json.dumps(content)
    body = f'{{"parameters": {{"messages": [\n{{"role": "user", "content": {text}}}\n]}}}}'
    path = "_predict/stream" if streamed else "_predict"
    with background_provider(openai_stream(["fine"])) as provider:
        model_id = sidecar.create_model(openai(provider.url), **guarded(input={"regex": [".*bomb.*"]}))
        headers = {"content-type": "application/json"}
        response = sidecar.client.post(f"/_plugins/_ml/models/{model_id}/{path}", content=body, headers=headers)
        assert reason(response) == INPUT + BY_PATTERN
    assert provider.requests == []


@pytest.mark.parametrize("text", ["my password", "line\npassword\nline", "p\u00e4ssw\u00f6rd"])
def test_escapes_and_newlines_do_not_hide_a_word_in_the_providers_response(sidecar: Sidecar, text: str) -> None:
    with background_provider(json_response({"text": text})) as provider:
        model_id = sidecar.create_model(connector(provider.url), **guarded(output={"regex": [".*p[aä]ssw[oö]rd.*"]}))
        assert reason(ask(sidecar, model_id, inputs="x")) == OUTPUT + BY_PATTERN


def test_a_regular_expression_stops_the_providers_response(sidecar: Sidecar) -> None:
    with background_provider(json_response({"text": "here is my password"})) as provider:
        model_id = sidecar.create_model(connector(provider.url), **guarded(output={"regex": [".*password.*"]}))
        assert reason(ask(sidecar, model_id, inputs="x")) == OUTPUT + BY_PATTERN


def judge(request: Request) -> Script:
    question = request.json()["q"]
    return json_response({"verdict": {"text": "reject" if "bomb" in question else "accept"}})


@pytest.mark.parametrize(
    ("filters", "parameters"),
    [
        ({"response_filter": "$.verdict.text"}, {}),
        ({"response_filter": "$.verdict.text"}, {"response_filter": "$.nothing"}),
        ({}, {"response_filter": "$.verdict.text"}),
    ],
)
def test_a_guard_model_judges_both_sides(sidecar: Sidecar, filters: dict[str, str], parameters: dict[str, str]) -> None:
    def script(request: Request) -> Script:
        return json_response({"text": "a bomb" if "answer badly" in request.json()["inputs"] else "a cake"})

    with background_provider(judge) as judging, background_provider(script) as provider:
        guard_id = sidecar.create_model(connector(judging.url, '{"q": "${parameters.question}"}', parameters))
        guard = {"model_id": guard_id, "response_validation_regex": '^\\s*"?[Aa]ccept"?\\s*$', **filters}
        guardrails = {"type": "model", "input_guardrail": guard, "output_guardrail": guard}
        model_id = sidecar.create_model(connector(provider.url), guardrails=guardrails)
        assert data_as_map(ask(sidecar, model_id, inputs="hello")) == {"text": "a cake"}
        assert [request.json()["q"] for request in judging.requests] == ['{"inputs": "hello"}', '{"text": "a cake"}']
        assert reason(ask(sidecar, model_id, inputs="a bomb")) == f"{INPUT} by guard model [{guard_id}]"
        assert len(provider.requests) == 1
        assert reason(ask(sidecar, model_id, inputs="answer badly")) == f"{OUTPUT} by guard model [{guard_id}]"


@pytest.mark.parametrize("script", [json_response({"error": "over quota"}, 429), json_response({"other": "accept"})])
def test_a_guard_model_that_gives_no_verdict_lets_nothing_pass(sidecar: Sidecar, script: Script) -> None:
    with background_provider(script) as judging, background_provider(json_response({})) as provider:
        guard_id = sidecar.create_model(connector(judging.url, '{"q": "${parameters.question}"}'))
        guard = {"model_id": guard_id, "response_filter": "$.text", "response_validation_regex": ".*accept.*"}
        guardrails = {"type": "model", "input_guardrail": guard}
        model_id = sidecar.create_model(connector(provider.url), guardrails=guardrails)
        assert reason(ask(sidecar, model_id, inputs="hello")).startswith(INPUT)
    assert provider.requests == []


def test_a_missing_guard_model_is_named(sidecar: Sidecar) -> None:
    guard = {"model_id": "gone", "response_validation_regex": ".*"}
    with background_provider(json_response({})) as provider:
        guardrails = {"type": "model", "input_guardrail": guard}
        model_id = sidecar.create_model(connector(provider.url), guardrails=guardrails)
        message = reason(ask(sidecar, model_id, inputs="hello"))
    assert message == f"{INPUT}: its guard model [gone] cannot be called: Failed to find model"


def test_models_that_guard_each_other_are_refused(sidecar: Sidecar) -> None:
    with background_provider(json_response({})) as provider:
        model_id = sidecar.create_model(connector(provider.url))
        guard = {"model_id": model_id, "response_validation_regex": ".*"}
        update = {"guardrails": {"type": "model", "input_guardrail": guard}}
        assert sidecar.client.put(f"/_plugins/_ml/models/{model_id}", json=update).status_code == 200
        assert "by this very guardrail" in reason(ask(sidecar, model_id, inputs="hello"))
    assert provider.requests == []


def test_guardrails_that_are_wrong_are_refused_when_the_model_is_registered(sidecar: Sidecar) -> None:
    body = {"name": "m", "function_name": "remote", "connector": connector("http://127.0.0.1:1")}
    for guardrails in ({"type": "x"}, {"input_guardrail": {"regex": ["("]}}):
        response = sidecar.client.post("/_plugins/_ml/models/_register", json={**body, "guardrails": guardrails})
        assert response.status_code == 400, response.text


def test_stop_words_on_the_embedded_store_let_nothing_pass_and_say_why(sidecar: Sidecar) -> None:
    words = {"index_name": "stop", "source_fields": ["title"]}
    with background_provider(json_response({})) as provider:
        model_id = sidecar.create_model(connector(provider.url), **guarded(input={"stop_words": [words]}))
        message = reason(ask(sidecar, model_id, inputs="x"))
    assert message.startswith(f"{INPUT}: its stop words in index [stop] cannot be searched: ")
    assert "the embedded store cannot" in message
    assert provider.requests == []


@pytest.mark.opensearch
def test_stop_words_are_queries_in_an_index_of_the_cluster(
    tmp_path_factory: pytest.TempPathFactory, opensearch_url: str, index_prefix: str
) -> None:
    index = f"{index_prefix}-words"
    mapping = {"properties": {"title": {"type": "text"}, "query": {"type": "percolator"}}}
    query = {"query": {"match": {"title": "bomb"}}}
    with OpenSearch(opensearch_url) as cluster:
        cluster.indices.create(index=index, body={"mappings": mapping})
        cluster.index(index=index, body=query, params={"refresh": "true"})
    folder = tmp_path_factory.mktemp("sidecar")
    settings = {"opensearch_ml_stream.index_prefix": index_prefix}
    provider = background_provider(json_response({"ok": 1}))
    with running_sidecar(folder, opensearch_url, settings) as sidecar, provider as running:
        words = {"index_name": index, "source_fields": ["title"]}
        model_id = sidecar.create_model(connector(running.url), **guarded(input={"stop_words": [words]}))
        assert reason(ask(sidecar, model_id, inputs="a Bomb, please")) == f"{INPUT} by stop words in index [{index}]"
        # In the payload this is the word `nbomb`, after a backslash.
        assert reason(ask(sidecar, model_id, inputs="first line\nbomb")) == f"{INPUT} by stop words in index [{index}]"
        assert running.requests == []
        assert data_as_map(ask(sidecar, model_id, inputs="a cake")) == {"ok": 1}
        words = {"index_name": f"{index}-gone", "source_fields": ["title"]}
        other = sidecar.create_model(connector(running.url), **guarded(input={"stop_words": [words]}))
        assert "index_not_found_exception" in reason(ask(sidecar, other, inputs="a cake"))
    assert json.loads(running.requests[0].body) == {"inputs": "a cake"}
