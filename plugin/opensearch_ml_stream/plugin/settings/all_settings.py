"""All settings by name.

The configuration file, the environment, `_plugins/_ml/_settings`, the command line's listing and the table of
docs/settings.md are all made from them.
"""

from difflib import get_close_matches

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.settings.ml_commons_settings import ML_COMMONS_SETTINGS
from opensearch_ml_stream.plugin.settings.own_settings import OWN_SETTINGS
from opensearch_ml_stream.plugin.settings.setting_metadata import Setting

SETTINGS = (*OWN_SETTINGS, *ML_COMMONS_SETTINGS)

BY_NAME = {setting.name: setting for setting in SETTINGS}


def setting_named(name: str) -> Setting:
    """Return the setting of that full name. InvalidRequest, with the most similar name, if there is none."""
    if name in BY_NAME:
        return BY_NAME[name]
    similar = get_close_matches(name, BY_NAME, n=1, cutoff=0.5)
    hint = f", did you mean [{similar[0]}]?" if similar else ""
    raise InvalidRequest(f"setting [{name}] not recognized{hint}")
