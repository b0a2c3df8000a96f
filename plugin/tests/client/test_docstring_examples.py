"""The examples in the public docstrings, and the one of docs/api.md, run as they stand, against a server in memory."""

import ast
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import orjson
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
        results = [{"output": [{"data": [1.0]}, {"data": [2.0]}]}]
        whole = orjson.dumps({"connector_id": "c1", "model_id": "m1", "inference_results": results})
        return streamed if request.url.endswith("/stream") else Reply((whole,), content_type="application/json")


def example_of(name: str) -> str:
    match = re.search(r"^Example:\n((?: {4}.*(?:\n|\Z))+)", inspect.getdoc(getattr(public, name)) or "", re.MULTILINE)
    assert match is not None, f"{name} has no example"
    return textwrap.dedent(match[1])


@pytest.mark.parametrize(
    "name", ["predict_stream", "async_predict_stream", "StreamingMLClient", "AsyncStreamingMLClient"]
)
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


def test_the_example_of_the_documentation_prints_the_response(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[3] / "docs/api.md").read_text("utf-8").partition("\n## Python\n")[2]
    block = re.search(r"^    .+\n(?:(?:    .+)?\n)+", page, re.MULTILINE)
    assert block is not None
    server = Sidecar()
    client = OpenSearch("http://s", connection_class=server.connection_class(Urllib3HttpConnection))
    names: dict[str, Any] = {"client": client, "model_id": "m1", "embedding_model_id": "m2"}
    exec(textwrap.dedent(block[0]), names)
    assert capsys.readouterr().out == "Rayleigh scattering"
    assert names["vectors"] == [[1.0], [2.0]]
