"""Streams: their requests, credit and cancellation, and many of them beside each other."""

import asyncio
from pathlib import Path

import pytest

from opensearch_ml_stream.runtimes.frames import INITIAL_CREDIT, Kind
from tests.runtimes.host.running_host import RunningHost, ready_host, text_request, texts_of

ECHO = """
class Model(MLModel):
    async def predict_stream(self, requests):
        async for request in requests:
            for text in texts_of(request):
                yield text_response(text + " " + request.id)
"""
# Its generator writes how it has ended, and after how many steps.
ENDLESS = """
class Model(MLModel):
    async def predict(self, request):
        return text_response(*texts_of(request))

    async def predict_stream(self, requests):
        mode = texts_of(await requests.__anext__())[0]
        done, steps = "ran out", 0
        try:
            while True:
                steps += 1
                if mode == "waits":
                    await asyncio.sleep(3600 if steps > 1 else 0)
                if mode == "computes":
                    end = time.monotonic() + 0.02
                    while time.monotonic() < end:
                        pass
                yield text_response(("x" * 1000 if mode == "large" else "x") + str(steps))
        except BaseException as error:
            done = type(error).__name__
            raise
        finally:
            await asyncio.sleep(0)
            print(f"ended {done} {steps} steps")
"""


async def end_of_generator(host: RunningHost) -> tuple[str, int]:
    """Wait for the generator's end: how it ended, and after how many steps."""
    await host.said(" steps\n")
    _, how, steps, _ = host.stderr().split()
    return how, int(steps)


async def test_a_stream_takes_requests_until_there_are_no_more(tmp_path: Path) -> None:
    async with ready_host(tmp_path, ECHO) as (_, worker):
        call = worker.begin(Kind.STREAM, text_request("a", "b", id="one"))
        worker.send(call, Kind.INPUT, text_request("c", id="two"))  # in one write with the first
        assert [texts_of((await worker.next(call)).payload) for _ in range(3)] == [["a one"], ["b one"], ["c one"]]
        worker.send(call, Kind.INPUT, text_request("d"))
        assert texts_of((await worker.next(call)).payload) == ["d one"]
        worker.send(call, Kind.INPUT_END)
        assert [one.kind for one in await worker.rest(call)] == [Kind.END]


async def test_a_stream_asks_for_each_request_that_it_waits_for_and_has_not(tmp_path: Path) -> None:
    async with ready_host(tmp_path, ECHO) as (_, worker):
        call = worker.begin(Kind.STREAM, text_request("a"))
        worker.send(call, Kind.INPUT, text_request("b"))
        assert texts_of((await worker.next(call)).payload)[0].startswith("a ")
        assert texts_of((await worker.next(call)).payload)[0].startswith("b ")
        await worker.predict(text_request("other"))  # behind which all that was to come has come
        assert worker.reads[call] == 1
        worker.send(call, Kind.INPUT, text_request("c"))
        await worker.next(call)
        await worker.predict(text_request("other"))
        assert worker.reads[call] == 2
        worker.send(call, Kind.INPUT_END)
        assert [one.kind for one in await worker.rest(call)] == [Kind.END]


async def test_a_model_that_takes_one_request_asks_for_no_other(tmp_path: Path) -> None:
    async with ready_host(tmp_path, ENDLESS) as (_, worker):
        call = worker.begin(Kind.STREAM, text_request("large"))
        await worker.next(call)
        await worker.predict(text_request("other"))
        assert worker.reads[call] == 0


async def test_a_later_request_that_is_none_fails_the_stream(tmp_path: Path) -> None:
    async with ready_host(tmp_path, ECHO) as (_, worker):
        call = worker.begin(Kind.STREAM, text_request("a"))
        worker.send(call, Kind.INPUT, b"{")
        data, error = await worker.rest(call)
        assert (data.kind, error.kind, error.json["status"]) == (Kind.DATA, Kind.ERROR, 422)


async def test_a_stream_stops_without_credit_and_goes_on_with_it(tmp_path: Path) -> None:
    async with ready_host(tmp_path, ENDLESS) as (_, worker):
        call = worker.begin(Kind.STREAM, text_request("large"))
        got = 0
        while got < INITIAL_CREDIT:
            got += len((await worker.next(call)).payload)
        assert (await worker.predict(text_request("other")))[-1].kind == Kind.END  # all else goes on meanwhile
        assert worker.waiting(call) == []
        worker.grant(call, got - INITIAL_CREDIT)  # still nothing left of it
        await worker.predict(text_request("other"))
        assert worker.waiting(call) == []
        worker.grant(call, 1)
        await worker.next(call)
        await worker.predict(text_request("other"))
        assert worker.waiting(call) == []


async def test_a_cancelled_generator_that_lacks_credit_is_closed(tmp_path: Path) -> None:
    async with ready_host(tmp_path, ENDLESS) as (host, worker):
        call = worker.begin(Kind.STREAM, text_request("large"))
        got = 0
        while got < INITIAL_CREDIT:
            got += len((await worker.next(call)).payload)
        worker.send(call, Kind.CANCEL)
        how, steps = await end_of_generator(host)
        assert how == "GeneratorExit"
        assert steps < 70
        await host.figures(in_flight=0, failures=0)
        assert worker.waiting(call) == []


@pytest.mark.parametrize("mode", ["waits", "computes", "bulk"])
async def test_a_cancelled_generator_ends(tmp_path: Path, mode: str) -> None:
    async with ready_host(tmp_path, ENDLESS) as (host, worker):
        call = worker.begin(Kind.STREAM, text_request(mode))
        await worker.next(call)
        worker.send(call, Kind.CANCEL)
        how, _ = await end_of_generator(host)
        assert how in ("CancelledError", "GeneratorExit")
        await host.figures(in_flight=0, failures=0)
        assert "raised" not in host.stderr()


@pytest.mark.parametrize("mode", ["waits", "large"])
async def test_a_lost_connection_cancels_its_calls(tmp_path: Path, mode: str) -> None:
    async with ready_host(tmp_path, ENDLESS) as (host, _):
        worker = await host.connect()
        await worker.next(worker.begin(Kind.STREAM, text_request(mode)))
        await worker.close()
        assert (await end_of_generator(host))[0] in ("CancelledError", "GeneratorExit")
        await host.figures(in_flight=0)


async def test_a_call_that_is_cancelled_at_once_leaves_nothing(tmp_path: Path) -> None:
    async with ready_host(tmp_path, ENDLESS) as (host, worker):
        for kind in (Kind.STREAM, Kind.PREDICT):
            worker.send(worker.begin(kind, text_request("waits")), Kind.CANCEL)
            worker.send(worker.begin(kind, b"{"), Kind.CANCEL)
        await host.figures(calls=4, in_flight=0, failures=0)
        assert host.stderr() == ""


async def test_a_generator_that_never_waits_shows_each_step_and_lets_others_in(tmp_path: Path) -> None:
    async with ready_host(tmp_path, ENDLESS) as (_, worker):
        call = worker.begin(Kind.STREAM, text_request("computes"))
        for step in range(1, 5):
            assert texts_of((await worker.next(call)).payload) == [f"x{step}"]
        data, _ = await worker.predict(text_request("other"))
        assert texts_of(data.payload) == ["other"]


async def test_a_generator_that_ignores_its_cancellation_is_closed_all_the_same(tmp_path: Path) -> None:
    code = """
    class Model(MLModel):
        async def predict_stream(self, requests):
            try:
                while True:
                    try:
                        yield text_response("x")
                        await asyncio.sleep(3600)
                    except asyncio.CancelledError:
                        pass
            finally:
                print("closed", flush=True)
    """
    async with ready_host(tmp_path, code) as (host, worker):
        call = worker.begin(Kind.STREAM, text_request("a"))
        await worker.next(call)
        worker.send(call, Kind.CANCEL)
        await host.figures(calls=1, in_flight=0)
        assert host.stderr() == "closed\n"
        assert worker.waiting(call) == []


async def test_a_cancelled_call_that_goes_on_is_given_up(tmp_path: Path) -> None:
    code = """
    from opensearch_ml_stream.runtimes.host import worker_connection
    worker_connection.SECONDS_TO_CANCEL = 0.05

    class Model(MLModel):
        async def predict_stream(self, requests):
            try:
                yield text_response("x")
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(3600)
    """
    async with ready_host(tmp_path, code) as (host, worker):
        call = worker.begin(Kind.STREAM, text_request("a"))
        await worker.next(call)
        await host.figures(in_flight=1)
        worker.send(call, Kind.CANCEL)
        await host.figures(in_flight=0)
        assert host.stderr() == "runtime trial: a cancelled call went on for 0 s\n"


async def test_an_error_behind_responses_comes_behind_them(tmp_path: Path) -> None:
    code = """
    class Model(MLModel):
        async def predict_stream(self, requests):
            yield text_response("a")
            raise OSError("disk")
    """
    async with ready_host(tmp_path, code) as (host, worker):
        data, error = await worker.rest(worker.begin(Kind.STREAM, text_request("a")))
        assert (data.kind, error.json) == (
            Kind.DATA,
            {"status": 500, "is_own": False, "type": "OSError", "reason": "disk"},
        )
        assert "predict_stream() raised OSError: disk" in host.stderr()


async def test_hundreds_of_streams_at_once_come_whole(tmp_path: Path) -> None:
    code = """
    class Model(MLModel):
        async def predict_stream(self, requests):
            text = texts_of(await requests.__anext__())[0]
            for step in range(20):
                await asyncio.sleep(0.001)
                yield text_response(f"{text} {step}")
    """
    async with ready_host(tmp_path, code) as (host, worker):
        other = await host.connect()
        found = await asyncio.gather(*((worker, other)[n % 2].texts(text_request(str(n))) for n in range(300)))
        assert found == [[[f"{n} {step}"] for step in range(20)] for n in range(300)]
        await other.close()
        await host.figures(calls=300, in_flight=0, failures=0)
