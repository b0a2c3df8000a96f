"""Custom handlers without MLServer: what they are called with, what they return, and what is said of the others."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from opensearch_ml_stream.runtimes.frames import Kind, pack_message, unpack_message
from tests.runtimes.host.running_host import Frame, RunningHost, WorkerSide, ready_host, started_host

HANDLERS = """
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from mlserver.errors import InferenceError
from mlserver.handlers import custom_handler

class Model(MLModel):
    @property
    def broken(self):
        raise RuntimeError("a property that nobody asked for")

    @custom_handler(rest_path="/sum")
    async def sum(self, payload: list) -> int:
        return sum(payload)

    @custom_handler(rest_path="/names")
    def names(self, payload: dict[str, str]) -> str:
        return f"{self.name}: {', '.join(payload)}"

    @custom_handler(rest_path="/infer")
    async def infer(self, payload: InferenceRequest) -> InferenceResponse:
        return text_response(*[text.upper() for text in texts_of(payload)])

    @custom_handler(rest_path="/items/{item}", rest_method="get")
    async def item(self, item: int, times: int = 2, loud: bool = False) -> dict:
        return {"item": item * times, "loud": loud}

    @custom_handler(rest_path="/raw", rest_method="PUT")
    async def raw(self, request: Request):
        body = await request.body()
        said = f"{request.method} {request.url.path}?{request.url.query} {request.headers['x-said']} {len(body)}"
        return PlainTextResponse(said, 201, {"x-own": "1"})

    @custom_handler(rest_path="/bytes")
    async def bytes(self, payload: dict) -> bytes:
        return b"as text"

    @custom_handler(rest_path="/fails")
    async def fails(self, payload: dict):
        if payload["as"] == "http":
            raise HTTPException(409, "taken")
        raise InferenceError("cannot") if payload["as"] == "inference" else ValueError("no such value")

    @custom_handler(rest_path="/stream")
    async def stream(self, payload: dict):
        async def parts():
            yield "a"
        return StreamingResponse(parts())

    @custom_handler(rest_path="/several")
    async def several(self, one: dict, other: dict):
        return None

    @custom_handler(rest_path="slashless")
    async def slashless(self, payload: dict):
        return None
"""
SERVED = [
    ("POST", "/bytes"), ("POST", "/fails"), ("POST", "/infer"), ("GET", "/items/{item}"), ("POST", "/names"),
    ("PUT", "/raw"), ("POST", "/stream"), ("POST", "/sum"),
]  # fmt: skip


class Said(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[RunningHost, WorkerSide]]:
    async with ready_host(tmp_path, HANDLERS) as running:
        yield running


async def asked(worker: WorkerSide, method: str, path: str, body: bytes = b"", query: str = "") -> list[Frame]:
    head = {"method": method, "path": path, "query": query, "headers": [("x-said", "hello")]}
    return await worker.rest(worker.begin(Kind.HANDLE, pack_message(head, body)))


async def said(worker: WorkerSide, method: str, path: str, body: Any = None, query: str = "") -> Said:
    encoded = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    data, end = await asked(worker, method, path, encoded, query)
    assert (data.kind, end.kind) == (Kind.DATA, Kind.END), data
    head, content = unpack_message(data.payload)
    headers = dict(head["headers"])
    return Said(head["status"], json.loads(content) if headers["content-type"].endswith("json") else content, headers)


async def test_those_that_can_be_served_are_named_when_the_model_is_ready(tmp_path: Path) -> None:
    async with started_host(tmp_path, HANDLERS) as host:
        event = await host.event()
        assert [(one["method"], one["path"]) for one in event["handlers"]] == SERVED
        log = host.stderr()
    assert "the custom handler POST /several is not served: TypeError: several of its arguments are of the body" in log
    assert "the custom handler POST slashless is not served: ValueError: its path does not begin with a slash" in log


INFERENCE = {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["deep"]}]}
OUTPUT = {"name": "text", "shape": [1], "datatype": "BYTES", "parameters": None, "data": ["DEEP"]}


_CALLS: list[tuple[str, str, Any, str, int, Any]] = [
        ("POST", "/sum", [1, 2, 3], "", 200, 6),
        ("POST", "/names", {"a": "1", "b": "2"}, "", 200, "trial: a, b"),
        ("POST", "/bytes", {}, "", 200, "as text"),
        ("GET", "/items/7", None, "", 200, {"item": 14, "loud": False}),
        ("GET", "/items/7", None, "times=3&loud=true", 200, {"item": 21, "loud": True}),
        ("POST", "/fails", {"as": "http"}, "", 409, {"detail": "taken"}),
        ("GET", "/sum", None, "", 405, {"detail": "Method Not Allowed"}),
        ("GET", "/nowhere", None, "", 404, {"detail": "Not Found"}),
        (
            "POST", "/infer", INFERENCE, "", 200,
            {"model_name": "", "model_version": None, "id": None, "parameters": None, "outputs": [OUTPUT]},
        ),
]  # fmt: skip


async def test_a_handler_gets_its_arguments_and_its_response_is_json(served: tuple[RunningHost, WorkerSide]) -> None:
    for method, path, body, query, status, response in _CALLS:
        told = await said(served[1], method, path, body, query)
        assert (told.status, told.body, told.headers["content-type"]) == (status, response, "application/json"), path


async def test_a_handler_may_take_the_request_and_make_the_response_itself(
    served: tuple[RunningHost, WorkerSide],
) -> None:
    told = await said(served[1], "PUT", "/raw", b"\0\1\2", "a=%20b")
    assert (told.status, told.body, told.headers["x-own"]) == (201, b"PUT /raw?a=%20b hello 3", "1")


_FAILURES = [
    ("POST", "/sum", b"", 422, "MalformedRequest", "body: Field required"),
    ("POST", "/sum", b"{}", 422, "MalformedRequest", "body: Input should be a valid list"),
    ("POST", "/sum", b"[", 422, "MalformedRequest", "body: Invalid JSON"),
    ("POST", "/infer", b"{}", 422, "MalformedRequest", "body: inputs: Field required"),
    ("GET", "/items/x", b"", 422, "MalformedRequest", "path.item: Input should be a valid int"),
    ("POST", "/fails", b'{"as": "inference"}', 400, "InferenceError", "cannot"),
    ("POST", "/fails", b'{"as": "value"}', 500, "ValueError", "no such value"),
    ("POST", "/stream", b"{}", 500, "UnsendableResponse", "a custom handler cannot stream its response here"),
]


async def test_what_goes_wrong_is_told_as_for_a_prediction(served: tuple[RunningHost, WorkerSide]) -> None:
    for method, path, body, status, kind, reason in _FAILURES:
        [error] = await asked(served[1], method, path, body)
        assert error.kind == Kind.ERROR
        assert (error.json["status"], error.json["type"]) == (status, kind), (path, body)
        assert error.json["reason"].startswith(reason)
