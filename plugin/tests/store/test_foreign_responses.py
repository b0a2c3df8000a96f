"""What the store makes of a server that responds with JSON as OpenSearch never would: a proxy, or another server."""

from collections.abc import Awaitable, Callable
from itertools import product
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import MLStreamError, Unavailable
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.opensearch_store import OpenSearchStore
from tests.store.canned_cluster import Canned, CannedCluster

Call = Callable[[OpenSearchStore], Awaitable[object]]

FOREIGN = "The server at the store's URL does not respond as OpenSearch does; check host, port and path"
CALLS: dict[str, Call] = {
    "get": lambda store: store.get(Index.MODEL, "m"),
    "changed": lambda store: store.changed(Index.MODEL, "m", 0, 1),
    "search": lambda store: store.search(Index.MODEL, {}),
    "percolate": lambda store: store.percolate("words", {}),
    "create": lambda store: store.create(Index.MODEL, {}),
    "put": lambda store: store.put(Index.MODEL, "m", {}),
    "delete": lambda store: store.delete(Index.MODEL, "m"),
    "script": lambda store: store.run_painless("return 1", {}),
    "health": lambda store: store.index_statuses(),
    "settings": lambda store: store.cluster.settings(),
    "agents": lambda store: store.cluster.agents_using("m"),
    "ping": lambda store: store.ping(),
}
ALL_CALLS = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
VALUES: list[Any] = [{}, [1], "text", 5, True, None, {"message": "welcome"}, {"error": "no"}, {"error": [1]}]


async def error_of(call: Call, response: Canned, has_index: bool = True) -> MLStreamError:
    with pytest.raises(MLStreamError) as raised:
        await call(CannedCluster([response], has_index).store())
    return raised.value


@ALL_CALLS
async def test_foreign_json_is_an_unavailable_store_and_never_a_missing_document(call: Call) -> None:
    for value, status in product(VALUES, (200, 404)):
        error = await error_of(call, Canned(value, status))
        assert isinstance(error, Unavailable), (value, status)
        assert error.reason == FOREIGN or error.reason.startswith("OpenSearch failed to ")


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("get", {"found": True}),
        ("get", {"_id": "m", "found": True, "_version": 1, "_seq_no": 1, "_primary_term": 1, "_source": "{}"}),
        ("get", {"_id": "m", "found": True, "_version": "1", "_seq_no": 1, "_primary_term": 1, "_source": {}}),
        ("changed", {"_seq_no": "0", "_primary_term": 1}),
        ("search", {"hits": []}),
        ("search", {"hits": {"hits": {}}}),
        ("search", {"hits": {"hits": [1]}}),
        ("search", {"hits": {"hits": [{"_source": {}}]}}),
        ("search", {"hits": {"hits": [{"_id": "m", "_source": []}]}}),
        ("percolate", {"hits": {"total": 1}}),
        ("create", {"_id": "m", "_seq_no": 1}),
        ("health", {"indices": []}),
        ("settings", {"persistent": {}}),
        ("settings", {"persistent": {}, "transient": []}),
        ("ping", {"version": "1"}),
        ("ping", {"version": {"number": 1}}),
    ],
)
async def test_json_that_is_only_half_right_is_foreign_too(call: str, value: Any) -> None:
    assert (await error_of(CALLS[call], Canned(value))).reason == FOREIGN


@ALL_CALLS
async def test_an_error_whose_body_is_no_object_is_no_internal_error(call: Call) -> None:
    for body, status in product(["[1]", '"no"', "5", "null", "[" * 100_000], [400, 403, 409, 500]):
        error = await error_of(call, Canned(body, status))
        assert error.status in (400, 409, 503), (body[:6], status)
        assert error.reason


@pytest.mark.parametrize("body", ["[1]", "{}", '{"error": [1]}', '{"error": {"root_cause": 5}}'])
async def test_an_index_that_a_foreign_server_does_not_create_is_no_internal_error(body: str) -> None:
    error = await error_of(CALLS["put"], Canned(body, 400), has_index=False)
    assert error.reason == FOREIGN or error.reason.startswith("Index .plugins-ml-model cannot be created")
