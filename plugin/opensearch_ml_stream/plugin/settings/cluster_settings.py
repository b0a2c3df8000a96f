"""Follow `PUT _cluster/settings`: what is changed there for ML Commons holds in the sidecar too.

They stand over file, environment and command line, as they do over opensearch.yml, and under what was set by
`_plugins/_ml/_settings`, which is for the sidecar alone.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.settings.setting_metadata import Setting
from opensearch_ml_stream.plugin.settings.values import read_value
from opensearch_ml_stream.plugin.store import Cluster

REFUSED_LOOKS = 60  # left out after the cluster has refused one

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ClusterSettings:
    """Reads what `live.of_cluster` is to be by the cluster's settings."""

    cluster: Cluster
    live: LiveSettings
    _changed: Mapping[str, object] = field(default_factory=dict)
    _settings: Settings | None = None  # with what was changed
    _looks_to_leave_out: int = 0
    _was_refused: bool = False

    async def read(self) -> Settings:
        """Return the settings with the cluster's; Unavailable if it is down.

        What it refuses is said once, and asked rarely; until it is let, the last settings stay.
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


def _readable(changed: Mapping[str, object], definitions: Mapping[str, Setting]) -> dict[Setting, Any]:
    """Return the values that the sidecar has a dynamic setting for; say which it cannot take."""
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
