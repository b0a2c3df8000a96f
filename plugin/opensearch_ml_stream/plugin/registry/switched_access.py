"""Access control of connectors and of model groups, each on while its setting is."""

from opensearch_ml_stream.plugin.security.access_control import CONNECTOR_WORDING, GROUP_WORDING, AccessControl
from opensearch_ml_stream.plugin.settings import LiveSettings


def connector_access(live_settings: LiveSettings) -> AccessControl:
    """Return the access control of all connectors."""
    return AccessControl(lambda: live_settings.current.connector_access_control_enabled, CONNECTOR_WORDING)


def group_access(live_settings: LiveSettings) -> AccessControl:
    """Return the access control of all model groups, and so of all models."""
    return AccessControl(lambda: live_settings.current.model_access_control_enabled, GROUP_WORDING)
