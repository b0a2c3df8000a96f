"""A package of others with an extension, as pip would install it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.installed_extensions import installed

SWITCH = "MLSTREAM_SETTING__OPENSEARCH_ML_STREAM__EXTENSIONS__GREETING"
DECLARATION = '''
from dataclasses import dataclass
from opensearch_ml_stream.plugin.extension import Command, Extension, ServeOption
from opensearch_ml_stream.plugin.settings.setting_metadata import setting

@dataclass(frozen=True)
class GreetingSettings:
    word: str = setting("hi", "Word of a greeting", name="acme.greeting.word")

def greet() -> None:
    """Say the word."""
    print("hello")

EXTENSION = Extension(
    name="greeting",
    summary="Greets.",
    settings=GreetingSettings,
    commands=(Command("greet", "acme_greeting:greet", "Say the word."),),
    serve_options=(ServeOption("--word", "acme.greeting.word", "Word of a greeting."),),
)
'''

Install = Callable[..., None]


@contextmanager
def installer(folder: Path) -> Iterator[Install]:
    """Give a function that installs a package with one module and an entry point for an extension."""

    def install(name: str = "greeting", package: str = "acme_greeting", code: str = DECLARATION) -> None:
        metadata = folder / f"{package}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        points = f"[opensearch_ml_stream.extensions]\n{name} = {package}:EXTENSION\n"
        (metadata / "entry_points.txt").write_text(points)
        (folder / f"{package}.py").write_text(code)
        monkeypatch.delitem(sys.modules, package, raising=False)
        monkeypatch.syspath_prepend(folder)
        installed.cache_clear()

    with pytest.MonkeyPatch.context() as monkeypatch:
        yield install
    installed.cache_clear()


def declaring(parts: str) -> str:
    """Return the code of a package whose extension is of these parts."""
    return DECLARATION.partition("EXTENSION")[0] + f"EXTENSION = Extension('greeting', 'Greets.', {parts})"
