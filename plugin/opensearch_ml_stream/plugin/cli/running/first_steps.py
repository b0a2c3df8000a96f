"""What to do next, as the demo prints it: lines to be pasted into a shell."""

import shlex
from urllib.parse import quote

from opensearch_ml_stream.plugin.cli.credentials import KEY_VARIABLE, Login
from opensearch_ml_stream.plugin.cli.options import program
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions
from opensearch_ml_stream.plugin.security.presented_credentials import ApiKey
from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH

QUESTION = "What is the meaning of life?"


def first_steps(sidecar: SidecarOptions, login: Login | None, openai: str, anthropic: str) -> str:
    """Return commands that ask the two models, for a sidecar whose callers present such a login, if any."""
    files = {"--cacert": sidecar.ca_certs, "--cert": sidecar.client_cert}
    curl = "curl" + _options({option: str(path) for option, path in files.items() if path is not None})
    own_files = {"--ca-certs": sidecar.ca_certs, "--client-cert": sidecar.client_cert}
    own = _options({option: str(path) for option, path in own_files.items() if path is not None})
    note, curl_login, own_login = _login_options(login)
    stream, of_anthropic = (
        shlex.quote(f"{sidecar.url}{BASE_PATH}/models/{quote(model, safe='')}/_predict/stream")
        for model in (openai, anthropic)
    )
    url, asked = shlex.quote(sidecar.url), shlex.quote(openai)
    body = f"""{curl_login}-H 'Content-Type: application/json' \\
    -d '{{"parameters":{{"inputs":"{QUESTION}"}}}}'"""
    return f"""{note}
Go on with the same question, as one JSON object a line:

  {curl} -N \\
    {stream} \\
    {body}

only the text, with jq:

  {curl} -sN \\
    {stream} \\
    {body} \\
    | jq --unbuffered -rj '.error.reason? //
        .inference_results[0].output[0].dataAsMap.response'

the other model, as server-sent events:

  {curl} -N -H 'Accept: text/event-stream' \\
    {of_anthropic} \\
    {body}

your own words, and a model of your own:

  {program()} predict {asked} \\
    --stream "Tell me a joke" --url {url}{own}{own_login}
  {program()} models create --blueprint openai-chat \\
    --credential openAI_key=env:OPENAI_API_KEY --url {url}{own}{own_login}

Both models side by side in a browser: {sidecar.url}/

Ctrl-C ends the sidecar. Its models stay, in the demo's own store.
"""


def _login_options(login: Login | None) -> tuple[str, str, str]:
    """Return what is to be said of the login, its options for curl, and those for this program."""
    if login is None:
        return "", "", ""
    if isinstance(login.secret, ApiKey):
        note = f"\nCallers log in here: {KEY_VARIABLE} has to hold a key where you paste this.\n"
        return note, f'-H "Authorization: Bearer ${KEY_VARIABLE}" \\\n    ', ""
    user = shlex.quote(login.secret.name)
    return (
        f"\nCallers log in here: you are asked for the password of {user}.\n",
        f"-u {user} \\\n    ",
        f" --user {user}",
    )


def _options(values: dict[str, str]) -> str:
    """Return options of a command, each after a space."""
    return "".join(f" {option} {shlex.quote(value)}" for option, value in values.items())
