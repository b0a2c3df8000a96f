"""The systems that are measured: the provider called directly, this sidecar, nginx as a proxy.

Each starts afresh in a folder of its own and yields a Target: where its streams are requested, in which form, and the
process tree whose CPU time and memory are measured. Peers from PyPI are in peers.py.
"""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx

from bench.relays.processes import Cpus, free_port, started
from bench.traffic.stream_plan import StreamPlan
from bench.traffic.whole_bodies import CHAT, DOCUMENTS, QUESTION, documents

BLUEPRINTS = Path(__file__).parents[2] / "blueprints"
START_SECONDS = 120  # LiteLLM takes half a minute on a busy machine

_LOOPBACK = {
    "MLSTREAM_SETTING__PLUGINS__ML_COMMONS__TRUSTED_CONNECTOR_ENDPOINTS_REGEX": '["^https?://127\\\\.0\\\\.0\\\\.1:.*$"]',
    "MLSTREAM_SETTING__PLUGINS__ML_COMMONS__CONNECTOR__PRIVATE_IP_ENABLED": "true",
}
V2_PATH = "/v2/models/bench/infer_stream"
V2_BODY = '{"inputs":[{"name":"prompt","shape":[1],"datatype":"BYTES","data":["PROMPT"]}]}'
_OPENAI_BODY = '{"model":"bench","stream":true,"messages":[{"role":"user","content":"PROMPT"}]}'

NGINX_CONFIG = """\
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 20000; }}
http {{
  access_log off; keepalive_requests 1000000; client_body_temp_path {folder}; proxy_temp_path {folder};
  fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
  upstream provider {{ server 127.0.0.1:{provider}; keepalive 3000; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass {scheme}://provider; {tls}proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_read_timeout 600s;
    }}
  }}
}}
"""


BATCHING = {"max_docs": 32, "max_wait_ms": 2}

Document = Mapping[str, object]


class NotStarted(Exception):
    """A system that did not start; the message holds the end of its log."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A whole request: its path and its body."""

    path: str
    body: str


@dataclass(frozen=True, slots=True)
class Target:
    """How streams, and whole responses, are requested of a running system.

    `body` holds PROMPT where the plan of a stream goes; `done` is in the last bytes of every whole response; `pid` is
    the root of the process tree that is measured (None for the provider, which is called directly). `headers` are
    further lines of each request's head, `load` is the module of the load generator. On `grpc_port` is V2 over gRPC.
    `repeats_text` says that a stream's end repeats the text of all chunks.
    `asks` are whole requests by what they ask for (see whole_bodies.py), each made for `warm_up_seconds` unmeasured.
    """

    port: int
    path: str
    body: str
    done: str
    pid: int | None = None
    headers: str = ""
    load: str = "bench.traffic.load"
    grpc_port: int = 0
    asks: Mapping[str, Ask] = field(default_factory=dict)
    warm_up_seconds: float = 0.5
    repeats_text: bool = False

    def body_for(self, plan: StreamPlan) -> str:
        """The request body for a stream of that plan."""
        return self.body.replace("PROMPT", plan.prompt())

    def over_grpc(self) -> "Target":
        """The same system by V2 over gRPC."""
        return replace(self, port=self.grpc_port, body="PROMPT", load="bench.traffic.grpc_load")


@dataclass(frozen=True, slots=True)
class Place:
    """What a system needs to start: its provider's port, the CPUs, a folder of its own.

    With `authority`, the file of a certificate to trust, the provider's port speaks TLS.
    """

    provider: int
    cpus: Cpus
    folder: Path
    authority: Path | None = None

    @property
    def scheme(self) -> str:
        return "https" if self.authority else "http"


System = Callable[[Place], AbstractContextManager[Target]]


def openai_target(port: int, pid: int | None = None) -> Target:
    """A system that speaks OpenAI's interface."""
    message = {"role": "user", "content": QUESTION}
    asks = {CHAT: Ask("/v1/chat/completions", json.dumps({"model": "bench", "messages": [message]}))}
    for what in DOCUMENTS:
        asks[what] = Ask("/v1/embeddings", json.dumps({"model": "bench", "input": documents(what)}))
    return Target(port, "/v1/chat/completions", _OPENAI_BODY, "[DONE]", pid, asks=asks)


@contextmanager
def direct(place: Place) -> Iterator[Target]:
    """No relay: the baseline of added times, and the check that provider and load generator keep up."""
    yield openai_target(place.provider)


def nginx_config(place: Place, port: int) -> str:
    verified = f"proxy_ssl_verify on; proxy_ssl_trusted_certificate {place.authority}; "
    tls = verified if place.authority else ""
    return NGINX_CONFIG.format(folder=place.folder, provider=place.provider, port=port, scheme=place.scheme, tls=tls)


@contextmanager
def nginx(place: Place) -> Iterator[Target]:
    """nginx with one worker, which passes bytes on unread: the floor of what a relay costs."""
    port = free_port()
    config = place.folder / "nginx.conf"
    config.write_text(nginx_config(place, port))
    command = [shutil.which("nginx") or "nginx", "-e", str(place.folder / "nginx.log"), "-c", str(config)]
    with started(command, place.cpus.relay, place.folder / "nginx.log") as process:
        yield openai_target(port, process.pid)


def sidecar(place: Place) -> AbstractContextManager[Target]:
    """This sidecar with one worker on the relay's CPU."""
    return sidecar_of(place, place.cpus.relay)


def sidecar_batching(place: Place) -> AbstractContextManager[Target]:
    """This sidecar with a model that merges embedding requests into calls of up to 32 texts."""
    return sidecar_of(place, place.cpus.relay, embedding={"_sidecar": {"batching": BATCHING}})


@contextmanager
def sidecar_openai(place: Place) -> Iterator[Target]:
    """This sidecar by OpenAI's API."""
    with sidecar(place) as target:
        model_of = {what: ask.path.split("/")[-2] for what, ask in target.asks.items()}
        openai = openai_target(target.port, target.pid)
        asks = {
            what: replace(ask, body=json.dumps({**json.loads(ask.body), "model": model_of[what]}))
            for what, ask in openai.asks.items()
        }
        yield replace(openai, body=openai.body.replace('"bench"', f'"{model_of[CHAT]}"'), asks=asks)


@contextmanager
def sidecar_of(
    place: Place,
    cpus: frozenset[int],
    workers: int = 1,
    chat: Document | None = None,
    embedding: Document | None = None,
) -> Iterator[Target]:
    """This sidecar over an embedded store in the place's folder, with a model for chat and one for embeddings.

    `chat` and `embedding` are further fields of these models.
    """
    port = free_port()
    with sidecar_process(place, cpus, port, workers) as process:
        wait_for(f"http://127.0.0.1:{port}/_health/ready", place.folder / "sidecar.log", process)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}/_plugins/_ml", timeout=30) as client:
            ids = create_models(client, place, chat or {}, embedding or {})
        yield ml_commons_target(port, process.pid, *ids)


def ml_commons_target(port: int, pid: int, chat: str, embedding: str) -> Target:
    """A system that speaks ML Commons' interface, with the ids of its two models."""
    body = '{"parameters":{"messages":[{"role":"user","content":"PROMPT"}]}}'
    path = f"/_plugins/_ml/models/{chat}/_predict"
    asks = {CHAT: Ask(path, body.replace("PROMPT", QUESTION))}
    for what in DOCUMENTS:
        document = json.dumps({"text_docs": documents(what)})
        asks[what] = Ask(f"/_plugins/_ml/models/{embedding}/_predict", document)
    return Target(port, f"{path}/stream", body, '"is_last":true', pid, asks=asks)


def sidecar_process(
    place: Place, cpus: frozenset[int], port: int, workers: int = 1, arguments: Sequence[str] = ()
) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """The sidecar's process, which may not listen yet."""
    command = [sys.executable, "-m", "opensearch_ml_stream.plugin", "serve", "--port", str(port)]
    command += ["--workers", str(workers), "--store", f"sqlite:///{place.folder}/store.db", *arguments]
    environment = {**_LOOPBACK, "SSL_CERT_FILE": str(place.authority)} if place.authority else _LOOPBACK
    return started(command, cpus, place.folder / "sidecar.log", environment)


def create_connector(client: httpx.Client, place: Place, blueprint: str = "openai-chat", path: str = "") -> str:
    """The id of a connector of the blueprint that calls the provider, at paths that begin so."""
    document = json.loads((BLUEPRINTS / f"{blueprint}.json").read_text())["connector"]
    document["parameters"]["endpoint"] = f"{place.scheme}://127.0.0.1:{place.provider}{path}"
    document["credential"] = dict.fromkeys(document["credential"], "none")
    document["client_config"] = {"max_connection": 10_000}
    created = client.post("/connectors/_create", json=document).raise_for_status().json()
    return str(created["connector_id"])


def create_models(client: httpx.Client, place: Place, chat: Document, embedding: Document) -> tuple[str, str]:
    """The ids of a model for chat and of one for embeddings."""
    for_chat = create_model(client, create_connector(client, place), **chat)
    return for_chat, create_model(client, create_connector(client, place, "openai-embedding"), **embedding)


def create_model(client: httpx.Client, connector_id: str, **fields: object) -> str:
    body = {"name": "bench", "function_name": "remote", "connector_id": connector_id, **fields}
    response = client.post("/models/_register", json=body)
    if response.is_error:
        raise NotStarted(f"a model of {fields} is refused: {response.text}")
    return str(response.json()["model_id"])


def wait_for(url: str, log: Path, process: subprocess.Popen[bytes]) -> None:
    """Returns once a GET gets a 200; NotStarted if that takes longer than START_SECONDS or the process ends."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if httpx.get(url, timeout=10).status_code == 200:
                return
        except httpx.TransportError:
            pass
        if process.poll() is not None or time.monotonic() > deadline:
            what = "does not respond" if process.poll() is None else f"ended with exit code {process.returncode}"
            raise NotStarted(f"{url}: the server {what}; its log ends with: {log.read_text().strip()[-500:]}")
        time.sleep(0.05)
