"""Settings that change at run time: checked, and kept in the store."""

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Conflict, Internal, InvalidRequest
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.settings.dynamic import (
    DOCUMENT_ID,
    DynamicSettings,
    refresh_settings,
)
from opensearch_ml_stream.plugin.store import Document, Index, Store, Written

STREAM_ENABLED = "plugins.ml_commons.stream_enabled"
TASKS = "plugins.ml_commons.max_batch_inference_tasks"
ENDPOINTS = "plugins.ml_commons.trusted_connector_endpoints_regex"


def worker(store: Store) -> DynamicSettings:
    return DynamicSettings(store, LiveSettings(Settings()), lambda: 1_700_000_000_000)


async def test_a_change_is_in_force_at_once_where_it_was_made(store: Store) -> None:
    here = worker(store)
    assert await here.change({"persistent": {STREAM_ENABLED: "false", TASKS: 5}}) == {STREAM_ENABLED: False, TASKS: 5}
    assert (here.live.current.stream_enabled, here.live.current.max_batch_inference_tasks) == (False, 5)
    assert await here.persistent() == {STREAM_ENABLED: False, TASKS: 5}


async def test_settings_may_be_given_without_persistent_and_nested(store: Store) -> None:
    here = worker(store)
    await here.change({"plugins": {"ml_commons": {"stream_enabled": False, "connector.private_ip_enabled": True}}})
    assert (here.live.current.stream_enabled, here.live.current.private_ip_enabled) == (False, True)


async def test_null_resets_a_setting_to_what_the_operator_started_with(store: Store) -> None:
    live = LiveSettings(Settings(max_batch_inference_tasks=7))
    here = DynamicSettings(store, live, lambda: 0)
    await here.change({TASKS: 9})
    assert await here.change({TASKS: None}) == {}
    assert live.current.max_batch_inference_tasks == 7
    assert here.defaults()[TASKS] == 7
    assert await here.persistent() == {}


async def test_changes_of_other_settings_are_kept(store: Store) -> None:
    here, there = worker(store), worker(store)
    await asyncio.gather(here.change({TASKS: 9}), there.change({STREAM_ENABLED: False}))
    assert await here.persistent() == {TASKS: 9, STREAM_ENABLED: False}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({STREAM_ENABLED: False, "plugins.ml_commons.nope": 1}, "[plugins.ml_commons.nope] not recognized"),
        ({STREAM_ENABLED: False, TASKS: -1}, "at least 0"),
        ({STREAM_ENABLED: False, "opensearch_ml_stream.port": 1}, "not updateable"),
        ({STREAM_ENABLED: False, ENDPOINTS: [r"(a)\1"]}, "RE2"),
        ({"transient": {STREAM_ENABLED: False}}, "use [persistent]"),
        ({}, "no settings to update"),
        ({"persistent": {}}, "no settings to update"),
    ],
)
async def test_nothing_changes_if_anything_of_it_is_wrong(store: Store, body: dict[str, object], problem: str) -> None:
    here = worker(store)
    with pytest.raises(InvalidRequest) as error:
        await here.change(body)
    assert problem in error.value.reason
    assert here.live.current == Settings()
    assert await store.get(Index.CONFIG, DOCUMENT_ID) is None


async def test_a_setting_that_only_another_version_knows_does_no_harm(store: Store) -> None:
    here = worker(store)
    await here.change({TASKS: 9})
    document = await store.get(Index.CONFIG, DOCUMENT_ID)
    assert document is not None
    text = document.source["ml_configuration"]["settings"].replace("{", '{"plugins.ml_commons.of_tomorrow": 1, ')
    await store.put(Index.CONFIG, DOCUMENT_ID, {**document.source, "ml_configuration": {"settings": text}})
    there = LiveSettings(Settings())
    await refresh_settings(store, there)
    assert there.current.max_batch_inference_tasks == 9


class ContestedStore:
    """A store in which others write first, so many times."""

    def __init__(self, store: Store, conflicts: int) -> None:
        self._store = store
        self.conflicts = conflicts

    async def get(self, index: Index, id: str) -> Document | None:
        return await self._store.get(index, id)

    async def create(self, index: Index, source: Mapping[str, Any], id: str | None = None) -> Written:
        if self.conflicts:
            self.conflicts -= 1
            raise Conflict("written by others")
        return await self._store.create(index, source, id)


async def test_a_change_is_tried_again_when_others_write_first(store: Store) -> None:
    contested = ContestedStore(store, conflicts=4)
    here = worker(contested)  # type: ignore[arg-type] # a first change needs no more of a store
    assert await here.change({TASKS: 9}) == {TASKS: 9}
    assert here.live.current.max_batch_inference_tasks == 9


async def test_a_change_that_others_always_precede_is_a_conflict(store: Store) -> None:
    contested = ContestedStore(store, conflicts=5)
    here = worker(contested)  # type: ignore[arg-type] # a first change needs no more of a store
    with pytest.raises(Conflict) as error:
        await here.change({TASKS: 9})
    assert error.value.reason == "The settings are being changed by others; try again"
    assert (contested.conflicts, here.live.current) == (0, Settings())


async def test_the_document_is_one_that_ml_commons_leaves_alone(store: Store) -> None:
    now = 1
    here = DynamicSettings(store, LiveSettings(Settings()), lambda: now)
    await here.change({TASKS: 9})
    now = 2
    await here.change({STREAM_ENABLED: False})
    document = await store.get(Index.CONFIG, DOCUMENT_ID)
    assert document is not None
    assert document.source == {
        "config_type": "opensearch_ml_stream_settings",
        "ml_configuration": {"settings": json.dumps({TASKS: 9, STREAM_ENABLED: False})},
        "create_time": 1,
        "last_updated_time": 2,
    }


async def test_a_change_is_logged_with_the_names_of_its_settings(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    here = worker(store)
    with caplog.at_level(logging.INFO):
        await here.change({TASKS: 9, STREAM_ENABLED: False})
        await here.change({TASKS: 9})
        await here.change({TASKS: None, STREAM_ENABLED: None})
    assert caplog.messages == [
        f"Settings changed at run time: {TASKS}, {STREAM_ENABLED}",
        "Settings changed at run time: none are left",
    ]


async def test_the_defaults_are_those_of_the_dynamic_settings_alone(store: Store) -> None:
    here = worker(store)
    defaults = here.defaults()
    assert defaults[STREAM_ENABLED] is True
    assert "opensearch_ml_stream.port" not in defaults
    assert sorted(defaults) == sorted(setting.name for setting in here.live.definitions.values() if setting.dynamic)


SPOILT = ["{", "[]", "1", "null", '"{}"', "9" * 5000, "[" * 100_000]


@pytest.mark.parametrize(
    "source",
    [
        {},
        {"ml_configuration": None},
        {"ml_configuration": []},
        *[{"ml_configuration": {"settings": spoilt}} for spoilt in SPOILT],
    ],
    ids=lambda source: str(source)[:40],
)
async def test_a_document_that_cannot_be_read_is_named(store: Store, source: dict[str, object]) -> None:
    await store.create(Index.CONFIG, source, DOCUMENT_ID)
    with pytest.raises(Internal) as error:
        await refresh_settings(store, LiveSettings(Settings()))
    assert error.value.reason == (
        "The settings in .plugins-ml-config/opensearch_ml_stream_settings cannot be read; delete that document"
    )


async def test_a_static_setting_in_the_document_is_ignored(store: Store) -> None:
    kept = json.dumps({"opensearch_ml_stream.port": 1, TASKS: 9})
    await store.create(Index.CONFIG, {"ml_configuration": {"settings": kept}}, DOCUMENT_ID)
    live = LiveSettings(Settings())
    await refresh_settings(store, live)
    assert live.current == Settings(max_batch_inference_tasks=9)


async def test_a_list_that_loses_entries_is_a_warning_that_names_them(store: Store) -> None:
    here = worker(store)
    first, *others = Settings().trusted_connector_endpoints_regex
    (warning,) = here.warnings({ENDPOINTS: [first, "^https://own/.*$"]})
    assert warning.startswith(f"[{ENDPOINTS}] is replaced as a whole")
    assert json.dumps(others) in warning and "endpoints allow URL" in warning
    assert here.warnings({ENDPOINTS: [first, *others, "^https://own/.*$"]}) == []
    assert here.warnings({ENDPOINTS: None, STREAM_ENABLED: False}) == []
