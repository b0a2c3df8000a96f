"""The command `demo`: the sidecar in a process of its own, the demo provider with two models, and a first response."""

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from opensearch_ml_stream.client.blueprints import connector_body, find_blueprint, model_body
from opensearch_ml_stream.plugin.cli.blueprint_commands import blueprint_errors
from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed
from opensearch_ml_stream.plugin.cli.endpoint_commands import allow_private
from opensearch_ml_stream.plugin.cli.login import KEY_VARIABLE, Login, find_login
from opensearch_ml_stream.plugin.cli.options import program
from opensearch_ml_stream.plugin.cli.predict_command import read_chunks, show_stream
from opensearch_ml_stream.plugin.cli.printing import print_text
from opensearch_ml_stream.plugin.cli.sidecar_api import SidecarAPI, open_api_as
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions
from opensearch_ml_stream.plugin.demo.provider import demo_provider, is_demo_provider
from opensearch_ml_stream.plugin.security.presented_credentials import ApiKey
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.settings.endpoint_permissions import EndpointPermissions, origin_pattern
from opensearch_ml_stream.plugin.store.cluster_url import split_urls
from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH

BLUEPRINTS = ("openai-chat", "anthropic-messages")
QUESTION = "What is the meaning of life?"
PROVIDER_PORT = 9519  # any free one if this is in use; the models are pointed at it at each start
_STORE_IN_USE = (  # its models can point at one provider only
    "Another demo that runs uses this store: stop it, or give this one a store of its own with --store sqlite:///PATH"
)
_SQLITE = "sqlite:///"
_GRACE_SECONDS = 0.5  # of running streams at Ctrl-C
_STOP_SECONDS = 1.2
_START_SECONDS = 30.0
_POLL_SECONDS = 0.05


def run_demo(
    settings: Settings, config: Path | None, ca_certs: Path | None = None, client_cert: Path | None = None
) -> None:
    """Run the demo until Ctrl-C or SIGTERM; the files are for a sidecar that speaks HTTPS.

    Raises:
        OSError: If the port cannot be had.
        CommandFailed: If the sidecar does not start, or ends by itself.
    """
    settings = replace(settings, port=_free_port(settings.host, settings.port))
    scheme = "https" if settings.tls_certificate else "http"
    url = f"{scheme}://{_url_host(settings.host)}:{settings.port}"
    sidecar = SidecarOptions(url, ca_certs=ca_certs, client_cert=client_cert)
    store = _without_login(settings.store)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        with (
            ExitStack() as stack,
            demo_provider(store, PROVIDER_PORT) as provider_url,
            _sidecar(trust_provider(settings, provider_url), config) as process,
            open_api_as(None, sidecar) as anyone,
        ):
            _wait_until_ready(process, anyone)
            login = None if anyone.admits() else find_login(sidecar)
            api = stack.enter_context(open_api_as(login, sidecar))
            if not api.admits():
                raise CommandFailed(_login_needed(settings.store))
            existing = find_models(api)
            others = {model.endpoint for model in existing.values()} - {provider_url}
            if any(is_demo_provider(url, store) for url in others):
                raise CommandFailed(_STORE_IN_USE)
            allow_private(api, provider_url)  # the store's own patterns go before those that it was started with
            models = set_up_models(api, existing, provider_url)
            print_text(f"\nThe sidecar is on {url}, with --store {shlex.quote(store)}")
            print_text(f"\n> {QUESTION}\n")
            show_stream(read_chunks(api.predict_stream(models["openai-chat"], {"inputs": QUESTION})))
            print_text(first_steps(sidecar, login, models["openai-chat"], models["anthropic-messages"]))
            code = process.wait()
        raise CommandFailed(f"The sidecar ended with exit code {code}; see its output above")
    except KeyboardInterrupt:
        print_text("\nstopped")


def trust_provider(settings: Settings, provider_url: str) -> Settings:
    """Return the settings with the demo's own provider trusted, and no other port or private address."""
    permissions = EndpointPermissions(
        settings.trusted_connector_endpoints_regex,
        settings.trusted_connector_private_endpoints_regex,
        settings.private_ip_enabled,
    ).with_pattern(origin_pattern(provider_url), is_private=True)
    return replace(
        settings,
        trusted_connector_endpoints_regex=permissions.patterns,
        trusted_connector_private_endpoints_regex=permissions.private_patterns,
        private_ip_enabled=permissions.private_allowed,
    )


@contextmanager
def _sidecar(settings: Settings, config: Path | None) -> Iterator[subprocess.Popen[bytes]]:
    """Run `serve` with the settings in a process of its own."""
    environment = {
        **os.environ,
        "MLSTREAM_HOST": settings.host,
        "MLSTREAM_PORT": str(settings.port),
        "MLSTREAM_STORE": settings.store,
        "MLSTREAM_SETTING__OPENSEARCH_ML_STREAM__SHUTDOWN_GRACE_SECONDS": str(_GRACE_SECONDS),
        # Log lines of level info would mix with the response that is shown.
        "MLSTREAM_SETTING__OPENSEARCH_ML_STREAM__LOG_LEVEL": "error" if settings.log_level == "error" else "warning",
        "MLSTREAM_SETTING__PLUGINS__ML_COMMONS__CONNECTOR__PRIVATE_IP_ENABLED": "true",
        "MLSTREAM_SETTING__PLUGINS__ML_COMMONS__TRUSTED_CONNECTOR_ENDPOINTS_REGEX": orjson.dumps(
            settings.trusted_connector_endpoints_regex
        ).decode(),
        "MLSTREAM_SETTING__PLUGINS__ML_COMMONS__TRUSTED_CONNECTOR_PRIVATE_ENDPOINTS_REGEX": orjson.dumps(
            settings.trusted_connector_private_endpoints_regex
        ).decode(),
    }
    command = [sys.executable, "-m", "opensearch_ml_stream.plugin", "serve"]
    if config is not None:
        command += ["--config", str(config)]
    process = subprocess.Popen(command, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], api: SidecarAPI) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not api.is_ready():
        if process.poll() is not None:
            raise CommandFailed(f"The sidecar did not start (exit code {process.returncode}); see its output above")
        if time.monotonic() > deadline:
            raise CommandFailed(f"The sidecar was not ready after {_START_SECONDS:.0f} s; is its store reachable?")
        time.sleep(_POLL_SECONDS)


def _free_port(host: str, port: int) -> int:
    """Return the port, any free one for 0; OSError if it is in use.

    Checked before the sidecar starts, or the responses of another one might be taken for its own.
    """
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        free_port: int = listener.getsockname()[1]
    return free_port


def _login_needed(store: str) -> str:
    create = shlex.join(
        (program(), "keys", "create", "demo", "--role", "ml_full_access", "--store", _without_login(store))
    )
    return (
        "Callers of this store log in, the demo too: set MLSTREAM_API_KEY, or MLSTREAM_USER and MLSTREAM_PASSWORD, of "
        f"one with the role ml_full_access. For the sidecar's own users `{create}` makes a key"
    )


def _url_host(host: str) -> str:
    """Return the host part of the URL by which clients on this machine reach a server that listens on `host`."""
    reachable = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{reachable}]" if ":" in reachable else reachable


def _without_login(store: str) -> str:
    """Return the store's URL without a login and, for a file, with its absolute path."""
    if store.startswith(_SQLITE):
        path = store.removeprefix(_SQLITE)
        return store if path == ":memory:" else _SQLITE + os.path.abspath(path)
    split = (url.partition("://") for url in split_urls(store))
    return ",".join(f"{scheme}://{rest.rpartition('@')[2]}" for scheme, _, rest in split)


@dataclass(frozen=True, slots=True)
class DemoModel:
    """A model of the demo that the store holds; `endpoint` is its connector's."""

    id: str
    connector_id: str
    endpoint: str


def find_models(api: SidecarAPI) -> dict[str, DemoModel]:
    """Return the demo's models that exist already, by blueprint."""
    models = {}
    for blueprint in BLUEPRINTS:
        hits = api.search("models", {"term": {"name.keyword": _model_name(blueprint)}})
        if hits:
            connector_id = hits[0]["_source"]["connector_id"]
            connector = api.call("GET", f"/connectors/{connector_id}")
            models[blueprint] = DemoModel(hits[0]["_id"], connector_id, connector["parameters"]["endpoint"])
    return models


def set_up_models(api: SidecarAPI, existing: dict[str, DemoModel], provider_url: str) -> dict[str, str]:
    """Create the models that are missing and point the others at the provider; return all ids by blueprint."""
    ids = {}
    for blueprint in BLUEPRINTS:
        model = existing.get(blueprint)
        if model is None:
            ids[blueprint] = _create(api, blueprint, provider_url)
            continue
        ids[blueprint] = model.id
        if model.endpoint != provider_url:
            _point_at(api, model, provider_url)
    return ids


def _create(api: SidecarAPI, name: str, provider_url: str) -> str:
    with blueprint_errors():
        blueprint = find_blueprint(name)
    credential = dict.fromkeys(blueprint.credential, "demo")
    body = connector_body(blueprint, {"endpoint": provider_url}, credential, _model_name(name))
    connector_id = api.call("POST", "/connectors/_create", body)["connector_id"]
    model: dict[str, Any] = model_body(blueprint, connector_id, _model_name(name))
    return str(api.call("POST", "/models/_register", model)["model_id"])


def _point_at(api: SidecarAPI, model: DemoModel, provider_url: str) -> None:
    # A connector in use cannot be changed; the next prediction deploys the model again.
    api.call("POST", f"/models/{model.id}/_undeploy")
    api.call("PUT", f"/connectors/{model.connector_id}", {"parameters": {"endpoint": provider_url}})


def _model_name(blueprint: str) -> str:
    return f"Demo of {blueprint}"


def first_steps(sidecar: SidecarOptions, login: Login | None, openai: str, anthropic: str) -> str:
    """Return the commands to try next, which call the two models with this login, if any."""
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
    """Return a note about the login, its options for curl, and its options for this program."""
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
