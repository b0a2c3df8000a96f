"""Many requests to one, one response to many."""

from typing import Any

import pytest

from opensearch_ml_stream.runtimes.host.batching import CannotSplit, batch_key, merge, split
from opensearch_ml_stream.runtimes.interface.types import (
    InferenceRequest,
    InferenceResponse,
    Parameters,
    RequestInput,
    ResponseOutput,
)


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
