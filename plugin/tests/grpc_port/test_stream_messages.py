from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, TextRun, ToolCall, Usage
from opensearch_ml_stream.connectors.v2.messages import ResponseShape
from opensearch_ml_stream.connectors.v2.stream_formats import text_tensors
from opensearch_ml_stream.plugin.grpc_port.messages import ModelInferResponse, ModelStreamInferResponse
from opensearch_ml_stream.plugin.grpc_port.response_messages import tensors_response
from opensearch_ml_stream.plugin.grpc_port.stream_messages import StreamMessages, error_message

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
    first, last = encoder.last(chunks, Ending("length", usage=Usage(3, 4)), {"skipped_events": 1})
    assert response_of(first, is_triton=is_triton).outputs[0].contents.bytes_contents[0] == b"a"
    response = response_of(last, is_triton=is_triton)
    assert response.outputs[0].contents.bytes_contents[0] == b"b"
    assert response.parameters["finish_reason"].string_param == "length"
    assert response.parameters["usage.total_tokens"].int64_param == 7
    assert response.parameters["skipped_events"].int64_param == 1


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
    assert ModelStreamInferResponse.FromString(error_message(None, "failed")).error_message == "failed"
