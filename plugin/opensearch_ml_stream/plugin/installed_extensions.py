"""The extensions of this environment, by their entry points, and those of them that are on."""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.extension import GROUP, Extension
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.rest_handlers.base_path import Paths

DISTRIBUTION = "opensearch-ml-stream"


@cache
def own_extensions() -> tuple[Extension, ...]:
    """Return the declarations that come with this package."""
    points = [point for point in entry_points(group=GROUP) if point.dist is not None]
    return tuple(point.load() for point in points if point.dist is not None and point.dist.name == DISTRIBUTION)


def enabled(extensions: Sequence[Extension], settings: Settings) -> list[Extension]:
    """Return those that are on, each behind those that it requires; InvalidRequest if one of these is off."""
    on = {extension.name: extension for extension in extensions if extension.is_on(settings)}
    ordered: dict[str, Extension] = {}

    def add(extension: Extension) -> None:
        for name in extension.requires:
            if name not in on:
                raise InvalidRequest(f"The extension {extension.name} needs {name}: switch both on, or both off")
            add(on[name])
        ordered.setdefault(extension.name, extension)

    for extension in on.values():
        add(extension)
    return list(ordered.values())


def paths_of(extensions: Sequence[Extension]) -> Paths:
    """Return the paths at which the routes of a server with these extensions stand."""
    return Paths(
        tuple(path for extension in extensions for path in extension.paths),
        tuple(path for extension in extensions if extension.has_plain_errors for path in extension.paths),
    )
