"""`action_type` in a predict request's body chooses the connector's action, as it does in ML Commons 3.6.0."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.predictions.prediction_setup import Setup, connector_body, prediction_setup
from tests.predictions.scripted_provider import Response, ScriptedProvider, json_response, openai_stream


def respond(request: ProviderRequest) -> Response:
    return json_response({"called": urlsplit(request.url).path})


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[Setup]:
    async with prediction_setup(tmp_path, ScriptedProvider(respond)) as setup:
        yield setup


async def add_model(setup: Setup, *action_types: str) -> None:
    """A model with actions of these types; the path of an action's URL begins with its type."""
    own = connector_body()["actions"][0]
    actions = [
        {**own, "action_type": name, "url": f"https://api.openai.com/{name}/chat/completions"} for name in action_types
    ]
    await setup.add_model(connector_body(actions=actions))


def body(action_type: Any) -> bytes:
    chosen = {} if action_type is None else {"action_type": action_type}
    return orjson.dumps({"parameters": {"inputs": "hi"}, **chosen})


async def predicted(setup: Setup, route: str, action_type: str | None) -> str:
    """The path that the provider was called at: in the prediction, or in the job of a new task."""
    response = await getattr(setup.predictor, route)(ANYONE, "m", body(action_type))
    if "task_id" in response:
        return str(response["remote_job"]["called"])
    return str(response["inference_results"][0]["output"][0]["dataAsMap"]["called"])


@pytest.mark.parametrize("route", ["predict", "batch_predict"])
@pytest.mark.parametrize(
    ("action_type", "called"),
    [
        ("predict", "/predict/chat/completions"),
        ("PREDICT", "/predict/chat/completions"),
        ("Execute", "/execute/chat/completions"),
        ("execute", "/execute/chat/completions"),
        ("batch_predict", "/batch_predict/chat/completions"),
        ("BATCH_PREDICT", "/batch_predict/chat/completions"),
    ],
)
async def test_either_route_takes_the_action_of_the_body(
    setup: Setup, route: str, action_type: str, called: str
) -> None:
    await add_model(setup, "predict", "execute", "batch_predict")
    assert await predicted(setup, route, action_type) == called


async def test_without_an_action_type_each_route_takes_its_own(setup: Setup) -> None:
    await add_model(setup, "execute", "batch_predict", "predict")
    assert await predicted(setup, "predict", None) == "/predict/chat/completions"
    assert await predicted(setup, "batch_predict", None) == "/batch_predict/chat/completions"


@pytest.mark.parametrize(
    ("only", "action_type", "missing"),
    [
        ("predict", "batch_predict", "BATCH_PREDICT"),
        ("predict", "execute", "EXECUTE"),
        ("execute", None, "PREDICT"),
        ("execute", "predict", "PREDICT"),
    ],
)
async def test_an_action_that_the_connector_lacks_is_named_and_nothing_is_called(
    setup: Setup, only: str, action_type: str | None, missing: str
) -> None:
    await add_model(setup, only)
    with pytest.raises(InvalidRequest, match=f"^no {missing} action found"):
        await setup.predictor.predict(ANYONE, "m", body(action_type))
    assert setup.provider.calls == []


async def test_a_stream_takes_the_action_of_the_body(setup: Setup) -> None:
    setup.provider.script = lambda request: openai_stream("hello")
    await add_model(setup, "predict", "execute")
    for action_type, called in ((None, "predict"), ("EXECUTE", "execute"), ("PREDICT", "predict")):
        async with setup.predictor.stream(ANYONE, "m", {"inputs": "hi"}, action_type) as stream:
            await stream.read()
        request = setup.provider.calls[-1].request
        assert urlsplit(request.url).path == f"/{called}/chat/completions"
        assert orjson.loads(request.body)["stream"] is True


@pytest.mark.parametrize(
    ("action_type", "reason"),
    [("EXECUTE", "^no EXECUTE action found"), ("BATCH_PREDICT", "^A batch job does not stream: POST it to _batch_p")],
)
async def test_what_does_not_stream_is_refused_before_the_provider_is_called(
    setup: Setup, action_type: str, reason: str
) -> None:
    await add_model(setup, "predict", "batch_predict")
    with pytest.raises(InvalidRequest, match=reason):
        async with setup.predictor.stream(ANYONE, "m", {"inputs": "hi"}, action_type):
            pass
    assert setup.provider.calls == []
