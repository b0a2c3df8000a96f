"""Errors of connections to providers, as UpstreamError for the caller.

A message names the provider's authority (host:port) and what to check, never a header or a body.
"""

import errno
import ssl

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.upstream import ReadTimedOut

_PREFIX = "Error communicating with remote model: "

_CODINGS = {"br", "compress", "deflate", "gzip", "identity", "x-compress", "x-gzip", "zstd"}
_HINTS = {
    errno.ECONNREFUSED: ("Connection refused", "Check that the provider runs, and the host and port in the url"),
    errno.EHOSTUNREACH: ("No route to host", "Check the network and firewall between here and the provider"),
    errno.ENETUNREACH: ("Network unreachable", "Check the network and firewall between here and the provider"),
    errno.ECONNRESET: ("Connection reset", "Check that the port speaks the url's protocol (http or https)"),
    errno.EMFILE: ("Too many open files here", "Raise the limit of open files (ulimit -n)"),
}
_OF_THIS_MACHINE = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN, errno.EADDRNOTAVAIL}


class BrokenConnection(UpstreamError):
    """A connection that could not be opened, or broke. `problem` says how, without the host and what to check.

    `is_ours`: this machine lacks something, the provider may be well.
    """

    def __init__(self, reason: str, problem: str, *, is_ours: bool = False) -> None:
        super().__init__(_PREFIX + reason)
        self.problem = problem
        self.is_ours = is_ours


def unknown_host(host: str, error: Exception) -> BrokenConnection:
    """Return the error for a name without an address."""
    return BrokenConnection(
        f"unknown host: {host} ({error}). Check the host in the connector's url and this machine's DNS",
        f"unknown host ({error})",
    )


def unreachable(authority: str, error: OSError) -> BrokenConnection:
    """Return the error for a connection that could not be opened; `error` is what the socket or TLS raised."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return BrokenConnection(
            f"TLS certificate of {authority} is not trusted: {error.verify_message}. Check the host in the url, give "
            "the authority as the credential ca_cert_pem, or set client_config.skip_ssl_verification",
            f"its certificate is not trusted: {error.verify_message}",
        )
    if isinstance(error, ssl.SSLError):
        problem = f"failed: {error.reason or 'the peer closed the connection'}"
        return BrokenConnection(
            f"TLS handshake with {authority} {problem}. Check that the port speaks TLS and that client certificates "
            "are as the provider wants them",
            f"its TLS handshake {problem}",
        )
    number = errno.ECONNRESET if isinstance(error, ConnectionResetError | ConnectionAbortedError) else error.errno
    problem, hint = _HINTS.get(number or 0, (error.strerror or type(error).__name__, "Check the connector's url"))
    return BrokenConnection(f"{problem}: {authority}. {hint}", problem, is_ours=number in _OF_THIS_MACHINE)


def connect_timed_out(authority: str, seconds: float) -> BrokenConnection:
    """Return the error for a connection that was not open after `connection_timeout`."""
    return BrokenConnection(
        f"Connect timeout: no connection to {authority} within {seconds:g} s. Check that the host is reachable from "
        "here, or raise connection_timeout in the connector's client_config",
        f"no connection within {seconds:g} s",
    )


def read_timed_out(authority: str, seconds: float) -> ReadTimedOut:
    """Return the error for a provider that was silent for `read_timeout`."""
    return ReadTimedOut(
        f"{_PREFIX}Read timeout: {authority} sent nothing for {seconds:g} s. Raise read_timeout in the connector's "
        "client_config if the model needs longer"
    )


def fell_silent(authority: str, seconds: float) -> ReadTimedOut:
    """Return the error for a provider that was silent between two chunks for longer than the model's limits allow."""
    return ReadTimedOut(
        f"{_PREFIX}Read timeout: {authority} sent nothing for {seconds:g} s in the middle of its response. Raise "
        "_sidecar.limits.between_chunks_timeout_seconds of the model if it needs longer",
        type="timeout_exception",
    )


def closed_early(authority: str) -> BrokenConnection:
    """Return the error for a connection that ended before the response head."""
    return _closed(authority, "before it responded")


def closed_in_the_middle(authority: str) -> BrokenConnection:
    """Return the error for a connection that ended inside the response body."""
    return _closed(authority, "in the middle of its response")


def not_http(authority: str, problem: str) -> BrokenConnection:
    """Return the error for bytes that are not HTTP/1.1. `problem` must hold none of them."""
    reason = f"{authority} did not respond with valid HTTP/1.1: {problem}. Check the port in the url"
    return BrokenConnection(reason, problem)


def no_tunnel(proxy: str, authority: str, status: int) -> BrokenConnection:
    """Return the error for an HTTP proxy that does not connect to the provider."""
    hint = "the login in the proxy's URL" if status == 407 else "whether the proxy may connect to this host and port"
    problem = f"the HTTP proxy {proxy} responded {status}"
    return BrokenConnection(f"{problem} when asked to connect to {authority}. Check {hint}", problem)


def undecodable(authority: str, coding: str) -> UpstreamError:
    """Return the error for a body that cannot be decompressed. Only codings that IANA knows are named."""
    is_known = {name.strip() for name in coding.lower().split(",", 3)} <= _CODINGS
    name = f"content-encoding [{coding.strip()}]" if is_known else "an unknown content-encoding"
    return UpstreamError(f"{_PREFIX}{authority} sent a body in {name} that cannot be decoded; identity was asked for")


def _closed(authority: str, when: str) -> BrokenConnection:
    return BrokenConnection(f"{authority} closed the connection {when}", f"it closed the connection {when}")
