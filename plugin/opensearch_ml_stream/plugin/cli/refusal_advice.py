"""What to do about a sidecar's 401 and 403."""

import re

from opensearch_ml_stream.plugin.cli.options import command_line
from opensearch_ml_stream.plugin.security.permissions import (
    SHIPPED_ROLES,
    STATIC_ACTION_GROUPS,
    Permissions,
    actions_of,
)

_MISSING_ACTION = re.compile(r"no permissions for \[([^\]]+)\]")


def refusal_advice(status: int, reason: str, url: str, source: str | None) -> str:
    """Return the advice behind the reason of an error; empty for one that is no refusal.

    `source` says where the login comes from that was presented, None without one.
    """
    if status == 401:
        refused = "" if source is None else f"{source} is wrong, expired or revoked; "
        return f"{refused}log in with `{command_line(url, 'login')}`, or set MLSTREAM_API_KEY"
    missing = _MISSING_ACTION.search(reason) if status == 403 else None
    if missing is None:
        return ""
    roles = " and ".join(role for role in SHIPPED_ROLES if _allows(role, missing[1]))
    return f"of the roles that come with the sidecar, it is in {roles}" if roles else ""


def _allows(role: str, action: str) -> bool:
    return Permissions(actions_of(SHIPPED_ROLES[role], STATIC_ACTION_GROUPS)).allow(action)
