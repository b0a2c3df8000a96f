"""Permissions: patterns of action names, as in the roles of OpenSearch's security plugin."""

import re
from collections.abc import Iterable, Mapping, Sequence

import re2

from opensearch_ml_stream.connectors.errors import Forbidden
from opensearch_ml_stream.rest_handlers.callers import Caller

_WILDCARDS = {"*": ".*", "?": "."}
_MAX_REMEMBERED = 256  # decisions: callers name no actions, so there are only as many as routes

_ML_READING = (
    "cluster:admin/opensearch/ml/config/get",
    "cluster:admin/opensearch/ml/connectors/get",
    "cluster:admin/opensearch/ml/connectors/search",
    "cluster:admin/opensearch/ml/controllers/get",
    "cluster:admin/opensearch/ml/model_groups/get",
    "cluster:admin/opensearch/ml/model_groups/search",
    "cluster:admin/opensearch/ml/models/get",
    "cluster:admin/opensearch/ml/models/search",
    "cluster:admin/opensearch/ml/profile/nodes",
    "cluster:admin/opensearch/ml/stats/nodes",
    "cluster:admin/opensearch/ml/tasks/get",
    "cluster:admin/opensearch/ml/tasks/search",
)

OPENSEARCH_ROLES: dict[str, tuple[str, ...]] = {
    "all_access": ("*",),
    "ml_full_access": ("cluster:admin/opensearch/ml/*", "cluster_monitor"),
    "ml_read_access": _ML_READING,
}
"""Roles that OpenSearch ships (3.4.0), without agents, memories and tools, which the sidecar does not have."""

SHIPPED_ROLES: dict[str, tuple[str, ...]] = {
    "ml_full_access": (*OPENSEARCH_ROLES["ml_full_access"], "cluster:admin/settings/update"),
    "ml_read_access": (*OPENSEARCH_ROLES["ml_read_access"], "cluster:monitor/nodes/stats", "cluster:monitor/settings"),
    "pass_through_access": ("opensearch_ml_stream:pass_through",),
    "ml_predict_access": ("cluster:admin/opensearch/ml/predict", "cluster:admin/opensearch/ml/predict/stream"),
}
"""Roles of the sidecar's own users and keys: OpenSearch's, which may read the sidecar's settings and metrics, too."""

STATIC_ACTION_GROUPS: dict[str, tuple[str, ...]] = {"cluster_monitor": ("cluster:monitor/*",)}
"""Action groups that these roles name; a cluster's own are read from it."""


class Permissions:
    """What patterns allow. `*` stands for any characters, `?` for one; `/.../` is a regular expression."""

    def __init__(self, patterns: Iterable[str]) -> None:
        options = re2.Options()
        options.log_errors = False
        sources = [source for pattern in patterns if (source := _regex(pattern, options)) is not None]
        self._pattern = re2.compile("|".join(sources), options) if sources else None
        self._decisions: dict[str, bool] = {}

    def allow(self, action: str) -> bool:
        """Whether any of the patterns matches the whole name of the action."""
        decision = self._decisions.get(action)
        if decision is None:
            decision = self._pattern is not None and self._pattern.fullmatch(action) is not None
            if len(self._decisions) < _MAX_REMEMBERED:
                self._decisions[action] = decision
        return decision


def actions_of(names: Iterable[str], groups: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Return the patterns that names stand for, where a name is an action group's; groups may name others."""
    patterns: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in patterns:
            patterns.add(name)
            waiting += groups.get(name, ())
    return patterns


def check_permission(caller: Caller, granted: Sequence[Permissions], actions: Sequence[str]) -> None:
    """Raise Forbidden, worded as OpenSearch does, unless what the caller is granted allows one of the actions."""
    if not actions:
        return
    for role in granted:
        for action in actions:
            if role.allow(action):
                return
    user = f"User [name={caller.name}, backend_roles=[{', '.join(sorted(caller.backend_roles))}], requestedTenant=null]"
    raise Forbidden(f"no permissions for [{actions[0]}] and {user}", type="security_exception")


def _regex(pattern: str, options: re2.Options) -> str | None:
    """Return a regular expression in a group; None for one that RE2 cannot read, which then allows nothing."""
    if len(pattern) > 2 and pattern.startswith("/") and pattern.endswith("/"):
        try:
            re2.compile(pattern[1:-1], options)  # alone, so that no bracket in it ends the group
        except re2.error:
            return None
        return f"(?:{pattern[1:-1]})"
    return "(?:" + "".join(_WILDCARDS.get(character) or re.escape(character) for character in pattern) + ")"
