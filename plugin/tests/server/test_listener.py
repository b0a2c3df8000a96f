"""The socket that the server listens on; the sockets here are fakes."""

import logging
import socket

import pytest

from opensearch_ml_stream.plugin.server.listener import announce, bind
from opensearch_ml_stream.plugin.settings import Settings

REUSE_ADDRESS = (socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
REUSE_PORT = (socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


class FakeSocket:
    def __init__(self, family: int, kind: int, protocol: int) -> None:
        self.made = (family, kind, protocol)
        self.options: list[tuple[int, int, int]] = []
        self.address: object = None

    def setsockopt(self, level: int, option: int, value: int) -> None:
        assert self.address is None, "too late for a bound socket"
        self.options.append((level, option, value))

    def bind(self, address: object) -> None:
        self.address = address


@pytest.mark.parametrize(
    ("host", "family", "address"),
    [
        ("127.0.0.1", socket.AF_INET, ("127.0.0.1", 9510)),
        ("::1", socket.AF_INET6, ("::1", 9510, 0, 0)),
    ],
)
@pytest.mark.parametrize(("shared", "options"), [(False, [REUSE_ADDRESS]), (True, [REUSE_ADDRESS, REUSE_PORT])])
def test_the_socket_is_bound_to_the_host_and_shared_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    family: int,
    address: object,
    shared: bool,
    options: list[tuple[int, int, int]],
) -> None:
    monkeypatch.setattr(socket, "socket", FakeSocket)
    bound: object = bind(host, 9510, shared=shared) if shared else bind(host, 9510)
    assert isinstance(bound, FakeSocket)
    assert bound.made == (family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    assert bound.options == options
    assert bound.address == address


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (Settings(host="127.0.0.1", port=9510), "listening on http://127.0.0.1:9510"),
        (Settings(host="::1", port=1, workers=1), "listening on http://[::1]:1"),
        (Settings(host="h", port=2, tls_certificate="/cert.pem"), "listening on https://h:2"),
        (Settings(host="h", port=2, workers=3), "listening on http://h:2 (3 workers)"),
    ],
)
def test_the_log_names_the_servers_url(caplog: pytest.LogCaptureFixture, settings: Settings, line: str) -> None:
    with caplog.at_level(logging.INFO):
        announce(settings)
    assert caplog.messages == [line]
