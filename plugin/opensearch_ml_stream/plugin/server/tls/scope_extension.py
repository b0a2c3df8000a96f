"""ASGI's TLS extension: what an application is told of the TLS beneath its requests.

https://asgi.readthedocs.io/en/latest/specs/tls.html
"""

import ssl
from typing import Any

from cryptography import x509

_VERSIONS = {"TLSv1.2": 0x0303, "TLSv1.3": 0x0304}


def tls_extension(connection: ssl.SSLObject) -> dict[str, Any]:
    """Return `scope["extensions"]["tls"]` for a connection whose handshake is over.

    A client's certificate is there only if it was verified. ValueError if its subject cannot be read. The server's own
    certificate and the cipher suite, which may be None, are.
    """
    client = connection.getpeercert(binary_form=True)
    return {
        "server_cert": None,
        "client_cert_chain": [] if client is None else [ssl.DER_cert_to_PEM_cert(client)],
        "client_cert_name": None if client is None else x509.load_der_x509_certificate(client).subject.rfc4514_string(),
        "client_cert_error": None,
        "tls_version": _VERSIONS.get(connection.version() or ""),
        "cipher_suite": None,
    }
