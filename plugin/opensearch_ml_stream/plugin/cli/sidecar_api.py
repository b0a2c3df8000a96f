"""The sidecar's REST API as the command line uses it, over httpx."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpx
import orjson

from opensearch_ml_stream.client.response_chunks import Chunk, ChunkReader, StreamError
from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed, ServerSaidNo, Unreachable, WrongUsage
from opensearch_ml_stream.rest_handlers.paths import BASE_PATH

CONNECT_SECONDS = 10
IDLE_SECONDS = 60  # of a stream; heartbeats come each 15 s
ANSWER_SECONDS = 300  # a whole answer of a slow model


class SidecarAPI:
    """Made by open_api. Every method raises ServerSaidNo or Unreachable."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """A path below the base path; the answer's JSON object."""
        with self._errors():
            response = self._client.request(method, BASE_PATH + path, json=body)
            _check(response)
        return _object(response)

    def is_ready(self) -> bool:
        try:
            return self._client.get("/_health/ready").is_success
        except httpx.TransportError:
            return False

    def search(self, kind: str, query: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The hits (`_id`, `_source`) of `models` or `connectors`."""
        hits: list[dict[str, Any]] = self.call("POST", f"/{kind}/_search", {"query": query, "size": 1000})["hits"][
            "hits"
        ]
        return hits

    def predict_stream(self, model_id: str, parameters: Mapping[str, Any]) -> Iterator[Chunk]:
        """Chunks as they arrive; what came before the answer broke off is yielded, too."""
        request = self._client.build_request(
            "POST",
            f"{BASE_PATH}/models/{quote(model_id, safe='')}/_predict/stream",
            json={"parameters": parameters},
            headers={"Accept": "application/x-ndjson"},
            timeout=httpx.Timeout(IDLE_SECONDS, connect=CONNECT_SECONDS),
        )
        reader = ChunkReader()
        with self._errors():
            response = self._client.send(request, stream=True)
            try:
                if response.is_error:
                    response.read()
                    _check(response)
                for data in response.iter_raw():
                    yield from reader.feed(data)
                yield from reader.close()
            finally:
                response.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        address = str(self._client.base_url.copy_with(userinfo=b"")).rstrip("/")
        try:
            yield
        except StreamError as error:
            raise ServerSaidNo(error.status, error.reason) from error
        except httpx.ReadTimeout as error:
            raise ServerSaidNo(408, f"{address} did not answer in time") from error
        except (httpx.RemoteProtocolError, httpx.ReadError) as error:
            raise ServerSaidNo(424, f"The connection to {address} broke before the answer was complete") from error
        except httpx.TransportError as error:
            raise Unreachable(
                f"Cannot reach {address} ({error}); is the sidecar running there? "
                "Start it with `opensearch-ml-stream serve`, or say where it is with --url or MLSTREAM_URL"
            ) from error


@contextmanager
def open_api(url: str, user: str | None = None) -> Iterator[SidecarAPI]:
    """`url` is the sidecar's and may hold user and password; `user` is `name:password`. WrongUsage if it is no URL."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WrongUsage("--url must be of the form http://host:port")
    login = _login(user) or (unquote(parts.username or ""), unquote(parts.password or ""))
    base = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    with httpx.Client(
        base_url=base,
        auth=login if login[0] else None,
        timeout=httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS),
    ) as client:
        yield SidecarAPI(client)


def _login(user: str | None) -> tuple[str, str] | None:
    if user is None:
        return None
    name, separator, password = user.partition(":")
    if not separator:
        raise WrongUsage("--user must be of the form name:password")
    return name, password


def _check(response: httpx.Response) -> None:
    """Raises for an error status, with the reason that the server gives."""
    if not response.is_error:
        return
    raise ServerSaidNo(response.status_code, _reason(response))


def _reason(response: httpx.Response) -> str:
    try:
        error = orjson.loads(response.content)["error"]
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return response.text.strip()[:200] or response.reason_phrase
    return str(error.get("reason") or error.get("type")) if isinstance(error, dict) else str(error)


def _object(response: httpx.Response) -> dict[str, Any]:
    try:
        answer = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict):
        raise CommandFailed(f"{response.url.host}:{response.url.port} does not answer in JSON; is it the sidecar?")
    return answer
