"""A key of the sidecar in place of the client's own login, over all four kinds of connection."""

from pathlib import Path
from typing import Any

import pytest
from opensearchpy import AsyncHttpConnection, OpenSearch
from opensearchpy.connection import RequestsHttpConnection, Urllib3HttpConnection
from opensearchpy.exceptions import ImproperlyConfigured

from opensearch_ml_stream.client import RequestRefused, StreamingMLClient, predict_stream
from opensearch_ml_stream.client.authorization import basic
from opensearch_ml_stream.client.use_cases import Access
from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.wire_format import NDJSON
from tests.client.in_memory_connections import ASYNC, BLOCKING, PARAMETERS, InMemoryServer, Reply, Sent, stream

# opensearch-py's AsyncHttpConnection still uses it.
pytestmark = pytest.mark.filterwarnings("ignore:BasicAuth is deprecated:DeprecationWarning")

KEY = "mls_1_hunter2"
END = NDJSON.ending(Ending("stop", "stop"), {})
KINDS = pytest.mark.parametrize("kind", [*BLOCKING, *ASYNC], ids=lambda kind: kind.__name__)


async def ask(server: InMemoryServer, kind: type, options: dict[str, Any], **call: Any) -> Sent:
    """The request of one streamed prediction over a client with these options."""
    assert [chunk async for chunk in stream(server, kind, "http://cluster:9200", call, **options)]
    return server.sent[-1]


@KINDS
@pytest.mark.parametrize(
    "options",
    [{}, {"http_auth": ("admin", "of the cluster")}, {"headers": {"Authorization": "Bearer other"}}],
    ids=["none", "user", "header"],
)
@pytest.mark.parametrize("url", [None, "http://sidecar:9510", "http://me:pass@sidecar:9510"])
async def test_a_key_is_sent_in_place_of_any_other_login(kind: type, options: dict[str, Any], url: str | None) -> None:
    sent = await ask(InMemoryServer(Reply((END,))), kind, options, url=url, api_key=KEY)
    assert sent.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("kind", [Urllib3HttpConnection, RequestsHttpConnection, AsyncHttpConnection])
async def test_a_signer_of_the_cluster_does_not_sign_a_request_with_a_key(kind: type) -> None:
    def sign(*_arguments: object, **_more: object) -> dict[str, str]:
        raise AssertionError("signed")

    sent = await ask(InMemoryServer(Reply((END,))), kind, {"http_auth": sign}, api_key=KEY)
    assert sent.headers["authorization"] == f"Bearer {KEY}"


async def test_a_netrc_file_does_not_replace_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine cluster login me password hunter2\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server = InMemoryServer(Reply((END,)))
    assert (await ask(server, RequestsHttpConnection, {})).headers["authorization"].startswith("Basic ")
    sent = await ask(server, RequestsHttpConnection, {}, api_key=KEY)
    assert sent.headers["authorization"] == f"Bearer {KEY}"


@KINDS
async def test_nothing_is_taken_from_the_environment(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLSTREAM_API_KEY", KEY)
    assert "authorization" not in (await ask(InMemoryServer(Reply((END,))), kind, {})).headers


@pytest.mark.parametrize("key", ["", "hunter2\n", "hunter 2", "hünter2", "hunter2" * 1000])
def test_what_cannot_be_a_key_is_refused_unsent_and_unshown(key: str) -> None:
    server = InMemoryServer(Reply((END,)))
    client = OpenSearch("http://cluster:9200", connection_class=server.connection_class(Urllib3HttpConnection))
    with pytest.raises(ImproperlyConfigured, match="api_key cannot be used: a key has") as raised:
        predict_stream(client, "m1", PARAMETERS, api_key=key)
    assert "nter" not in str(raised.value) and server.sent == []
    with pytest.raises(ImproperlyConfigured):
        StreamingMLClient(client, api_key=key)


def test_no_repr_shows_the_key() -> None:
    client = OpenSearch("http://cluster:9200")
    assert "hunter2" not in repr(StreamingMLClient(client, api_key=KEY)) + repr(Access(api_key=KEY))


@KINDS
@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply((b"Unauthorized",), 401, "text/plain"), "Unauthorized"),
        (Reply((b'{"error":{"type":"t"}}',), 403, "application/json"), "t"),
    ],
    ids=["401", "403"],
)
async def test_a_refusal_does_not_show_the_key(kind: type, reply: Reply, reason: str) -> None:
    server = InMemoryServer(reply)
    with pytest.raises(RequestRefused) as raised:
        await ask(server, kind, {}, api_key=KEY)
    assert (raised.value.status, raised.value.reason) == (reply.status, reason)
    assert "hunter2" not in repr(raised.value) + str(raised.value)
    assert len(server.sent) == 1


@pytest.mark.parametrize("name", ["", "a:b"])
def test_a_user_whose_name_no_header_can_hold_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="not empty and holds no colon"):
        basic(name, "pass")
