"""The store in an OpenSearch cluster, in the indices that ML Commons uses.

Indices are created at the first write. Requests are not retried, since a write without a response may have been done.
There are two exceptions: a read or search whose connection broke is sent once more, and a request to a host that took
no connection is sent to the next host.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import Any

from aiohttp import ClientConnectorError
from opensearchpy import (
    AsyncOpenSearch,
    AsyncTransport,
    AuthenticationException,
    AuthorizationException,
    ConnectionTimeout,
    RequestError,
    TransportError,
)
from opensearchpy import ConnectionError as NoConnection

from opensearch_ml_stream.connectors.errors import InvalidRequest, Unavailable
from opensearch_ml_stream.plugin.store import ABSENT_SEQUENCE, Document, Index, Written
from opensearch_ml_stream.plugin.store.cluster_url import read_cluster_url
from opensearch_ml_stream.plugin.store.mappings import index_body
from opensearch_ml_stream.plugin.store.opensearch_cluster import OpenSearchCluster, OpenSearchSecurity
from opensearch_ml_stream.plugin.store.opensearch_errors import (
    TIMEOUT_SECONDS,
    error_for,
    is_starting,
    mapped_errors,
    reading,
    script_reason,
)
from opensearch_ml_stream.plugin.store.opensearch_responses import (
    check_indices,
    check_info,
    is_missing,
    no_hits,
    read_document,
    read_script_result,
    read_search,
    read_sequence,
    read_statuses,
    read_total,
    read_written,
)
from opensearch_ml_stream.plugin.store.opensearch_tls import store_tls, without_credentials

PREPARED_SECONDS = 10.0  # how long `prepare` spares a write its own question

_START_SECONDS = 0.1  # between two looks at an index that another creates at the same time
_REFRESH = {"refresh": "true"}
_DESCRIPTION = {
    "expand_wildcards": "all",
    "ignore_unavailable": "true",
    "local": "true",
    "filter_path": "error,*.aliases,*.mappings.dynamic,*.settings.index.verified_before_close",
}
# Without it OpenSearch warns, in each response, that ML Commons' indices are the system's: they are read on purpose.
_HEADERS = {"X-opensearch-product-origin": "opensearch-ml-stream"}


def connect(url: str, *, with_credentials: bool = True) -> AsyncOpenSearch:
    """Return a client for the hosts of a store's URL (see `cluster_url`); send nothing.

    Without credentials it uses neither user and password nor client certificate. InvalidRequest, without the URL in it,
    if the URL cannot be read.
    """
    cluster = read_cluster_url(url)
    options = dict(cluster.options)
    if not with_credentials:
        options = without_credentials(options)
    tls: dict[str, Any] = {"ssl_context": store_tls(options)} if cluster.scheme == "https" else {}
    return AsyncOpenSearch(
        hosts=[{"host": host, "port": port, "url_prefix": cluster.path} for host, port in cluster.hosts],
        http_auth=cluster.login if with_credentials else None,
        use_ssl=cluster.scheme == "https",
        timeout=TIMEOUT_SECONDS,
        max_retries=0,
        headers=_HEADERS,
        transport_class=FailoverTransport,
        **tls,
    )


class FailoverTransport(AsyncTransport):
    """A transport that tries the next host when one takes no connection, as nothing was sent to that one."""

    async def perform_request(self, *arguments: Any, **options: Any) -> Any:
        """Return the response of the first host that takes the connection. See AsyncTransport."""
        for _ in range(len(self.hosts) - 1):
            try:
                return await super().perform_request(*arguments, **options)
            except NoConnection as error:
                if not isinstance(error.info, ClientConnectorError):
                    raise
        return await super().perform_request(*arguments, **options)

    async def close(self) -> None:
        """Close all connections, those to hosts that have failed too, which AsyncTransport leaves open."""
        await super().close()
        for connection in getattr(self.connection_pool, "dead_count", ()):  # a pool of one host has none
            await connection.close()


class OpenSearchStore:
    """A Store in the cluster of `client`. `callers` is a client of the same cluster without credentials of its own."""

    def __init__(
        self, client: AsyncOpenSearch, callers: AsyncOpenSearch, index_prefix: str = "", read_seconds: float = 4.5
    ) -> None:
        self._client = client
        self._read_seconds = read_seconds
        self._callers = callers
        self._prefix = index_prefix
        self._prepared: dict[Index, tuple[float, asyncio.Task[None]]] = {}
        self.cluster = OpenSearchCluster(client, shares_documents=not index_prefix)
        self.security = OpenSearchSecurity(client, callers, read_seconds)

    async def get(self, index: Index, id: str) -> Document | None:
        """Return the document (realtime), or None if there is no document or no index.

        The primary is asked: what it refuses to create, a replica may not have yet.
        """
        if not id:  # opensearch-py raises ValueError for it, and OpenSearch has no such document
            return None
        params = {"ignore": 404, "preference": "_primary_first"}
        return read_document(await self._read(lambda: self._client.get(index=self._name(index), id=id, params=params)))

    async def changed(self, index: Index, id: str, seq_no: int, primary_term: int) -> bool:
        """Whether the document was changed, deleted or created since that write."""
        if not id:
            return (seq_no, primary_term) != ABSENT_SEQUENCE
        params = {"ignore": 404, "_source": "false", "filter_path": "found,_seq_no,_primary_term,error.type"}
        response = await self._read(lambda: self._client.get(index=self._name(index), id=id, params=params))
        return (read_sequence(response) or ABSENT_SEQUENCE) != (seq_no, primary_term)

    async def create(self, index: Index, source: Mapping[str, Any], id: str | None = None) -> Written:
        """Store a new document, under an id that OpenSearch makes if there is none; Conflict if the id is taken."""
        await self._ensure_index(index)
        params = {**_REFRESH, "op_type": "create"}
        with mapped_errors("write"):
            response = await self._client.index(index=self._name(index), id=id, body=source, params=params)
        return read_written(response)

    async def put(
        self,
        index: Index,
        id: str,
        source: Mapping[str, Any],
        *,
        if_seq_no: int | None = None,
        if_primary_term: int | None = None,
    ) -> Written:
        """Store the document, replacing all of an older one; Conflict if it has changed since `if_seq_no`."""
        params: dict[str, Any] = dict(_REFRESH)
        if if_seq_no is None:
            await self._ensure_index(index)
        else:  # the document was read just now, so there is the index
            params |= {"if_seq_no": if_seq_no, "if_primary_term": if_primary_term}
        with mapped_errors("write"):
            response = await self._client.index(index=self._name(index), id=id, body=source, params=params)
        return read_written(response)

    async def delete(self, index: Index, id: str) -> Written:
        """Delete the document; the result is "not_found" if there is no document or no index."""
        if not id:
            return read_written(_not_found(self._name(index), id))
        with mapped_errors("write"):
            response = await self._client.delete(index=self._name(index), id=id, params={**_REFRESH, "ignore": 404})
        return read_written(_not_found(self._name(index), id) if is_missing(response) else response)

    async def search(self, index: Index, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return OpenSearch's response to the body; no hits if there is no index."""
        request = {"version": True, "seq_no_primary_term": True, **body}
        # A part of the hits would be worse than none: whether a name is free, or a connector in use, is searched. So
        # would be none of a closed index, which `ignore_unavailable` gives.
        params = {"ignore": 404, "allow_partial_search_results": "false"}
        name = self._name(index)
        response = await self._read(lambda: self._client.search(index=name, body=request, params=params))
        return no_hits() if is_missing(response) else read_search(response)

    async def search_for_caller(self, index: Index, body: Mapping[str, Any]) -> dict[str, Any]:
        """Search as for the sidecar itself: OpenSearch has limits of its own, for all its clients."""
        return await self.search(index, body)

    async def ping(self) -> None:
        """Raise Unavailable if the cluster does not respond, or not as OpenSearch does, or an index cannot be used."""
        check_info(await self._read(self._client.info))
        names = [self._name(index) for index in Index]
        params = {**_DESCRIPTION, "ignore": [403, 404]}  # a store's user may not see them
        described = await self._read(lambda: self._client.indices.get(index=",".join(names), params=params))
        if "error" not in described:
            check_indices(described, names)

    async def run_painless(self, source: str, params: Mapping[str, Any]) -> str | None:
        """Return the script's result as a string, None for null; InvalidRequest says why it failed."""
        script = {"lang": "painless", "source": source, "params": params}
        try:
            with mapped_errors("script"):
                response = await self._client.scripts_painless_execute(body={"script": script})
        except RequestError as error:
            raise InvalidRequest(script_reason(error)) from None
        # OpenSearch returns every result as a string: null cannot be told from the string "null".
        result = read_script_result(response)
        return None if result == "null" else result

    async def percolate(self, index_name: str, document: Mapping[str, Any]) -> bool:
        """Whether a query in the index's field `query` matches the document; Unavailable if there is no such index."""
        query = {"percolate": {"field": "query", "document": document}}
        body = {"query": query, "size": 0, "terminate_after": 1}
        return read_total(await self._read(lambda: self._client.search(index=index_name, body=body))) > 0

    async def index_statuses(self) -> Mapping[Index, str] | None:
        """Return the health of each index that exists; None if the user may not see it."""
        params = {"level": "indices", "expand_wildcards": "all"}
        async with reading(self._read_seconds):
            try:
                response = await self._client.cluster.health(index=f"{self._prefix}.plugins-ml-*", params=params)
            except (AuthenticationException, AuthorizationException):
                return None
        statuses = read_statuses(response)
        return {index: statuses[self._name(index)] for index in Index if self._name(index) in statuses}

    async def close(self) -> None:
        """Close the clients' connections."""
        await self._client.close()
        await self._callers.close()

    async def _read(self, send: Callable[[], Awaitable[Any]]) -> Any:
        """Return the response to a read, sent again if the connection broke, or while the index is being created.

        A connection that was kept open breaks when the server is restarted.
        """
        async with reading(self._read_seconds):
            broke = False
            while True:
                try:
                    return await send()
                except ConnectionTimeout:
                    raise
                except NoConnection:
                    if broke:
                        raise
                    broke = True
                except TransportError as error:
                    if not is_starting(error):
                        raise
                    await asyncio.sleep(_START_SECONDS)

    def _name(self, index: Index) -> str:
        return f"{self._prefix}{index}"

    async def prepare(self, *indices: Index) -> None:
        """Create those of the indices that are missing, all at the same time."""
        now = monotonic()
        for index in indices:
            self._prepared[index] = (now, asyncio.create_task(self._create_if_missing(index)))
        await asyncio.gather(*(self._prepared[index][1] for index in indices))

    async def _ensure_index(self, index: Index) -> None:
        """Create the index if it is missing, before every write (they are few), as it may have been deleted."""
        began, preparing = self._prepared.pop(index, (0.0, None))
        if preparing is not None and monotonic() - began < PREPARED_SECONDS:
            await asyncio.shield(preparing)
        else:
            await self._create_if_missing(index)

    async def _create_if_missing(self, index: Index) -> None:
        name = self._name(index)
        if await self._read(lambda: self._client.indices.exists(index=name)):
            return
        with mapped_errors("write"):
            try:
                await self._client.indices.create(index=name, body=index_body(index, name))
            except RequestError as error:
                refusal = error_for(error, "write")
                if refusal.type != "resource_already_exists_exception":
                    raise Unavailable(f"Index {name} cannot be created in OpenSearch: {refusal.reason}") from None


def _not_found(index_name: str, id: str) -> dict[str, Any]:
    """Return for a missing index the response that OpenSearch has for a missing document."""
    return {
        "_index": index_name,
        "_id": id,
        "_version": 1,
        "result": "not_found",
        "forced_refresh": True,
        "_shards": {"total": 0, "successful": 0, "failed": 0},
        "_seq_no": 0,
        "_primary_term": 0,
    }
