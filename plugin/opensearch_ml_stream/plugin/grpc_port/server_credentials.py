"""TLS of the gRPC port: the HTTP port's certificate, for each handshake the one that is in force."""

from collections.abc import Callable
from typing import Any, Protocol

import grpc
from cryptography.hazmat.primitives import serialization

from opensearch_ml_stream.plugin.tls.key_pairs import KeyPair

_PEM = serialization.Encoding.PEM


class Certificate(Protocol):
    """A certificate with its key; `authorities` is PEM of those that may have issued the clients', if any."""

    @property
    def pair(self) -> KeyPair:
        """The certificate and its key."""
        ...

    @property
    def authorities(self) -> bytes | None:
        """The authorities."""
        ...


def server_credentials(current: Callable[[], Certificate], *, requires_clients: bool) -> grpc.ServerCredentials:
    """Return credentials that follow the certificate. TLS 1.2 is the oldest that gRPC speaks.

    gRPC can ask clients for a certificate only where one is required: where it is optional, none is asked for.
    """
    in_force = current()

    def configuration() -> grpc.ServerCertificateConfiguration:
        pair = in_force.pair
        key = pair.key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        chain = b"".join(certificate.public_bytes(_PEM) for certificate in pair.certificates)
        authorities = in_force.authorities if requires_clients else None
        return grpc.ssl_server_certificate_configuration([(key, chain)], authorities)

    def fetch() -> Any:  # type stubs know no None
        """Return the certificate if it is new; called by gRPC at each handshake, in a thread of its own."""
        nonlocal in_force
        now = current()
        if now is in_force:
            return None
        in_force = now
        return configuration()

    return grpc.dynamic_ssl_server_credentials(configuration(), fetch, requires_clients)
