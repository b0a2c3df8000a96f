"""The servers that connectors may call, allowed from the page as `opensearch-ml-stream endpoints allow` does."""

import asyncio
from dataclasses import dataclass

from opensearch_ml_stream.plugin.registry.stored_documents import Json
from opensearch_ml_stream.plugin.settings.dynamic import DynamicSettings
from opensearch_ml_stream.plugin.settings.endpoint_permissions import EndpointPermissions, origin_pattern
from opensearch_ml_stream.plugin.upstream.allowing_endpoints import has_private_address, is_allowed
from opensearch_ml_stream.plugin.upstream.target import parse_target


@dataclass(frozen=True, slots=True)
class AllowedServers:
    """Fits `http.model_use_cases.AllowedServers`, over the settings that change at run time."""

    settings: DynamicSettings

    async def allow(self, url: str) -> Json:
        """Let connectors call the server of a URL, at its private address too if it has one."""
        target = parse_target(url)
        origin = target.origins[0]
        needs_private = await asyncio.to_thread(has_private_address, target.host)
        before = EndpointPermissions.of({**self.settings.defaults(), **await self.settings.persistent()})
        after = before.with_pattern(origin_pattern(origin), is_private=needs_private)
        is_new = before != after and not is_allowed(url, before, needs_private=needs_private)
        if is_new:
            await self.settings.change(after.settings)
        return {"origin": origin, "is_private": needs_private, "is_new": is_new}
