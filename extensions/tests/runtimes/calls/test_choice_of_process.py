"""Which process is called, how many calls wait for it, and why there may be none."""

import asyncio
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import MLStreamError, NotFound, Throttled, UpstreamError
from opensearch_ml_stream.extensions.runtimes.service.runtime_calls import RuntimeCalls
from opensearch_ml_stream.extensions.runtimes.service.status import (
    STATUS_FILE,
    ModelStatus,
    ProcessStatus,
    State,
    write_status,
)
from opensearch_ml_stream.runtimes.frames import Kind
from tests.runtimes.calls.scripted_host import (
    ScriptedHost,
    error_payload,
    opened_stream,
    predict,
    write_models,
)


async def test_no_more_calls_wait_for_a_first_response_than_the_queue_holds(
    calls: RuntimeCalls, host: ScriptedHost, tmp_path: Path
) -> None:
    write_models(tmp_path, queue_size=2, m=[host])
    async with opened_stream(calls, host):  # does not wait any more
        waiting = [asyncio.ensure_future(predict(calls)) for _ in range(2)]
        begins = [await host.next_call() for _ in waiting]
        with pytest.raises(Throttled, match=r"wait for their first response as may \(2\)") as raised:
            await predict(calls)
        assert (raised.value.retry_after, raised.value.limit) == ("1", "runtime_queue")
        begins[0].reply((Kind.DATA, b"{}"), (Kind.END, b""))
        assert await waiting[0] == b"{}"
        waiting.append(asyncio.ensure_future(predict(calls)))
        begins.append(await host.next_call())
        for begin in begins[1:]:
            begin.reply((Kind.ERROR, error_payload(500)))
        errors = await asyncio.gather(*waiting[1:], return_exceptions=True)
        assert [type(error) for error in errors] == [UpstreamError, UpstreamError]
    assert calls.waiting["m"] == 0


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
