"""Client of the sidecar's REST API over httpx, for the command line."""

import re
import ssl
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import orjson

from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed, RequestFailed, Unreachable, WrongUsage
from opensearch_ml_stream.plugin.cli.login import Login, find_login
from opensearch_ml_stream.plugin.cli.options import command_line
from opensearch_ml_stream.plugin.cli.printing import waiting
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions
from opensearch_ml_stream.plugin.cli.sidecar_url import sidecar_url
from opensearch_ml_stream.plugin.security.permissions import (
    SHIPPED_ROLES,
    STATIC_ACTION_GROUPS,
    Permissions,
    actions_of,
)
from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH

CONNECT_SECONDS = 10
_HINT = re.compile(
    r"opensearch-ml-stream (endpoints allow \S+)$"
)  # in a reason; replaced by a command line of this program
_MISSING_ACTION = re.compile(r"no permissions for \[([^\]]+)\]")
SIDECAR_NAME = "opensearch-ml-stream"  # as `GET /` has it
_DESCRIPTION = f"{BASE_PATH}/openapi.json?filter_path=info.title"
IDLE_SECONDS = 60  # of a stream; heartbeats come each 15 s
RESPONSE_SECONDS = 300  # a whole response of a slow model


class SidecarAPI:
    """Requests to one sidecar, made by open_api. Every method raises RequestFailed or Unreachable.

    `login` is the login of the client's requests, None without one.
    """

    def __init__(self, client: httpx.Client, login: Login | None = None) -> None:
        self._client = client
        self.login = login

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request to a path below the base path, and return the response's JSON object."""
        with self._errors(), waiting(f"waiting for {self._address()}"):
            response = self._client.request(method, BASE_PATH + path, json=body)
            self._check(response)
        return _object(response)

    def get(self, path: str) -> dict[str, Any]:
        """Return the JSON object at a path of the server's root."""
        with self._errors(), waiting(f"waiting for {self._address()}"):
            response = self._client.get(path)
            self._check(response)
        return _object(response)

    def admits(self) -> bool:
        """Return whether the sidecar accepts calls with the login, or without one; not what the caller may do.

        With the front door on, `GET /` is answered by the cluster, so the sidecar's OpenAPI document is read as well.
        """
        with self._errors():
            response = self._client.get("/")
            if response.status_code not in (401, 403):
                self._check(response)
                if _object(response).get("name") == SIDECAR_NAME:
                    return True
            if response.status_code != 401:
                response = self._client.get(_DESCRIPTION)
        if response.status_code == 401:
            return False
        if response.status_code != 200 or _object(response).get("info") != {"title": SIDECAR_NAME}:
            raise CommandFailed(f"{self._address()} is not the sidecar")
        return True

    def is_ready(self) -> bool:
        """Return whether the sidecar runs and its store responds."""
        try:
            return self._client.get("/_health/ready").is_success
        except httpx.TransportError as error:
            if untrusted := _untrusted(self._address(), error):
                raise untrusted from error
            return False

    def search(self, kind: str, query: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the hits (`_id`, `_source`) of a query among `models` or `connectors`, 1000 at most."""
        response = self.call("POST", f"/{kind}/_search", {"query": query, "size": 1000})
        hits: list[dict[str, Any]] = response["hits"]["hits"]
        return hits

    def predict_stream(self, model_id: str, parameters: Mapping[str, Any]) -> Iterator[bytes]:
        """Yield the body of a streamed prediction, objects one a line, as it arrives."""
        path = f"{BASE_PATH}/models/{quote(model_id, safe='')}/_predict/stream"
        return self.stream(path, {"parameters": parameters}, "application/x-ndjson")

    def stream(self, path: str, body: Mapping[str, Any], accept: str) -> Generator[bytes, None, None]:
        """Yield the body of a streamed response of this media type, as it arrives; `path` is the whole path."""
        request = self._client.build_request(
            "POST",
            path,
            json=body,
            headers={"Accept": accept},
            timeout=httpx.Timeout(IDLE_SECONDS, connect=CONNECT_SECONDS),
        )
        with self._errors():
            with waiting(f"waiting for {self._address()}"):
                response = self._client.send(request, stream=True)
            try:
                if not response.is_success:
                    response.read()
                    self._check(response)
                yield from response.iter_bytes()
            finally:
                response.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        address = self._address()
        try:
            yield
        except httpx.ReadTimeout as error:
            raise RequestFailed(408, f"{address} did not respond in time") from error
        except (httpx.RemoteProtocolError, httpx.ReadError) as error:
            raise RequestFailed(424, f"The connection to {address} broke before the response was complete") from error
        except httpx.TransportError as error:
            if untrusted := _untrusted(address, error):
                raise untrusted from error
            raise Unreachable(
                f"Cannot reach {address} ({error}); is the sidecar running there? "
                "Start it with `opensearch-ml-stream serve`, or say where it is with --url or MLSTREAM_URL"
            ) from error

    def _check(self, response: httpx.Response) -> None:
        """Raise RequestFailed for an error status or a redirect, with the reason that the server gives."""
        if response.is_success:
            return
        status, address = response.status_code, self._address()
        if response.is_redirect:
            to = response.headers.get("location", "nowhere")
            raise RequestFailed(status, f"{address} redirects to {to}", "no login goes there; name it with --url")
        reason = _HINT.sub(lambda hint: command_line(address, *hint[1].split()), error_reason(response))
        advice = refusal_advice(status, reason, address, None if self.login is None else self.login.source)
        raise RequestFailed(status, reason, advice)

    def _address(self) -> str:
        return str(self._client.base_url.copy_with(userinfo=b"")).rstrip("/")


@contextmanager
def open_api(options: SidecarOptions, response_seconds: float = RESPONSE_SECONDS) -> Iterator[SidecarAPI]:
    """Open a client of a sidecar, with the login of the options, of the environment or of an earlier `login`.

    Raises:
        WrongUsage: If the URL, a login or a file cannot be used.
        CommandFailed: If the remembered logins cannot be read.
    """
    with open_api_as(find_login(options), options, response_seconds) as api:
        yield api


@contextmanager
def open_api_as(
    login: Login | None, options: SidecarOptions, response_seconds: float = RESPONSE_SECONDS
) -> Iterator[SidecarAPI]:
    """Open a client of a sidecar with this login, whatever the options say of one; see `open_api`."""
    with open_client(login, options, response_seconds) as client:
        yield SidecarAPI(client, login)


@contextmanager
def open_client(
    login: Login | None, options: SidecarOptions, response_seconds: float = RESPONSE_SECONDS
) -> Iterator[httpx.Client]:
    """Open httpx's client of a sidecar, which sends the login; see `open_api`."""
    with httpx.Client(
        base_url=sidecar_url(options.url),
        headers={} if login is None else {"authorization": login.authorization()},
        verify=_tls(options.ca_certs, options.client_cert),
        timeout=httpx.Timeout(response_seconds, connect=min(CONNECT_SECONDS, response_seconds)),
        follow_redirects=False,  # or the login would follow them
    ) as client:
        yield client


def _untrusted(address: str, error: httpx.TransportError) -> Unreachable | None:
    """Return what to do about a certificate that is not trusted here, None for any other error."""
    if "CERTIFICATE_VERIFY_FAILED" not in str(error):
        return None
    return Unreachable(
        f"{address} has a certificate that is not trusted here ({error}); name the authority that issued it with "
        "--ca-certs or MLSTREAM_CA_CERTS, and use a host name that the certificate holds"
    )


def _tls(ca_certs: Path | None, client_cert: Path | None) -> ssl.SSLContext | bool:
    """Return httpx's `verify`: True trusts the public authorities, or those that SSL_CERT_FILE names."""
    if ca_certs is None and client_cert is None:
        return True
    option, path = "--ca-certs", ca_certs
    try:
        context = httpx.create_ssl_context() if ca_certs is None else ssl.create_default_context(cafile=ca_certs)
        if client_cert is not None:
            option, path = "--client-cert", client_cert
            context.load_cert_chain(client_cert, password=_no_password)
    except ssl.SSLError as error:
        raise WrongUsage(f"{option}: {path} cannot be used ({error.reason})") from error
    except OSError as error:
        raise WrongUsage(f"{option}: {path} cannot be read ({error.strerror})") from error
    return context


def _no_password() -> str:
    """Return no password for a client's key: else OpenSSL would ask for it on the terminal."""
    return ""


def error_reason(response: httpx.Response) -> str:
    """Return the reason that an error response gives."""
    try:
        error = orjson.loads(response.content)["error"]
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return response.text.strip()[:200] or response.reason_phrase
    return (
        str(error.get("reason") or error.get("message") or error.get("type")) if isinstance(error, dict) else str(error)
    )


def _object(response: httpx.Response) -> dict[str, Any]:
    try:
        body = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        raise CommandFailed(f"{response.url.host}:{response.url.port} does not respond in JSON; is it the sidecar?")
    return body


def refusal_advice(status: int, reason: str, url: str, source: str | None) -> str:
    """Return the advice to append to the reason of a 401 or 403; empty for other errors.

    `source` says where the login came from, None without one.
    """
    if status == 401:
        refused = "" if source is None else f"{source} is wrong, expired or revoked; "
        return f"{refused}log in with `{command_line(url, 'login')}`, or set MLSTREAM_API_KEY"
    missing = _MISSING_ACTION.search(reason) if status == 403 else None
    if missing is None:
        return ""
    roles = " and ".join(role for role in SHIPPED_ROLES if _allows(role, missing[1]))
    return f"of the roles that come with the sidecar, it is in {roles}" if roles else ""


def _allows(role: str, action: str) -> bool:
    return Permissions(actions_of(SHIPPED_ROLES[role], STATIC_ACTION_GROUPS)).allow(action)
