"""Translate opensearch-py's errors to ours, without the document that OpenSearch may quote in them."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

from opensearchpy import (
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

TIMEOUT_SECONDS = 10  # of a write, which may have been done; a read has a setting of its own

_FAULTS_OF_INDEX = frozenset({"index_closed_exception", "strict_dynamic_mapping_exception"})
_FAULTS_OF_ALIAS = ("no write index is defined for alias", "has more than one index associated with it")


@contextmanager
def mapped_errors(action: str) -> Iterator[None]:
    """Raise our errors for the client's, except for a script that OpenSearch refuses: that is left to the caller."""
    try:
        yield
    except RequestError as error:
        if action == "script":
            raise
        raise error_for(error, action) from None
    except OpenSearchException as error:
        raise error_for(error, action) from None
    except (AttributeError, RecursionError):  # an error's body that is JSON but no object, or nested without end
        raise not_opensearch() from None


@asynccontextmanager
async def reading(seconds: float) -> AsyncIterator[None]:
    """Raise our errors for the client's in a read, and Unavailable if it takes longer than that."""
    try:
        async with asyncio.timeout(seconds):
            with mapped_errors("read"):
                yield
    except TimeoutError:
        raise _no_response("read", seconds) from None


def error_for(error: OpenSearchException, action: str) -> Conflict | InvalidRequest | Unavailable:
    """Return our error for one of the client's. Raise it `from None`: the client's message may hold documents."""
    if isinstance(error, ConnectionTimeout):
        return _no_response(action, TIMEOUT_SECONDS)
    if isinstance(error, NoConnection):
        return Unavailable(
            f"OpenSearch cannot be reached ({error.error}); check that it runs and that the store's URL has its host, "
            "port, http or https, and for https a certificate that is trusted (?ca_certs=PATH or ?fingerprint=SHA256)"
        )
    if isinstance(error, TransportError):
        return _error_for_status(error, action)
    return not_opensearch()


def _no_response(action: str, seconds: float) -> Unavailable:
    return Unavailable(f"OpenSearch did not respond to a {action} within {seconds:g} s; check the cluster's load")


def not_opensearch() -> Unavailable:
    """Return the error for a response that no OpenSearch sends."""
    return Unavailable("The server at the store's URL does not respond as OpenSearch does; check host, port and path")


def is_no_route(error: TransportError) -> bool:
    """Whether OpenSearch has no handler for the route, which it reports in an error that is a string."""
    info = error.info if isinstance(error.info, Mapping) else {}
    return str(info.get("error")).startswith("no handler found for uri")


def error_reason(error: TransportError) -> str:
    """Return the innermost reason that OpenSearch gives."""
    return _reason(error)[1]


def is_starting(error: TransportError) -> bool:
    """Whether an index is not ready yet, as it is just being created."""
    return _reason(error)[0] == "illegal_index_shard_state_exception"


def script_reason(error: TransportError) -> str:
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


def _error_for_status(error: TransportError, action: str) -> Conflict | InvalidRequest | Unavailable:
    kind, reason = _reason(error)
    if kind == "cluster_block_exception":  # 403, 429 or 503: read-only by hand, for want of disk space, or starting
        return Unavailable(
            f"OpenSearch does not {action} now: {reason} Check its disk space and the settings index.blocks.*"
        )
    if isinstance(error, AuthenticationException):
        return Unavailable("OpenSearch does not accept the user and password of the store's URL (401)")
    if isinstance(error, AuthorizationException):
        return Unavailable(
            f"OpenSearch does not let the store's user {action} (403); it needs permission to create, read and write "
            "the indices .plugins-ml-*"
        )
    if isinstance(error, ConflictError):
        return Conflict(reason, type=kind)
    if kind in _FAULTS_OF_INDEX or any(text in reason for text in _FAULTS_OF_ALIAS):
        return Unavailable(
            f"OpenSearch cannot {action}: {reason} ({kind}). Check that the indices .plugins-ml-* are open, that an "
            "alias of such a name has one index to write to, and that no template makes their mappings strict"
        )
    if isinstance(error, RequestError):
        return InvalidRequest(reason, type=kind)
    return Unavailable(f"OpenSearch failed to {action} ({error.status_code} {kind}); see its log")


def _reason(error: TransportError) -> tuple[str, str]:
    """Return the innermost type and reason, without the field's value that OpenSearch may quote."""
    info = error.info if isinstance(error.info, Mapping) else {}
    outer = info.get("error")
    causes = outer.get("root_cause") if isinstance(outer, Mapping) else None
    cause = causes[0] if isinstance(causes, list) and causes else outer
    if not isinstance(cause, Mapping):
        cause = {}
    reason = str(cause.get("reason", "OpenSearch gave no reason")).split(". Preview of field's value")[0]
    return str(cause.get("type", "status_exception")), reason
