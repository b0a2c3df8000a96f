"""Model servers (Ollama, TGI, v2 protocol and others): events that one would not expect."""

import json

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.errors import StreamTruncated, UnreadableEvent
from tests.providers.stream_bodies import decode, error_of, ndjson, sse

TGI = "huggingface/generate_stream"


def test_an_error_line_of_ollama_under_status_200_is_an_error() -> None:
    data = ndjson({"model": "m", "message": {"content": "a"}, "done": False}, {"error": "model runner has stopped"})
    assert error_of("ollama/api/chat", data).reason == "Error from remote service: model runner has stopped"


@pytest.mark.parametrize(("kind", "status"), [("overloaded", 429), ("validation", 400), ("generation", 424)])
def test_an_error_of_tgi_is_an_error_also_as_first_event(kind: str, status: int) -> None:
    token = {"token": {"text": "a", "special": False}, "generated_text": None}
    for before in ([], [token]):
        error = error_of(TGI, sse(*before, {"error": "Model is overloaded", "error_type": kind}))
        assert (error.status, error.reason) == (status, "Error from remote service: Model is overloaded")


def test_an_error_event_of_the_v2_protocol_is_an_error() -> None:
    data = sse({"text_output": "a"}, {"error": "out of memory"})
    assert error_of("v2/models/infer_stream", data).reason == "Error from remote service: out of memory"


def test_an_empty_v2_stream_is_an_empty_response() -> None:
    assert decode("v2/models/infer_stream", b"") == ([], Ending())


def test_a_cumulative_text_that_is_rewritten_is_an_error() -> None:
    data = sse({"text": "The cat"}, {"text": "A dog"}, {"text": "A dog sat"}, "[DONE]")
    chunks, outcome = decode("text/cumulative", data)
    assert (chunks, type(outcome)) == ([Chunk("The cat")], UnreadableEvent)


def test_the_list_of_vllms_demonstration_server_is_read() -> None:
    assert decode(TGI, sse({"text": ["a"]}, {"text": ["ab"]}, "[DONE]"))[0] == [Chunk("a"), Chunk("b")]


def test_an_error_of_a_server_that_repeats_its_text_is_the_outcome() -> None:
    assert (
        error_of("text/cumulative", sse({"text": "a"}, {"error": "full"})).reason == "Error from remote service: full"
    )


def test_a_text_that_does_not_grow_is_no_chunk() -> None:
    assert decode("text/cumulative", sse({"text": "a"}, {"text": "a\ufffd"}, {"text": "a\u00e9"}, "[DONE]"))[0] == [
        Chunk("a"),
        Chunk("\u00e9"),
    ]


def test_an_empty_completion_is_no_chunk() -> None:
    data = sse({"choices": [{"text": ""}]}, {"choices": [{"text": "a", "finish_reason": "stop"}]}, "[DONE]")
    assert decode("openai/v1/completions", data) == ([Chunk("a")], Ending("stop", "stop"))


# Streams whose dialect is recognised by their first event


@pytest.mark.parametrize("preset", [TGI, "text/cumulative", "openai/v1/completions"])
def test_a_stream_that_is_done_at_once_has_no_answer(preset: str) -> None:
    error = error_of(preset, sse("[DONE]"))
    assert (error.reason.partition(":")[0], error.status) == ("The provider ended the stream without an answer", 424)


@pytest.mark.parametrize("error", [{"error": "no model"}, {"error": {"message": "no model"}, "status": 400}])
def test_an_error_before_any_dialect_is_recognised_is_the_outcome(error: dict[str, object]) -> None:
    assert error_of(TGI, sse(error)).reason == "Error from remote service: no model"


@pytest.mark.parametrize("event", [{"what": 1}, [1], 7])
def test_an_event_of_no_known_dialect_is_an_error(event: object) -> None:
    assert "not of the form" in error_of(TGI, sse(json.dumps(event))).reason


def test_an_empty_body_is_truncated() -> None:
    assert isinstance(error_of(TGI, b""), StreamTruncated)
