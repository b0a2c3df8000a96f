"""`_plugins/_ml/_settings`: settings that can change at run time, in the shape of OpenSearch's `_cluster/settings`."""

from collections.abc import Mapping
from typing import Any, Protocol

from starlette.routing import Route

from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.openapi_schemas import SETTINGS
from opensearch_ml_stream.rest_handlers.resource_endpoint import (
    Entry,
    Operation,
    ParsedRequest,
    RequestBody,
    resource_routes,
)


class SettingsService(Protocol):
    """Settings by full name (`plugins.ml_commons.stream_enabled`); values are bool, int, str or sequences of str.

    Errors are MLStreamErrors: Unavailable while the store does not respond.
    """

    async def persistent(self) -> dict[str, Any]:
        """Return the settings that were changed at run time."""
        ...

    def defaults(self) -> dict[str, Any]:
        """Return the values that hold where nothing was changed, for all settings that can change."""
        ...

    def warnings(self, body: Mapping[str, Any]) -> list[str]:
        """Return what a change would do that its caller may not expect; errors as those of `change`."""
        ...

    async def change(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Change settings, null resets one; return those that were set. InvalidRequest, then nothing is changed."""
        ...


def settings_routes(service: SettingsService, entry: Entry) -> list[Route]:
    """Return the routes of `/_settings`.

    GET takes `flat_settings` and `include_defaults`, PUT `{"persistent": {...}}` or the settings themselves.
    """

    async def show(request: ParsedRequest) -> Mapping[str, Any]:
        """Get the settings that were changed at run time."""
        persistent = await service.persistent()
        response = _scopes(request, persistent)
        if request.flag("include_defaults"):
            unchanged = {name: value for name, value in service.defaults().items() if name not in persistent}
            response["defaults"] = _printed(request, unchanged)
        return response

    async def change(request: ParsedRequest) -> Mapping[str, Any]:
        """Change settings at run time."""
        warnings = service.warnings(request.body)
        response = {"acknowledged": True, **_scopes(request, await service.change(request.body))}
        return {**response, "warnings": warnings} if warnings else response

    flat = frozenset({"flat_settings"})
    operations = {
        "GET": Operation(show, actions.SETTINGS_GET, parameters=flat | {"include_defaults"}),
        "PUT": Operation(change, actions.SETTINGS_UPDATE, RequestBody.REQUIRED, flat, SETTINGS),
    }
    return resource_routes("/_settings", operations, entry)


def _scopes(request: ParsedRequest, persistent: Mapping[str, Any]) -> dict[str, Any]:
    return {"persistent": _printed(request, persistent), "transient": {}}


def _printed(request: ParsedRequest, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as OpenSearch prints them (strings and lists of strings), nested unless `flat_settings` is true."""
    printed: dict[str, Any] = {}
    for name, value in settings.items():
        node = printed
        *parents, last = [name] if request.flag("flat_settings") else name.split(".")
        for parent in parents:
            node = node.setdefault(parent, {})
        node[last] = list(value) if isinstance(value, list | tuple) else _printed_value(value)
    return printed


def _printed_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
