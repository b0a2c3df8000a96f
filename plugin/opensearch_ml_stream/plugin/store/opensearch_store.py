"""The store in an OpenSearch cluster, in the indices that ML Commons uses.

Indices are made at the first write. Nothing is re-sent by itself, since a write that got no answer may have been done;
only a search or read whose connection broke is asked once more.
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
    """A client of `http(s)://[user:pass@]host[:port][/path][?verify_certs=false&ca_certs=PATH]`; asks nothing yet.

    Without a port it is 443 for https, 9200 for http. InvalidRequest if the URL cannot be read; no text holds it.
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
    """A Store in the cluster of the client, which `close` closes."""

    def __init__(self, client: AsyncOpenSearch, index_prefix: str = "") -> None:
        self._client = client
        self._prefix = index_prefix
        self._ml_commons: bool | None = None

    async def get(self, index: Index, id: str) -> Document | None:
        found = await _read(lambda: self._client.get(index=self._name(index), id=id, params={"ignore": 404}))
        if not found.get("found"):
            return None
        return Document(found["_id"], found["_source"], found["_version"], found["_seq_no"], found["_primary_term"])

    async def changed(self, index: Index, id: str, seq_no: int, primary_term: int) -> bool:
        params = {"ignore": 404, "_source": "false", "filter_path": "_seq_no,_primary_term"}
        found = await _read(lambda: self._client.get(index=self._name(index), id=id, params=params))
        return (found.get("_seq_no"), found.get("_primary_term")) != (seq_no, primary_term)

    async def create(self, index: Index, source: Mapping[str, Any], id: str | None = None) -> Written:
        await self._ensure_index(index)
        params = {**_REFRESH, "op_type": "create"}
        with _errors("write"):
            # Without an id OpenSearch makes one.
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
        await self._ensure_index(index)
        params: dict[str, Any] = dict(_REFRESH)
        if if_seq_no is not None:
            params |= {"if_seq_no": if_seq_no, "if_primary_term": if_primary_term}
        with _errors("write"):
            return _written(await self._client.index(index=self._name(index), id=id, body=source, params=params))

    async def delete(self, index: Index, id: str) -> Written:
        with _errors("write"):
            answer = await self._client.delete(index=self._name(index), id=id, params={**_REFRESH, "ignore": 404})
        if "error" in answer:
            return _written(_not_found(self._name(index), id))
        return _written(answer)

    async def search(self, index: Index, body: Mapping[str, Any]) -> dict[str, Any]:
        request = {"version": True, "seq_no_primary_term": True, **body}
        params = {"ignore_unavailable": "true"}
        found: dict[str, Any] = await _read(
            lambda: self._client.search(index=self._name(index), body=request, params=params)
        )
        return found

    async def ping(self) -> None:
        await _read(self._client.info)

    async def run_painless(self, source: str, params: Mapping[str, Any]) -> str | None:
        script = {"lang": "painless", "source": source, "params": params}
        try:
            with _errors("script"):
                answer = await self._client.scripts_painless_execute(body={"script": script})
        except RequestError as error:
            raise InvalidRequest(_script_reason(error)) from None
        # OpenSearch gives every result as text; a script that returned nothing cannot be told from "null".
        result = str(answer.get("result"))
        return None if result == "null" else result

    async def percolate(self, index_name: str, document: Mapping[str, Any]) -> bool:
        query = {"percolate": {"field": "query", "document": document}}
        body = {"query": query, "size": 0, "terminate_after": 1}
        found = await _read(lambda: self._client.search(index=index_name, body=body))
        return bool(found["hits"]["total"]["value"])

    async def has_ml_commons(self) -> bool:
        if self._ml_commons is None:
            try:
                plugins = await self._client.cat.plugins(params={"format": "json", "h": "component"})
            except (AuthenticationException, AuthorizationException):
                plugins = []
            except OpenSearchException as error:
                raise _mapped(error, "read") from None
            self._ml_commons = any(plugin.get("component") == "opensearch-ml" for plugin in plugins)
        return self._ml_commons

    async def close(self) -> None:
        await self._client.close()

    def _name(self, index: Index) -> str:
        return f"{self._prefix}{index}"

    async def _ensure_index(self, index: Index) -> None:
        """Makes the index if it is missing. Asked before every write (they are few): it may have been deleted."""
        name = self._name(index)
        with _errors("write"):
            if await self._client.indices.exists(index=name):
                return
            answer = await self._client.indices.create(index=name, body=index_body(index), params={"ignore": 400})
        if "error" in answer and answer["error"]["type"] != "resource_already_exists_exception":
            raise InvalidRequest(f"Index {name} cannot be created: {answer['error']['reason']}")


async def _read(ask: Callable[[], Awaitable[Any]]) -> Any:
    """The answer; asked once more if the connection broke, e.g. a kept one that a restarted server has forgotten."""
    try:
        return await ask()
    except ConnectionTimeout as error:
        raise _mapped(error, "read") from None
    except NoConnection:
        with _errors("read"):
            return await ask()
    except OpenSearchException as error:
        raise _mapped(error, "read") from None


@contextmanager
def _errors(action: str) -> Iterator[None]:
    """Turns the client's errors into ours; those of a script's text are left to the caller."""
    try:
        yield
    except RequestError as error:
        if action == "script":
            raise
        raise _mapped(error, action) from None
    except OpenSearchException as error:
        raise _mapped(error, action) from None


def _mapped(error: OpenSearchException, action: str) -> Conflict | InvalidRequest | Unavailable:
    """Our error for one of the client's. `from None` where it is raised: the client's own text may hold documents."""
    if isinstance(error, ConnectionTimeout):
        return Unavailable(
            f"OpenSearch did not answer a {action} within {_TIMEOUT_SECONDS} s; check the cluster's load"
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
    return Unavailable("The server at the store's URL does not answer as OpenSearch does; check host, port and path")


def _reason(error: TransportError) -> tuple[str, str]:
    """The innermost type and reason, without the value of the field that OpenSearch may quote."""
    info = error.info if isinstance(error.info, Mapping) else {}
    outer = info.get("error")
    cause = (outer.get("root_cause") or [outer])[0] if isinstance(outer, Mapping) else {}
    reason = str(cause.get("reason", "OpenSearch gave no reason")).split(". Preview of field's value")[0]
    return str(cause.get("type", "status_exception")), reason


def _script_reason(error: TransportError) -> str:
    """Why a script failed. A compiler's message shows the script; one of a running script may hold its input."""
    info = error.info if isinstance(error.info, Mapping) else {}
    outer = info.get("error")
    cause = outer.get("caused_by") if isinstance(outer, Mapping) else None
    kind, reason = _reason(error)
    if kind != "script_exception":
        return f"OpenSearch cannot run Painless scripts ({reason}); its module lang-painless is needed"
    what = (
        str(cause.get("reason" if reason == "compile error" else "type")) if isinstance(cause, Mapping) else "unknown"
    )
    return f"Painless script: {reason}: {what}"


def _written(answer: Mapping[str, Any]) -> Written:
    return Written(answer["_id"], answer["_seq_no"], answer["_primary_term"], answer)


def _not_found(index_name: str, id: str) -> dict[str, Any]:
    """What OpenSearch answers to a delete in an index that does not hold the document, for one that does not exist."""
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
