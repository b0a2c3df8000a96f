"""Clients of the V2 protocol that need nothing of MLServer: httpx, httpx-sse, grpcio and the `.proto`."""

import gzip
import html
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from httpx_sse import connect_sse
from integration_tests.interop.v2_clients.client_programs import PROGRAMS, printed
from integration_tests.interop.v2_clients.served_words import ENDLESS, QUESTION, WORDS, Served, serving
from integration_tests.interop.v2_clients.v2_stub import V2Stub, v2_stub
from integration_tests.support.conditions import eventually

from opensearch_ml_stream.extensions.v2.grpc import inference_messages as messages

REQUEST: dict[str, Any] = json.loads((PROGRAMS / "generate-request.json").read_text("utf-8"))
MODELS = ("/v2/models/text-model", "/v2/models/text-model/versions/1")
ON_EACH = pytest.mark.parametrize("model", MODELS)


@pytest.fixture(
    scope="module",
    params=[(1, False), (2, True)],
    ids=["1 worker", "2 workers, gzip"],
)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served"), *request.param) as served:
        yield served


@pytest.fixture
def rest(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=served.sidecar.url, timeout=30) as client:
        yield client


@pytest.fixture(params=[grpc.Compression.NoCompression, grpc.Compression.Gzip], ids=["plain", "compressed"])
def stub(served: Served, request: pytest.FixtureRequest) -> Iterator[V2Stub]:
    with grpc.insecure_channel(f"127.0.0.1:{served.grpc_port}", compression=request.param) as channel:
        yield v2_stub(channel)


def message(question: str = QUESTION, model: str = "text-model", raw: bool = False) -> Any:
    asked = messages.ModelInferRequest(model_name=model, id="r1")
    tensor = asked.inputs.add(name="prompt", datatype="BYTES", shape=[1])
    text = question.encode()
    if raw:
        tensor.parameters["content_type"].string_param = "str"  # as MLServer's codecs do
        asked.raw_input_contents.append(len(text).to_bytes(4, "little") + text)
    else:
        tensor.contents.bytes_contents.append(text)
    return asked


def text_of(response: Any) -> str:
    """The only output's only element."""
    [output] = response.outputs
    if response.raw_output_contents:
        [raw] = response.raw_output_contents
        assert int.from_bytes(raw[:4], "little") == len(raw) - 4
        return bytes(raw[4:]).decode()
    [element] = output.contents.bytes_contents
    return bytes(element).decode()


@pytest.mark.parametrize("program", ["seldon_rest_stream.py", "seldon_grpc_stream.py"])
def test_a_chat_client_of_seldons_llm_module_gets_its_tensors(served: Served, tmp_path: Path, program: str) -> None:
    lines = printed(Path(sys.executable), program, served, tmp_path).splitlines()
    assert lines == [str(["assistant", word, "text"]) for word in WORDS]
    sent = served.provider.requests[-1].json()
    assert sent["messages"] == [{"role": "user", "content": QUESTION}]
    assert sent["temperature"] == (0.25 if "rest" in program else 1)


@ON_EACH
@pytest.mark.parametrize("operation", ["infer", "generate"])
def test_a_whole_response_has_one_output_with_the_text(rest: httpx.Client, model: str, operation: str) -> None:
    response = rest.post(f"{model}/{operation}", json=REQUEST).raise_for_status().json()
    [output] = response["outputs"]
    assert (output["name"], output["datatype"], output["data"]) == ("output", "BYTES", [QUESTION])
    assert response["parameters"]["finish_reason"] == "stop"
    assert response["parameters"]["usage"]["output_tokens"] == 6


@ON_EACH
@pytest.mark.parametrize("operation", ["infer_stream", "generate_stream"])
def test_a_stream_of_six_words_has_six_events(rest: httpx.Client, model: str, operation: str) -> None:
    with connect_sse(rest, "POST", f"{model}/{operation}", json=REQUEST) as source:
        responses = [event.json() for event in source.iter_sse()]
    assert [[output["data"] for output in response["outputs"]] for response in responses] == [[[w]] for w in WORDS]
    assert ["finish_reason" in response.get("parameters", {}) for response in responses] == [False] * 5 + [True]
    assert len({response["id"] for response in responses}) == 1


@pytest.mark.programs("curl")
def test_what_a_models_page_shows_can_be_pasted_into_a_shell(rest: httpx.Client) -> None:
    page = rest.get(f"{MODELS[0]}/docs").raise_for_status().text
    commands = [html.unescape(command) for command in re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)]
    ended = [subprocess.run(["bash", "-c", command], capture_output=True, timeout=20) for command in commands]
    assert all(one.returncode == 0 for one in ended)
    shown = {
        command.split("/text-model")[1].split(" ")[0]: one.stdout for command, one in zip(commands, ended, strict=True)
    }
    assert json.loads(shown["/infer"])["outputs"][0]["data"] == [QUESTION]
    assert json.loads(shown["/generate"])["text_output"] == QUESTION
    assert shown["/infer_stream"].count(b"data: ") == shown["/generate_stream"].count(b"data: ") == 6
    assert json.loads(shown[""])["name"] == "text-model"
    assert shown.keys() == {"", "/ready", "/infer", "/infer_stream", "/generate", "/generate_stream"}


def test_a_stream_in_the_text_dialect_has_six_events(rest: httpx.Client) -> None:
    with connect_sse(rest, "POST", f"{MODELS[0]}/generate_stream", json={"text_input": QUESTION}) as source:
        events = [event.json() for event in source.iter_sse()]
    assert [event["text_output"] for event in events] == WORDS


def test_responses_are_compressed_where_both_sides_want_it(served: Served, rest: httpx.Client) -> None:
    for operation in ("infer", "infer_stream"):
        for accepted in ("gzip", "identity"):
            response = rest.post(f"{MODELS[0]}/{operation}", json=REQUEST, headers={"accept-encoding": accepted})
            is_compressed = response.headers.get("content-encoding") == "gzip"
            assert is_compressed <= (served.gzip and accepted == "gzip")
            if operation == "infer_stream":
                assert is_compressed is (served.gzip and accepted == "gzip")
            assert "France?" in response.text


def test_a_compressed_request_is_read(rest: httpx.Client) -> None:
    body = gzip.compress(json.dumps(REQUEST).encode())
    headers = {"content-encoding": "gzip", "content-type": "application/json"}
    response = rest.post(f"{MODELS[0]}/infer", content=body, headers=headers)
    assert response.json()["outputs"][0]["data"] == [QUESTION]


@pytest.mark.parametrize("raw", [False, True], ids=["typed", "raw"])
def test_a_whole_response_over_grpc(stub: V2Stub, raw: bool) -> None:
    response = stub.ModelInfer(message(raw=raw))
    assert (text_of(response), response.id, bool(response.raw_output_contents)) == (QUESTION, "r1", raw)


@pytest.mark.parametrize("raw", [False, True], ids=["typed", "raw"])
def test_a_stream_of_six_words_over_grpc_has_six_messages(stub: V2Stub, raw: bool) -> None:
    responses = list(stub.ModelStreamInfer(iter([message(raw=raw)])))
    assert [text_of(response) for response in responses] == WORDS
    assert ["finish_reason" in response.parameters for response in responses] == [False] * 5 + [True]
    assert responses[-1].parameters["usage.output_tokens"].int64_param == 6


def test_a_stream_of_requests_over_grpc_is_answered_in_order(stub: V2Stub) -> None:
    responses = list(stub.ModelStreamInfer(iter([message("one two"), message("three")])))
    assert [text_of(response) for response in responses] == ["one", " two", "three"]


def test_a_model_that_is_not_there_is_not_found(rest: httpx.Client, stub: V2Stub) -> None:
    for operation in ("infer", "generate", "infer_stream", "generate_stream"):
        response = rest.post(f"/v2/models/my-model/versions/v0/{operation}", json=REQUEST)
        assert response.status_code == 404
        assert response.json() == {"error": "Model my-model with version v0 not found"}
    asked = message(model="my-model")
    asked.model_version = "v1.2.3"
    for call in (lambda: stub.ModelInfer(asked), lambda: list(stub.ModelStreamInfer(iter([asked])))):
        with pytest.raises(grpc.RpcError) as refused:
            call()
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND
        assert refused.value.details() == "Model my-model with version v1.2.3 not found"


def test_a_client_that_leaves_a_stream_leaves_nothing_behind(served: Served, stub: V2Stub) -> None:
    """Over gRPC; of HTTP the same is tested with every other stream."""
    before = served.provider.disconnects
    call = stub.ModelStreamInfer(iter([message(ENDLESS)]))
    assert text_of(next(call)) == "word"
    call.cancel()
    eventually(lambda: served.provider.disconnects > before)


def test_many_clients_at_once_get_each_their_own(served: Served, rest: httpx.Client) -> None:
    said: dict[int, str] = {}

    def ask(number: int) -> None:
        body = {"text_input": f"one two {number}"}
        with connect_sse(rest, "POST", f"{MODELS[0]}/generate_stream", json=body) as source:
            said[number] = "".join(event.json()["text_output"] for event in source.iter_sse())

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == {number: f"one two {number}" for number in range(20)}
