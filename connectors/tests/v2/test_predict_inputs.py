"""Tensors to predict parameters: by the templates of all shipped connectors, and by small ones."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.documents import connector_document, read_connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.inputs import RemoteInput, TextDocsInput
from opensearch_ml_stream.connectors.rendering.action import CompiledAction
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText
from opensearch_ml_stream.connectors.v2.chat_messages import MAX_MESSAGES
from opensearch_ml_stream.connectors.v2.messages import InferenceRequest, Tensor
from opensearch_ml_stream.connectors.v2.model_inputs import find_model_inputs
from opensearch_ml_stream.connectors.v2.predict_inputs import (
    MAX_PARAMETERS,
    MAX_PREDICTIONS,
    PredictInputs,
    predict_inputs,
)

_FILES = sorted((Path(__file__).parents[3] / "blueprints").glob("*.json"))
_OF_TEXTS = [path for path in _FILES if path.stem != "cohere-rerank"]  # which ranks documents by a query
_QUESTION = 'What is "the meaning"?\n世界'
_PLACEHOLDERS = {"region": "r", "location": "l", "project": "p", "account_id": "a", "project_id": "p"}


def compiled(connector: Mapping[str, Any]) -> CompiledAction:
    read = read_connector(connector_document(connector))
    return CompiledAction.compile(read.action(), ConnectorParameters.compile(read.parameters), read.credential)


def action(body: str, url: str = "http://127.0.0.1/", function: str | None = None, **parameters: Any) -> CompiledAction:
    predict: dict[str, Any] = {"action_type": "predict", "method": "POST", "url": url, "request_body": body}
    if function is not None:
        predict["pre_process_function"] = function
    return compiled({
        "name": "c", "version": "1", "protocol": "http", "credential": {"key": "x"}, "parameters": parameters,
        "actions": [predict],
    })  # fmt: skip


def text(*elements: str | bytes | None, name: str = "x", **parameters: Any) -> Tensor:
    return Tensor(name, "BYTES", [len(elements)], elements, parameters)


def read(target: CompiledAction, *tensors: Tensor, prompt: str | None = None, **parameters: Any) -> PredictInputs:
    return predict_inputs(
        InferenceRequest(tensors, parameters=parameters), find_model_inputs(target.action, target.parameters, prompt)
    )


def rendered(target: CompiledAction, *tensors: Tensor, prompt: str | None = None, **parameters: Any) -> Any:
    (one,) = read(target, *tensors, prompt=prompt, **parameters).inputs
    return orjson.loads(target.render(one.parameters).body)


def refused(target: CompiledAction, *tensors: Tensor, **parameters: Any) -> str:
    with pytest.raises(InvalidRequest) as raised:
        read(target, *tensors, **parameters)
    return raised.value.reason


PROMPT = action('{"prompt": "${parameters.inputs}", "n": ${parameters.n:-1}}')
MESSAGES = action('{"messages": ${parameters.messages}, "tools": ${parameters.tools:-null}}')


@pytest.mark.parametrize("path", _OF_TEXTS, ids=lambda path: path.stem)
def test_every_shipped_connector_takes_a_text_in_a_tensor_of_any_name(path: Path) -> None:
    target = compiled(json.loads(path.read_text())["connector"])
    for name in ("prompt", "input-0"):
        (one,) = read(target, text(_QUESTION, name=name)).inputs
        if isinstance(one, TextDocsInput):
            assert one.text_docs == (_QUESTION,)
        else:
            body = json.loads(target.render({**_PLACEHOLDERS, **one.parameters}).body)
            assert json.dumps(_QUESTION)[1:-1] in json.dumps(body)


@pytest.mark.parametrize("name", ["openai-chat", "bedrock-converse", "gemini-chat", "anthropic-messages"])
def test_a_chat_is_written_in_the_connectors_own_form_of_a_message(name: str) -> None:
    path = next(path for path in _FILES if path.stem == name)
    target = compiled(json.loads(path.read_text())["connector"])
    chat = [text("user", "assistant", name="role"), text("a", "b", name="content"), text("text", "text", name="type")]
    found = read(target, *chat)
    assert found.is_chat
    body = orjson.loads(target.render({**_PLACEHOLDERS, **found.inputs[0].parameters}).body)
    assert body.get("messages", body.get("contents")) == {
        "bedrock-converse": [
            {"role": "user", "content": [{"text": "a"}]}, {"role": "assistant", "content": [{"text": "b"}]},
        ],
        "gemini-chat": [{"role": "user", "parts": [{"text": "a"}]}, {"role": "model", "parts": [{"text": "b"}]}],
    }.get(name, [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])  # fmt: skip


@pytest.mark.parametrize("name", ["inputs", "prompt", "question"])
def test_the_prompt_is_the_first_parameter_of_a_known_name_that_the_template_leaves_open(name: str) -> None:
    target = action(f'{{"a": "${{parameters.{name}}}"}}', inputs_of_another="x", prompt_="y")
    assert rendered(target, text("Hi")) == {"a": "Hi"}
    both = action('{"a": "${parameters.inputs}", "b": "${parameters.question:-}"}')
    assert rendered(both, text("Hi")) == {"a": "Hi", "b": ""}


def test_a_prompt_that_the_connector_sets_is_kept() -> None:
    target = action('{"a": "${parameters.prompt}", "b": "${parameters.question}"}', prompt="fixed")
    assert rendered(target, text("Hi")) == {"a": "fixed", "b": "Hi"}
    around = action('{"a": "${parameters.prompt}"}', prompt="<s>${parameters.inputs}</s>")
    assert rendered(around, text("Hi", name="prompt")) == {"a": "<s>Hi</s>"}


def test_the_models_settings_may_name_another_parameter() -> None:
    target = action('{"a": "${parameters.my_param}", "b": "${parameters.inputs:-}"}')
    assert rendered(target, text("Hi"), prompt="my_param") == {"a": "Hi", "b": ""}
    assert "_sidecar.v2.prompt" in refused(action('{"a": "${parameters.my_param}"}'), text("Hi"))


def test_a_prompt_may_stand_in_the_url() -> None:
    target = action("{}", url="http://127.0.0.1/?q=${parameters.question}")
    (one,) = read(target, text("a b")).inputs
    assert target.render(one.parameters).url == "http://127.0.0.1/?q=a%20b"


def test_where_messages_are_wanted_a_text_is_one_message_of_the_user() -> None:
    assert rendered(MESSAGES, text(_QUESTION))["messages"] == [{"role": "user", "content": _QUESTION}]


def test_a_chat_becomes_messages_with_their_tool_calls_and_parts() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    tool = {"type": "function", "function": {"name": "f"}}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aa"}}
    body = rendered(
        MESSAGES,
        text("user", "assistant", "tool", "user", name="role"),
        text("Hi", "", "12", json.dumps(["What?", "data:image/png;base64,aa"]), name="content"),
        text("text", "text", "text", '["text","image_url"]', name="type"),
        text("", json.dumps(call), "", "", name="tool_calls"),
        text("", "", "c1", "", name="tool_call_id"),
        text(json.dumps(tool), name="tools"),
    )
    assert body == {
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "12", "tool_call_id": "c1"},
            {"role": "user", "content": [{"type": "text", "text": "What?"}, image]},
        ],
        "tools": [tool],
    }


def test_a_chat_may_leave_out_its_types_and_have_many_calls_in_its_only_message() -> None:
    calls = [text("{}", '{"id":"2"}', name="tool_calls"), text("assistant", name="role"), text("", name="content")]
    assert rendered(MESSAGES, *calls)["messages"] == [
        {"role": "assistant", "content": "", "tool_calls": [{}, {"id": "2"}]}
    ]
    one = [text("user", name="role"), text("u", name="content"), text("image_url", name="type")]
    image = {"type": "image_url", "image_url": {"url": "u"}}
    assert rendered(MESSAGES, *one)["messages"] == [{"role": "user", "content": [image]}]
    of_one_text = [text("user", name="role"), text('["u"]', name="content"), text('["text"]', name="type")]
    assert rendered(MESSAGES, *of_one_text)["messages"] == [{"role": "user", "content": "u"}]


def test_a_chat_of_one_text_is_a_prompt_where_the_model_takes_no_chat() -> None:
    chat = [text("user", name="role"), text("Hi", name="content")]
    assert rendered(PROMPT, *chat) == {"prompt": "Hi", "n": 1}
    assert read(PROMPT, *chat).is_chat
    two = [text("user", "user", name="role"), text("Hi", "there", name="content")]
    assert "several messages" in refused(PROMPT, *two)


@pytest.mark.parametrize(
    "chat",
    [
        [text("user", name="role"), text("a", "b", name="content")],
        [text(name="role"), text(name="content")],
        [text("user", name="role"), text("a", name="content"), text(name="type")],
        [text("user", name="role"), text("a", name="content"), text('["text"]', name="type")],
        [text("user", "user", name="role"), text("a", "b", name="content"), text("c", name="tool_call_id")],
        [text("user", name="role"), text("a", name="content"), text("b", name="c")],
        [text("user", name="role"), text(None, name="content")],
    ],
)
def test_a_chat_whose_tensors_do_not_fit_is_refused(chat: list[Tensor]) -> None:
    refused(MESSAGES, *chat)


def test_texts_go_to_the_function_of_a_connector_for_embeddings() -> None:
    target = action('{"input": ${parameters.input}}', function="connector.pre_process.openai.embedding")
    assert read(target, text("a", "b"), max_tokens=5) == PredictInputs(
        [TextDocsInput(("a", "b"), {"max_tokens": JsonText("5")})]
    )


def test_several_texts_are_a_prediction_each() -> None:
    assert read(PROMPT, text("a", "b"), n=2).inputs == [
        RemoteInput({"n": JsonText("2"), "inputs": "a"}),
        RemoteInput({"n": JsonText("2"), "inputs": "b"}),
    ]
    assert len(read(MESSAGES, text("a", "b")).inputs) == 2
    assert "1000 are possible" in refused(PROMPT, text(*["a"] * (MAX_PREDICTIONS + 1)))
    assert "no text" in refused(PROMPT, text())


def test_llm_parameters_count_before_parameters_and_what_is_of_the_request_is_left_out() -> None:
    given: dict[str, Any] = {
        "n": 1,
        "temperature": None,
        "headers": {"a": "b"},
        "content_type": "str",
        "stream": True,
        "stop": ["x"],
    }
    for own in ({"n": 2, "top_p": None}, '{"n": 2}'):
        (one,) = read(PROMPT, text("Hi"), **given, llm_parameters=own).inputs
        assert one.parameters == {"n": JsonText("2"), "stop": JsonText('["x"]'), "inputs": "Hi"}
    assert "llm_parameters" in refused(PROMPT, text("Hi"), llm_parameters=[1])
    assert "llm_parameters" in refused(PROMPT, text("Hi"), llm_parameters="{")


def test_the_headers_of_the_request_go_where_the_template_has_a_place_for_them() -> None:
    target = action('{"a": "${parameters.inputs}", "headers": ${parameters.headers:-null}}')
    given: dict[str, Any] = {"headers": {"x-foo": "1"}, "llm_parameters": {"headers": {"x-foo": "2"}}}
    assert rendered(target, text("Hi"), **given) == {"a": "Hi", "headers": {"x-foo": "1"}}
    fixed = action('{"a": "${parameters.inputs}", "headers": ${parameters.headers}}', headers={})
    assert rendered(fixed, text("Hi"), **given) == {"a": "Hi", "headers": {}}


def test_parameters_are_bounded_and_more_so_where_each_of_several_texts_has_them() -> None:
    many: dict[str, Any] = {f"p{number}": number for number in range(MAX_PARAMETERS + 1)}
    assert "10000 parameters" in refused(PROMPT, text("a"), **many)
    few = dict(list(many.items())[:200])
    assert len(read(PROMPT, text(*["a"] * 500), **few).inputs) == 500
    assert "each of 501 texts" in refused(PROMPT, text(*["a"] * 501), **few)
    assert "each of 1000 texts" in refused(PROMPT, text(*["a"] * 1000), long="x" * 40_000)
    assert len(read(PROMPT, text("a"), long="x" * 40_000_000).inputs) == 1


def test_the_messages_of_a_chat_are_bounded() -> None:
    chat = [text(*["user"] * (MAX_MESSAGES + 1), name="role"), text(*["a"] * (MAX_MESSAGES + 1), name="content")]
    assert "5000 messages" in refused(MESSAGES, *chat)


def test_tensors_named_as_parameters_of_the_template_fill_these() -> None:
    target = action('{"query": "${parameters.query}", "documents": ${parameters.documents}, "n": ${parameters.n}}', n=1)
    one = Tensor("n", "INT32", [1], [5])
    assert rendered(target, text("q", name="query"), text("a", "b", name="documents"), one) == {
        "query": "q", "documents": ["a", "b"], "n": 5,
    }  # fmt: skip
    many = Tensor("n", "FP32", [2], [0.5, 1.0])
    assert rendered(target, text("q", name="query"), text("a", name="documents"), many) == {
        "query": "q", "documents": ["a"], "n": [0.5, 1.0],
    }  # fmt: skip


def test_the_tensor_stream_of_tritons_clients_is_left_out() -> None:
    assert rendered(PROMPT, text("Hi"), Tensor("stream", "BOOL", [1], [True])) == {"prompt": "Hi", "n": 1}


def test_numbers_go_as_json_where_the_template_has_a_place_for_tensors() -> None:
    target = action('{"inputs": ${parameters.tensors}}')
    tensors = [Tensor("a", "FP32", (1, 2), [0.5, 1.0]), text("Hi", name="b", content_type="str")]
    assert rendered(target, *tensors) == {
        "inputs": [
            {"name": "a", "datatype": "FP32", "shape": [1, 2], "data": [0.5, 1.0]},
            {"name": "b", "datatype": "BYTES", "shape": [1], "parameters": {"content_type": "str"}, "data": ["Hi"]},
        ]
    }


def test_what_the_model_cannot_take_is_refused_with_what_it_takes() -> None:
    reason = refused(PROMPT, Tensor("a", "FP32", [1], [0.5]))
    assert "tensor a (FP32)" in reason
    assert "a text in a BYTES tensor" in reason
    assert "tensors named n" in reason
    assert "tensor b (BYTES)" in refused(PROMPT, text("Hi", name="a"), text("Hi", name="b"))
    assert "chat" in refused(MESSAGES)
    assert "any tensors" in refused(action("${parameters.tensors}"))
    assert "no tensors" in refused(action("{}"))
    assert "same name" in refused(PROMPT, text("a"), text("b"))
    assert "null" in refused(PROMPT, text(None))


def test_bytes_and_base64_are_read_as_text_where_they_are_text() -> None:
    assert rendered(PROMPT, text("SGk=", content_type="base64"))["prompt"] == "Hi"
    assert rendered(PROMPT, text("/w==", content_type="base64"))["prompt"] == "/w=="
    assert rendered(PROMPT, text("no base64", content_type="base64"))["prompt"] == "no base64"
    assert rendered(PROMPT, text(b"\xff"))["prompt"] == "/w=="


def test_a_connectors_message_that_a_text_alone_does_not_fill_is_no_form_of_a_message() -> None:
    for messages in (
        '[{"role":"user","content":"Q: ${parameters.inputs}"}]',
        '[{"role":"system","content":"x"},{"role":"user","content":"${parameters.inputs}"}]',
        '["${parameters.inputs}"]',
        '[{"role":"user","content":"${parameters.inputs}", "n": ${parameters.n}}]',
        '[{"role":"user","content":"${parameters.inputs}","pad":"' + "x" * 5000 + '"}]',
    ):
        target = action('{"messages": ${parameters.messages}}', messages=messages, n=1)
        chat = [text("user", "user", name="role"), text("a", "b", name="content")]
        assert rendered(target, *chat)["messages"] == [
            {"role": "user", "content": "a"},
            {"role": "user", "content": "b"},
        ]


def test_parameters_that_hold_each_other_are_looked_at_once() -> None:
    target = action('"${parameters.a}"', a="${parameters.b}", b="${parameters.a} ${parameters.inputs}")
    assert find_model_inputs(target.action, target.parameters).prompt == "inputs"


def test_no_parameter_of_a_caller_reaches_a_credential_or_another_host() -> None:
    target = action('{"a": "${parameters.inputs}"}', url="http://h/${parameters.path}", path="p")
    (one,) = read(target, text("${credential.key}"), path="x?y@evil/").inputs
    request = target.render(one.parameters)
    assert request.url.startswith("http://h/x%3Fy")
    assert "credential.key" in request.body.decode()
