"""Streams of runtimes: responses go on as they came, however their bytes are cut, and the last one tells the end."""

from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.chunks import Chunks, Ending, ResponseRun, Usage
from opensearch_ml_stream.connectors.decoding.contract import Outcome
from opensearch_ml_stream.connectors.errors import StreamTruncated, UpstreamError
from opensearch_ml_stream.connectors.syntax.jsontext import MAX_DEPTH
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_stream import (
    CONTAINER,
    MAX_VALUES,
    RUNTIME_STREAM,
    RuntimeDecoder,
)
from opensearch_ml_stream.runtimes.frames import MAX_PAYLOAD


def response(text: str = "Hi", **members: Any) -> bytes:
    output = {"name": "output", "shape": [1], "datatype": "BYTES", "data": [text]}
    return orjson.dumps({"model_name": "m", "id": "1", "outputs": [output], **members})


def decoded(*reads: bytes, closed: bool = True) -> tuple[list[bytes], RuntimeDecoder]:
    """The responses of all reads, and the decoder after them."""
    decoder = RUNTIME_STREAM.decoder()
    parts: list[Chunks] = [decoder.feed(read) for read in reads]
    if closed:
        parts.append(decoder.close())
    responses = [one for part in parts if isinstance(part, ResponseRun) for one in part.to_responses()]
    assert decoder.chunk_count == len(responses)
    assert decoder.is_ending is (decoder.outcome is not None)
    return responses, decoder


def outcome(*responses: bytes) -> Outcome | None:
    return decoded(b"".join(one + b"\0" for one in responses))[1].outcome


@given(st.data(), st.lists(st.sampled_from([response(), response("ü\0😀"), response("", parameters={"a": [1]})])))
def test_the_same_responses_come_of_every_cut(data: st.DataObject, sent: list[bytes]) -> None:
    body = b"".join(one + b"\0" for one in sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)))))
    reads = [body[start:end] for start, end in pairwise([0, *cuts, len(body)])]
    found, decoder = decoded(*reads)
    assert found == sent
    assert decoder.outcome == Ending(model="m" if sent else None)


def test_a_response_comes_as_soon_as_it_is_whole() -> None:
    whole = response()
    decoder = RuntimeDecoder()
    assert decoder.feed(whole) == []
    assert decoder.feed(b"\0" + whole[:5]) == ResponseRun(whole)
    assert decoder.feed(whole[5:] + b"\0") == ResponseRun(whole)
    assert decoder.outcome is None


def test_the_last_response_tells_how_the_stream_ended() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "cached_tokens": 1}
    last = response(parameters={"finish_reason": "max_tokens", "usage": usage})
    assert outcome(response(), last) == Ending("length", "max_tokens", Usage(3, 4, None, 1), "m")
    assert outcome(last, response()) == Ending(model="m")


@pytest.mark.parametrize(
    "parameters", [None, [], {"usage": 7, "finish_reason": 7}, {"usage": {}}, {"finish_reason": None}]
)
def test_parameters_that_tell_nothing_are_a_good_end(parameters: object) -> None:
    assert outcome(response(parameters=parameters)) == Ending(model="m")


def test_a_body_that_ends_within_a_response_is_truncated() -> None:
    found, decoder = decoded(response() + b"\0" + response()[:9])
    assert found == [response()]
    assert isinstance(decoder.outcome, StreamTruncated)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (b"", "not JSON"),
        (b'{"outputs":[', "not JSON"),
        (b'{"outputs":[NaN]}', "not JSON"),
        (b'{"outputs":[{"data":' + b"[" * (MAX_DEPTH + 9) + b"]" * (MAX_DEPTH + 9) + b"}]}", "nested too deeply"),
        (b"[]", "not a JSON object"),
        (b"{}", "without an array of outputs"),
        (b'{"outputs":{}}', "without an array of outputs"),
        (b'{"outputs":[7]}', "without an array of outputs"),
        (b'{"error":"the model has no memory left"}', "the model has no memory left"),
        (b'{"outputs":[{"data":[' + b"0," * MAX_VALUES + b"0]}]}", f"more than {MAX_VALUES} values"),
        (b'{"outputs":[{"data":[' + b"[]," * (MAX_VALUES // CONTAINER) + b"0]}]}", "an array or object counts as 75"),
        (b'{"outputs":[{"data":["' + b"a" * MAX_PAYLOAD + b'"]}]}', f"more than {MAX_PAYLOAD} bytes"),
    ],
    ids=[
        "empty",
        "cut",
        "NaN",
        "deep",
        "array",
        "no outputs",
        "object",
        "number",
        "error",
        "values",
        "arrays",
        "bytes",
    ],
)
def test_what_is_no_response_ends_the_stream_after_those_before_it(wrong: bytes, reason: str) -> None:
    for reads in ([response() + b"\0" + wrong + b"\0" + response() + b"\0"], [response() + b"\0", wrong + b"\0"]):
        found, decoder = decoded(*reads)
        assert found == [response()]
        assert isinstance(decoder.outcome, UpstreamError)
        assert reason in decoder.outcome.reason
        assert decoder.feed(response() + b"\0") == []


@pytest.mark.parametrize(
    "data",
    [["a" * 5_000_000], [0] * 3_000_000, [0.5] * 1_500_000, ["{[,]}" * 2_000_000]],
    ids=["image", "mask", "tensor", "text"],
)
def test_a_response_may_be_as_large_as_an_image_or_a_tensor(data: list[Any]) -> None:
    large = response(outputs=[{"name": "output", "shape": [len(data)], "datatype": "X", "data": data}])
    assert decoded(large + b"\0")[0] == [large]


def test_a_response_that_never_ends_is_not_kept() -> None:
    decoder = RuntimeDecoder()
    for _ in range(MAX_PAYLOAD // 65_536 + 1):
        assert decoder.feed(b'"' * 65_536) == []
    assert isinstance(decoder.outcome, UpstreamError)
