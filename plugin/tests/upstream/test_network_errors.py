"""What goes wrong on the way to a provider is told with its host, its port and what to check."""

import errno
import socket
import ssl

import pytest

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.upstream import ReadTimedOut, network_errors
from opensearch_ml_stream.plugin.upstream.network_errors import BrokenConnection

PREFIX = "Error communicating with remote model: "
NETWORK = "Check the network and firewall between here and the provider"


def certificate_error() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    return error


def handshake_error(reason: str | None) -> ssl.SSLError:
    error = ssl.SSLError(1, "handshake failed")
    error.reason = reason  # type: ignore[assignment]  # OpenSSL does not always give one
    return error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            ConnectionRefusedError(errno.ECONNREFUSED, "x"),
            "Connection refused: h:1. Check that the provider runs, and the host and port in the url",
        ),
        (OSError(errno.EHOSTUNREACH, "x"), f"No route to host: h:1. {NETWORK}"),
        (OSError(errno.ENETUNREACH, "x"), f"Network unreachable: h:1. {NETWORK}"),
        (
            ConnectionResetError(),
            "Connection reset: h:1. Check that the port speaks the url's protocol (http or https)",
        ),
        (
            ConnectionAbortedError(errno.ECONNREFUSED, "x"),
            "Connection reset: h:1. Check that the port speaks the url's protocol (http or https)",
        ),
        (OSError(errno.EMFILE, "x"), "Too many open files here: h:1. Raise the limit of open files (ulimit -n)"),
        (OSError(errno.EACCES, "Permission denied"), "Permission denied: h:1. Check the connector's url"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known: h:1. Check the connector's url"),
        (OSError(), "OSError: h:1. Check the connector's url"),
        (
            certificate_error(),
            "TLS certificate of h:1 is not trusted: self-signed certificate. Check the host in the url, give "
            "the authority as the credential ca_cert_pem, or set client_config.skip_ssl_verification",
        ),
        (
            handshake_error("WRONG_VERSION_NUMBER"),
            "TLS handshake with h:1 failed: WRONG_VERSION_NUMBER. Check that the port speaks TLS and that client "
            "certificates are as the provider wants them",
        ),
        (
            handshake_error(None),
            "TLS handshake with h:1 failed: the peer closed the connection. Check that the port speaks TLS and that "
            "client certificates are as the provider wants them",
        ),
    ],
)
def test_a_connection_that_cannot_be_opened_says_why_and_what_to_check(error: OSError, reason: str) -> None:
    failure = network_errors.unreachable("h:1", error)
    assert failure.reason == PREFIX + reason
    assert (failure.status, failure.provider_status) == (424, None)


@pytest.mark.parametrize(
    ("failure", "kind", "reason"),
    [
        (
            network_errors.connect_timed_out("h:1", 2.5),
            BrokenConnection,
            "Connect timeout: no connection to h:1 within 2.5 s. Check that the host is reachable from here, or raise "
            "connection_timeout in the connector's client_config",
        ),
        (
            network_errors.read_timed_out("h:1", 30),
            ReadTimedOut,
            "Read timeout: h:1 sent nothing for 30 s. Raise read_timeout in the connector's client_config if the model "
            "needs longer",
        ),
        (network_errors.closed_early("h:1"), BrokenConnection, "h:1 closed the connection before it responded"),
        (
            network_errors.closed_in_the_middle("h:1"),
            BrokenConnection,
            "h:1 closed the connection in the middle of its response",
        ),
        (
            network_errors.not_http("h:1", "its head cannot be read"),
            BrokenConnection,
            "h:1 did not respond with valid HTTP/1.1: its head cannot be read. Check the port in the url",
        ),
        (
            network_errors.undecodable("h:1", "br"),
            UpstreamError,
            "h:1 sent a body in content-encoding [br] that cannot be decoded; identity was asked for",
        ),
    ],
)
def test_every_other_failure_names_the_provider(failure: UpstreamError, kind: type, reason: str) -> None:
    assert (type(failure), failure.reason, failure.status) == (kind, PREFIX + reason, 424)


def test_a_broken_connection_says_how_without_the_host_and_what_to_check() -> None:
    errors = [OSError(errno.EHOSTUNREACH, "x"), certificate_error(), handshake_error(None)]
    assert [network_errors.unreachable("h:1", error).problem for error in errors] == [
        "No route to host",
        "its certificate is not trusted: self-signed certificate",
        "its TLS handshake failed: the peer closed the connection",
    ]
    assert network_errors.connect_timed_out("h:1", 2.5).problem == "no connection within 2.5 s"
    assert (
        network_errors.closed_in_the_middle("h:1").problem == "it closed the connection in the middle of its response"
    )
    assert network_errors.not_http("h:1", "its head cannot be read").problem == "its head cannot be read"
    assert network_errors.unknown_host("h", OSError("no name")).problem == "unknown host (no name)"
