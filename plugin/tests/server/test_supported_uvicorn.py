"""The server's own protocol is used with a uvicorn that has the names it builds upon, and uvicorn's with any other."""

import asyncio
from types import FunctionType
from typing import Any, cast

import pytest
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from opensearch_ml_stream.plugin.server.protocol import StreamingProtocol, http_protocol, is_supported


def test_the_installed_uvicorn_is_supported() -> None:
    assert is_supported(HttpToolsProtocol, FlowControl)
    assert http_protocol() is StreamingProtocol


def test_a_protocol_that_is_another_is_used_as_it_is() -> None:
    assert http_protocol(H11Protocol) is H11Protocol


class ProtocolLikeUvicorns:
    def __init__(self) -> None:
        self.flow = self.pipeline = self.scope = self.transport = None

    def connection_made(self, transport: Any) -> None: ...

    def on_headers_complete(self) -> None: ...


class WithoutConstructor:
    connection_made = on_headers_complete = ProtocolLikeUvicorns.connection_made


class InheritedConstructor(ProtocolLikeUvicorns):
    """Whose names are another class's, which may change them apart."""


class WithoutPipeline(ProtocolLikeUvicorns):
    def __init__(self) -> None:
        self.flow = self.scope = self.transport = None


class WithoutHeadersComplete:
    __init__ = ProtocolLikeUvicorns.__init__
    connection_made = ProtocolLikeUvicorns.connection_made


class WithoutConnectionMade:
    __init__ = ProtocolLikeUvicorns.__init__
    on_headers_complete = ProtocolLikeUvicorns.on_headers_complete


class FlowControlWithMore(FlowControl):
    def throttle(self) -> None: ...


class FlowControlWithPrivateMore(FlowControl):
    def _throttle(self) -> None: ...


@pytest.mark.parametrize(
    ("protocol", "flow_control", "supported"),
    [
        (ProtocolLikeUvicorns, FlowControl, True),
        (ProtocolLikeUvicorns, FlowControlWithPrivateMore, True),
        (ProtocolLikeUvicorns, FlowControlWithMore, False),
        (WithoutConstructor, FlowControl, False),
        (InheritedConstructor, FlowControl, False),
        (WithoutPipeline, FlowControl, False),
        (WithoutHeadersComplete, FlowControl, False),
        (WithoutConnectionMade, FlowControl, False),
    ],
)
def test_a_version_of_uvicorn_without_one_of_the_names_is_not_supported(
    protocol: type, flow_control: type, supported: bool
) -> None:
    assert is_supported(protocol, flow_control) is supported
    own = cast(type[asyncio.Protocol], protocol)
    if flow_control is FlowControl:
        assert http_protocol(own) is (StreamingProtocol if supported else protocol)


@pytest.mark.parametrize("name", ["flow", "pipeline", "scope", "transport"])
def test_every_name_that_the_protocol_uses_is_looked_for(name: str) -> None:
    code = ProtocolLikeUvicorns.__init__.__code__
    renamed = code.replace(co_names=tuple("renamed" if other == name else other for other in code.co_names))
    protocol = type("Protocol", (ProtocolLikeUvicorns,), {"__init__": FunctionType(renamed, {})})
    assert not is_supported(protocol, FlowControl)
