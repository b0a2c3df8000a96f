"""Add trusted endpoints and remove them, with private addresses for no more of them than need it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

PATTERNS = "plugins.ml_commons.trusted_connector_endpoints_regex"
PRIVATE_PATTERNS = "plugins.ml_commons.trusted_connector_private_endpoints_regex"
PRIVATE_ALLOWED = "plugins.ml_commons.connector.private_ip_enabled"


@dataclass(frozen=True, slots=True)
class EndpointPermissions:
    """The values of the three settings. With `private_allowed` and no `private_patterns` all patterns are private."""

    patterns: tuple[str, ...]
    private_patterns: tuple[str, ...]
    private_allowed: bool

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the permissions of settings by full name, with values as they are or as `/_settings` prints them."""
        return cls(
            tuple(values[PATTERNS]), tuple(values[PRIVATE_PATTERNS]), str(values[PRIVATE_ALLOWED]).lower() == "true"
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The settings by full name."""
        return {
            PATTERNS: self.patterns,
            PRIVATE_PATTERNS: self.private_patterns,
            PRIVATE_ALLOWED: self.private_allowed,
        }

    def with_pattern(self, pattern: str, *, is_private: bool) -> "EndpointPermissions":
        """Return the permissions with this pattern too, and its private addresses if it has some."""
        trusted = replace(self, patterns=_with(self.patterns, pattern))
        if not is_private or (self.private_allowed and not self.private_patterns):
            return trusted
        others = (
            self.private_patterns if self.private_allowed else ()
        )  # they are not in force, so nobody asked for them
        return replace(trusted, private_patterns=_with(others, pattern), private_allowed=True)

    def without_pattern(self, pattern: str) -> "EndpointPermissions":
        """Return the permissions without this pattern. With the last private pattern, private addresses are refused."""
        private = tuple(other for other in self.private_patterns if other != pattern)
        return EndpointPermissions(
            tuple(other for other in self.patterns if other != pattern),
            private,
            self.private_allowed and (bool(private) or not self.private_patterns),
        )

    def allows_private(self, pattern: str) -> bool:
        """Return whether endpoints of this pattern may have private addresses."""
        return self.private_allowed and (not self.private_patterns or pattern in self.private_patterns)


def origin_pattern(origin: str) -> str:
    """Return the pattern for all paths of an origin (`https://host:port`)."""
    return f"^{re.escape(origin)}/.*$"


def _with(patterns: tuple[str, ...], pattern: str) -> tuple[str, ...]:
    return patterns if pattern in patterns else (*patterns, pattern)
