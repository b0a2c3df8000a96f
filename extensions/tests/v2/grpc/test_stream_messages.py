from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ResponseRun, TextRun, ToolCall, Usage
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.extensions.v2.grpc.inference_messages import ModelInferResponse, ModelStreamInferResponse
from opensearch_ml_stream.extensions.v2.grpc.response_messages import tensors_response
from opensearch_ml_stream.extensions.v2.grpc.stream_messages import StreamMessages, error_message
from opensearch_ml_stream.extensions.v2.protocol.messages import ResponseShape
from opensearch_ml_stream.extensions.v2.protocol.stream_events import text_tensors

TEXT = st.text(st.characters(exclude_categories=["Cs"])) | st.integers(100, 70_000).map(lambda length: "x" * length)
SHAPES = st.builds(
    ResponseShape,
    model_name=st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    model_version=st.sampled_from([None, "1"]),
    id=st.text("ab-", max_size=40),
    output=st.sampled_from(["output", "text"]),
    is_chat=st.booleans(),
)


def run_of(texts: list[str]) -> TextRun:
    return TextRun(TextRun.SEPARATOR.join(orjson.dumps(text)[1:-1] for text in texts))


def response_of(message: bytes, *, is_triton: bool) -> Any:
    """What a client of either form reads."""
    if not is_triton:
        return ModelInferResponse.FromString(message)
    read = ModelStreamInferResponse.FromString(message)
    assert not read.error_message
    final = read.infer_response.parameters["triton_final_response"].bool_param
    del read.infer_response.parameters["triton_final_response"]
    assert final == bool(read.infer_response.parameters)
    return read.infer_response


@given(SHAPES, st.lists(TEXT, min_size=1, max_size=3), st.booleans(), st.booleans(), st.booleans())
def test_a_message_of_text_is_what_protobuf_would_write(
    shape: ResponseShape, texts: list[str], is_raw: bool, is_triton: bool, as_run: bool
) -> None:
    encoder = StreamMessages(shape, is_raw=is_raw, is_triton=is_triton)
    texts = [text for text in texts if text] or ["x"]
    written = encoder.chunks(run_of(texts) if as_run else [Chunk(text) for text in texts])
    expected = [tensors_response(shape, text_tensors(shape, text), {}, is_raw=is_raw) for text in texts]
    assert [response_of(message, is_triton=is_triton) for message in written] == expected


@pytest.mark.parametrize("is_triton", [False, True])
@pytest.mark.parametrize("chunks", [[Chunk("a"), Chunk("b")], run_of(["a", "b"])], ids=["chunks", "run"])
def test_the_last_text_tells_the_ending_by_dotted_names(chunks: Any, is_triton: bool) -> None:
    encoder = StreamMessages(ResponseShape("m", None, "1"), is_raw=False, is_triton=is_triton)
    first, last = encoder.last(chunks, Ending("length", usage=Usage(3, 4)), {"model_id": "m1"})
    assert response_of(first, is_triton=is_triton).outputs[0].contents.bytes_contents[0] == b"a"
    response = response_of(last, is_triton=is_triton)
    assert response.outputs[0].contents.bytes_contents[0] == b"b"
    assert response.parameters["finish_reason"].string_param == "length"
    assert response.parameters["usage.total_tokens"].int64_param == 7
    assert response.parameters["model_id"].string_param == "m1"


def test_an_ending_alone_is_a_response_without_text() -> None:
    encoder = StreamMessages(ResponseShape("m", None, "1"), is_raw=False, is_triton=False)
    (only,) = encoder.last([], Ending(), {})
    assert ModelInferResponse.FromString(only).outputs[0].contents.bytes_contents[0] == b""


@pytest.mark.parametrize("is_raw", [False, True])
def test_reasoning_and_tool_calls_are_tensors_of_their_own(is_raw: bool) -> None:
    encoder = StreamMessages(ResponseShape("m", None, "1"), is_raw=is_raw, is_triton=False)
    (message,) = encoder.chunks([Chunk("", "why", (ToolCall(0, "c1", "f", "{}"),))])
    response = ModelInferResponse.FromString(message)
    assert [output.name for output in response.outputs] == ["output", "reasoning", "tool_calls"]
    if is_raw:
        assert response.raw_output_contents[1] == b"\3\0\0\0why"
    else:
        assert response.outputs[1].contents.bytes_contents[0] == b"why"
        assert orjson.loads(response.outputs[2].contents.bytes_contents[0])["name"] == "f"


def test_an_error_in_tritons_form_says_to_which_request_it_belongs() -> None:
    read = ModelStreamInferResponse.FromString(error_message(ResponseShape("m", None, "1"), "failed"))
    assert (read.error_message, read.infer_response.id) == ("failed", "1")
    assert read.infer_response.parameters["triton_final_response"].bool_param
    assert ModelStreamInferResponse.FromString(error_message(None, "failed")).error_message == "failed"


def own_response(**parameters: Any) -> bytes:
    """A runtime's response of a text and two numbers."""
    outputs = [
        {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["Hi"], "parameters": {"content_type": "str"}},
        {"name": "n", "shape": [1, 2], "datatype": "INT64", "data": [[1, 2]]},
    ]
    return orjson.dumps(
        {"model_name": "own", "model_version": "v2", "id": "1", "parameters": parameters, "outputs": outputs}
    )


OWN = ResponseShape("m", None, "7", is_local=True)
OWN_RUN = ResponseRun(own_response(k="v", headers={"x": "y"}) + b"\0" + own_response(finish_reason="stop"))


@pytest.mark.parametrize("is_raw", [False, True])
def test_a_runtimes_responses_are_its_own_and_no_end_is_added(is_raw: bool) -> None:
    encoder = StreamMessages(OWN, is_raw=is_raw, is_triton=False)
    first, second = map(ModelInferResponse.FromString, encoder.chunks(OWN_RUN))
    assert (first.model_name, first.model_version, first.id) == ("own", "v2", "1")
    assert [(one.name, one.datatype, list(one.shape)) for one in first.outputs] == [
        ("text", "BYTES", [1]),
        ("n", "INT64", [1, 2]),
    ]
    assert {name: value.string_param for name, value in first.parameters.items()} == {"k": "v"}
    assert second.parameters["finish_reason"].string_param == "stop"
    if is_raw:
        assert list(first.raw_output_contents) == [
            b"\x02\0\0\0Hi",
            (1).to_bytes(8, "little") + (2).to_bytes(8, "little"),
        ]
    else:
        assert list(first.outputs[1].contents.int64_contents) == [1, 2]
    assert encoder.last([], Ending(), {}) == []
    assert encoder.last(OWN_RUN, Ending(), {}) == encoder.chunks(OWN_RUN)


def test_in_tritons_form_a_message_without_outputs_is_the_final_one() -> None:
    encoder = StreamMessages(OWN, is_raw=False, is_triton=True)
    messages = [ModelStreamInferResponse.FromString(one).infer_response for one in encoder.last(OWN_RUN, Ending(), {})]
    assert [one.parameters["triton_final_response"].bool_param for one in messages] == [False, False, True]
    assert [len(one.outputs) for one in messages] == [2, 2, 0]


@pytest.mark.parametrize("chunks", [[], [Chunk("a"), Chunk("b")], run_of(["a", "b"])], ids=["none", "chunks", "run"])
def test_who_asks_for_an_empty_final_response_finds_all_text_before_it(chunks: Any) -> None:
    shape = ResponseShape("m", None, "1")
    encoder = StreamMessages(shape, is_raw=True, is_triton=True, has_empty_final=True)
    messages = encoder.last(chunks, Ending("length", usage=Usage(3, 4)), {})
    *before, final = [ModelStreamInferResponse.FromString(one).infer_response for one in messages]
    assert [one.raw_output_contents[0][4:] for one in before] == ([b"a", b"b"] if chunks else [])
    assert not any(one.parameters["triton_final_response"].bool_param for one in before)
    assert (final.id, len(final.outputs), len(final.raw_output_contents)) == ("1", 0, 0)
    assert final.parameters["triton_final_response"].bool_param
    assert final.parameters["finish_reason"].string_param == "length"
    assert final.parameters["usage.total_tokens"].int64_param == 7


def test_the_final_response_of_a_runtime_does_not_tell_its_end_again() -> None:
    encoder = StreamMessages(OWN, is_raw=False, is_triton=True, has_empty_final=True)
    messages = [ModelStreamInferResponse.FromString(one).infer_response for one in encoder.last(OWN_RUN, Ending(), {})]
    assert [len(one.outputs) for one in messages] == [2, 2, 0]
    assert dict(messages[-1].parameters).keys() == {"triton_final_response"}


def test_what_only_this_server_knows_of_a_runtimes_end_is_told() -> None:
    encoder = StreamMessages(OWN, is_raw=False, is_triton=False)
    encoder.chunks(OWN_RUN)
    (only,) = map(ModelInferResponse.FromString, encoder.last([], Ending(), {"model_id": "x"}))
    assert only.parameters["model_id"].string_param == "x"
    (refused,) = encoder.last([], Ending("content_filter", guardrail="a pattern"), {})
    assert ModelInferResponse.FromString(refused).parameters["guardrail"].string_param == "a pattern"


def test_text_that_a_guardrail_held_has_its_end_told_as_any_models() -> None:
    own = StreamMessages(OWN, is_raw=False, is_triton=False)
    any_model = StreamMessages(ResponseShape("m", None, "7"), is_raw=False, is_triton=False)
    assert own.chunks([Chunk("a")]) == any_model.chunks([Chunk("a")])
    assert own.last([], Ending(), {}) == any_model.last([], Ending(), {}) != []


def test_responses_in_the_place_of_a_remote_models_have_its_names() -> None:
    encoder = StreamMessages(ResponseShape("remote", None, "7"), is_raw=False, is_triton=False)
    (message,) = map(ModelInferResponse.FromString, encoder.chunks(ResponseRun(own_response())))
    assert (message.model_name, message.id) == ("remote", "7")
    assert [one.name for one in message.outputs] == ["output", "n"]


@pytest.mark.parametrize("is_raw", [False, True])
@pytest.mark.parametrize("data", [["x"], [1.5], [2**64 - 1]])
def test_data_of_another_type_than_its_tensors_is_the_models_fault(data: list[Any], is_raw: bool) -> None:
    tensor = {"name": "n", "shape": [1], "datatype": "INT64", "data": data}
    run = ResponseRun(orjson.dumps({"outputs": [tensor]}))
    encoder = StreamMessages(OWN, is_raw=is_raw, is_triton=False)
    with pytest.raises(UpstreamError):
        encoder.chunks(run)
