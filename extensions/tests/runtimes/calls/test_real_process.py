"""A worker's calls of the process that runs a model."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.extensions.runtimes.service.runtime_calls import RuntimeCalls
from opensearch_ml_stream.extensions.runtimes.service.status import (
    STATUS_FILE,
    ModelStatus,
    ProcessStatus,
    write_status,
)
from opensearch_ml_stream.extensions.v2.face import RaisedByModel
from opensearch_ml_stream.plugin.upstream import ResponseFailed
from opensearch_ml_stream.runtimes.frames import INITIAL_CREDIT
from tests.runtimes.calls.scripted_host import read_to_end, request_to
from tests.runtimes.host.running_host import RunningHost, started_host, text_request, texts_of

MODEL = """
from mlserver.errors import ModelNotFound

class Model(MLModel):
    steps = 0
    ended = 0

    async def predict(self, request):
        match texts_of(request)[0]:
            case "raise":
                raise ModelNotFound("other")
            case "exit":
                os._exit(9)
        return text_response(str(self.steps), str(self.ended))

    async def predict_stream(self, requests):
        async for request in requests:
            count, raises = texts_of(request)
        try:
            for number in range(int(count)):
                Model.steps += 1
                yield text_response(str(number).ljust(1000))
            if raises:
                raise RuntimeError("worn out")
        finally:
            Model.ended += 1
"""


@asynccontextmanager
async def running_model(folder: Path, code: str = MODEL) -> AsyncIterator[RunningHost]:
    async with started_host(folder, code) as host:
        event = await host.event()
        assert event["event"] == "ready", event
        process = ProcessStatus(str(host.path), host.process.pid, ready=True)
        write_status(folder / STATUS_FILE, {"m": ModelStatus("READY", processes=[process])})
        yield host


async def predict(calls: RuntimeCalls, text: str = "") -> list[str]:
    async with calls.open(request_to(path="/predict", body=text_request(text))) as response:
        return texts_of(await read_to_end(response))


async def stream(calls: RuntimeCalls, count: int, raises: str = "") -> list[int]:
    """The numbers that a stream gives, which are pumped as a client that takes everything does."""
    body = b""

    def take(data: bytes) -> bool:
        nonlocal body
        body += data
        return True

    async with calls.open(request_to(body=text_request(str(count), raises))) as response:
        assert await response.pump(take)
    return [int(texts_of(payload)[0]) for payload in body.split(b"\0")[:-1]]


async def test_many_streams_at_once_come_whole_over_one_connection(calls: RuntimeCalls, tmp_path: Path) -> None:
    async with running_model(tmp_path):
        numbers = await asyncio.gather(*(stream(calls, count) for count in range(0, 300, 10)))
        assert numbers == [list(range(count)) for count in range(0, 300, 10)]
        assert await predict(calls) == [str(sum(range(0, 300, 10))), "30"]


async def test_a_client_that_does_not_read_stops_the_model_and_one_that_leaves_ends_it(
    calls: RuntimeCalls, tmp_path: Path
) -> None:
    async with running_model(tmp_path):
        async with calls.open(request_to(body=text_request("1000000", ""))) as response:
            assert not await response.pump(lambda data: False)
            steps = ["", "0"]
            while steps != (steps := await predict(calls)):
                pass
            assert int(steps[0]) < 2 * INITIAL_CREDIT / 1000
            taken = 0

            def take(data: bytes) -> bool:
                nonlocal taken
                taken += len(data)
                return taken < 4 * INITIAL_CREDIT

            assert not await response.pump(take)
        while (await predict(calls))[1] != "1":
            pass


async def test_what_the_model_raises_is_told(calls: RuntimeCalls, tmp_path: Path) -> None:
    async with running_model(tmp_path):
        with pytest.raises(RaisedByModel, match=r"^The runtime of model m raised ModelNotFound: .*other"):
            await predict(calls, "raise")
        with pytest.raises(UpstreamError, match=r"The runtime of model m raised RuntimeError: worn out"):
            await stream(calls, 0, "raises")
        with pytest.raises(ResponseFailed, match=r"The runtime of model m raised RuntimeError: worn out"):
            await stream(calls, 3, "raises")


async def test_a_process_that_is_killed_ends_its_streams_with_an_error(calls: RuntimeCalls, tmp_path: Path) -> None:
    async with running_model(tmp_path) as host:
        async with calls.open(request_to(body=text_request("1000000", ""))) as response:
            assert await response.read()
            host.process.kill()
            with pytest.raises(UpstreamError, match="ended in the middle of its response"):
                await read_to_end(response)
        await host.process.wait()
        with pytest.raises(UpstreamError, match="cannot be reached"):
            await predict(calls)


async def test_a_model_that_ends_its_process_fails_the_call(calls: RuntimeCalls, tmp_path: Path) -> None:
    async with running_model(tmp_path):
        with pytest.raises(UpstreamError, match="ended before it responded"):
            await predict(calls, "exit")


async def test_a_response_has_the_models_name_and_an_id(calls: RuntimeCalls, tmp_path: Path) -> None:
    async with running_model(tmp_path):
        body = text_request("", id="mine")
        async with calls.open(request_to(path="/predict", body=body)) as response:
            content = orjson.loads(await read_to_end(response))
    assert (content["model_name"], content["id"]) == ("trial", "mine")
