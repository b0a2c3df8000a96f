"""The V2 request that a runtime gets of the parameters of a predict request."""

from base64 import b64encode
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.guardrails.payload_texts import payload_texts
from opensearch_ml_stream.connectors.predict.inputs import (
    PredictInput,
    QuestionAnsweringInput,
    RemoteInput,
    TextDocsInput,
    TextSimilarityInput,
)
from opensearch_ml_stream.connectors.predict.pre_process import STEP_SIZE
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText, to_parameter
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_request import (
    MAX_MESSAGES,
    RuntimeAction,
    inference_parameters,
    predict_steps,
    readable_body,
    request_body,
)
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_stream import RUNTIME_STREAM
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_urls import runtime_url
from opensearch_ml_stream.extensions.v2.protocol.json_requests import read_request
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceRequest, RequestedOutput, Tensor

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


TENSOR = {
    "name": "x",
    "shape": [2, 1],
    "datatype": "BYTES",
    "data": [["a"], ["b"]],
    "parameters": {"content_type": "str"},
}


def sent(request: InferenceRequest) -> Any:
    """What the runtime gets."""
    return orjson.loads(request_body(inference_parameters(request, "7", has_fallbacks=False)))


def beside(*tensors: Tensor, **parameters: Any) -> dict[str, str]:
    """What is there for fallback models."""
    found = inference_parameters(InferenceRequest(tensors, parameters=parameters), "7", has_fallbacks=True)
    del found["inference_request"]
    return found


def strings(name: str, *texts: str | bytes) -> Tensor:
    return Tensor(name, "BYTES", [len(texts)], texts)


def test_a_request_in_json_reaches_the_runtime_as_it_was_written() -> None:
    body = {"inputs": [TENSOR], "outputs": [{"name": "o", "parameters": {"a": 1}}], "parameters": {"k": {"l": [1.5]}}}
    request, _ = read_request(orjson.dumps({**body, "id": "mine"}))
    assert sent(request) == {"id": "7", **body}


def test_a_text_of_the_generate_extension_is_a_tensor() -> None:
    request, _ = read_request(b'{"text_input": "Hi", "temperature": 0.5}')
    tensor = {"name": "text_input", "shape": [1], "datatype": "BYTES", "data": ["Hi"]}
    assert sent(request) == {"id": "7", "parameters": {"temperature": 0.5}, "inputs": [tensor]}


def test_a_request_that_was_no_json_becomes_json() -> None:
    numbers = Tensor("n", "FP32", (2,), (0.5, 1.5), {"content_type": "np"})
    request = InferenceRequest([numbers, strings("b", b"\xff")], outputs=(RequestedOutput("o"),))
    assert sent(request) == {
        "id": "7",
        "inputs": [
            {"name": "n", "shape": [2], "datatype": "FP32", "parameters": {"content_type": "np"}, "data": [0.5, 1.5]},
            {
                "name": "b",
                "shape": [1],
                "datatype": "BYTES",
                "parameters": {"content_type": "base64"},
                "data": ["/w=="],
            },
        ],
        "outputs": [{"name": "o"}],
    }


def test_a_fallback_model_finds_the_text_under_every_name_that_blueprints_have_for_it() -> None:
    text = {"inputs": "Hi", "prompt": "Hi", "question": "Hi"}
    assert beside(strings("x", "Hi"), temperature=0.5, headers={"host": "h"}) == {**text, "temperature": "0.5"}


def test_a_fallback_model_finds_the_chat() -> None:
    one = beside(strings("role", "user"), strings("content", "Hi"))
    assert one == {
        "messages": '[{"role":"user","content":"Hi"}]',
        **dict.fromkeys(("inputs", "prompt", "question"), "Hi"),
    }
    two = beside(strings("role", "system", "user"), strings("content", "Be short", "Hi"))
    assert list(two) == ["messages"]


def test_what_no_text_or_chat_is_made_of_is_the_runtimes_alone() -> None:
    assert beside(Tensor("n", "FP32", [1], [1])) == {}
    assert beside(strings("x", "a", "b")) == {}
    assert beside(strings("role", "user"), strings("content", "a", "b")) == {}


ACTION = Action("PREDICT", "POST", runtime_url("a b"), request_body='{"inputs": ${parameters.inputs}}')


def calls(predict_input: PredictInput, **connector: str) -> list[dict[str, list[Any]]]:
    """The tensors of each call that an input leads to, by name."""
    steps = predict_steps(connector, predict_input)
    bodies = [orjson.loads(RuntimeAction(ACTION, connector).render(step.parameters).body) for step in steps]
    return [{tensor["name"]: tensor["data"] for tensor in body["inputs"]} for body in bodies]


def test_a_prediction_calls_predict_and_a_stream_predict_stream() -> None:
    action = RuntimeAction(ACTION, {})
    whole, stream = action.render({"prompt": "p"}), action.render({"prompt": "p"}, RUNTIME_STREAM)
    assert (whole.method, whole.url) == ("POST", "runtime://a%20b/predict")
    assert stream.url == "runtime://a%20b/predict_stream"
    assert whole.body == stream.body
    assert whole.headers == {}


def test_the_connectors_parameters_stand_under_the_requests() -> None:
    action = RuntimeAction(ACTION, {"temperature": "0.5", "n": "1"})
    assert orjson.loads(action.render({"prompt": "p", "n": "2"}).body)["parameters"] == {"temperature": 0.5, "n": 2}


@pytest.mark.parametrize(
    ("predict_input", "tensors"),
    [
        (RemoteInput({"prompt": "p"}), {"prompt": ["p"]}),
        (TextDocsInput(("a", "b")), {"text_docs": ["a", "b"]}),
        (TextSimilarityInput("q", ("a", "b")), {"text_docs": ["a", "b"], "query_text": ["q"]}),
        (QuestionAnsweringInput("q", "c"), {"question": ["q"], "context": ["c"]}),
    ],
)
def test_every_kind_of_input_becomes_tensors(predict_input: PredictInput, tensors: dict[str, list[str]]) -> None:
    assert calls(predict_input) == [tensors]


def test_texts_are_divided_as_the_connector_says() -> None:
    with_one = RuntimeAction(ACTION, {STEP_SIZE: "1"}).render({"prompt": "p"})
    assert "parameters" not in orjson.loads(with_one.body)
    divided = calls(TextDocsInput(("a", "b", "c")), **{STEP_SIZE: "2"})
    assert divided == [{"text_docs": ["a", "b"]}, {"text_docs": ["c"]}]
