"""Whether a server may be called already, and whether it has a private address, for whoever allows it."""

import socket

from opensearch_ml_stream.plugin.settings.endpoint_permissions import EndpointPermissions
from opensearch_ml_stream.plugin.upstream.addresses import is_private, literal_address
from opensearch_ml_stream.plugin.upstream.trusted_endpoints import is_trusted

_PRIVATE_SUFFIXES = (".local", ".localhost", ".internal", ".lan", ".home.arpa", ".svc", ".cluster.local")


def is_allowed(endpoint: str, permissions: EndpointPermissions, *, needs_private: bool) -> bool:
    """Return whether all that the server needs is allowed by patterns of whatever form."""
    if not is_trusted(endpoint, permissions.patterns):
        return False
    if not needs_private:
        return True
    private = permissions.private_patterns
    return permissions.private_allowed and (not private or is_trusted(endpoint, private))


def has_private_address(host: str) -> bool:
    """Return whether the host has a private address, as far as this machine knows. Waits for name servers."""
    literal = literal_address(host)
    if literal is not None:
        return is_private(literal)
    if "." not in host or host.endswith(_PRIVATE_SUFFIXES):  # of a container or service, which has no other
        return True
    try:
        return any(is_private(str(entry[4][0])) for entry in socket.getaddrinfo(host, None))
    except OSError:
        return False
