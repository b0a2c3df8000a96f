"""Which models are runtimes, and what they have of a connector's actions."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.documents import Connector, read_connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.runtimes.service.runtime_protocol import Engine, Runtime, RuntimeProtocol
from tests.predictions.prediction_setup import connector_body
from tests.runtimes.calls.scripted_host import opened_protocol


@pytest.fixture
async def protocol(tmp_path: Path) -> AsyncIterator[RuntimeProtocol]:
    async with opened_protocol(tmp_path) as opened:
        yield opened


def connector(url: str = "runtime://m") -> Connector:
    batch = {"action_type": "batch_predict", "method": "POST", "url": "runtime://other", "request_body": "{}"}
    return read_connector(connector_body(actions=[*connector_body(url)["actions"], batch]))


async def test_a_runtime_is_what_has_an_id_and_a_url_that_only_the_sidecar_gives(protocol: RuntimeProtocol) -> None:
    runtime = protocol.find("runtime-m", connector())
    assert isinstance(runtime, Runtime)
    assert runtime.model == "m"
    assert protocol.find("mine", connector()) is None
    assert protocol.find("runtime-m", connector("https://api.openai.com/v1/chat/completions")) is None


async def test_a_model_of_an_engine_is_called_as_its_connector_says(protocol: RuntimeProtocol) -> None:
    url = "http://engine.invalid/a%2Fm/v1/chat/completions"
    engine = protocol.find("runtime-m", connector(url))
    assert isinstance(engine, Engine)
    assert (engine.model, engine.own_requests) == ("a/m", None)
    assert protocol.find("mine", connector(url)) is None


async def test_a_runtime_has_no_action_but_to_predict(protocol: RuntimeProtocol) -> None:
    runtime = protocol.find("runtime-m", connector())
    assert isinstance(runtime, Runtime)
    assert runtime.action("PREDICT").render({"prompt": "p"}).url == "runtime://m/predict"
    with pytest.raises(InvalidRequest, match=r"^A runtime has no action of the type BATCH_PREDICT$"):
        runtime.action("BATCH_PREDICT")
