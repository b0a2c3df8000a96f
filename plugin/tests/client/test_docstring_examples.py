"""The examples in the public docstrings run as they stand, against a server in memory."""

import ast
import inspect
import re
import textwrap
from typing import Any

import pytest
from opensearchpy import AIOHttpConnection, AsyncOpenSearch, OpenSearch
from opensearchpy.connection import Urllib3HttpConnection

from opensearch_ml_stream import client as public
from opensearch_ml_stream.connectors.chunks import Chunk as SentChunk
from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.wire_format import NDJSON
from tests.client.in_memory_connections import InMemoryServer, Reply, Sent

STREAM = Reply((NDJSON.chunks([SentChunk("Rayleigh "), SentChunk("scattering")]), NDJSON.ending(Ending(), {})))


class Sidecar(InMemoryServer):
    def __init__(self) -> None:
        super().__init__(STREAM)

    def respond(self, request: Sent) -> Reply:
        streamed = super().respond(request)
        ids = b'{"connector_id": "c1", "model_id": "m1"}'
        return streamed if request.url.endswith("/stream") else Reply((ids,), content_type="application/json")


def example_of(name: str) -> str:
    match = re.search(r"^Example:\n((?: {4}.*\n)+)", inspect.getdoc(getattr(public, name)) or "", re.MULTILINE)
    assert match is not None, f"{name} has no example"
    return textwrap.dedent(match[1])


@pytest.mark.parametrize("name", ["predict_stream", "async_predict_stream", "StreamingMLClient"])
async def test_the_example_prints_the_response(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    server = Sidecar()
    names: dict[str, Any] = {
        **{public_name: getattr(public, public_name) for public_name in public.__all__},
        "OpenSearch": lambda host: OpenSearch(host, connection_class=server.connection_class(Urllib3HttpConnection)),
        "AsyncOpenSearch": lambda host: AsyncOpenSearch(
            host, connection_class=server.connection_class(AIOHttpConnection)
        ),
        "model_id": "m1",
    }
    code = compile(example_of(name), name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    running = eval(code, names)
    if inspect.isawaitable(running):
        await running
    assert capsys.readouterr().out.strip() == "Rayleigh scattering"
    assert server.sent[-1].url.endswith("/models/m1/_predict/stream")
