"""The command `settings`: all settings with their values and what they are for."""

import re
from typing import Annotated, Any

import orjson
import typer

from opensearch_ml_stream.plugin.cli.options import Config
from opensearch_ml_stream.plugin.cli.printing import print_table
from opensearch_ml_stream.plugin.settings.all_settings import SETTINGS
from opensearch_ml_stream.plugin.settings.setting_metadata import Setting
from opensearch_ml_stream.plugin.settings.sources import load_settings

_SHOWN_LENGTH = 40


def settings(
    config: Config = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="The table of docs/settings.md.")] = False,
) -> None:
    """List all settings, with the values that the file and the environment give them."""
    if markdown:
        typer.echo(markdown_table())
        return
    current = load_settings(config)
    rows = [
        (
            setting.name,
            _short(_shown(setting, getattr(current, setting.field))),
            "yes" if setting.dynamic else "no",
            setting.help,
        )
        for setting in SETTINGS
    ]
    print_table(("Setting", "Value", "At run time", "What for"), rows)


def markdown_table() -> str:
    """Return the table of docs/settings.md: name, default, whether it can change at run time, help."""
    rows = [
        f"| `{setting.name}` | {_cell(setting)} | {'yes' if setting.dynamic else ''} | {setting.help} |"
        for setting in SETTINGS
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
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return re.sub(r"://[^/@]*@", "://***@", text)
