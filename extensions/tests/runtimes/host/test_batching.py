"""Adaptive batching, seen from the callers: which requests share a prediction, and whom a failure hurts."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.runtimes.frames import Kind
from opensearch_ml_stream.runtimes.host.batching import CannotSplit, batch_key, merge, split
from opensearch_ml_stream.runtimes.interface.types import (
    InferenceRequest,
    InferenceResponse,
    Parameters,
    RequestInput,
    ResponseOutput,
)
from tests.runtimes.host.running_host import Frame, WorkerSide, ready_host, text_request, texts_of

# Responds to each text with itself and the number of rows that it came with.
COUNTING = """
class Model(MLModel):
    async def predict(self, request):
        texts = texts_of(request)
        if len(texts) > 1 and "sleepy" in texts:
            try:
                await asyncio.sleep(3600)
            finally:
                print("ended", flush=True)
        if "bad" in texts:
            raise ValueError("bad text")
        if "odd" in texts:
            return text_response("one row for all")
        return text_response(*[f"{text} of {len(texts)}" for text in texts], parameters=request.parameters)

    async def predict_stream(self, requests):
        async for request in requests:
            yield await self.predict(request)
"""
BATCHING = {"max_batch_size": 4, "max_batch_time": 0.2}
LONG = {"max_batch_size": 4, "max_batch_time": 30}


async def texts(worker: WorkerSide, *requests: bytes) -> list[list[str]]:
    """The texts of the responses to requests that come at once."""
    calls = [worker.begin(Kind.PREDICT, request) for request in requests]
    return [texts_of((await worker.rest(call))[0].payload) for call in calls]


async def test_requests_that_come_together_share_a_prediction(tmp_path: Path) -> None:
    async with ready_host(tmp_path, COUNTING, LONG) as (host, worker):
        sent = [text_request("a", id="1"), text_request("b", "c", id="2"), text_request("d"), text_request("e")]
        calls = [worker.begin(Kind.PREDICT, request) for request in sent]
        found = [(await worker.rest(call))[0].json for call in calls]
        assert [one["outputs"][0] for one in found] == [
            {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["a of 5"]},
            {"name": "text", "shape": [2], "datatype": "BYTES", "data": ["b of 5", "c of 5"]},
            {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["d of 5"]},
            {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["e of 5"]},
        ]
        assert [one["id"] for one in found[:2]] == ["1", "2"]
        assert len({one["id"] for one in found}) == 4
        assert {one["model_name"] for one in found} == {"trial"}
        await host.figures(calls=4, batches=1, batched_requests=4, failures=0)


async def test_a_batch_is_not_awaited_for_longer_than_its_time(tmp_path: Path) -> None:
    async with ready_host(tmp_path, COUNTING, BATCHING) as (host, worker):
        assert await texts(worker, text_request("a"), text_request("b")) == [["a of 2"], ["b of 2"]]
        assert await texts(worker, text_request("a")) == [["a of 1"]]
        await host.figures(batches=2, batched_requests=3)


async def test_a_batch_that_is_full_does_not_wait(tmp_path: Path) -> None:
    async with ready_host(tmp_path, COUNTING, LONG) as (host, worker):
        found = await texts(worker, *[text_request(str(n)) for n in range(8)])
        assert found == [[f"{n} of 4"] for n in range(8)]
        await host.figures(batches=2, batched_requests=8)


def other(name: str = "text", datatype: str = "BYTES", data: Any = ("z",), **fields: Any) -> bytes:
    tensor = {"name": name, "datatype": datatype, "shape": [len(data)], "data": list(data)}
    shape = fields.pop("shape", None)
    parameters = fields.pop("input_parameters", None)
    tensor |= {"shape": shape} if shape else {}
    tensor |= {"parameters": parameters} if parameters else {}
    return json.dumps({"inputs": [tensor], **fields}).encode()


_DIFFERENT = [
    other(name="prompt"),
    other(datatype="INT32", data=[7]),
    other(shape=[1, 1]),
    other(parameters={"temperature": 1}),
    other(input_parameters={"content_type": "str"}),
    other(outputs=[{"name": "y"}]),
    other(data=["z", "y"], shape=[5]),
]


async def test_requests_that_do_not_fit_are_not_merged(tmp_path: Path) -> None:
    async with ready_host(tmp_path, COUNTING, BATCHING) as (_, worker):
        for differs in _DIFFERENT:
            a, found, b = await texts(worker, text_request("a"), differs, text_request("b"))
            assert (a, b) == (["a of 2"], ["b of 2"]), differs
            assert found[0] in ("z of 1", "7 of 1", "z of 2")


async def test_a_request_that_fails_fails_alone(tmp_path: Path) -> None:
    async with ready_host(tmp_path, COUNTING, LONG) as (host, worker):
        calls = [worker.begin(Kind.PREDICT, text_request(text)) for text in ("a", "bad", "b", "c")]
        (a, _), (bad,), (b, _), (c, _) = [await worker.rest(call) for call in calls]
        assert [texts_of(one.payload) for one in (a, b, c)] == [["a of 1"], ["b of 1"], ["c of 1"]]
        assert bad.json == {"status": 500, "is_own": False, "type": "ValueError", "reason": "bad text"}
        await host.figures(failures=1, batches=1)


async def test_a_response_that_cannot_be_cut_is_asked_for_again_for_each(tmp_path: Path) -> None:
    async with ready_host(tmp_path, COUNTING, LONG) as (_, worker):
        found = await texts(worker, *[text_request(text) for text in ("a", "odd", "b", "c")])
        assert found == [["a of 1"], ["one row for all"], ["b of 1"], ["c of 1"]]


async def test_a_request_that_is_cancelled_leaves_its_batch(tmp_path: Path) -> None:
    async with ready_host(tmp_path, COUNTING, LONG) as (host, worker):
        calls = [worker.begin(Kind.PREDICT, text_request(text)) for text in ("a", "b", "c")]
        worker.send(worker.begin(Kind.PREDICT, b"{"), Kind.CANCEL)
        await host.figures(in_flight=3)
        worker.send(calls.pop(1), Kind.CANCEL)
        calls.append(worker.begin(Kind.PREDICT, text_request("d")))
        found = [texts_of((await worker.rest(call))[0].payload) for call in calls]
        assert found == [["a of 3"], ["c of 3"], ["d of 3"]]
        await host.figures(in_flight=0, batched_requests=3)


async def test_a_prediction_that_nobody_waits_for_is_cancelled(tmp_path: Path) -> None:
    async with ready_host(tmp_path, COUNTING, BATCHING) as (host, worker):
        calls = [worker.begin(Kind.PREDICT, text_request("sleepy")) for _ in range(4)]
        await host.figures(batches=1)
        for call in calls[1:]:
            worker.send(call, Kind.CANCEL)
        await host.figures(in_flight=1)
        assert "ended" not in host.stderr()
        worker.send(calls[0], Kind.CANCEL)
        await host.said("ended")
        await host.figures(in_flight=0)


async def test_what_a_stream_predicts_is_batched_and_streams_themselves_are_not(tmp_path: Path) -> None:
    async with ready_host(tmp_path, COUNTING, LONG) as (_, worker):
        found = await asyncio.gather(*(worker.texts(text_request(text)) for text in "abcd"))
        assert found == [[[f"{text} of 4"]] for text in "abcd"]


async def test_a_time_of_zero_batches_nothing(tmp_path: Path) -> None:
    async with ready_host(tmp_path, COUNTING, {"max_batch_size": 4}) as (host, worker):
        assert await texts(worker, text_request("a"), text_request("b")) == [["a of 1"], ["b of 1"]]
        await host.figures(batches=0, batched_requests=0, calls=2)


async def test_an_exit_of_the_model_in_a_batch_ends_the_process(tmp_path: Path) -> None:
    code = """
    class Model(MLModel):
        async def predict(self, request):
            sys.exit("enough")
    """
    async with ready_host(tmp_path, code, LONG) as (host, worker):
        calls = [worker.begin(Kind.PREDICT, text_request("a")) for _ in range(4)]
        ends: list[Frame] = [(await worker.rest(call))[-1] for call in calls]
        assert {one.json["type"] for one in ends} == {"SystemExit"}
        assert await host.process.wait() == 1


def tensor(data: Any, shape: list[int], parameters: dict[str, Any] | None = None, name: str = "x") -> RequestInput:
    given = {"parameters": Parameters(**parameters)} if parameters else {}
    return RequestInput(name=name, datatype="FP32", shape=shape, data=data, **given)


def request(*tensors: RequestInput, **fields: Any) -> InferenceRequest:
    return InferenceRequest(inputs=list(tensors), **fields)


def output(data: Any, shape: list[int], **fields: Any) -> ResponseOutput:
    return ResponseOutput(name="y", datatype="FP32", shape=shape, data=data, **fields)


@pytest.fixture(autouse=True)
def types(monkeypatch: pytest.MonkeyPatch) -> None:
    """The types by the name that a model knows them by."""
    import sys

    from opensearch_ml_stream.runtimes.interface import types as ours

    monkeypatch.setitem(sys.modules, "mlserver.types", ours)


def test_tensors_are_joined_by_name_along_their_first_axis() -> None:
    first = request(tensor([1.0, 2.0], [1, 2]), tensor([9.0], [1], name="z"), id="a")
    second = request(tensor([7.0, 8.0], [2], name="z"), tensor([3.0, 4.0, 5.0, 6.0], [2, 2]), id="b")
    assert batch_key(first) == batch_key(second) is not None
    merged = merge([first, second])
    assert merged.model_dump() == {
        "inputs": [
            {"name": "x", "shape": [3, 2], "datatype": "FP32", "data": [1, 2, 3, 4, 5, 6]},
            {"name": "z", "shape": [3], "datatype": "FP32", "data": [9, 7, 8]},
        ]
    }


def test_nested_data_stays_nested() -> None:
    requests = [request(tensor([[1.0, 2.0]], [1, 2])), request(tensor([[3.0, 4.0]], [1, 2]))]
    assert merge(requests).inputs[0].data.root == [[1, 2], [3, 4]]
    assert batch_key(requests[0]) != batch_key(request(tensor([1.0, 2.0], [1, 2])))
    found = split(requests, InferenceResponse(model_name="m", outputs=[output([[1], [2]], [2, 1])]))
    assert [one.outputs[0].data.root for one in found] == [[[1]], [[2]]]


def test_parameters_of_inputs_become_lists_and_the_content_type_stays() -> None:
    requests = [request(tensor([n], [1], {"content_type": "np", "own": n})) for n in (1.0, 2.0)]
    assert merge(requests).inputs[0].parameters.model_dump() == {"content_type": "np", "own": [1.0, 2.0]}


def of(**headers: str) -> InferenceRequest:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return request(tensor([1.0], [1]), parameters=Parameters(headers=named, top=1))


@pytest.mark.parametrize(
    "name",
    ["content-length", "user-agent", "host", "accept", "x-request-id", "traceparent", "x-b3-spanid", "ce-id", "Date"],
)
def test_requests_that_differ_in_how_they_came_share_a_batch_which_has_the_headers_of_all(name: str) -> None:
    first, second, third = of(x_lang="de", **{name: "1"}), of(x_lang="de", **{name: "2"}), of(x_lang="de")
    assert batch_key(first) == batch_key(second) == batch_key(third) is not None
    assert merge([first, second]).parameters.model_dump() == {"headers": {"x-lang": "de"}, "top": 1}
    assert merge([third, first]).parameters.headers == {"x-lang": "de"}
    assert merge([first, first]).parameters.headers == {"x-lang": "de", name: "1"}
    assert first.parameters is not None and first.parameters.headers == {"x-lang": "de", name: "1"}


@pytest.mark.parametrize(
    "name", ["x-lang", "accept-language", "baggage", "x-user-agent", "x-content-length", "prefer", "content-language"]
)
def test_a_header_that_may_say_what_is_asked_keeps_requests_apart(name: str) -> None:
    assert len({batch_key(one) for one in (of(**{name: "1"}), of(**{name: "2"}), of())}) == 3


def test_a_response_is_cut_by_rows() -> None:
    requests = [request(tensor([0.0] * n, [n]), id=str(n)) for n in (1, 2)]
    parameters = Parameters(content_type="np", row=["r0", "r1", "r2"], each=["e0", "e1"], same="all")
    whole = InferenceResponse(
        model_name="m",
        model_version="v1",
        outputs=[output([1, 2, 3, 4, 5, 6], [3, 2], parameters=parameters)],
        parameters=Parameters(took=1),
    )
    one, two = split(requests, whole)
    assert one.model_dump(exclude_none=True) == {
        "model_name": "m",
        "model_version": "v1",
        "id": "1",
        "parameters": {"took": 1},
        "outputs": [
            {
                "name": "y",
                "shape": [1, 2],
                "datatype": "FP32",
                "parameters": {"content_type": "np", "row": "r0", "each": "e0", "same": "all"},
                "data": [1, 2],
            }
        ],
    }
    assert two.outputs[0].data.root == [3, 4, 5, 6]
    assert two.outputs[0].parameters.model_dump() == {"content_type": "np", "row": "r1", "each": "e1", "same": "all"}


@pytest.mark.parametrize("wrong", [output([1], [1]), output([1, 2, 3], [2]), output([], [0])])
def test_a_response_with_other_rows_cannot_be_cut(wrong: ResponseOutput) -> None:
    requests = [request(tensor([0.0], [1])) for _ in range(2)]
    with pytest.raises(CannotSplit, match="for a batch of 2 rows"):
        split(requests, InferenceResponse(model_name="m", outputs=[wrong]))


@pytest.mark.parametrize(
    "alone",
    [
        request(),
        request(tensor([], [])),
        request(tensor([1.0, 2.0], [3])),
        request(tensor([1.0], [1]), tensor([1.0, 2.0], [2], name="z")),
        request(tensor([1.0], [1]), tensor([1.0], [1])),
        request(tensor("text", [1])),
    ],
)
def test_a_request_whose_rows_are_not_clear_goes_alone(alone: InferenceRequest) -> None:
    assert batch_key(alone) is None
