"""Extensions of other packages are found by their entry points, and imported only where the settings name them."""

import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.extension import Extension
from opensearch_ml_stream.plugin.installed_extensions import (
    declared_extensions,
    default_settings,
    enabled,
    load_installed_settings,
    own_extensions,
)
from opensearch_ml_stream.plugin.settings import DEFAULT_TRUSTED_ENDPOINTS, Settings
from tests.other_package import DECLARATION, SWITCH, Install, declaring

HOME = {"HOME": "/h"}


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


class Scans:
    """A finder of packages that counts how often it is asked, and finds none."""

    def __init__(self) -> None:
        self.count = 0

    def find_distributions(self, context: DistributionFinder.Context) -> Iterable[Distribution]:
        self.count += 1
        return ()

    def find_spec(self, *module: object) -> None:
        pass


def test_the_packages_of_the_environment_are_read_once_a_process(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans = Scans()
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, scans])
    install()
    for _ in range(2):
        declared_extensions(load_installed_settings(environment=HOME))
    assert scans.count == 1


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
    environment = {**HOME, SWITCH: "false", "MLSTREAM_SETTING__ACME__GREETING__WORD": "hello"}
    settings = load_installed_settings(environment=environment)
    extension = declared_extensions(settings)[-1]
    assert (extension.name, enabled([extension], settings)) == ("greeting", [])


PROVIDING = (
    declaring("providers=('acme_greeting:WORDS',)")
    + """
from opensearch_ml_stream.connectors.provider import Provider
WORDS = Provider(trusted_endpoints=(r'^https://words\\.example/.*$',))
"""
)


def test_the_endpoints_of_its_providers_are_trusted_where_it_is_on_and_no_source_says_which_are(
    install: Install,
) -> None:
    install(code=PROVIDING)
    trusted = "plugins.ml_commons.trusted_connector_endpoints_regex"

    def added(switch: str, **options: object) -> list[str]:
        settings = load_installed_settings(environment=HOME | {SWITCH: switch}, options=options)
        return [url for url in settings.trusted_connector_endpoints_regex if url not in DEFAULT_TRUSTED_ENDPOINTS]

    assert added("true") == [r"^https://words\.example/.*$"]
    assert added("false") == []
    assert added("true", **{trusted: ["^https://mine/.*$"]}) == ["^https://mine/.*$"]


def test_a_switch_of_no_extension_is_refused_with_the_most_similar_one(install: Install) -> None:
    install()
    with pytest.raises(InvalidRequest, match=r"did you mean \[opensearch_ml_stream\.extensions\.greeting\]"):
        load_installed_settings(environment={**HOME, SWITCH.removesuffix("G"): "true"})
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
    settings = load_installed_settings(environment={**HOME, SWITCH.replace("GREETING", "V2"): "true"})
    assert declared_extensions(settings) == own_extensions()
    assert "acme_v2" not in sys.modules


def test_two_packages_with_an_extension_of_one_name_are_refused(install: Install) -> None:
    install()
    install(package="other_greeting")
    load_installed_settings(environment=HOME)
    with pytest.raises(InvalidRequest, match="Two installed packages have an extension greeting"):
        load_installed_settings(environment={**HOME, SWITCH: "true"})


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("", "cannot be loaded from acme_greeting:EXTENSION"),
        ("import nothing_of_the_kind", "acme_greeting:EXTENSION (ModuleNotFoundError: No module named"),
        ("1 / 0", "(ZeroDivisionError: division by zero): install another version of its package, or remove "),
        ("EXTENSION = 1", "acme_greeting:EXTENSION does not declare an extension greeting"),
        (DECLARATION.replace('"greeting"', '"parting"'), "does not declare an extension greeting"),
    ],
)
def test_what_declares_nothing_is_refused(install: Install, code: str, problem: str) -> None:
    install(code=code)
    with pytest.raises(InvalidRequest) as raised:
        load_installed_settings(environment={**HOME, SWITCH: "true"})
    assert problem in raised.value.reason


def made(name: str, **parts: Any) -> Extension:
    return Extension(name, "Made by hand.", **parts)


def test_what_is_required_is_opened_before_whatever_the_names() -> None:
    first, second, third = made("z"), made("m", requires=("z",)), made("a", requires=("m", "z"))
    assert enabled([third, second, first], Settings()) == [first, second, third]


def test_what_requires_one_that_is_off_is_refused_with_both_ways_out() -> None:
    off = made("other", is_on=lambda settings: False)
    with pytest.raises(InvalidRequest) as raised:
        enabled([made("mine", requires=("other",)), off], Settings())
    assert raised.value.reason == (
        "The extension mine needs other: set opensearch_ml_stream.extensions.other to true, "
        "or opensearch_ml_stream.extensions.mine to false"
    )


def test_what_requires_each_other_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="The extensions a and b require each other"):
        enabled([made("a", requires=("b",)), made("b", requires=("a",))], Settings())


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        ('paths=("/v2",)', "v2 and greeting both have /v2"),
        ('commands=(Command("doctor", "a:b", "c"),)', "doctor and greeting both have command doctor"),
        ('serve_options=(ServeOption("--models", "a", "b"),)', "runtimes and greeting both have option --models"),
    ],
)
def test_what_has_a_name_that_another_has_is_refused(install: Install, part: str, problem: str) -> None:
    install(code=declaring(part))
    settings = load_installed_settings(environment=HOME)
    settings = settings.changed({settings.definitions()["opensearch_ml_stream.extensions.greeting"]: True})
    with pytest.raises(InvalidRequest) as raised:
        declared_extensions(settings)
    assert raised.value.reason == f"The extensions {problem}: remove one"
