"""Streamed predictions: opened, closed and counted, whatever becomes of them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.chunks import Ending, to_chunk_list
from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest, NotFound, Throttled, UpstreamError
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.predictions.prediction_setup import SECRET, Setup, connector_body, prediction_setup
from tests.predictions.scripted_provider import SSE, Response, ScriptedProvider, openai_event, openai_stream

QUESTION = {"inputs": "hi"}
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}\n\ndata: [DONE]\n\n'


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[Setup]:
    async with prediction_setup(tmp_path, ScriptedProvider(lambda request: openai_stream("For", "ty"))) as setup:
        yield setup


async def streamed(setup: Setup, model_id: str = "m") -> str:
    """The text of a whole stream."""
    text = ""
    async with setup.predictor.stream(ANYONE, model_id, QUESTION) as stream:
        while stream.outcome is None:
            text += "".join(chunk.text for chunk in to_chunk_list(await stream.read()))
    if isinstance(stream.outcome, UpstreamError):
        raise stream.outcome
    return text


def outcomes(setup: Setup, model_id: str = "m") -> dict[str, float]:
    names = ("ok", "error", "client_left")
    counted = {name: setup.counted("mlstream_streams_total", model_id=model_id, outcome=name) for name in names}
    return {name: count for name, count in counted.items() if count is not None}


async def test_a_stream_is_relayed_closed_and_counted(setup: Setup) -> None:
    await setup.add_model(connector_body())
    assert await streamed(setup) == "Forty"
    [call] = setup.provider.calls
    assert not call.is_open
    assert call.request.headers["Authorization"] == f"Bearer {SECRET}"
    assert setup.provider.bodies == [{"input": "hi", "stream": True, "stream_options": {"include_usage": True}}]
    assert outcomes(setup) == {"ok": 1.0}
    assert setup.counted("mlstream_stream_chunks_total", model_id="m") == 2
    assert setup.counted("mlstream_time_to_first_chunk_seconds_count", model_id="m") == 1
    assert setup.counted("mlstream_stream_duration_seconds_count", model_id="m") == 1
    assert setup.counted("mlstream_streams_open") == 0


@pytest.mark.parametrize("count", [b"-1", b"-9223372036854775808", b"9007199254740992", b"1" * 30])
async def test_a_count_of_tokens_that_makes_no_sense_is_left_out(setup: Setup, count: bytes) -> None:
    usage = USAGE.replace(b":3", b":" + count)
    end = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n' + usage
    setup.provider.script = lambda request: Response([openai_event("a"), end], headers=SSE)
    await setup.add_model(connector_body())
    assert await streamed(setup) == "a"
    counted = [setup.counted("mlstream_tokens_total", model_id="m", type=kind) for kind in ("input", "output")]
    assert counted == [None, 2]
    assert outcomes(setup) == {"ok": 1.0}


async def test_the_providers_count_of_tokens_is_added_up(setup: Setup) -> None:
    end = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n' + USAGE
    setup.provider.script = lambda request: Response([openai_event("a"), end], headers=SSE)
    await setup.add_model(connector_body())
    for _ in range(2):
        await streamed(setup)
    kinds = ("input", "output")
    assert [setup.counted("mlstream_tokens_total", model_id="m", type=kind) for kind in kinds] == [6, 4]


async def test_a_stream_is_open_in_the_metrics_while_it_runs(setup: Setup) -> None:
    await setup.add_model(connector_body())
    async with setup.predictor.stream(ANYONE, "m", QUESTION):
        assert setup.counted("mlstream_streams_open") == 1
        assert setup.provider.calls[0].is_open
    assert setup.counted("mlstream_streams_open") == 0


async def test_a_stream_that_its_client_leaves_is_closed_and_counted_as_that(setup: Setup) -> None:
    await setup.add_model(connector_body())
    async with setup.predictor.stream(ANYONE, "m", QUESTION) as stream:
        await stream.read()
    assert not setup.provider.calls[0].is_open
    assert outcomes(setup) == {"client_left": 1.0}
    assert setup.counted("mlstream_stream_chunks_total", model_id="m") == 1


async def test_a_cancelled_stream_is_closed_and_counted_as_left_by_its_client(setup: Setup) -> None:
    await setup.add_model(connector_body())

    has_read = asyncio.Event()

    async def waits() -> None:
        async with setup.predictor.stream(ANYONE, "m", QUESTION) as stream:
            await stream.read()
            has_read.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(waits())
    await has_read.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not setup.provider.calls[0].is_open
    assert outcomes(setup) == {"client_left": 1.0}


async def test_a_stream_that_breaks_is_an_error_of_the_provider(setup: Setup) -> None:
    setup.provider.script = lambda request: Response([openai_event("a"), UpstreamError("reset")], headers=SSE)
    await setup.add_model(connector_body())
    with pytest.raises(UpstreamError, match=r"^reset$"):
        await streamed(setup)
    assert outcomes(setup) == {"error": 1.0}
    assert setup.counted("mlstream_provider_errors_total", model_id="m", provider_status="none") == 1
    assert setup.counted("mlstream_stream_chunks_total", model_id="m") == 1


async def test_a_refusal_of_the_provider_is_raised_before_the_stream_begins(setup: Setup) -> None:
    setup.provider.script = lambda request: Response([b"no such key"], 401)
    await setup.add_model(connector_body())
    with pytest.raises(UpstreamError, match=r"^Error from remote service: no such key$"):
        await streamed(setup)
    assert not setup.provider.calls[0].is_open
    assert outcomes(setup) == {"error": 1.0}
    assert setup.counted("mlstream_provider_errors_total", model_id="m", provider_status="401") == 1
    assert setup.counted("mlstream_stream_chunks_total", model_id="m") == 0
    assert setup.counted("mlstream_time_to_first_chunk_seconds_count", model_id="m") is None


async def test_an_unknown_model_has_no_label_of_its_own(setup: Setup) -> None:
    with pytest.raises(NotFound):
        await streamed(setup, "made-up")
    assert outcomes(setup, "unknown") == {"error": 1.0}
    assert b"made-up" not in setup.metrics.text()


async def test_with_streaming_off_nothing_is_opened_or_counted(setup: Setup) -> None:
    await setup.add_model(connector_body())
    setup.live.current = Settings(stream_enabled=False)
    with pytest.raises(Forbidden, match=r"^Streaming is currently disabled\."):
        await streamed(setup)
    assert setup.provider.calls == []
    assert outcomes(setup) == {}


async def test_a_connector_that_cannot_stream_is_refused_before_the_provider_is_called(setup: Setup) -> None:
    await setup.add_model(connector_body("https://api.openai.com/v1/embeddings"))
    with pytest.raises(InvalidRequest, match="cannot stream"):
        await streamed(setup)
    assert setup.provider.calls == []
    assert outcomes(setup) == {"error": 1.0}


async def test_the_models_interface_is_checked_before_the_provider_is_called(setup: Setup) -> None:
    schema = '{"properties": {"parameters": {"required": ["messages"]}}}'
    await setup.add_model(connector_body(), interface={"input": schema})
    with pytest.raises(InvalidRequest, match="required property 'messages' not found"):
        await streamed(setup)
    assert setup.provider.calls == []


async def test_a_rate_limit_counts_calls_of_the_provider_only(setup: Setup) -> None:
    await setup.add_model(connector_body(), rate_limiter={"limit": "1", "unit": "HOURS"})
    with pytest.raises(InvalidRequest):
        async with setup.predictor.stream(ANYONE, "m", {}):  # the template needs `inputs`
            pass
    assert await streamed(setup) == "Forty"
    with pytest.raises(Throttled) as raised:
        await streamed(setup)
    assert int(raised.value.retry_after or "0") > 3500
    assert len(setup.provider.calls) == 1
    assert outcomes(setup) == {"ok": 1.0, "error": 2.0}
    assert setup.counted("mlstream_provider_errors_total", model_id="m", provider_status="none") is None


async def test_the_outcome_is_the_streams_own(setup: Setup) -> None:
    await setup.add_model(connector_body())
    async with setup.predictor.stream(ANYONE, "m", QUESTION) as stream:
        while stream.outcome is None:
            await stream.read()
    assert isinstance(stream.outcome, Ending)
    assert stream.outcome.finish_reason == "stop"
