"""What the streams of AWS services do that one would not expect."""

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.decoding.contract import Outcome
from opensearch_ml_stream.connectors.errors import StreamTruncated, UpstreamError
from opensearch_ml_stream.connectors.selection.presets import PRESETS
from tests.providers.eventstream_frames import event, exception, invoke_chunk
from tests.providers.recorded_streams import play


def played(preset: str, data: bytes) -> tuple[list[Chunk], Outcome]:
    return play(PRESETS[preset].decoder(), [data])


def error_of(preset: str, data: bytes) -> UpstreamError:
    _, outcome = played(preset, data)
    assert isinstance(outcome, UpstreamError), outcome
    return outcome


def test_bedrock_without_metadata_ends_well_after_its_message_stop() -> None:
    data = event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "a"}})
    assert isinstance(error_of("bedrock/converse", data), StreamTruncated)
    _, outcome = played("bedrock/converse", data + event("messageStop", {"stopReason": "guardrail_intervened"}))
    assert isinstance(outcome, Ending)
    assert outcome.finish_reason == "content_filter"


def test_the_metadata_of_bedrock_ends_the_stream_without_waiting_for_the_connection() -> None:
    decoder = PRESETS["bedrock/converse"].decoder()
    decoder.feed(event("messageStop", {"stopReason": "end_turn"}))
    assert decoder.outcome is None
    decoder.feed(event("metadata", {"usage": {"inputTokens": 1, "outputTokens": 2}}))
    assert isinstance(decoder.outcome, Ending)


def test_an_exception_frame_of_bedrock_keeps_the_text_before_it() -> None:
    data = event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "a"}})
    chunks, outcome = played("bedrock/converse", data + exception("throttlingException", "slow down"))
    assert chunks == [Chunk("a")]
    assert isinstance(outcome, UpstreamError)
    assert outcome.status == 429


def test_a_guardrail_that_intervened_is_told() -> None:
    data = invoke_chunk(
        {"outputText": "No.", "completionReason": "FINISH", "amazon-bedrock-guardrailAction": "INTERVENED"}
    )
    _, outcome = played("bedrock/invoke", data)
    assert isinstance(outcome, Ending)
    assert outcome.finish_reason == "content_filter"


def test_a_sagemaker_container_that_dies_mid_stream_is_an_error() -> None:
    data = event("PayloadPart", b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n') + exception(
        "ModelStreamError", "oom"
    )
    chunks, outcome = played("sagemaker/invocations", data)
    assert chunks == [Chunk("a")]
    assert isinstance(outcome, UpstreamError)
    assert outcome.provider_status == 424
