"""What an observer is told of the Predictor's predictions."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound, Throttled, UpstreamError
from opensearch_ml_stream.plugin.observation import Observation
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller
from tests.predictions.prediction_setup import EMBEDDING_URL, Setup, connector_body, prediction_setup
from tests.predictions.scripted_provider import Response, ScriptedProvider, json_response, openai_stream
from tests.recorder import Recorder

ANN = Caller("ann", is_admin=True)
QUESTION = {"inputs": "hi"}
OTHER_URL = "https://api.groq.com/openai/v1/chat/completions"
REFUSES_HI = {"type": "local_regex", "input_guardrail": {"regex": [".*hi.*"]}, "output_guardrail": {"regex": ["x"]}}
PASSES_HI = {"type": "local_regex", "input_guardrail": {"regex": ["x"]}, "output_guardrail": {"regex": ["x"]}}


class Told(Recorder):
    """Notes the provider's calls at each moment, too."""

    def __init__(self, setup: Setup) -> None:
        super().__init__("caller", "asked", "model_id", "chunks", "outcome")
        self.calls: list[int] = []
        self._setup = setup

    @property
    def last(self) -> dict[str, Any]:
        """What the observation held at the last moment."""
        return dict(zip(self.names, self.told[-1][1:], strict=True))

    def note(self, moment: str, prediction: Observation) -> None:
        super().note(moment, prediction)
        self.calls.append(len(self._setup.provider.calls))


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[Setup]:
    async with prediction_setup(tmp_path, ScriptedProvider(lambda request: openai_stream("a", "b"))) as setup:
        yield setup


@pytest.fixture
def told(setup: Setup) -> Told:
    observer = Told(setup)
    setup.observations.observers.append(observer)
    return observer


async def stream(setup: Setup, model_id: str = "m") -> None:
    async with setup.predictor.stream(ANN, model_id, QUESTION) as opened:
        while opened.outcome is None:
            await opened.read()


@pytest.mark.parametrize("guardrails", [None, PASSES_HI], ids=["open", "guarded"])
async def test_a_stream_is_admitted_before_its_provider_is_called_and_ends_after_its_chunks(
    setup: Setup, told: Told, guardrails: Any
) -> None:
    await setup.add_model(connector_body(), **({"guardrails": guardrails} if guardrails else {}))
    await stream(setup)
    assert told.moments == ["admitted", "first_chunk", "ended"]
    assert told.calls == [0, 1, 1]
    last = told.last
    assert isinstance(last.pop("outcome"), Ending)
    assert last == {"caller": ANN, "asked": "m", "model_id": "m", "chunks": 2}


async def test_a_provider_that_fails_ends_an_admitted_stream(setup: Setup, told: Told) -> None:
    await setup.add_model(connector_body())
    setup.provider.script = lambda request: Response([b"no"], status=500)
    with pytest.raises(UpstreamError):
        await stream(setup)
    assert told.moments == ["admitted", "ended"]
    assert isinstance(told.last["outcome"], UpstreamError)


async def test_a_stream_that_falls_back_is_admitted_once_and_names_the_model_that_answered(
    setup: Setup, told: Told
) -> None:
    await setup.add_model(connector_body())
    await setup.add_model(connector_body(OTHER_URL), "other")
    await setup.store.put(Index.MODEL_SETTINGS, "m", {"settings": {"fallback_model_ids": ["other"]}})
    failed = Response([b"no"], status=500)
    setup.provider.script = lambda request: failed if request.url != OTHER_URL else openai_stream("a")
    await stream(setup)
    assert told.moments == ["admitted", "first_chunk", "ended"]
    assert (told.last["asked"], told.last["model_id"], told.last["chunks"]) == ("m", "other", 1)


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"rate_limiter": {"limit": "0", "unit": "DAYS"}}, Throttled),
        ({"guardrails": REFUSES_HI}, InvalidRequest),
        (None, NotFound),
    ],
    ids=["limit", "guardrail", "no model"],
)
async def test_what_is_refused_is_not_admitted_and_calls_no_provider(
    setup: Setup, told: Told, streamed: bool, fields: dict[str, Any] | None, error: type[Exception]
) -> None:
    if fields is not None:
        await setup.add_model(connector_body(), **fields)
    with pytest.raises(error):
        await (
            stream(setup) if streamed else setup.predictor.predict(ANYONE, "m", orjson.dumps({"parameters": QUESTION}))
        )
    assert (told.moments, told.calls) == (["refused"], [0])
    assert isinstance(told.last["outcome"], error)
    assert told.last["asked"] == ("m" if fields is not None else "")


async def test_a_whole_prediction_of_several_calls_is_admitted_once_before_the_first(setup: Setup, told: Told) -> None:
    setup.provider.script = lambda request: json_response({"embedding": [1.0]})
    action = {
        "pre_process_function": "connector.pre_process.bedrock.embedding",
        "post_process_function": "connector.post_process.bedrock.embedding",
        "request_body": '{"inputText": "${parameters.inputText}"}',
    }
    await setup.add_model(connector_body(EMBEDDING_URL, action=action))
    await setup.predictor.predict(ANYONE, "m", orjson.dumps({"text_docs": ["a", "b"]}))
    assert told.moments == ["admitted", "ended"]
    assert told.calls == [0, 2]
    assert isinstance(told.last["outcome"], Ending)
