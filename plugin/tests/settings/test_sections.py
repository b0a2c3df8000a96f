"""Settings of an extension: fields of a class of its own, which all sources set as they set the core's."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.settings.dynamic import DOCUMENT_ID, ClusterSettings, DynamicSettings, refresh_settings
from opensearch_ml_stream.plugin.settings.setting_metadata import Kind, Setting, setting, settings_of
from opensearch_ml_stream.plugin.settings.sources import load_settings
from opensearch_ml_stream.plugin.store import Index, Store
from tests.registry.registry_setup import FakeCluster

WORD = "opensearch_ml_stream.greeting.word"
TIMES = "opensearch_ml_stream.greeting.times"
CONTACT = "opensearch_ml_stream.contact"


@dataclass(frozen=True, slots=True)
class GreetingSettings:
    word: str = setting("hi", "Word of it", name=WORD, dynamic=True, choices=("hi", "hello"))
    times: int = setting(1, "How often it is said", name=TIMES, minimum=1, maximum=9)


@dataclass(frozen=True, slots=True)
class ContactSettings:
    contact: str = setting("", "Whom to ask", name=CONTACT, dynamic=True)


@dataclass(frozen=True, slots=True)
class EveryType:
    boolean: bool = setting(True, "", name="boolean")
    integer: int = setting(1, "", name="integer")
    optional: int | None = setting(None, "", name="optional")
    number: float = setting(1, "", name="number")
    string: str = setting("", "", name="string")
    strings: tuple[str, ...] = setting((), "", name="strings")
    header: str = setting("", "", name="header", kind="header")
    beside: dict[str, str] | None = None


DEFAULTS = Settings(sections={GreetingSettings: GreetingSettings(), ContactSettings: ContactSettings()})


def test_a_setting_is_what_its_field_says() -> None:
    assert settings_of(GreetingSettings) == (
        Setting(WORD, GreetingSettings, "word", "string", "Word of it", "hi", True, None, None, ("hi", "hello")),
        Setting(TIMES, GreetingSettings, "times", "integer", "How often it is said", 1, False, 1, 9),
    )


def test_the_kind_is_that_of_the_fields_type_unless_one_is_given() -> None:
    kinds: Mapping[str, Kind] = {one.field: one.kind for one in settings_of(EveryType)}
    assert kinds == {
        "boolean": "boolean",
        "integer": "integer",
        "optional": "integer",
        "number": "number",
        "string": "string",
        "strings": "list",
        "header": "header",
    }


def test_a_section_has_its_values_by_its_class_and_else_its_defaults() -> None:
    settings = Settings(port=1).with_section(GreetingSettings(times=3)).with_section(ContactSettings("me"))
    assert (settings.port, settings.of(GreetingSettings), settings.of(ContactSettings)) == (
        1,
        GreetingSettings("hi", 3),
        ContactSettings("me"),
    )
    assert Settings().of(GreetingSettings) == GreetingSettings()
    assert settings.of(GreetingSettings) is settings.of(GreetingSettings)


def test_the_command_line_beats_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.yml"
    file.write_text("opensearch_ml_stream: {port: 1, greeting: {word: hello, times: 2}, contact: file}")
    environment = {
        "HOME": "/h",
        "MLSTREAM_SETTING__OPENSEARCH_ML_STREAM__GREETING__TIMES": "3",
        "MLSTREAM_SETTING__OPENSEARCH_ML_STREAM__CONTACT": "environment",
    }
    settings = load_settings(DEFAULTS, file, environment, {CONTACT: "line", WORD: None})
    assert settings.port == 1
    assert settings.of(GreetingSettings) == GreetingSettings("hello", 3)
    assert settings.of(ContactSettings) == ContactSettings("line")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{TIMES}: 10", f"[{TIMES}]: expected an integer from 1 to 9"),
        (f"{WORD}: hey", f"[{WORD}]: expected hi or hello"),
        ("opensearch_ml_stream.greeting.wrod: hi", f"did you mean [{WORD}]?"),
    ],
)
def test_a_wrong_value_or_name_is_refused_as_one_of_the_core_is(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "config.yml"
    file.write_text(text)
    with pytest.raises(InvalidRequest) as raised:
        load_settings(DEFAULTS, file, {"HOME": "/h"})
    assert problem in raised.value.reason


def test_without_the_section_there_are_no_such_settings() -> None:
    with pytest.raises(InvalidRequest, match="not recognized"):
        load_settings(Settings(), None, {"HOME": "/h"}, {WORD: "hello"})


async def test_one_that_is_dynamic_changes_at_run_time_on_every_worker_and_is_reset(store: Store) -> None:
    at_start = DEFAULTS.with_section(ContactSettings("ops"))
    here, there = DynamicSettings(store, LiveSettings(at_start), lambda: 0), LiveSettings(at_start)
    await here.change({"persistent": {WORD: "hello", CONTACT: "me", "opensearch_ml_stream.access_log": True}})
    await refresh_settings(store, there)
    for live in (here.live, there):
        assert (live.current.of(GreetingSettings).word, live.current.of(ContactSettings).contact) == ("hello", "me")
        assert live.current.access_log is True
    assert (here.defaults()[WORD], here.defaults()[CONTACT]) == ("hi", "ops")
    await here.change({WORD: None, CONTACT: None, "opensearch_ml_stream.access_log": None})
    await refresh_settings(store, there)
    assert here.live.current == there.current == at_start


async def test_one_that_is_static_is_not_changed_at_run_time(store: Store) -> None:
    here = DynamicSettings(store, LiveSettings(DEFAULTS), lambda: 0)
    with pytest.raises(InvalidRequest, match="not updateable"):
        await here.change({TIMES: 2})
    assert TIMES not in here.defaults()


async def test_what_another_server_has_changed_of_a_section_that_is_not_here_is_ignored(store: Store) -> None:
    kept = json.dumps({WORD: "hello", "opensearch_ml_stream.access_log": True})
    await store.create(Index.CONFIG, {"ml_configuration": {"settings": kept}}, DOCUMENT_ID)
    live = LiveSettings(Settings())
    await refresh_settings(store, live)
    assert live.current == Settings(access_log=True)


async def test_the_clusters_settings_are_followed() -> None:
    live = LiveSettings(DEFAULTS)
    read = await ClusterSettings(FakeCluster(changed_settings={WORD: "hello", TIMES: "2"}), live).read()
    assert read == DEFAULTS.with_section(GreetingSettings("hello"))


def test_two_sections_with_a_setting_of_one_name_are_refused() -> None:
    @dataclass(frozen=True, slots=True)
    class Security:
        everyone: bool = setting(True, "Let everyone in", name="opensearch_ml_stream.security")

    with pytest.raises(InvalidRequest, match=r"define the setting \[opensearch_ml_stream\.security\]"):
        Settings().with_section(Security()).definitions()
