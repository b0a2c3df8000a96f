"""What the streams of AWS services do that one would not expect."""

from collections.abc import Callable

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.decoding.contract import MAX_EVENT_VALUES
from opensearch_ml_stream.connectors.errors import StreamTruncated, UnreadableEvent, UpstreamError
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from tests.providers.eventstream_frames import event, exception, invoke_chunk
from tests.providers.stream_bodies import decode, error_of


def test_bedrock_without_metadata_ends_well_after_its_message_stop() -> None:
    data = event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "a"}})
    assert isinstance(error_of("bedrock/converse", data), StreamTruncated)
    _, outcome = decode("bedrock/converse", data + event("messageStop", {"stopReason": "guardrail_intervened"}))
    assert isinstance(outcome, Ending)
    assert outcome.finish_reason == "content_filter"


def test_the_metadata_of_bedrock_ends_the_stream_without_waiting_for_the_connection() -> None:
    decoder = SHIPPED.presets["bedrock/converse"].decoder()
    decoder.feed(event("messageStop", {"stopReason": "end_turn"}))
    assert decoder.outcome is None
    decoder.feed(event("metadata", {"usage": {"inputTokens": 1, "outputTokens": 2}}))
    assert isinstance(decoder.outcome, Ending)


def test_an_exception_frame_of_bedrock_keeps_the_text_before_it() -> None:
    data = event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "a"}})
    chunks, outcome = decode("bedrock/converse", data + exception("throttlingException", "slow down"))
    assert chunks == [Chunk("a")]
    assert isinstance(outcome, UpstreamError)
    assert outcome.status == 429


def test_a_guardrail_that_intervened_is_the_finish_reason() -> None:
    data = invoke_chunk(
        {"outputText": "No.", "completionReason": "FINISH", "amazon-bedrock-guardrailAction": "INTERVENED"}
    )
    _, outcome = decode("bedrock/invoke", data)
    assert isinstance(outcome, Ending)
    assert outcome.finish_reason == "content_filter"


def test_a_sagemaker_container_that_dies_mid_stream_is_an_error() -> None:
    data = event("PayloadPart", b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n') + exception(
        "ModelStreamError", "oom"
    )
    chunks, outcome = decode("sagemaker/invocations", data)
    assert chunks == [Chunk("a")]
    assert isinstance(outcome, UpstreamError)
    assert outcome.provider_status == 424


def test_a_block_of_bedrock_that_is_no_tool_is_no_tool_call() -> None:
    data = b"".join([
        event("contentBlockStart", {"contentBlockIndex": 0, "start": {}}),
        event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"toolUse": {"input": "{}"}}}),
        event("messageStop", {"stopReason": "end_turn"}),
    ])  # fmt: skip
    assert decode("bedrock/converse", data) == ([], Ending("stop", "end_turn"))


def test_an_error_in_an_event_of_a_bedrock_model_is_the_outcome() -> None:
    data = invoke_chunk({"generation": "a"}) + invoke_chunk({"generation": "", "error": "worn out"})
    assert error_of("bedrock/invoke", data).reason == "Error from remote service: worn out"


def test_counts_of_a_bedrock_model_that_come_one_by_one_are_kept() -> None:
    data = b"".join([
        invoke_chunk({"generation": "a", "prompt_token_count": 5, "generation_token_count": 1}),
        invoke_chunk({"generation": "b", "prompt_token_count": None, "generation_token_count": 2}),
        invoke_chunk({"generation": "", "prompt_token_count": 6, "stop_reason": "stop"}),
    ])  # fmt: skip
    assert decode("bedrock/invoke", data)[1] == Ending("stop", "stop", Usage(6, 2))


def test_other_frames_of_aws_are_passed_over() -> None:
    titan = {"outputText": "a", "completionReason": "FINISH"}
    data = event("keepAlive", {}) + invoke_chunk(titan)
    assert decode("bedrock/invoke", data) == ([Chunk("a")], Ending("stop", "FINISH"))
    ollama = b'{"response":"a","done":true,"done_reason":"stop"}\n'
    data = event("keepAlive", b"x") + event("PayloadPart", ollama)
    assert decode("sagemaker/invocations", data) == ([Chunk("a")], Ending("stop", "stop"))


@pytest.mark.parametrize(
    ("preset", "frame"),
    [
        ("bedrock/invoke", lambda text: invoke_chunk(b'{"generation":"%b","x":NaN}' % text)),
        ("bedrock/converse", lambda text: event("contentBlockDelta", b'{"delta":{"text":"%b"},"x":NaN}' % text)),
        ("sagemaker/invocations", lambda text: event("PayloadPart", b'{"generation":"%b","x":NaN}\n' % text)),
    ],
)
def test_what_is_not_quite_json_in_a_frame_is_read_as_it_is_meant(preset: str, frame: Callable[[bytes], bytes]) -> None:
    data = b"".join(map(frame, (b"a\xff", rb"\ud83d", rb"\ude00b", rb"\ud83d", b"c")))
    chunks, _ = decode(preset, data)
    assert chunks == [Chunk("a\ufffd"), Chunk("\U0001f600b"), Chunk("\ufffd"), Chunk("c")]


@pytest.mark.parametrize("payload", [{}, {"bytes": 7}, {"bytes": "!"}, []])
def test_a_chunk_without_an_event_of_the_model_is_an_error(payload: object) -> None:
    data = invoke_chunk({"generation": "a"}) + event("chunk", payload) + invoke_chunk({"generation": "b"})
    chunks, outcome = decode("bedrock/invoke", data)
    assert (chunks, type(outcome)) == ([Chunk("a")], UnreadableEvent)


def test_the_values_in_an_event_of_the_model_count() -> None:
    too_many = b'{"generation":"b","x":[%b0]}' % (b"0," * 2 * MAX_EVENT_VALUES)
    assert "values" in error_of("bedrock/invoke", invoke_chunk(too_many)).reason
