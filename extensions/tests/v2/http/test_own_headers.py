"""Headers that a runtime gives its response: in the response's head, but none that are the server's to say."""

from typing import Any

import orjson
import pytest

from opensearch_ml_stream.extensions.v2.http.headers import own_headers
from opensearch_ml_stream.extensions.v2.http.use_cases import Inference
from opensearch_ml_stream.extensions.v2.protocol.local_responses import LocalResponse
from opensearch_ml_stream.extensions.v2.protocol.messages import ResponseShape
from tests.asgi_exchange import Exchange
from tests.v2.http.scripted_inferences import BODY, ScriptedInferences, V2Sidecar

SHAPE = ResponseShape("m1", None, "r1", is_local=True)


def response(headers: object) -> LocalResponse:
    return LocalResponse(SHAPE, {"model_name": "m1", "parameters": {"headers": headers, "k": 1}, "outputs": []})


class OwnInferences(ScriptedInferences):
    async def infer(self, inference: Inference) -> Any:
        return response({"X-Made-By": "echo", "Ce-Id": "forged", "content-length": "1"})


async def test_they_are_headers_of_the_response_and_no_parameters() -> None:
    exchange = await Exchange("POST", "/v2/models/m1/infer", BODY, {}).run(V2Sidecar(OwnInferences()).application)
    assert exchange.headers["x-made-by"] == "echo"
    assert exchange.headers["ce-id"] == "r1"
    assert int(exchange.headers["content-length"]) == len(exchange.body)
    assert orjson.loads(exchange.body) == {"model_name": "m1", "parameters": {"k": 1}, "outputs": []}


async def test_one_that_the_client_sent_too_is_said_once_as_the_runtime_says_it() -> None:
    headers = {"x-made-by": "client", "x-foo": "client"}
    exchange = await Exchange("POST", "/v2/models/m1/infer", BODY, headers).run(V2Sidecar(OwnInferences()).application)
    said = [pair for pair in exchange.messages[0]["headers"] if pair[0] in (b"x-made-by", b"x-foo")]
    assert sorted(said) == [(b"x-foo", b"client"), (b"x-made-by", b"echo")]


@pytest.mark.parametrize(
    "name",
    [
        "Content-Type", "content-encoding", "Transfer-Encoding", "connection", "keep-alive", "te", "trailer", "upgrade",
        "Set-Cookie", "Access-Control-Allow-Origin", "strict-transport-security", "x-frame-options", "x-accel-redirect",
        "sec-x", "proxy-x", "grpc-status", "ce-id", "x-bin", "x-\u00e9", "x y", "x\r\ny", "", "x" * 129, ":status",
    ],
)  # fmt: skip
def test_what_the_server_says_and_what_is_no_name_is_left_out(name: str) -> None:
    assert own_headers(response({name: "1", "x-a": "2"})) == ((b"x-a", b"2"),)


@pytest.mark.parametrize("value", ["a\r\nset-cookie: b", "\0", "\u00e9", "a" * 4097, 7, None])
def test_a_value_that_is_none_of_a_header_is_left_out(value: object) -> None:
    assert own_headers(response({"x-a": value, "X-B": "2 3"})) == ((b"x-b", b"2 3"),)


def test_there_are_so_many_at_most() -> None:
    assert len(own_headers(response({f"x-{number}": "1" for number in range(1000)}))) == 64
