"""Extensions of other packages are found by their entry points, and imported only where the settings name them."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.cli import main
from opensearch_ml_stream.plugin.extension import Extension
from opensearch_ml_stream.plugin.installed_extensions import (
    declared_extensions,
    default_settings,
    enabled,
    load_installed_settings,
    own_extensions,
)

HOME = {"HOME": "/h"}
SWITCH = "MLSTREAM_SETTING__OPENSEARCH_ML_STREAM__EXTENSIONS__"
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
    commands=(Command("greet", "acme_greeting:greet"),),
    serve_options=(ServeOption("--word", "acme.greeting.word", "Word of a greeting."),),
)
'''

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """A function that installs a package with one module and an entry point for an extension."""

    def install_package(name: str = "greeting", package: str = "acme_greeting", code: str = DECLARATION) -> None:
        metadata = tmp_path / f"{package}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        points = f"[opensearch_ml_stream.extensions]\n{name} = {package}:EXTENSION\n"
        (metadata / "entry_points.txt").write_text(points)
        (tmp_path / f"{package}.py").write_text(code)
        monkeypatch.delitem(sys.modules, package, raising=False)
        monkeypatch.syspath_prepend(tmp_path)

    return install_package


def test_ours_are_declared_each_with_a_switch() -> None:
    names = [extension.name for extension in own_extensions()]
    settings = load_installed_settings(environment=HOME)
    assert {"v2", "runtimes", "playground"} <= set(names)
    assert settings.extensions == dict.fromkeys(names)
    assert declared_extensions(settings) == own_extensions()


def test_a_package_of_others_is_not_imported_unless_the_settings_name_it(install: Install) -> None:
    install()
    settings = load_installed_settings(environment=HOME)
    assert settings.extensions["greeting"] is None
    assert declared_extensions(settings) == own_extensions()
    assert "acme_greeting" not in sys.modules
    with pytest.raises(InvalidRequest, match=r"\[acme\.greeting\.word\] not recognized"):
        load_installed_settings(environment=HOME, options={"acme.greeting.word": "hello"})


def test_one_that_is_switched_on_is_on_with_its_settings(install: Install, tmp_path: Path) -> None:
    install()
    file = tmp_path / "config.yml"
    file.write_text("opensearch_ml_stream.extensions.greeting: true\nacme.greeting.word: hello\n")
    settings = load_installed_settings(file, HOME)
    extension = declared_extensions(settings)[-1]
    assert (extension.name, extension in enabled([extension], settings)) == ("greeting", True)
    assert settings.value(settings.definitions()["acme.greeting.word"]) == "hello"


def test_one_that_is_switched_off_is_off_and_its_settings_stay_valid(install: Install) -> None:
    install()
    environment = {**HOME, f"{SWITCH}GREETING": "false", "MLSTREAM_SETTING__ACME__GREETING__WORD": "hello"}
    settings = load_installed_settings(environment=environment)
    extension = declared_extensions(settings)[-1]
    assert (extension.name, enabled([extension], settings)) == ("greeting", [])


def test_a_switch_of_no_extension_is_refused_with_the_most_similar_one(install: Install) -> None:
    install()
    with pytest.raises(InvalidRequest, match=r"did you mean \[opensearch_ml_stream\.extensions\.greeting\]"):
        load_installed_settings(environment={**HOME, f"{SWITCH}GREETIN": "true"})
    assert "acme_greeting" not in sys.modules


@pytest.mark.parametrize(
    ("by_itself", "switch", "is_on"),
    [(True, None, True), (False, None, False), (True, False, False), (False, True, True)],
)
def test_a_switch_says_what_is_on_and_where_it_is_unset_the_declaration(
    by_itself: bool, switch: bool | None, is_on: bool
) -> None:
    extension = Extension("mine", "Mine.", is_on=lambda settings: by_itself)
    settings = default_settings([extension])
    settings = settings.changed({settings.definitions()["opensearch_ml_stream.extensions.mine"]: switch})
    assert enabled([extension], settings) == ([extension] if is_on else [])


def test_nobody_takes_the_name_of_one_of_ours(install: Install) -> None:
    install("v2", "acme_v2")
    settings = load_installed_settings(environment={**HOME, f"{SWITCH}V2": "true"})
    assert declared_extensions(settings) == own_extensions()
    assert "acme_v2" not in sys.modules


def test_two_packages_with_an_extension_of_one_name_are_refused(install: Install) -> None:
    install()
    install(package="other_greeting")
    load_installed_settings(environment=HOME)
    with pytest.raises(InvalidRequest, match="Two packages that are installed have an extension greeting"):
        load_installed_settings(environment={**HOME, f"{SWITCH}GREETING": "true"})


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("", "cannot be loaded from acme_greeting:EXTENSION"),
        ("import nothing_of_the_kind", "cannot be loaded from acme_greeting:EXTENSION: No module named"),
        ("EXTENSION = 1", "acme_greeting:EXTENSION does not declare an extension greeting"),
        (DECLARATION.replace('"greeting"', '"parting"'), "does not declare an extension greeting"),
    ],
)
def test_what_declares_nothing_is_refused(install: Install, code: str, problem: str) -> None:
    install(code=code)
    with pytest.raises(InvalidRequest) as raised:
        load_installed_settings(environment={**HOME, f"{SWITCH}GREETING": "true"})
    assert problem in raised.value.reason


def test_its_command_is_one_of_the_programs(
    install: Install, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install()
    monkeypatch.setattr(sys, "argv", ["opensearch-ml-stream", "greet"])
    for variables, code, printed in (({}, 2, ""), ({f"{SWITCH}GREETING": "true"}, 0, "hello\n")):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main()
        assert (ended.value.code, capsys.readouterr().out) == (code, printed)
