"""What MLServer and this server respond to the same requests, for the same runtimes: the same, over HTTP and gRPC.

What differs on purpose is tested in test_differences.py and listed in docs/coming-from.md.
"""

import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.json_format import MessageToDict
from httpx_sse import connect_sse
from integration_tests.interop.side_by_side.two_servers import Both, Server, asked, both_servers, tensor
from integration_tests.interop.v2_clients.v2_stub import v2_stub

from opensearch_ml_stream.extensions.v2.grpc import inference_messages as messages

pytestmark = [pytest.mark.peers, pytest.mark.timeout(180)]


@pytest.fixture(
    scope="module",
    params=[(False, 1), (True, 2)],
    ids=["our types, 1 worker", "MLServer's types, 2 workers"],
)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with both_servers(tmp_path_factory.mktemp("both"), *request.param) as both:
        yield both


AS_TEXT = {"parameters": {"content_type": "str"}}
REQUESTS: dict[str, tuple[str, Any]] = {
    "a text": ("words", asked(tensor("one two"))),
    "the client's id": ("words", asked(tensor("one two"), id="r-1")),
    "several texts": ("words", asked(tensor("one", "zwei ü", "\N{GRINNING FACE}"))),
    "parameters": ("words", asked(tensor("one"), parameters={"max_tokens": 3, "stop": ["a", "b"]})),
    "outputs": ("words", asked(tensor("one"), outputs=[{"name": "output"}])),
    "a version": ("words/versions/v1.2.3", asked(tensor("one"))),
    "another version": ("words/versions/v7", asked(tensor("one"))),
    "another model": ("nowhere", asked(tensor("one"))),
    "another model's version": ("nowhere/versions/v1", asked(tensor("one"))),
    "a content type of the input": ("echo", asked(tensor("one", "two", name="by-input", **AS_TEXT))),
    "a content type of the metadata": ("echo", asked(tensor("one", name="by-metadata"))),
    "base64": ("echo", asked(tensor("b25l", name="binary", parameters={"content_type": "base64"}))),
    "a date": ("echo", asked(tensor("2026-01-02T03:04:05", name="at", parameters={"content_type": "datetime"}))),
    "the simplified interface": (
        "lists",
        asked(tensor("a", "b", name="questions", **AS_TEXT), tensor("c", "d", name="contexts", **AS_TEXT)),
    ),
    "a batch of one": ("batched", asked(tensor("a"))),
    "an empty response": ("broken", asked(tensor("nothing"))),
    "no inputs": ("words", {}),
    "inputs that are no list": ("words", {"inputs": 1}),
    "a datatype that there is not": ("words", asked({**tensor("a"), "datatype": "TEXT"})),
    "a shape that is no list": ("words", asked({**tensor("a"), "shape": "a"})),
}
MATRIX = {"name": "matrix", "shape": [2, 2], "datatype": "FP64", "data": [1.5, 2, 3, 4]}
AS_ARRAY = {"parameters": {"content_type": "np"}}
WITH_NUMPY: dict[str, tuple[str, Any]] = {
    "a matrix": ("arrays", asked(MATRIX)),
    "a matrix of integers": ("arrays", asked({**MATRIX, "datatype": "INT32", "data": [1, 2, 3, 4]})),
    "a nested matrix": ("arrays", asked({**MATRIX, "data": [[1.5, 2], [3, 4]]})),
    "echoed numbers": ("echo", asked({**MATRIX, **AS_ARRAY})),
    "booleans": ("echo", asked({**MATRIX, "datatype": "BOOL", "data": [True, False, True, True], **AS_ARRAY})),
}
STREAMED = ("a text", "the client's id", "a version", "parameters", "several texts", "a content type of the input")


def told(server: Server, path: str, body: Any) -> tuple[int, Any]:
    """The status and the body; an id that the server made is left out, and of what is no request all but `detail`."""
    response = server.rest.post(f"/v2/models/{path}/infer", json=body)
    said = response.json()
    if response.status_code == 422:
        return 422, [{name: one[name] for name in ("type", "loc", "msg")} for one in said["detail"]]
    return response.status_code, without_made_id(said, body)


def without_made_id(response: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    if "id" not in body and "outputs" in response:
        assert len(response.pop("id")) == len("00000000-0000-0000-0000-000000000000")
    return response


@pytest.mark.parametrize("name", REQUESTS)
def test_infer(both: Both, name: str) -> None:
    path, body = REQUESTS[name]
    assert told(both.here, path, body) == told(both.mlserver, path, body)


@pytest.mark.parametrize("both", [(True, 2)], ids=["where NumPy is"], indirect=True)
@pytest.mark.parametrize("name", WITH_NUMPY)
def test_infer_with_arrays(both: Both, name: str) -> None:
    path, body = WITH_NUMPY[name]
    assert told(both.here, path, body) == told(both.mlserver, path, body)


def streamed(server: Server, path: str, body: Any) -> list[Any]:
    """Each response of a stream; without the CloudEvents headers that MLServer writes into each of them."""
    with connect_sse(server.rest, "POST", f"/v2/models/{path}/infer_stream", json=body) as source:
        responses = [without_made_id(event.json(), body) for event in source.iter_sse()]
    for response in responses:
        response["parameters"].pop("headers", None)
    return responses


@pytest.mark.parametrize("name", STREAMED)
def test_infer_stream(both: Both, name: str) -> None:
    """The last request's runtime does not stream: its one response is the stream."""
    path, body = REQUESTS[name]
    theirs = streamed(both.mlserver, path, body)
    assert theirs
    assert streamed(both.here, path, body) == theirs


def test_a_header_of_the_request_reaches_the_model_and_one_of_the_response_the_client(both: Both) -> None:
    heard = [
        server.rest.post("/v2/models/headers/infer", json=asked(tensor("a")), headers={"x-said": "hello"})
        for server in (both.here, both.mlserver)
    ]
    assert [one.headers.get("x-heard") for one in heard] == ["hello", "hello"]
    assert heard[0].json()["outputs"] == heard[1].json()["outputs"]


def test_requests_that_come_together_are_predicted_together(both: Both) -> None:
    for server in (both.here, both.mlserver):
        said: set[str] = set()

        def ask(number: int, server: Server = server, said: set[str] = said) -> None:
            _, body = told(server, "batched", asked(tensor(f"text {number}")))
            said.add(body["outputs"][0]["data"][0])

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {text.partition(" of ")[0] for text in said} == {f"text {number}" for number in range(8)}
        assert any(not text.endswith(" of 1") for text in said)


@pytest.mark.parametrize(("kind", "status"), [("inference", 400), ("parameters", 400), ("status", 422)])
def test_an_error_that_the_model_gives_a_status_has_its_words(both: Both, kind: str, status: int) -> None:
    theirs, ours = (
        server.rest.post("/v2/models/broken/infer", json=asked(tensor(kind))) for server in (both.mlserver, both.here)
    )
    assert theirs.status_code == status
    assert (ours.status_code, ours.json()) == (status, theirs.json())


@pytest.mark.parametrize("path", ["words", "words/versions/v1.2.3", "words/versions/v7", "lists", "echo", "nowhere"])
def test_metadata_and_readiness(both: Both, path: str) -> None:
    """But for versions that the file does not name, and the id of the model's document: see test_differences.py."""
    ours, theirs = (server.rest.get(f"/v2/models/{path}") for server in (both.here, both.mlserver))
    assert ours.status_code == theirs.status_code
    left_out = ("parameters",) if path.startswith("words") else ("versions", "parameters")
    ours_said, theirs_said = (
        {name: value for name, value in one.json().items() if name not in left_out} for one in (ours, theirs)
    )
    assert ours_said == theirs_said
    ready = [server.rest.get(f"/v2/models/{path}/ready").status_code for server in (both.here, both.mlserver)]
    assert ready[0] == ready[1]


def test_the_repository_lists_the_same_models(both: Both) -> None:
    def index(server: Server) -> list[tuple[str, str, str]]:
        listed = server.rest.post("/v2/repository/index", json={}).json()
        return sorted((model["name"], model["state"], model["reason"]) for model in listed)

    assert index(both.here) == index(both.mlserver)


def test_a_model_that_is_unloaded_is_not_found_until_it_is_loaded(both: Both) -> None:
    for operation, status in (("unload", 404), ("load", 200)):
        for server in (both.here, both.mlserver):
            assert server.rest.post(f"/v2/repository/models/lists/{operation}").status_code == 200
            path, body = REQUESTS["the simplified interface"]
            assert told(server, path, body)[0] == status


def message(*texts: str, model: str = "words", version: str = "", raw: bool = False) -> Any:
    asked = messages.ModelInferRequest(model_name=model, model_version=version, id="r1")
    tensor = asked.inputs.add(name="prompt", datatype="BYTES", shape=[len(texts)])
    if raw:
        tensor.parameters["content_type"].string_param = "str"  # as MLServer's codecs do
        asked.raw_input_contents.append(b"".join(len(t.encode()).to_bytes(4, "little") + t.encode() for t in texts))
    else:
        tensor.contents.bytes_contents.extend(text.encode() for text in texts)
    return asked


GRPC_REQUESTS = {
    "a text": lambda: message("one two"),
    "several texts": lambda: message("one", "zwei ü"),
    "raw": lambda: message("one two", raw=True),
    "a version": lambda: message("one", version="v1.2.3"),
    "another version": lambda: message("one", version="v7"),
    "another model": lambda: message("one", model="nowhere"),
}


@pytest.mark.parametrize("name", GRPC_REQUESTS)
def test_model_infer_and_model_stream_infer(both: Both, name: str) -> None:
    ours, theirs = (over_grpc(server, name) for server in (both.here, both.mlserver))
    assert ours == theirs


def over_grpc(server: Server, name: str) -> list[Any]:
    """What one request gets whole, and streamed: messages as JSON, or the code and the text of an error."""
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        stub = v2_stub(channel)
        calls = (
            lambda: [stub.ModelInfer(GRPC_REQUESTS[name]())],
            lambda: list(stub.ModelStreamInfer(iter([GRPC_REQUESTS[name]()]))),
        )
        return [ended(call) for call in calls]


def ended(call: Any) -> Any:
    """The messages, where raw contents stand without an empty message beside them; or the error."""
    try:
        responses = [MessageToDict(response) for response in call()]
    except grpc.RpcError as error:
        return error.code(), str(error.details()).replace(" with version  not found", " not found")  # MLServer's slip
    for output in (output for response in responses for output in response["outputs"]):
        if not output.get("contents", True):
            del output["contents"]
    return responses


def test_a_stream_of_requests_over_grpc_reaches_the_model_as_a_stream(both: Both) -> None:
    said = []
    for server in (both.here, both.mlserver):
        with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
            requests = iter([message("one two"), message("three")])
            said.append([MessageToDict(one) for one in v2_stub(channel).ModelStreamInfer(requests)])
    assert said[0] == said[1]
    assert len(said[0]) == 3


def joined(server: Server, *requests: Any) -> list[Any]:
    """What a call with all of these messages gets; the id that a server has made is left out."""
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        responses = ended(lambda: list(v2_stub(channel).ModelStreamInfer(iter(requests))))
    return list(responses)


@pytest.mark.parametrize(
    "requests",
    [
        [message("a", model="joined")],
        [message("a", model="joined"), message("b", "c", model="joined"), message("d", model="joined")],
        [message("a", model="joined"), message("b", model="words"), message("c", model="nowhere", version="v7")],
        [message("a", model="joined", raw=True), message("b", model="joined")],
        [message("a", model="joined"), message("b", model="joined", raw=True)],
        [message("a", model="joined"), message("enough", model="joined"), message("b", model="joined")],
    ],
    ids=["one", "several", "of other models", "raw at first", "raw later", "more than it takes"],
)
def test_all_messages_of_a_call_are_requests_of_one_stream(both: Both, requests: list[Any]) -> None:
    theirs = joined(both.mlserver, *requests)
    assert theirs
    assert joined(both.here, *requests) == theirs


def test_a_model_without_a_stream_takes_the_first_message_of_a_call(both: Both) -> None:
    requests = message("a", model="echo"), message("b", model="echo")
    assert [len(joined(server, *requests)) for server in both.in_turn] == [1, 1]


def test_responses_come_before_the_client_has_sent_its_last_message(both: Both) -> None:
    for server in both.in_turn:
        last = threading.Event()

        def requests(last: threading.Event = last) -> Iterator[Any]:
            yield message("a", model="joined")
            assert last.wait(20)
            yield message("b", model="joined")

        with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
            said = []
            for response in v2_stub(channel).ModelStreamInfer(requests()):
                said.append([text.decode() for text in response.outputs[0].contents.bytes_contents])
                last.set()
        assert said == [["1"], ["2"], ["a", "b"]]
