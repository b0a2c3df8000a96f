"""The command `settings`: all settings with their values and what they are for."""

import re
from collections.abc import Iterable
from typing import Annotated, Any

import orjson
import typer

from opensearch_ml_stream.plugin.cli.options import Config, Json
from opensearch_ml_stream.plugin.cli.printing import print_table, print_text
from opensearch_ml_stream.plugin.installed_extensions import load_installed_settings
from opensearch_ml_stream.plugin.settings.setting_metadata import Setting

_SHOWN_LENGTH = 40


def settings(
    config: Config = None,
    json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="The table of docs/settings.md.")] = False,
) -> None:
    """List all settings, with the values that the file and the environment give them."""
    current = load_installed_settings(config)
    definitions = current.definitions().values()
    if markdown:
        print_text(markdown_table(definitions))
        return
    rows = [
        (
            setting.name,
            _masked(shown) if json else _short(shown),
            setting.dynamic,
            setting.help,
        )
        for setting in definitions
        for shown in (_shown(setting, current.value(setting)),)
    ]
    print_table(("Setting", "Value", "At run time", "What for"), rows, json=json)


def markdown_table(definitions: Iterable[Setting]) -> str:
    """Return the table of docs/settings.md: name, default, whether it can change at run time, help."""
    rows = [
        f"| `{setting.name}` | {_cell(setting)} | {'yes' if setting.dynamic else ''} | {setting.help} |"
        for setting in definitions
    ]
    return "\n".join(("| Setting | Default | At run time | What for |", "|---|---|---|---|", *rows))


def _shown(setting: Setting, value: Any) -> object:
    return dict(value) if setting.kind == "permissions" else value


def _cell(setting: Setting) -> str:
    if setting.default in ("", None):
        return ""
    return f"`{_short(_shown(setting, setting.default))}`".replace("|", "\\|")


def _short(value: object) -> str:
    if isinstance(value, tuple | dict) and len(orjson.dumps(value)) > _SHOWN_LENGTH:
        return f"{len(value)} entries"
    return str(_masked(value if isinstance(value, str) else orjson.dumps(value).decode()))


def _masked(value: object) -> object:
    """Return a value without the logins of URLs in it."""
    if isinstance(value, tuple):
        return [_masked(item) for item in value]
    return re.sub(r"://[^/@]*@", "://***@", value) if isinstance(value, str) else value
