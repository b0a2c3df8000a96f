"""Which process is called, how many calls wait for it, and why there may be none."""

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import MLStreamError, NotFound, Throttled, UpstreamError
from opensearch_ml_stream.extensions.runtimes.service import runtime_errors
from opensearch_ml_stream.extensions.runtimes.service.runtime_calls import RuntimeCalls
from opensearch_ml_stream.extensions.runtimes.service.status import (
    STATUS_FILE,
    ModelStatus,
    ProcessStatus,
    State,
    write_status,
)
from opensearch_ml_stream.extensions.v2.face import Unloaded
from opensearch_ml_stream.runtimes.frames import Kind
from tests.runtimes.calls.scripted_host import (
    ScriptedHost,
    opened_stream,
    predict,
    read_to_end,
    request_to,
    write_models,
)


async def test_a_burst_of_streams_waits_for_the_model_and_none_fails(calls: RuntimeCalls, host: ScriptedHost) -> None:
    async with AsyncExitStack() as stack:
        opening = [stack.enter_async_context(calls.open(request_to())) for _ in range(500)]
        waiting = asyncio.gather(*opening)
        begins = [await host.next_call() for _ in opening]
        assert not waiting.done()
        for begin in begins:
            begin.reply((Kind.DATA, b"{}"), (Kind.END, b""))
        responses = await waiting
        assert [await read_to_end(response) for response in responses] == [b"{}\0"] * 500


async def test_what_a_process_leaves_unread_is_bounded_in_bytes_also_of_clients_that_have_left(
    calls: RuntimeCalls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime_errors, "MAX_UNREAD", 2**20)
    async with ScriptedHost(tmp_path / "0.sock", reads=False) as busy, ScriptedHost(tmp_path / "1.sock") as other:
        write_models(tmp_path, m=[busy], n=[other])
        with pytest.raises(Throttled, match=r"left \d+ bytes of requests unread; 1048576 are allowed") as raised:
            for _ in range(20):
                await leave_before_the_response(calls, busy, b"x" * 2**18)
        assert (raised.value.status, raised.value.retry_after, raised.value.limit) == (429, "1", "runtime_unread")
        predicting = asyncio.ensure_future(predict(calls, "n"))
        (await other.next_call()).reply((Kind.END, b""))
        assert await predicting == b""


async def leave_before_the_response(calls: RuntimeCalls, host: ScriptedHost, body: bytes) -> None:
    """Raises what the call does before it waits for the model."""
    entering = asyncio.ensure_future(calls.open(request_to(body=body)).__aenter__())
    await host.connected.wait()
    for _ in range(10):  # turns of the loop, for it to be sent
        await asyncio.sleep(0)
    entering.cancel()
    with suppress(asyncio.CancelledError):
        await entering


async def test_the_process_with_the_fewest_calls_is_called(calls: RuntimeCalls, tmp_path: Path) -> None:
    async with ScriptedHost(tmp_path / "0.sock") as one, ScriptedHost(tmp_path / "1.sock") as two:
        write_models(tmp_path, m=[one, two])
        waiting = [asyncio.ensure_future(predict(calls)) for _ in range(4)]
        begins = [await host.next_call() for host in (one, two, one, two)]
        for begin in (begins[0], begins[2]):
            begin.reply((Kind.END, b""))
        for ended in islice(asyncio.as_completed(waiting), 2):
            await ended
        waiting += [asyncio.ensure_future(predict(calls)) for _ in range(2)]
        begins += [await one.next_call() for _ in range(2)]
        for begin in begins:
            begin.reply((Kind.END, b""))
        assert await asyncio.gather(*waiting) == [b""] * 6


async def test_where_one_process_cannot_be_reached_another_is_called(calls: RuntimeCalls, tmp_path: Path) -> None:
    gone = ScriptedHost(tmp_path / "gone.sock")
    async with ScriptedHost(tmp_path / "1.sock") as there:
        write_models(tmp_path, m=[gone, there])
        for _ in range(8):
            predicting = asyncio.ensure_future(predict(calls))
            (await there.next_call()).reply((Kind.END, b""))
            assert await predicting == b""


@pytest.mark.parametrize(
    ("state", "process", "error", "status"),
    [
        ("LOADING", {}, "is loading; send the request again later", 503),
        ("LOADING", {"restarts": 1, "retry_in_seconds": 3.2}, "is started again in 4 s", 424),
        ("READY", {"restarts": 2, "retry_in_seconds": 0.0}, "is started again now", 424),
        ("FAILED", {}, "could not be loaded: No module named 'x'", 424),
        ("LOADING", {"restarts": 1}, "is started again now", 424),
        ("UNLOADED", {}, "Please deploy the model first", 400),
        ("UNLOADED", {"ready": True}, "Please deploy the model first", 400),
    ],
)
async def test_a_model_that_cannot_be_called_says_why(
    calls: RuntimeCalls, tmp_path: Path, state: State, process: dict[str, float], error: str, status: int
) -> None:
    one = replace(ProcessStatus(str(tmp_path / "no.sock")), **process)  # type: ignore[arg-type]
    model = ModelStatus(state, reason="No module named 'x'", processes=[one])
    write_status(tmp_path / STATUS_FILE, {"m": model})
    with pytest.raises(MLStreamError, match=error) as raised:
        await predict(calls)
    assert raised.value.status == status


async def test_what_is_lost_or_cannot_be_reached_as_the_model_is_unloaded_is_told_as_what_calls_get_then(
    calls: RuntimeCalls, host: ScriptedHost, tmp_path: Path
) -> None:
    def unload() -> None:
        write_status(tmp_path / STATUS_FILE, {"m": ModelStatus("UNLOADED")})

    predicting = asyncio.ensure_future(predict(calls))
    await host.next_call()
    async with opened_stream(calls, host) as (response, _):
        unload()
        await host.die()
        with pytest.raises(Unloaded, match="m is unloaded") as lost:
            await predicting
        with pytest.raises(UpstreamError, match="m was unloaded in the middle of its response"):
            await response.read()
    with pytest.raises(Unloaded) as refused:
        await predict(calls)
    assert (lost.value.status, lost.value.reason) == (refused.value.status, refused.value.reason)
    write_models(tmp_path, m=[host])
    chosen = calls.processes("m")  # by what the keeper wrote before it unloaded the model
    unload()
    with pytest.raises(Unloaded):
        raise calls.unreachable("m", OSError())
    assert chosen


async def test_a_model_that_no_folder_has_is_not_found_with_or_without_a_keeper(
    calls: RuntimeCalls, tmp_path: Path
) -> None:
    for _ in range(2):
        with pytest.raises(NotFound, match=r"no runtime model a/b on this server: start it with `serve --models DIR`"):
            await predict(calls, "a%2Fb")
        write_models(tmp_path, m=[])


async def test_processes_that_are_no_more_are_forgotten(
    calls: RuntimeCalls, host: ScriptedHost, tmp_path: Path
) -> None:
    async with opened_stream(calls, host):
        pass
    for number in range(3):
        async with ScriptedHost(tmp_path / f"2.{number}.sock") as successor:
            write_models(tmp_path, m=[successor])
            async with opened_stream(calls, successor):
                assert list(calls._processes) == [str(successor.path)]
