"""The ids of models that a shell offers: those of the sidecar that the command names, as its caller sees them."""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed
from opensearch_ml_stream.plugin.cli.sidecar_api import open_api
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions

_SECONDS = 2  # somebody has pressed a key, and waits


def complete_model_id(values: Mapping[str, Any], incomplete: str) -> list[tuple[str, str]]:
    """Return the ids that begin so, with the models' names; none where the sidecar cannot be asked.

    `values` are those of the command's options so far. A password is not asked for.
    """
    given = {name: values[name] for name in SidecarOptions.__slots__ if values.get(name) is not None}
    if "-" in (given.get("api_key"), given.get("password")) or ("user" in given and "password" not in given):
        return []
    try:
        with open_api(SidecarOptions(**given), response_seconds=_SECONDS) as api:
            hits = api.search("models", {"match_all": {}})
    except CommandFailed:
        return []
    return [(hit["_id"], hit["_source"].get("name", "")) for hit in hits if hit["_id"].startswith(incomplete)]
