"""Shell completion of model ids: those of the sidecar that the command names, as far as its caller sees them."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed
from opensearch_ml_stream.plugin.cli.sidecar_api import open_api
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions

_SECONDS = 2  # the user waits for the completion
_NO_WORDS = re.compile(r"[^\w.,:/@+()-]+")


def complete_model_id(values: Mapping[str, Any], incomplete: str) -> list[tuple[str, str]]:
    """Return the ids with this beginning, and the models' names; none if the sidecar cannot be called.

    `values` are the command's options so far. No password is prompted for. A shell may evaluate a completion, so an id
    that would need quotes is left out, and only words of a name are shown.
    """
    given = {name: values[name] for name in SidecarOptions.__slots__ if values.get(name) is not None}
    if "-" in (given.get("api_key"), given.get("password")) or ("user" in given and "password" not in given):
        return []
    try:
        with open_api(SidecarOptions(**given), response_seconds=_SECONDS) as api:
            hits = api.search("models", {"match_all": {}})
    except CommandFailed:
        return []
    models = [(str(hit["_id"]), str(hit["_source"].get("name", ""))) for hit in hits]
    return [(id, _words(name)) for id, name in models if id.startswith(incomplete) and shlex.quote(id) == id]


def _words(name: str) -> str:
    return _NO_WORDS.sub(" ", name).strip()
