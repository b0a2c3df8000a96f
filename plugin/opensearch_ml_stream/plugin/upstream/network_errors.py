"""What the network and its libraries raise on the way to a provider, as UpstreamError for the caller.

A text names host and port and what to look at, never a header or a body.
"""

import errno
import ssl

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.upstream import ReadTimedOut

_PREFIX = "Error communicating with remote model: "

_HINTS = {
    errno.ECONNREFUSED: ("Connection refused", "Check that the provider runs, and the host and port in the url"),
    errno.EHOSTUNREACH: ("No route to host", "Check the network and firewall between here and the provider"),
    errno.ENETUNREACH: ("Network unreachable", "Check the network and firewall between here and the provider"),
    errno.ECONNRESET: ("Connection reset", "Check that the port speaks the url's protocol (http or https)"),
    errno.EMFILE: ("Too many open files here", "Raise the limit of open files (ulimit -n)"),
}


def unreachable(place: str, error: OSError) -> UpstreamError:
    """No connection came about. `place` is host:port."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return UpstreamError(
            f"{_PREFIX}TLS certificate of {place} is not trusted: {error.verify_message}. Check the host in the url, "
            "give ca_cert_pem with mutual TLS, or set client_config.skip_ssl_verification"
        )
    if isinstance(error, ssl.SSLError):
        return UpstreamError(
            f"{_PREFIX}TLS handshake with {place} failed: {error.reason or 'the peer closed the connection'}. "
            "Check that the port speaks TLS and that client certificates are as the provider wants them"
        )
    number = errno.ECONNRESET if isinstance(error, ConnectionResetError | ConnectionAbortedError) else error.errno
    said, check = _HINTS.get(number or 0, (error.strerror or type(error).__name__, "Check the connector's url"))
    return UpstreamError(f"{_PREFIX}{said}: {place}. {check}")


def connect_timed_out(place: str, seconds: float) -> UpstreamError:
    return UpstreamError(
        f"{_PREFIX}Connect timeout: no connection to {place} within {seconds:g} s. Check that the host is reachable "
        "from here, or raise connection_timeout in the connector's client_config"
    )


def read_timed_out(place: str, seconds: float) -> ReadTimedOut:
    return ReadTimedOut(
        f"{_PREFIX}Read timeout: {place} sent nothing for {seconds:g} s. Raise read_timeout in the connector's "
        "client_config if the model needs longer"
    )


def closed_early(place: str) -> UpstreamError:
    return UpstreamError(f"{_PREFIX}{place} closed the connection before it answered")


def closed_in_the_middle(place: str) -> UpstreamError:
    return UpstreamError(f"{_PREFIX}{place} closed the connection in the middle of its answer")


def not_http(place: str, what: str) -> UpstreamError:
    """`what` is our own word for what is wrong, nothing that was received."""
    return UpstreamError(f"{_PREFIX}{place} did not answer with valid HTTP/1.1: {what}. Check the port in the url")


def undecodable(place: str, coding: str) -> UpstreamError:
    return UpstreamError(
        f"{_PREFIX}{place} sent a body in content-encoding [{coding}] that cannot be decoded; identity was asked for"
    )
