"""Status codes of gRPC for the errors of this sidecar."""

from collections.abc import Callable

from grpc import StatusCode

from opensearch_ml_stream.connectors.errors import MLStreamError, Unauthorized

Metadata = tuple[tuple[str, str], ...]

StatusCodes = Callable[[MLStreamError], StatusCode]
"""The status codes of a service."""

# MLServer's codes for 400, 404, 422 and 500. A provider's fault (424) is UNKNOWN, as the status of another system that
# has none of gRPC's is to be told: clients re-send what is UNAVAILABLE, and the caller would pay for the prompt again.
STATUS_CODES = {
    400: StatusCode.INVALID_ARGUMENT,
    401: StatusCode.UNAUTHENTICATED,
    403: StatusCode.PERMISSION_DENIED,
    404: StatusCode.NOT_FOUND,
    408: StatusCode.DEADLINE_EXCEEDED,
    409: StatusCode.ABORTED,
    413: StatusCode.RESOURCE_EXHAUSTED,
    422: StatusCode.FAILED_PRECONDITION,
    424: StatusCode.UNKNOWN,
    429: StatusCode.RESOURCE_EXHAUSTED,
    500: StatusCode.INTERNAL,
    503: StatusCode.UNAVAILABLE,
}

_MAX_DETAILS_BYTES = 2048  # each may be three bytes in the trailers, of which clients take 8 KiB


def status_code(error: MLStreamError) -> StatusCode:
    """Return the status code of an error."""
    return STATUS_CODES.get(error.status, StatusCode.UNKNOWN)


def details(error: MLStreamError) -> str:
    """Return the text beside the status code: the reason, cut so that it fits into the trailers."""
    return error.reason.encode()[:_MAX_DETAILS_BYTES].decode("utf-8", "ignore")


def error_metadata(error: MLStreamError) -> Metadata:
    """Return what trailing metadata say beside the status: what headers and body of the HTTP port say."""
    said = {
        "retry-after": error.retry_after,
        "www-authenticate": error.challenge if isinstance(error, Unauthorized) else None,
        "provider-status": None if error.provider_status is None else str(error.provider_status),
        "provider-code": error.provider.code,
        "error-type": error.type,
    }
    return tuple((name, value) for name, value in said.items() if value is not None and value.isascii())
