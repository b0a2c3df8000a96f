"""The command `extensions`: which extensions are installed, whether each is on, and in which package."""

from importlib.metadata import EntryPoint

from opensearch_ml_stream.plugin.cli.options import Config, Json
from opensearch_ml_stream.plugin.cli.printing import print_table
from opensearch_ml_stream.plugin.extension import Extension
from opensearch_ml_stream.plugin.installed_extensions import (
    declared_extensions,
    enabled,
    installed,
    is_own,
    load_installed_settings,
)
from opensearch_ml_stream.plugin.settings.setting_metadata import SWITCHES


def extensions(config: Config = None, json: Json = False) -> None:
    """List the extensions that are installed: whether they are on, of which package they are, and what for."""
    settings = load_installed_settings(config)
    declared = {extension.name: extension for extension in declared_extensions(settings)}
    on = {extension.name for extension in enabled(list(declared.values()), settings)}
    own = {point.name for point in installed() if is_own(point)}
    rows = []
    for point in installed():
        is_shadowed = point.name in own and not is_own(point)
        state = "on" if point.name in on and not is_shadowed else "off"
        what_for = "Not used: one of ours has its name." if is_shadowed else _summary(point.name, declared)
        rows.append((point.name, state, _package(point), what_for))
    print_table(("Extension", "State", "Package", "What for"), rows, json=json)


def _summary(name: str, declared: dict[str, Extension]) -> str:
    if name in declared:
        return declared[name].summary
    return f"Not loaded: to use it, set {SWITCHES}{name} to true."


def _package(point: EntryPoint) -> str:
    return "" if point.dist is None else f"{point.dist.name} {point.dist.version}"
