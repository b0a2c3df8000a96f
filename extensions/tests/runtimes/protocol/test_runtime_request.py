"""The V2 request that a runtime gets of the parameters of a predict request."""

from base64 import b64encode
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.guardrails.payload_texts import payload_texts
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText, to_parameter
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_request import MAX_MESSAGES, readable_body, request_body

STRING = {"content_type": "str"}


def requested(**parameters: Any) -> Any:
    """The request of parameters as a caller sends them: strings, or any JSON."""
    return orjson.loads(request_body({name: to_parameter(value) for name, value in parameters.items()}))


def tensor(name: str, *texts: str) -> dict[str, Any]:
    return {"name": name, "shape": [len(texts)], "datatype": "BYTES", "parameters": STRING, "data": list(texts)}


@pytest.mark.parametrize("name", ["inputs", "prompt"])
@pytest.mark.parametrize("text", ["", "Hi", '{"a": 1}', "[1, 2]", "7", "null", 'quote " and \\', "é😀\n"])
def test_a_text_is_one_tensor_named_as_the_parameter(name: str, text: str) -> None:
    assert requested(**{name: text}) == {"inputs": [tensor(name, text)]}


def test_several_texts_are_one_tensor() -> None:
    assert requested(prompt=["a", "b"]) == {"inputs": [tensor("prompt", "a", "b")]}


@pytest.mark.parametrize("as_text", [False, True])
def test_tensors_pass_as_they_are(as_text: bool) -> None:
    tensors = [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [[0.5, 2]], "parameters": {"a": None}}]
    given = orjson.dumps(tensors).decode() if as_text else tensors
    assert requested(inputs=given, n=1) == {"inputs": tensors, "parameters": {"n": 1}}


@pytest.mark.parametrize("wrong", [7, True, {"name": "x"}, [], [1], ["a", 1], [{"name": "x"}]])
def test_other_inputs_are_refused(wrong: object) -> None:
    with pytest.raises(InvalidRequest, match=r"inputs must be a text, or an array of texts, or an array of tensors"):
        requested(inputs=wrong)


def test_a_chat_is_tensors_of_roles_and_contents() -> None:
    messages = [{"role": "system", "content": "Be short"}, {"role": "user", "content": "Hi"}]
    assert requested(messages=messages) == {
        "inputs": [tensor("role", "system", "user"), tensor("content", "Be short", "Hi")]
    }
    assert requested(messages=orjson.dumps(messages).decode()) == requested(messages=messages)


def test_what_else_messages_have_are_tensors_too() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    image = {"type": "image_url", "image_url": {"url": "https://i"}}
    found = requested(
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "what?"}, image]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": "7", "tool_call_id": "1"},
        ]
    )
    columns = {one["name"]: one["data"] for one in found["inputs"]}
    assert columns["role"] == ["user", "assistant", "tool"]
    assert [orjson.loads(columns["content"][0]), *columns["content"][1:]] == [["what?", image], "", "7"]
    assert columns["type"] == ['["text","image_url"]', "text", "text"]
    assert [orjson.loads(cell) if cell else None for cell in columns["tool_calls"]] == [None, [call], None]
    assert columns["tool_call_id"] == ["", "", "1"]
    assert "name" not in columns
    assert all(one["shape"] == [3] for one in found["inputs"])


@pytest.mark.parametrize("wrong", ["Hi", 1, [], ["Hi"], [{"content": "Hi"}], [{"role": 1}]])
def test_what_is_no_chat_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidRequest, match="messages"):
        requested(messages=wrong)


def test_a_chat_has_so_many_messages_at_most() -> None:
    message = {"role": "user", "content": "Hi"}
    assert len(requested(messages=[message] * MAX_MESSAGES)["inputs"][0]["data"]) == MAX_MESSAGES
    with pytest.raises(InvalidRequest, match=f"may have {MAX_MESSAGES} messages"):
        requested(messages=[message] * (MAX_MESSAGES + 1))


def test_texts_to_embed_and_a_query_to_rank_them_by_are_tensors() -> None:
    assert requested(text_docs=["a", "b"]) == {"inputs": [tensor("text_docs", "a", "b")]}
    assert requested(text_docs=["a"], query_text="q") == {
        "inputs": [tensor("text_docs", "a"), tensor("query_text", "q")]
    }


def test_a_question_is_a_tensor_where_there_is_nothing_else_for_one() -> None:
    assert requested(question="q", context="c") == {"inputs": [tensor("question", "q"), tensor("context", "c")]}
    assert requested(prompt="p", question="q", context="c") == {
        "inputs": [tensor("prompt", "p")],
        "parameters": {"question": "q", "context": "c"},
    }


def test_all_others_are_parameters_as_the_json_that_they_are() -> None:
    given = {"temperature": 0.5, "n": 2, "echo": True, "stop": ["a"], "schema": {"a": {}}, "user": "me"}
    assert requested(prompt="p", **given)["parameters"] == given
    texts = {name: value if name == "user" else orjson.dumps(value).decode() for name, value in given.items()}
    assert requested(prompt="p", **texts)["parameters"] == given
    assert requested(prompt="p", name='"quoted"', none="null")["parameters"] == {"name": '"quoted"', "none": "null"}


def test_null_is_absent_and_what_is_for_this_server_stays_here() -> None:
    ours = {"_llm_interface": "x", "stream": True, "response_filter": "$", "output_processors": "[]"}
    assert requested(prompt="p", inputs=None, top_k=None, **ours) == {"inputs": [tensor("prompt", "p")]}


@pytest.mark.parametrize("text", ['{"inputs": [], "id": "ü"}', ' {"outputs":[1.0]} '])
def test_a_whole_request_passes_as_it_is(text: str) -> None:
    assert request_body({"inference_request": text, "prompt": "p", "inputs": "["}) == text.encode()
    assert request_body({"inference_request": JsonText(text)}) == text.encode()


@pytest.mark.parametrize("text", ["", "Hi", "[]", "{", "{}{}", JsonText("[]"), JsonText("7")])
def test_what_is_no_object_is_no_request(text: str) -> None:
    with pytest.raises(InvalidRequest, match="inference_request must be a JSON object"):
        request_body({"inference_request": text})


@pytest.mark.parametrize("parameters", [{}, {"temperature": "1"}, {"query_text": "q"}, {"context": "c"}])
def test_without_anything_for_a_tensor_it_says_what_the_runtime_takes(parameters: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest, match="it takes inputs, prompt, messages, text_docs or inference_request"):
        request_body(parameters)


@given(
    st.dictionaries(st.sampled_from(["inputs", "prompt", "messages", "text_docs", "x", "inference_request"]), st.text())
)
def test_any_texts_make_a_request_or_are_refused(parameters: dict[str, str]) -> None:
    try:
        body = request_body(parameters)
    except InvalidRequest:
        return
    assert isinstance(orjson.loads(body), dict)


def test_a_guardrail_reads_what_stands_in_base64() -> None:
    hidden = b64encode("a bomb, é".encode()).decode()
    data: list[Any] = [[hidden], "plain", 7, b64encode(b"\xff\xfe").decode(), ""]
    body = orjson.dumps({"inputs": [{"datatype": "BYTES", "data": data}, {"datatype": "FP32", "data": ["aGk="]}]})
    assert "a bomb, é" in payload_texts(readable_body(body))
    assert "hi" not in list(payload_texts(readable_body(body)))


@pytest.mark.parametrize("body", [b"{}", b'{"inputs":[{"datatype":"BYTES","data":["a b"]}]}', b"[", b'{"inputs":[7]}'])
def test_a_guardrail_reads_the_body_where_nothing_is_hidden(body: bytes) -> None:
    assert readable_body(body) == body.decode()
