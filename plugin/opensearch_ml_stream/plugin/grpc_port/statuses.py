"""Status codes of gRPC for the errors of this sidecar."""

from collections.abc import Callable

from grpc import StatusCode

from opensearch_ml_stream.connectors.errors import MLStreamError, Unauthorized

Metadata = tuple[tuple[str, str], ...]

StatusCodes = Callable[[MLStreamError], StatusCode]
"""The status codes of a service."""

# 400, 404, 422 and 500 have MLServer's codes. A provider's fault (424) is UNKNOWN, gRPC's code for errors of other
# systems: clients send a call again that is UNAVAILABLE, and the caller would pay for the prompt twice.
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

_MAX_DETAILS_BYTES = 2048  # each may take three in the trailers, of which clients accept 8 KiB


def status_code(error: MLStreamError) -> StatusCode:
    """Return the status code of an error."""
    return STATUS_CODES.get(error.status, StatusCode.UNKNOWN)


def details(error: MLStreamError) -> str:
    """Return the text for the status: the error's reason, cut so that it fits into the trailers."""
    return error.reason.encode()[:_MAX_DETAILS_BYTES].decode("utf-8", "ignore")


def error_metadata(error: MLStreamError) -> Metadata:
    """Return the trailing metadata for an error: what headers and body of the HTTP port say."""
    said = {
        "retry-after": error.retry_after,
        "www-authenticate": error.challenge if isinstance(error, Unauthorized) else None,
        "provider-status": None if error.provider_status is None else str(error.provider_status),
        "provider-code": error.provider.code,
        "error-type": error.type,
    }
    return tuple((name, value) for name, value in said.items() if value is not None and value.isascii())
