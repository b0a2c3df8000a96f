"""The client is closed with its context."""

from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream.clients.native_client import NativeUpstream
from opensearch_ml_stream.plugin.upstream.clients.open_upstream import open_upstream


async def test_the_upstream_is_closed_with_its_context() -> None:
    async with open_upstream(LiveSettings(Settings())) as upstream:
        assert isinstance(upstream, NativeUpstream)
        assert not upstream.pool._closed
    assert upstream.pool._closed
