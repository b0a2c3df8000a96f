"""Settings that change at run time: by `_plugins/_ml/_settings`, or by `PUT _cluster/settings` in the store's cluster.

Both are stored where every worker and replica reads them, and are in force within 2 s. Changes in the cluster override
file, environment and command line, as they override opensearch.yml. Changes by `_plugins/_ml/_settings`, which are for
the sidecar alone, override those of the cluster.
"""

import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from opensearch_ml_stream.connectors.errors import Conflict, Forbidden, Internal, InvalidRequest, MLStreamError
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks, Turn
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.settings.setting_metadata import Setting, setting_named
from opensearch_ml_stream.plugin.settings.sources import flatten
from opensearch_ml_stream.plugin.settings.values import read_value
from opensearch_ml_stream.plugin.store import Cluster, Document, Index, Store

DOCUMENT_ID = "opensearch_ml_stream_settings"
POLL_SECONDS = 1.0
_WRITE_ATTEMPTS = 5
REFUSED_LOOKS = 60  # left out after the cluster has refused one
_ADVICE = ". To add one, send all of them; for a trusted endpoint: opensearch-ml-stream endpoints allow URL"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DynamicSettings:
    """Reads and changes the dynamic settings, for `_plugins/_ml/_settings`. `now` returns epoch milliseconds."""

    store: Store
    live: LiveSettings
    now: Callable[[], int]

    async def persistent(self) -> dict[str, Any]:
        """Return the settings that were changed at run time, by full name."""
        return _kept(await self.store.get(Index.CONFIG, DOCUMENT_ID))

    def defaults(self) -> dict[str, Any]:
        """Return the values of dynamic settings where nothing was changed, by full name."""
        definitions = self.live.definitions.values()
        return {setting.name: self.live.of_cluster.value(setting) for setting in definitions if setting.dynamic}

    def warnings(self, body: Mapping[str, Any]) -> list[str]:
        """Return warnings about the entries that a change removes from lists; errors as those of `change`."""
        current, definitions = self.live.current, self.live.definitions
        changes = {name: value for name, value in _read_changes(body, definitions).items() if isinstance(value, tuple)}
        return [
            f"[{name}] is replaced as a whole, so these entries are removed: {json.dumps(dropped)}{_ADVICE}"
            for name, value in changes.items()
            if (dropped := [old for old in current.value(definitions[name]) if old not in value])
        ]

    async def change(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Change settings (None resets one) and return those that were set.

        All are checked before one is stored: InvalidRequest if any is unknown, static or has a wrong value. Conflict
        if others keep changing the settings meanwhile.
        """
        changes = _read_changes(body, self.live.definitions)
        for _ in range(_WRITE_ATTEMPTS):
            document = await self.store.get(Index.CONFIG, DOCUMENT_ID)
            merged = {**_kept(document), **changes}
            kept = {name: value for name, value in merged.items() if value is not None}
            try:
                await self._write(document, kept)
            except Conflict:
                continue
            _apply(self.live, kept)
            return {name: value for name, value in changes.items() if value is not None}
        raise Conflict("The settings are being changed by others; try again")

    async def _write(self, document: Document | None, kept: Mapping[str, Any]) -> None:
        source = {
            "config_type": DOCUMENT_ID,
            # One JSON string, since the index's own mapping must not grow a field for each setting.
            "ml_configuration": {"settings": json.dumps(kept)},
            "last_updated_time": self.now(),
        }
        if document is None:
            await self.store.create(Index.CONFIG, {**source, "create_time": self.now()}, DOCUMENT_ID)
            return
        source["create_time"] = document.source.get("create_time", self.now())
        await self.store.put(
            Index.CONFIG,
            DOCUMENT_ID,
            source,
            if_seq_no=document.seq_no,
            if_primary_term=document.primary_term,
        )


@dataclass(slots=True)
class ClusterSettings:
    """Reads the cluster's settings, and returns the sidecar's with those applied."""

    cluster: Cluster
    live: LiveSettings
    _changed: Mapping[str, object] = field(default_factory=dict)
    _settings: Settings | None = None  # with what was changed
    _looks_to_leave_out: int = 0
    _was_refused: bool = False

    async def read(self) -> Settings:
        """Return the settings with the cluster's applied; Unavailable if it is down.

        If the cluster refuses, that is logged once, it is asked rarely, and the last settings stay in force.
        """
        if self._looks_to_leave_out > 0:
            self._looks_to_leave_out -= 1
        else:
            await self._look()
        return self._settings or self.live.at_start

    async def _look(self) -> None:
        try:
            changed = await self.cluster.settings()
        except Forbidden as error:
            if not self._was_refused:
                log.warning("Settings changed in the cluster are not followed: %s", error.reason)
            self._was_refused, self._looks_to_leave_out = True, REFUSED_LOOKS
            return
        self._was_refused = False
        if changed != self._changed:
            readable = _readable(changed, self.live.definitions)
            self._changed, self._settings = changed, self.live.at_start.changed(readable)


async def refresh_settings(store: Store, live: LiveSettings, cluster: ClusterSettings | None = None) -> None:
    """Apply the cluster's settings and those in the store, both at once, so that what is shown is in force."""
    of_cluster = live.of_cluster if cluster is None else await cluster.read()
    kept = _kept(await store.get(Index.CONFIG, DOCUMENT_ID))
    live.of_cluster = of_cluster
    _apply(live, kept)


@asynccontextmanager
async def watching_settings(
    store: Store, live: LiveSettings, background: BackgroundTasks, interval: float = POLL_SECONDS
) -> AsyncIterator[None]:
    """Apply the changes that other workers and replicas make in the store while the block runs."""
    async with background.running("settings", _watch(store, live, interval)):
        yield


def _watch(store: Store, live: LiveSettings, interval: float) -> Turn:
    """Return the background task that refreshes the settings, those of the cluster first if there is one.

    While the store does not respond the last settings stay in force.
    """
    cluster = None if store.cluster is None else ClusterSettings(store.cluster, live)
    unavailable = False

    async def refresh() -> float:
        nonlocal unavailable
        try:
            await refresh_settings(store, live, cluster)
            unavailable = False
        except MLStreamError as error:
            if not unavailable:
                log.warning("Settings cannot be read, the last ones stay in force: %s", error.reason)
            unavailable = True
        return interval

    return refresh


def _read_changes(body: Mapping[str, Any], definitions: Mapping[str, Setting]) -> dict[str, Any]:
    """Check and convert a request body, `{"persistent": {...}}` or the settings themselves; return it by full name."""
    if body.get("transient"):
        raise InvalidRequest("transient settings are not supported, use [persistent]")
    flat = flatten(body["persistent"] if isinstance(body.get("persistent"), Mapping) else body, definitions)
    if not flat:
        raise InvalidRequest("no settings to update", type="action_request_validation_exception")
    changes: dict[str, Any] = {}
    for name, value in flat.items():
        setting = setting_named(definitions, name)
        if not setting.dynamic:
            raise InvalidRequest(
                f"final setting [{name}], not updateable: set it in the configuration file and restart"
            )
        changes[name] = None if value is None else read_value(setting, value)
    return changes


def _kept(document: Document | None) -> dict[str, Any]:
    if document is None:
        return {}
    try:
        kept = json.loads(document.source["ml_configuration"]["settings"])
    except (LookupError, TypeError, ValueError, RecursionError):
        kept = None
    if not isinstance(kept, dict):
        raise Internal(f"The settings in {Index.CONFIG}/{DOCUMENT_ID} cannot be read; delete that document")
    return kept


def _apply(live: LiveSettings, kept: Mapping[str, Any]) -> None:
    settings = _with_changes(live.of_cluster, kept, live.definitions)
    if settings != live.current:
        log.info("Settings changed at run time: %s", ", ".join(sorted(kept)) or "none are left")
        live.current = settings


def _with_changes(settings: Settings, kept: Mapping[str, Any], definitions: Mapping[str, Setting]) -> Settings:
    """Return the settings with changes, except those that only another version or an absent extension knows."""
    known = [(definitions[name], value) for name, value in kept.items() if name in definitions]
    return settings.changed({setting: read_value(setting, value) for setting, value in known if setting.dynamic})


def _readable(changed: Mapping[str, object], definitions: Mapping[str, Setting]) -> dict[Setting, Any]:
    """Return the values of dynamic settings that the sidecar has; log those that it cannot read."""
    values: dict[Setting, Any] = {}
    for name, value in changed.items():
        setting = definitions.get(name)
        if setting is None or not setting.dynamic:
            continue
        try:
            values[setting] = read_value(setting, value)
        except InvalidRequest as error:
            log.warning("The cluster's setting %s is not followed: %s", name, error.reason)
    return values
