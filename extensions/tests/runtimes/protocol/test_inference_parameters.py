"""What a prediction of a runtime gets of a V2 request: the request, and what fallback models can take of it."""

from typing import Any

import orjson

from opensearch_ml_stream.extensions.runtimes.protocol.runtime_request import inference_parameters, request_body
from opensearch_ml_stream.extensions.v2.protocol.json_requests import read_request
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceRequest, RequestedOutput, Tensor

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
