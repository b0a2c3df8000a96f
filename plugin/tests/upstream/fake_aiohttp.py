"""aiohttp's session and responses without sockets, and the client over them."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import aiohttp
from aiohttp.abc import AbstractResolver
from multidict import CIMultiDict
from yarl import URL

from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.upstream.addresses import Resolver
from opensearch_ml_stream.plugin.upstream.clients.aiohttp_client import AiohttpUpstream, _CheckedResolver
from opensearch_ml_stream.plugin.upstream.tls import TLSContexts

SILENCE = b"silence"  # a part that never comes


class FakeResponse:
    """What aiohttp's session gives; each part is read at once, an error is raised."""

    def __init__(self, *parts: bytes | BaseException, headers: Mapping[str, str] | None = None) -> None:
        self.status = 200
        self.headers = CIMultiDict(headers or {})
        self.content = self
        self.closed = False
        self._parts = list(parts)

    async def readany(self) -> bytes:
        part = self._parts.pop(0) if self._parts else b""
        if isinstance(part, BaseException):
            raise part
        if part == SILENCE:
            await asyncio.Event().wait()
        return part

    def is_eof(self) -> bool:
        return not self._parts

    def close(self) -> None:
        self.closed = True
        self._parts[:] = [aiohttp.ClientConnectionError("Connection closed")] * bool(self._parts)


class FakeSession:
    """A session, and the maker of sessions: every one that is made is this one; `resolvers` are what they got."""

    def __init__(self, *outcomes: FakeResponse | BaseException) -> None:
        self.requests: list[tuple[str, URL, dict[str, Any]]] = []
        self.resolvers: list[_CheckedResolver] = []
        self.closed = 0
        self._outcomes = list(outcomes)

    def __call__(self, resolver: AbstractResolver) -> aiohttp.ClientSession:
        assert isinstance(resolver, _CheckedResolver)
        self.resolvers.append(resolver)
        return cast(aiohttp.ClientSession, self)

    async def close(self) -> None:
        self.closed += 1

    async def request(self, method: str, url: URL, **options: Any) -> FakeResponse:
        self.requests.append((method, url, options))
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


def upstream_over(
    session: FakeSession, settings: Settings | None = None, proxies: Mapping[str, str] | None = None
) -> AiohttpUpstream:
    live = LiveSettings(settings or Settings())
    return AiohttpUpstream(session, live, Resolver(), TLSContexts(), proxies or {})


def get(url: str = "http://8.8.8.8/v1?a=b%20c") -> ProviderRequest:
    return ProviderRequest("GET", url, {"X-Key": "k"}, b"")
