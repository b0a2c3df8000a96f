"""What the log says of a request, from the connection on which it came."""

import logging
from dataclasses import dataclass, field
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import (
    Forbidden,
    InvalidRequest,
    MLStreamError,
    Throttled,
    Unavailable,
    UpstreamError,
)
from opensearch_ml_stream.plugin.logs.configuration import FIELDS, KIND
from opensearch_ml_stream.plugin.logs.request_log import RequestLog
from opensearch_ml_stream.rest_handlers.http.asgi_extensions import REQUEST_NOTES
from tests.server.client_connection import Connection, settle

PATH = b"/_plugins/_ml/models/m1/_predict/stream"
REQUEST = b"GET %b?source=secret HTTP/1.1\r\nhost: h\r\n%b\r\n"


@dataclass
class Application:
    """Responds with a status, and leaves notes; or raises, or does nothing."""

    status: int = 200
    error: MLStreamError | None = None
    defect: Exception | None = None
    chunks: int | None = None
    silent: bool = False
    ids: list[str] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        notes = scope[REQUEST_NOTES]
        self.ids.append(notes.id)
        notes.error = self.error
        if self.chunks is not None:
            notes.stream = self
        if self.defect is not None:
            raise self.defect
        if self.silent:
            await receive()
            await receive()
            return
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def logged(
    app: Application, caplog: pytest.LogCaptureFixture, *, access: bool = False, headers: bytes = b""
) -> list[logging.LogRecord]:
    connection = Connection(app, log=RequestLog(lambda: access))
    with caplog.at_level(logging.DEBUG):
        await connection.receive(REQUEST % (PATH, headers))
        await settle()
        await connection.end()
    return caplog.records


def fields(record: logging.LogRecord) -> dict[str, Any]:
    shown: dict[str, Any] = getattr(record, FIELDS)
    return {name: value for name, value in shown.items() if value is not None and not name.endswith("_ms")}


async def test_a_good_request_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert await logged(Application(), caplog) == []


async def test_a_failed_request_is_one_line_with_id_model_and_cause(caplog: pytest.LogCaptureFixture) -> None:
    app = Application(424, UpstreamError("Error from remote service: no", provider_status=503), chunks=3)
    (record,) = await logged(app, caplog, headers=b"x-opaque-id: search-7\r\n")
    assert record.getMessage() == "request failed"
    assert fields(record) == {
        "id": app.ids[0],
        "opaque_id": "search-7",
        "method": "GET",
        "path": PATH.decode(),
        "model": "m1",
        "status": 424,
        "provider_status": 503,
        "type": "status_exception",
        "reason": "Error from remote service: no",
        "chunks": 3,
    }


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (Unavailable("x"), "ERROR"),
        (UpstreamError("x"), "WARNING"),
        (UpstreamError("x", provider_status=400), "WARNING"),
        (Throttled("x"), "WARNING"),
        (InvalidRequest("x"), "INFO"),
        (Forbidden("x"), "INFO"),
    ],
)
async def test_the_level_says_whose_fault_it_is(
    caplog: pytest.LogCaptureFixture, error: MLStreamError, level: str
) -> None:
    (record,) = await logged(Application(error.status, error), caplog)
    assert record.levelname == level


async def test_failures_of_one_model_do_not_silence_those_of_another_but_made_up_ids_are_alike(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (providers,) = await logged(Application(424, UpstreamError("x")), caplog)
    assert "m1" in getattr(providers, KIND)
    caplog.clear()
    (callers,) = await logged(Application(400, InvalidRequest("x")), caplog)
    assert "m1" not in getattr(callers, KIND)


async def test_a_defect_is_one_line_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    (record,) = await logged(Application(error=Unavailable("x"), defect=KeyError("secret")), caplog)
    assert record.levelname == "ERROR" and record.getMessage() == "internal error"
    assert record.exc_info is not None and record.exc_info[0] is KeyError
    assert fields(record)["model"] == "m1"


async def test_an_application_that_does_not_respond_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
        return

    connection = Connection(nothing)
    await connection.receive(REQUEST % (PATH, b""))
    assert caplog.messages == ["the response was not completed"]
    assert caplog.records[0].exc_info is None


async def test_the_access_log_has_one_line_a_request(caplog: pytest.LogCaptureFixture) -> None:
    app = Application(chunks=7)
    (record,) = await logged(app, caplog, access=True)
    assert record.name == "opensearch_ml_stream.access" and record.getMessage() == "request"
    shown = fields(record)
    assert (shown["status"], shown["outcome"], shown["chunks"], shown["id"]) == (200, "ok", 7, app.ids[0])
    times = getattr(record, FIELDS)
    assert 0 <= times["first_byte_ms"] <= times["duration_ms"]
    assert "secret" not in str(times)


async def test_a_request_that_failed_is_in_both(caplog: pytest.LogCaptureFixture) -> None:
    records = await logged(Application(503, Unavailable("x")), caplog, access=True)
    assert [(record.getMessage(), fields(record).get("outcome")) for record in records] == [
        ("request failed", None),
        ("request", "error"),
    ]


async def test_a_client_that_left_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    connection = Connection(Application(silent=True), log=RequestLog(lambda: True))
    with caplog.at_level(logging.DEBUG):
        await connection.receive(REQUEST % (PATH, b""))
        connection.transport.close()
        await settle()
    (record,) = caplog.records
    assert fields(record)["outcome"] == "client_left"
    assert "status" not in fields(record)


@pytest.mark.parametrize(
    ("sent", "is_taken"), [(b"0af7651916cd43dd", True), (b"a b", False), (b"x" * 65, False), (b"a%0a", False)]
)
async def test_the_id_of_a_proxy_is_taken_if_it_is_plain(
    caplog: pytest.LogCaptureFixture, sent: bytes, is_taken: bool
) -> None:
    app = Application()
    await logged(app, caplog, headers=b"X-Request-Id: " + sent + b"\r\n")
    assert (app.ids == [sent.decode()]) is is_taken
    assert len(app.ids[0]) >= 8


async def test_every_request_of_a_worker_has_another_id(caplog: pytest.LogCaptureFixture) -> None:
    app = Application()
    connection = Connection(app)
    for _ in range(3):
        await connection.receive(REQUEST % (PATH, b""))
    assert len(set(app.ids)) == 3
