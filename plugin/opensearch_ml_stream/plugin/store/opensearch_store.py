"""The store in an OpenSearch cluster, in the indices that ML Commons uses.

Indices are created at the first write. Requests are not retried, since a write without a response may have been done;
only a read or search whose connection broke is sent once more.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from opensearchpy import (
    AsyncOpenSearch,
    AuthenticationException,
    AuthorizationException,
    ConflictError,
    ConnectionTimeout,
    OpenSearchException,
    RequestError,
    TransportError,
)
from opensearchpy import ConnectionError as NoConnection

from opensearch_ml_stream.connectors.errors import Conflict, InvalidRequest, Unavailable
from opensearch_ml_stream.plugin.store import Document, Index, Written
from opensearch_ml_stream.plugin.store.mappings import index_body

_TIMEOUT_SECONDS = 10
_REFRESH = {"refresh": "true"}


def connect(url: str) -> AsyncOpenSearch:
    """Return a client for `http(s)://[user:pass@]host[:port][/path][?verify_certs=false&ca_certs=PATH]`; send nothing.

    The port is 443 for https and 9200 for http if the URL has none. InvalidRequest, without the URL in it, if the URL
    cannot be read.
    """
    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 9200)
    except ValueError:
        raise InvalidRequest("The store's URL has a port that is no number from 0 to 65535") from None
    if not parts.hostname:
        raise InvalidRequest("The store's URL names no host: it must be http(s)://[user:password@]host:port")
    options = dict(parse_qsl(parts.query))
    verify = options.pop("verify_certs", "true").lower()
    ca_certs = options.pop("ca_certs", None)
    if options or verify not in ("true", "false"):
        wrong = ", ".join(options) or "verify_certs"
        raise InvalidRequest(f"The store's URL takes verify_certs=true|false and ca_certs=PATH after ?; check {wrong}")
    if ca_certs is not None and not Path(ca_certs).is_file():
        raise InvalidRequest(f"The store's URL has ca_certs={ca_certs}, and there is no such file")
    tls: dict[str, Any] = {"verify_certs": verify == "true", "ssl_show_warn": False, "ca_certs": ca_certs}
    return AsyncOpenSearch(
        hosts=[{"host": parts.hostname, "port": port, "url_prefix": parts.path.strip("/")}],
        http_auth=(unquote(parts.username), unquote(parts.password or "")) if parts.username else None,
        use_ssl=parts.scheme == "https",
        timeout=_TIMEOUT_SECONDS,
        max_retries=0,
        **(tls if parts.scheme == "https" else {}),
    )


class OpenSearchStore:
    """A Store in the cluster of `client`, which `close` closes."""

    def __init__(self, client: AsyncOpenSearch, index_prefix: str = "") -> None:
        self._client = client
        self._prefix = index_prefix
        self._ml_commons: bool | None = None

    async def get(self, index: Index, id: str) -> Document | None:
        """Return the document (realtime), or None if there is no document or no index."""
        response = await _read(lambda: self._client.get(index=self._name(index), id=id, params={"ignore": 404}))
        if not response.get("found"):
            return None
        return Document(
            response["_id"],
            response["_source"],
            response["_version"],
            response["_seq_no"],
            response["_primary_term"],
        )

    async def changed(self, index: Index, id: str, seq_no: int, primary_term: int) -> bool:
        """Whether the document was changed or deleted since that write."""
        params = {"ignore": 404, "_source": "false", "filter_path": "_seq_no,_primary_term"}
        response = await _read(lambda: self._client.get(index=self._name(index), id=id, params=params))
        return (response.get("_seq_no"), response.get("_primary_term")) != (seq_no, primary_term)

    async def create(self, index: Index, source: Mapping[str, Any], id: str | None = None) -> Written:
        """Store a new document, under an id that OpenSearch makes if there is none; Conflict if the id is taken."""
        await self._ensure_index(index)
        params = {**_REFRESH, "op_type": "create"}
        with _mapped_errors("write"):
            return _written(await self._client.index(index=self._name(index), id=id, body=source, params=params))

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
        await self._ensure_index(index)
        params: dict[str, Any] = dict(_REFRESH)
        if if_seq_no is not None:
            params |= {"if_seq_no": if_seq_no, "if_primary_term": if_primary_term}
        with _mapped_errors("write"):
            return _written(await self._client.index(index=self._name(index), id=id, body=source, params=params))

    async def delete(self, index: Index, id: str) -> Written:
        """Delete the document; the result is "not_found" if there is no document or no index."""
        with _mapped_errors("write"):
            response = await self._client.delete(index=self._name(index), id=id, params={**_REFRESH, "ignore": 404})
        if "error" in response:
            return _written(_not_found(self._name(index), id))
        return _written(response)

    async def search(self, index: Index, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return OpenSearch's response to the body; no hits if there is no index."""
        request = {"version": True, "seq_no_primary_term": True, **body}
        params = {"ignore_unavailable": "true"}
        response: dict[str, Any] = await _read(
            lambda: self._client.search(index=self._name(index), body=request, params=params)
        )
        return response

    async def ping(self) -> None:
        """Raise Unavailable if the cluster does not respond, or not as OpenSearch does."""
        await _read(self._client.info)

    async def run_painless(self, source: str, params: Mapping[str, Any]) -> str | None:
        """Return the script's result as a string, None for null; InvalidRequest says why it failed."""
        script = {"lang": "painless", "source": source, "params": params}
        try:
            with _mapped_errors("script"):
                response = await self._client.scripts_painless_execute(body={"script": script})
        except RequestError as error:
            raise InvalidRequest(_script_reason(error)) from None
        # OpenSearch returns every result as a string: null cannot be told from the string "null".
        result = str(response.get("result"))
        return None if result == "null" else result

    async def percolate(self, index_name: str, document: Mapping[str, Any]) -> bool:
        """Whether a query in the index's field `query` matches the document; Unavailable if there is no such index."""
        query = {"percolate": {"field": "query", "document": document}}
        body = {"query": query, "size": 0, "terminate_after": 1}
        response = await _read(lambda: self._client.search(index=index_name, body=body))
        return bool(response["hits"]["total"]["value"])

    async def has_ml_commons(self) -> bool:
        """Whether the cluster has the plugin `opensearch-ml`; no, if the user may not list plugins. Asked once."""
        if self._ml_commons is None:
            try:
                plugins = await self._client.cat.plugins(params={"format": "json", "h": "component"})
            except (AuthenticationException, AuthorizationException):
                plugins = []
            except OpenSearchException as error:
                raise _error_for(error, "read") from None
            self._ml_commons = any(plugin.get("component") == "opensearch-ml" for plugin in plugins)
        return self._ml_commons

    async def close(self) -> None:
        """Close the client's connections."""
        await self._client.close()

    def _name(self, index: Index) -> str:
        return f"{self._prefix}{index}"

    async def _ensure_index(self, index: Index) -> None:
        """Create the index if it is missing; before every write (they are few), as it may have been deleted."""
        name = self._name(index)
        with _mapped_errors("write"):
            if await self._client.indices.exists(index=name):
                return
            response = await self._client.indices.create(index=name, body=index_body(index), params={"ignore": 400})
        if "error" in response and response["error"]["type"] != "resource_already_exists_exception":
            raise InvalidRequest(f"Index {name} cannot be created: {response['error']['reason']}")


async def _read(send: Callable[[], Awaitable[Any]]) -> Any:
    """Return the response to a read, sent again if the connection broke.

    A connection that was kept open breaks when the server was restarted meanwhile.
    """
    try:
        return await send()
    except ConnectionTimeout as error:
        raise _error_for(error, "read") from None
    except NoConnection:
        with _mapped_errors("read"):
            return await send()
    except OpenSearchException as error:
        raise _error_for(error, "read") from None


@contextmanager
def _mapped_errors(action: str) -> Iterator[None]:
    """Raise our errors for the client's, except for a script that OpenSearch refuses: that is left to the caller."""
    try:
        yield
    except RequestError as error:
        if action == "script":
            raise
        raise _error_for(error, action) from None
    except OpenSearchException as error:
        raise _error_for(error, action) from None


def _error_for(error: OpenSearchException, action: str) -> Conflict | InvalidRequest | Unavailable:
    """Return our error for one of the client's. Raise it `from None`: the client's message may hold documents."""
    if isinstance(error, ConnectionTimeout):
        return Unavailable(
            f"OpenSearch did not respond to a {action} within {_TIMEOUT_SECONDS} s; check the cluster's load"
        )
    if isinstance(error, NoConnection):
        return Unavailable(
            f"OpenSearch cannot be reached ({error.error}); check that it runs and that the store's URL has its host, "
            "port, http or https, and for https a certificate that is trusted (?ca_certs=PATH)"
        )
    if isinstance(error, AuthenticationException):
        return Unavailable("OpenSearch does not accept the user and password of the store's URL (401)")
    if isinstance(error, AuthorizationException):
        return Unavailable(
            f"OpenSearch does not let the store's user {action} (403); it needs permission to create, read and write "
            "the indices .plugins-ml-*"
        )
    if isinstance(error, ConflictError):
        return Conflict(_reason(error)[1], type=_reason(error)[0])
    if isinstance(error, RequestError):
        kind, reason = _reason(error)
        return InvalidRequest(reason, type=kind)
    if isinstance(error, TransportError):
        return Unavailable(f"OpenSearch failed to {action} ({error.status_code} {_reason(error)[0]}); see its log")
    return Unavailable("The server at the store's URL does not respond as OpenSearch does; check host, port and path")


def _reason(error: TransportError) -> tuple[str, str]:
    """Return the innermost type and reason, without the field's value that OpenSearch may quote."""
    info = error.info if isinstance(error.info, Mapping) else {}
    outer = info.get("error")
    cause = (outer.get("root_cause") or [outer])[0] if isinstance(outer, Mapping) else {}
    reason = str(cause.get("reason", "OpenSearch gave no reason")).split(". Preview of field's value")[0]
    return str(cause.get("type", "status_exception")), reason


def _script_reason(error: TransportError) -> str:
    """Return why a script failed.

    A compiler's message, which shows the script, is kept; that of a running script is not, as it may hold its input.
    """
    info = error.info if isinstance(error.info, Mapping) else {}
    outer = info.get("error")
    cause = outer.get("caused_by") if isinstance(outer, Mapping) else None
    kind, reason = _reason(error)
    if kind != "script_exception":
        return f"OpenSearch cannot run Painless scripts ({reason}); its module lang-painless is needed"
    detail = (
        str(cause.get("reason" if reason == "compile error" else "type")) if isinstance(cause, Mapping) else "unknown"
    )
    return f"Painless script: {reason}: {detail}"


def _written(response: Mapping[str, Any]) -> Written:
    return Written(response["_id"], response["_seq_no"], response["_primary_term"], response)


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
