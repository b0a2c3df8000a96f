"""`_plugins/_ml/_settings`: settings that can change at run time, in the shape of OpenSearch's `_cluster/settings`."""

from collections.abc import Mapping
from typing import Any, Protocol

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers.resources import Body, Call, Operation, resource


class SettingsService(Protocol):
    """Settings by full name; values are bool, int, text or a sequence of texts."""

    async def persistent(self) -> dict[str, Any]:
        """Those that were changed at run time."""
        ...

    def defaults(self) -> dict[str, Any]:
        """What holds where nothing was changed."""
        ...

    async def change(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Changes settings, null resets; answers those that were set. InvalidRequest changes nothing."""
        ...


def settings_routes(service: SettingsService, max_body_size: int) -> list[Route]:
    """GET takes `flat_settings` and `include_defaults`, PUT `{"persistent": {...}}` or the settings themselves."""

    async def show(call: Call) -> Mapping[str, Any]:
        persistent = await service.persistent()
        answer = _scopes(call, persistent)
        if call.flag("include_defaults"):
            unchanged = {name: value for name, value in service.defaults().items() if name not in persistent}
            answer["defaults"] = _printed(call, unchanged)
        return answer

    async def change(call: Call) -> Mapping[str, Any]:
        return {"acknowledged": True, **_scopes(call, await service.change(call.body))}

    flat = frozenset({"flat_settings"})
    operations = {
        "GET": Operation(show, parameters=flat | {"include_defaults"}),
        "PUT": Operation(change, Body.REQUIRED, flat),
    }
    return resource("/_settings", operations, max_body_size)


def _scopes(call: Call, persistent: Mapping[str, Any]) -> dict[str, Any]:
    return {"persistent": _printed(call, persistent), "transient": {}}


def _printed(call: Call, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Values as OpenSearch prints them (texts and lists of texts), nested unless `flat_settings` is asked for."""
    printed: dict[str, Any] = {}
    for name, value in settings.items():
        place = printed
        *path, last = [name] if call.flag("flat_settings") else name.split(".")
        for step in path:
            place = place.setdefault(step, {})
        place[last] = list(value) if isinstance(value, list | tuple) else _text(value)
    return printed


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
