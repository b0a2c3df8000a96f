"""How the process of a model ends: with its keeper, by a signal, and when the model holds it up."""

import asyncio
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from opensearch_ml_stream.runtimes.frames import Kind
from tests.runtimes.host.running_host import ready_host, started_host, text_request, texts_of

PLAIN = """
class Model(MLModel):
    async def predict(self, request):
        return text_response(*texts_of(request))
"""


async def test_a_model_is_unloaded_when_the_keeper_ends(tmp_path: Path) -> None:
    code = (
        PLAIN
        + """
    async def unload(self):
        print("unloaded", flush=True)
        return True
"""
    )
    async with ready_host(tmp_path, code) as (host, worker):
        await worker.predict(text_request("a"))
        host.keeper.close()
        assert await host.process.wait() == 0
        assert host.stderr() == "unloaded\n"
        assert not host.path.exists()


@pytest.mark.parametrize("sent", [signal.SIGTERM, None])
async def test_calls_are_cancelled_before_the_model_is_unloaded(tmp_path: Path, sent: signal.Signals | None) -> None:
    code = """
    class Model(MLModel):
        async def predict_stream(self, requests):
            try:
                yield text_response("a")
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(0.01)
                print("closed")

        async def unload(self):
            print("unloaded", flush=True)
            return True
    """
    async with ready_host(tmp_path, code) as (host, worker):
        call = worker.begin(Kind.STREAM, text_request("a"))
        await worker.next(call)
        if sent is None:
            host.keeper.close()
        else:
            host.process.send_signal(sent)
        with pytest.raises(EOFError):
            await worker.next(call)
        assert await host.process.wait() == 0
        assert host.stderr() == "closed\nunloaded\n"


async def test_an_interrupt_from_the_terminal_is_ignored(tmp_path: Path) -> None:
    async with ready_host(tmp_path, PLAIN) as (host, worker):
        host.process.send_signal(signal.SIGINT)
        data, _ = await worker.predict(text_request("a"))
        assert texts_of(data.payload) == ["a"]


async def test_a_process_that_still_loads_ends_with_its_keeper(tmp_path: Path) -> None:
    code = """
    class Model(MLModel):
        async def load(self):
            print("loading", flush=True)
            await asyncio.sleep(3600)
    """
    async with started_host(tmp_path, code) as host:
        await host.said("loading")
        host.keeper.close()
        assert await host.process.wait() == 0


async def test_a_process_that_blocks_ends_with_its_keeper(tmp_path: Path) -> None:
    folders = [tmp_path / method for method in ("load", "predict", "unload")]
    for folder in folders:
        folder.mkdir()
    await asyncio.gather(*(_blocks_and_ends(folder, folder.name) for folder in folders))


async def _blocks_and_ends(folder: Path, method: str) -> None:
    code = f"""
    from opensearch_ml_stream.runtimes.host import keeper_socket
    keeper_socket.SECONDS_TO_END = 0.2

    class Model(MLModel):
        async def {method}(self, *arguments):
            print("blocks", flush=True)
            time.sleep(3600)
    """
    async with started_host(folder, code) as host, AsyncExitStack() as connection:
        if method != "load":
            await host.event()
        if method == "predict":
            worker = await host.connect()
            connection.push_async_callback(worker.close)
            worker.begin(Kind.PREDICT, text_request("a"))
        if method == "unload":
            host.keeper.close()
        await host.said("blocks")
        host.keeper.close()
        assert await host.process.wait() == 1


async def test_a_model_that_cannot_unload_says_so(tmp_path: Path) -> None:
    code = "class Model(MLModel):\n    async def unload(self): raise OSError('busy')"
    async with ready_host(tmp_path, code) as (host, _):
        host.keeper.close()
        assert await host.process.wait() == 0
        assert "runtime trial: unload() raised OSError: busy" in host.stderr()


async def test_a_process_that_gets_no_first_line_ends(tmp_path: Path) -> None:
    async with started_host(tmp_path, PLAIN, first_line=b'{"folder": ') as host:
        host.keeper.close()
        assert await host.process.wait() == 1
        assert host.stderr() == "runtime trial: The keeper ended before it sent the model to run\n"
