"""Calls of custom handlers: predictions of their models, for limits and for observers."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import Throttled
from opensearch_ml_stream.extensions.runtimes.service.custom_handlers import HandlerCalls, HandlerRequest
from opensearch_ml_stream.extensions.runtimes.service.runtime_protocol import RuntimeProtocol
from opensearch_ml_stream.plugin.observation import Observation, Observer
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from opensearch_ml_stream.runtimes.frames import Kind, pack_message
from tests.predictions.prediction_setup import Setup, connector_body, prediction_setup
from tests.runtimes.calls.scripted_host import ScriptedHost, opened_protocol, write_models

REQUEST = HandlerRequest("POST", "/count", "", [], b"[]")


class Moments(Observer):
    """The moments that it is told of, each with the model that is called."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def admitted(self, prediction: Observation) -> None:
        self.told.append(("admitted", prediction.model_id))

    def ended(self, prediction: Observation) -> None:
        self.told.append(("ended", prediction.model_id))

    def refused(self, prediction: Observation) -> None:
        self.told.append(("refused", prediction.model_id))


@pytest.fixture
async def protocol(tmp_path: Path) -> AsyncIterator[RuntimeProtocol]:
    folder = tmp_path / "runtimes"
    folder.mkdir()
    async with opened_protocol(folder) as opened:
        yield opened


@pytest.fixture
async def setup(tmp_path: Path, protocol: RuntimeProtocol) -> AsyncIterator[Setup]:
    async with prediction_setup(tmp_path, protocols=[protocol]) as setup:
        yield setup


@pytest.fixture
async def host(tmp_path: Path, protocol: RuntimeProtocol) -> AsyncIterator[ScriptedHost]:
    folder = tmp_path / "runtimes"
    async with ScriptedHost(folder / "1.0.sock") as opened:
        write_models(folder, m=[opened])
        yield opened


async def test_a_call_of_a_handler_is_an_admitted_prediction_unless_a_limit_refuses_it(
    setup: Setup, protocol: RuntimeProtocol, host: ScriptedHost
) -> None:
    moments = Moments()
    setup.observations.observers.append(moments)
    handlers = HandlerCalls(protocol.calls.models, setup.models, setup.calls, setup.observations)
    await setup.add_model(connector_body("runtime://m"), "runtime-m", rate_limiter={"limit": "1", "unit": "DAYS"})

    handling = asyncio.create_task(handlers.handle(ANYONE, "m", REQUEST))
    call = await host.next_frame()
    assert moments.told == [("admitted", "runtime-m")]
    call.reply((Kind.DATA, pack_message({"status": 200, "headers": []}, b"2")), (Kind.END, b""))
    assert (await handling).body == b"2"
    with pytest.raises(Throttled):
        await handlers.handle(ANYONE, "m", REQUEST)
    assert moments.told == [("admitted", "runtime-m"), ("ended", "runtime-m"), ("refused", "runtime-m")]
    assert setup.counted("mlstream_predictions_total", model_id="runtime-m", status="200") == 1
