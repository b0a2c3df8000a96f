"""Calls with one response: what the model gets and gives, and what the caller is told of its errors."""

import asyncio
import json
from pathlib import Path

from opensearch_ml_stream.runtimes import model_metrics
from opensearch_ml_stream.runtimes.frames import Kind
from tests.runtimes.host.running_host import ready_host, text_request, texts_of

UPPER = """
class Model(MLModel):
    async def predict(self, request):
        print("to stdout by Python", request.id)
        os.write(1, b"to stdout by C\\n")
        return text_response(*[text.upper() for text in texts_of(request)])
"""
FAILING = """
from mlserver.errors import InferenceError, MLServerError

class Model(MLModel):
    async def predict(self, request):
        text = texts_of(request)[0]
        if text == "value":
            raise ValueError("no such value")
        if text == "inference":
            raise InferenceError("cannot infer")
        if text == "teapot":
            raise MLServerError("short and stout", 418)
        if text == "none":
            return None
        if text == "cancelled":
            raise asyncio.CancelledError
        if text == "large":
            return text_response("x" * (64 * 1024 * 1024))
        if text == "exit":
            sys.exit(3)
        if text == "chained":
            try:
                raise KeyError("the caller's secret")
            except KeyError as error:
                raise RuntimeError("lookup failed") from error
        return text_response(text)
"""
STREAM_ONLY = """
class Model(MLModel):
    async def predict_stream(self, requests):
        async for request in requests:
            yield text_response(*texts_of(request))
"""


async def test_a_response_has_the_names_that_mlserver_fills_in(tmp_path: Path) -> None:
    settings = {"parameters": {"version": "v7"}}
    async with ready_host(tmp_path, UPPER, settings) as (_, worker):
        data, end = await worker.predict(text_request("deep", "blue", id="one"))
    assert (data.kind, end) == (Kind.DATA, (Kind.END, b""))
    output = {"name": "text", "shape": [2], "datatype": "BYTES", "data": ["DEEP", "BLUE"]}
    assert data.json == {
        "model_name": "trial",
        "model_version": "v7",
        "id": "one",
        "parameters": {},
        "outputs": [output],
    }


async def test_a_request_without_identifier_gets_one(tmp_path: Path) -> None:
    async with ready_host(tmp_path, UPPER) as (_, worker):
        identifiers = {(await worker.predict(text_request("deep")))[0].json["id"] for _ in range(2)}
    assert len(identifiers) == 2


async def test_what_a_model_writes_to_stdout_goes_to_stderr(tmp_path: Path) -> None:
    async with ready_host(tmp_path, UPPER) as (host, worker):
        assert [one.kind for one in await worker.predict(text_request("deep", id="one"))] == [Kind.DATA, Kind.END]
        assert "to stdout by Python one\n" in host.stderr()
        assert "to stdout by C\n" in host.stderr()


async def test_a_model_without_predict_stream_streams_its_whole_response(tmp_path: Path) -> None:
    async with ready_host(tmp_path, UPPER) as (_, worker):
        assert await worker.texts(text_request("deep", "blue")) == [["DEEP", "BLUE"]]


async def test_a_model_without_predict_says_so(tmp_path: Path) -> None:
    async with ready_host(tmp_path, STREAM_ONLY) as (_, worker):
        assert await worker.texts(text_request("deep")) == [["deep"]]
        (error,) = await worker.predict(text_request("deep"))
    assert error.kind == Kind.ERROR
    assert error.json == {
        "status": 501,
        "is_own": False,
        "type": "NotImplementedError",
        "reason": "predict() method not implemented",
    }


_RAISED = {
    "value": {"status": 500, "is_own": False, "type": "ValueError", "reason": "no such value"},
    "inference": {"status": 400, "is_own": True, "type": "InferenceError", "reason": "cannot infer"},
    "teapot": {"status": 418, "is_own": True, "type": "MLServerError", "reason": "short and stout"},
    "cancelled": {"status": 500, "is_own": False, "type": "CancelledError", "reason": ""},
    "chained": {"status": 500, "is_own": False, "type": "RuntimeError", "reason": "lookup failed"},
}


async def test_an_exception_of_the_model_is_told_and_logged(tmp_path: Path) -> None:
    async with ready_host(tmp_path, FAILING) as (host, worker):
        for text, said in _RAISED.items():
            (error,) = await worker.predict(text_request(text))
            assert error.json == said
            assert f"runtime trial: predict() raised {said['type']}: {said['reason']}" in host.stderr()
            assert (await worker.predict(text_request("well")))[-1].kind == Kind.END
        assert host.stderr().count("model.py") >= len(_RAISED)
        assert "the caller's secret" not in host.stderr()


async def test_what_a_terminal_would_obey_is_not_logged(tmp_path: Path) -> None:
    code = """
    class Model(MLModel):
        async def predict(self, request):
            raise ValueError(texts_of(request)[0])
    """
    async with ready_host(tmp_path, code) as (host, worker):
        (error,) = await worker.predict(text_request("a\x1b]0;t\x07\x9b\u202eb\n\tc"))
        assert error.json["reason"] == "a\x1b]0;t\x07\x9b\u202eb\n\tc"
        assert "raised ValueError: a]0;tb\n\tc\n" in host.stderr()


async def test_what_is_no_response_is_an_error(tmp_path: Path) -> None:
    async with ready_host(tmp_path, FAILING) as (_, worker):
        (error,) = await worker.predict(text_request("none"))
        assert error.json["type"] == "TypeError"
        (error,) = await worker.predict(text_request("large"))
        assert error.json["type"] == "ValueError"
        assert "67108864 are allowed" in error.json["reason"]


async def test_what_is_no_request_is_refused_and_not_logged(tmp_path: Path) -> None:
    async with ready_host(tmp_path, UPPER) as (host, worker):
        for request_body in (b"{", b"[]", b"{}", b'{"inputs": [{"name": "text"}]}', b"\xff"):
            (error,) = await worker.predict(request_body)
            (stream_error,) = await worker.rest(worker.begin(Kind.STREAM, request_body))
            assert error == stream_error
            assert (error.json["status"], error.json["type"]) == (422, "MalformedRequest"), request_body
        assert host.stderr() == ""


async def test_failures_are_logged_at_a_bounded_rate(tmp_path: Path) -> None:
    async with ready_host(tmp_path, FAILING) as (host, worker):
        for _ in range(50):
            await worker.predict(text_request("value"))
        assert host.stderr().count("predict() raised ValueError") == 10
        await host.figures(calls=50, failures=50, in_flight=0)


async def test_a_model_that_exits_ends_its_process_which_says_why(tmp_path: Path) -> None:
    async with ready_host(tmp_path, FAILING) as (host, worker):
        (error,) = await worker.predict(text_request("exit"))
        assert error.json == {"status": 500, "is_own": False, "type": "SystemExit", "reason": "3"}
        assert await host.process.wait() == 1
        assert "predict() raised SystemExit: 3" in host.stderr()


async def test_another_protocol_ends_its_connection_alone(tmp_path: Path) -> None:
    async with ready_host(tmp_path, UPPER) as (host, worker):
        for wrong in (b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\0\0\0\0\1\x63"):
            other = await host.connect()
            other._writer.write(wrong)
            await other._reading
            await other.close()
        assert texts_of((await worker.predict(text_request("deep")))[0].payload) == ["DEEP"]
        assert host.stderr().count("a worker's connection was closed") == 2


async def test_a_request_keeps_what_it_says(tmp_path: Path) -> None:
    code = """
    class Model(MLModel):
        async def predict(self, request):
            return text_response(request.model_dump_json())
    """
    async with ready_host(tmp_path, code) as (_, worker):
        sent = {
            "id": "one",
            "parameters": {"temperature": 0.5, "own": {"a": [1]}},
            "inputs": [{"name": "x", "shape": [2, 2], "datatype": "FP32", "data": [[1.5, 2.0], [3.0, 4.0]]}],
            "outputs": [{"name": "y"}],
        }
        data, _ = await worker.predict(json.dumps(sent).encode())
        assert json.loads(texts_of(data.payload)[0]) == sent


async def test_what_the_model_counts_is_in_a_file_that_goes_with_its_process(tmp_path: Path) -> None:
    code = """
    import mlserver

    class Model(MLModel):
        async def load(self):
            mlserver.register("words", "Words.")
            return True

        async def predict(self, payload):
            mlserver.log(words=len(texts_of(payload)))
            return text_response()
    """
    async with ready_host(tmp_path, code) as (host, worker):
        await worker.predict(text_request("a", "b"))
        async with asyncio.timeout(20):
            while not (families := model_metrics.read(str(host.path))):  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.01)
        assert families[0]["samples"][-1] == ["words_sum", {"model_name": "trial", "model_version": ""}, 2.0]
        host.keeper.close()
        await host.process.wait()
        assert model_metrics.read(str(host.path)) == []
