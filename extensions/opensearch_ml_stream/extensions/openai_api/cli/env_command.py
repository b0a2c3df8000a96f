"""The command `env`: the environment variables that point clients of OpenAI and Anthropic to a model."""

import os
import shlex
from urllib.parse import quote

from opensearch_ml_stream.extensions.openai_api.extension import MODELS_PATH
from opensearch_ml_stream.plugin.cli.login import KEY_VARIABLE
from opensearch_ml_stream.plugin.cli.options import Json, ModelName
from opensearch_ml_stream.plugin.cli.printing import print_json, print_note, print_text
from opensearch_ml_stream.plugin.cli.sidecar_api import open_api, open_api_as
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions, takes_sidecar
from opensearch_ml_stream.plugin.cli.sidecar_url import sidecar_url

NO_KEY = "none"  # clients need some key, also for a server that needs none
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")


@takes_sidecar
def env(sidecar: SidecarOptions, model: ModelName, json: Json = False) -> None:
    """Print the variables that point clients of OpenAI and Anthropic to a model.

    They are for a shell: eval "$(opensearch-ml-stream env MODEL)". A key is not printed: they refer to the place where
    it is, MLSTREAM_API_KEY or that of --api-key.
    """
    with open_api(sidecar) as api:
        api.get(f"{MODELS_PATH}/{quote(model, safe='')}")
    with open_api_as(None, sidecar) as anybody:
        key = NO_KEY if anybody.admits() else _key_source(sidecar)
    url = sidecar_url(sidecar.url)
    variables = {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": key,
        "OPENAI_MODEL": model,
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": key,
        "ANTHROPIC_MODEL": model,
    }
    if json:
        print_json(variables)
        return
    for name, value in variables.items():
        print_text(f"export {name}={_key_in_shell(value) if name in _KEYS else shlex.quote(value)}")


def _key_source(sidecar: SidecarOptions) -> str:
    """Return where the key is, or must be put: these clients send a key, not a user's name and password."""
    if sidecar.api_key is not None and sidecar.api_key != "-":
        return sidecar.api_key
    if not os.environ.get(KEY_VARIABLE):
        print_note(f"Put a key of the sidecar (`keys create`) into {KEY_VARIABLE} first: it is not set")
    return f"env:{KEY_VARIABLE}"


def _key_in_shell(source: str) -> str:
    kind, _, place = source.partition(":")
    if kind == "env":
        return f'"${place}"'
    return f'"$(cat {shlex.quote(place)})"' if kind == "file" else source
