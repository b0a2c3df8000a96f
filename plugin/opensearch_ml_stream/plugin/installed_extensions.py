"""The extensions that are installed in this environment, found by their entry points, and which of them are enabled.

Those of this package are always declared. Those of other packages are known by name only, and nothing of them is
imported unless the settings enable or disable them.
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.known_providers import KnownProviders
from opensearch_ml_stream.connectors.provider import Provider
from opensearch_ml_stream.plugin.extension import GROUP, Extension, load
from opensearch_ml_stream.plugin.settings import DEFAULT_TRUSTED_ENDPOINTS, Settings
from opensearch_ml_stream.plugin.settings.setting_metadata import SWITCHES
from opensearch_ml_stream.plugin.settings.sources import given_names, load_settings
from opensearch_ml_stream.rest_handlers.base_path import Paths

DISTRIBUTION = "opensearch-ml-stream"


@cache
def own_extensions() -> tuple[Extension, ...]:
    """Return the declarations of this package."""
    return tuple(_declaration(point) for point in installed() if is_own(point))


def named_extensions(config: Path | None = None, environment: Mapping[str, str] = os.environ) -> tuple[Extension, ...]:
    """Return this package's declarations, and those of others that the file or the environment enables or disables."""
    others = _others()
    given = given_names(config, environment) if others else set()
    return _declarations(others, [name.removeprefix(SWITCHES) for name in given if name.startswith(SWITCHES)])


@cache
def installed() -> tuple[EntryPoint, ...]:
    """Return the entry points of all installed extensions, sorted by name. They are read once in a process."""
    return tuple(sorted(entry_points(group=GROUP), key=lambda point: point.name))


def declared_extensions(settings: Settings) -> tuple[Extension, ...]:
    """Return this package's declarations, and those of others that the settings enable or disable."""
    return _declarations(_others(), [name for name, is_on in settings.extensions.items() if is_on is not None])


def load_installed_settings(
    config: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    options: Mapping[str, object] | None = None,
) -> Settings:
    """Return the settings from all sources, including those of extensions; see `load_settings`.

    The endpoints of extensions' providers are trusted, unless a source sets the trusted endpoints.
    """
    others = [point.name for point in _others()]
    defaults = default_settings(named_extensions(config, environment), others)
    settings = load_settings(defaults, config, environment, options)
    if settings.trusted_connector_endpoints_regex != DEFAULT_TRUSTED_ENDPOINTS:
        return settings
    used = [extension for extension in declared_extensions(settings) if _is_on(extension, settings)]
    endpoints = KnownProviders.of(providers_of(used)).trusted_endpoints
    return replace(settings, trusted_connector_endpoints_regex=(*DEFAULT_TRUSTED_ENDPOINTS, *endpoints))


def default_settings(extensions: Sequence[Extension], others: Sequence[str] = ()) -> Settings:
    """Return the default settings; `others` are names of extensions that are not declared."""
    sections = [extension.settings for extension in extensions if extension.settings is not None]
    names = [*(extension.name for extension in extensions), *others]
    return Settings(sections={section: section() for section in sections}, extensions=dict.fromkeys(names))


def providers_of(extensions: Iterable[Extension]) -> list[Provider]:
    """Import and return the providers of extensions."""
    return [load(reference) for extension in extensions for reference in extension.providers]


def is_own(point: EntryPoint) -> bool:
    """Return whether an extension is one of this package."""
    return point.dist is not None and point.dist.name == DISTRIBUTION


def _others() -> list[EntryPoint]:
    own = {extension.name for extension in own_extensions()}
    return [point for point in installed() if point.name not in own]


def _declarations(others: Sequence[EntryPoint], names: Collection[str]) -> tuple[Extension, ...]:
    """Return the declarations of this package, and those of others with these names."""
    named: dict[str, EntryPoint] = {}
    for point in others:
        if point.name in names and named.setdefault(point.name, point) is not point:
            raise InvalidRequest(f"Two installed packages have an extension {point.name}: remove one")
    extensions = (*own_extensions(), *map(_declaration, named.values()))
    if len(extensions) > len(own_extensions()):
        _check_names(extensions)
    return extensions


def _declaration(point: EntryPoint) -> Extension:
    try:
        extension = point.load()
    except Exception as error:  # whatever a package raises while it is imported
        problem = f"{type(error).__name__}: {error}"
        raise InvalidRequest(
            f"The extension {point.name} cannot be loaded from {point.value} ({problem}): install another version "
            f"of its package, or remove {SWITCHES}{point.name} from the settings"
        ) from error
    if not isinstance(extension, Extension) or extension.name != point.name:
        raise InvalidRequest(f"{point.value} does not declare an extension {point.name}")
    return extension


def _check_names(extensions: Sequence[Extension]) -> None:
    """Raise InvalidRequest if two extensions have the same path, command or option of `serve`."""
    owners: dict[str, str] = {}
    for extension in extensions:
        for name in (
            *extension.paths,
            *(f"command {command.name}" for command in extension.commands),
            *(f"option {option.name}" for option in extension.serve_options),
        ):
            if (other := owners.setdefault(name, extension.name)) != extension.name:
                raise InvalidRequest(f"The extensions {other} and {extension.name} both have {name}: remove one")


def enabled(extensions: Sequence[Extension], settings: Settings) -> list[Extension]:
    """Return the enabled extensions, each after those that it requires.

    Raises InvalidRequest if a required one is disabled or missing, or if extensions require each other.
    """
    on = {extension.name: extension for extension in extensions if _is_on(extension, settings)}
    ordered: dict[str, Extension] = {}

    def add(extension: Extension, dependents: tuple[str, ...]) -> None:
        if extension.name in dependents:
            raise InvalidRequest(f"The extensions {' and '.join(dependents)} require each other")
        for name in extension.requires:
            if name not in on:
                raise InvalidRequest(
                    f"The extension {extension.name} needs {name}: set {SWITCHES}{name} to true, "
                    f"or {SWITCHES}{extension.name} to false"
                )
            add(on[name], (*dependents, extension.name))
        ordered.setdefault(extension.name, extension)

    for extension in on.values():
        add(extension, ())
    return list(ordered.values())


def _is_on(extension: Extension, settings: Settings) -> bool:
    switch = settings.extensions.get(extension.name)
    return extension.is_on(settings) if switch is None else switch


def paths_of(extensions: Sequence[Extension]) -> Paths:
    """Return the path prefixes of the routes of a server with these extensions."""
    return Paths(
        tuple(path for extension in extensions for path in extension.paths),
        {
            path: load(extension.error_form)
            for extension in extensions
            if extension.error_form
            for path in extension.paths
        },
    )
