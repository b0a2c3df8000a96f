"""AWS Signature Version 4: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.

For services whose path is encoded twice, which is all but S3. Same input, same bytes: the time is an argument.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit, urlunsplit

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.action import ProviderRequest

_ALGORITHM = "AWS4-HMAC-SHA256"
_CONTENT_HASH = "x-amz-content-sha256"
# Set here, whatever the request had.
_OWN = ("authorization", "x-amz-date", "x-amz-security-token")
# Proxies and clients change these on the way.
_UNSIGNED = ("connection", "expect", "transfer-encoding", "user-agent", "x-amzn-trace-id")
_DEFAULT_PORTS = {"http": 80, "https": 443}


def sign(
    request: ProviderRequest, credential: Mapping[str, str], region: str, service: str, now: datetime
) -> ProviderRequest:
    """The request with its signature in the headers; `now` is aware. Send its URL as it is, not encoded anew.

    `credential`: access_key, secret_key and, for temporary ones, session_token. A header `x-amz-content-sha256`
    (blueprints say "required") becomes the body's hash. InvalidRequest if a key is missing.
    """
    access_key, secret_key = credential.get("access_key"), credential.get("secret_key")
    if not access_key or not secret_key:
        raise InvalidRequest("Missing credential: aws_sigv4 needs access_key and secret_key")
    time = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    request = replace(request, url=_wire_url(request.url))
    body_hash = hashlib.sha256(request.body).hexdigest()
    headers = {
        name: body_hash if name.lower() == _CONTENT_HASH else value
        for name, value in request.headers.items()
        if name.lower() not in _OWN
    }
    headers["X-Amz-Date"] = time
    if credential.get("session_token"):
        headers["X-Amz-Security-Token"] = credential["session_token"]
    signed = _signed_headers(request.url, headers)
    names = ";".join(signed)
    scope = f"{time[:8]}/{region}/{service}/aws4_request"
    text = "\n".join(
        [_ALGORITHM, time, scope, hashlib.sha256(_canonical(request, signed, body_hash).encode()).hexdigest()]
    )
    signature = hmac.new(_key(secret_key, scope), text.encode(), hashlib.sha256).hexdigest()
    headers["Authorization"] = (
        f"{_ALGORITHM} Credential={access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return replace(request, headers=headers)


def _canonical(request: ProviderRequest, signed: Mapping[str, str], body_hash: str) -> str:
    lines = [f"{name}:{value}" for name, value in signed.items()]
    method, path, query = request.method.upper(), _canonical_path(request.url), _canonical_query(request.url)
    return "\n".join([method, path, query, *lines, "", ";".join(signed), body_hash])


def _wire_url(url: str) -> str:
    """Colons of the path (Bedrock's model ids have them) encoded, as AWS's own clients send them."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=quote(parts.path, safe="/%-._~!$&'()*+,;=@") or "/"))


def _canonical_path(url: str) -> str:
    """Encoded once more, without empty and dot segments."""
    path = urlsplit(url).path
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment not in ("", "."):
            segments.append(segment)
    whole = "/" + "/".join(segments)
    return quote(whole + "/" if path.endswith("/") and segments else whole, safe="/~")


def _canonical_query(url: str) -> str:
    pairs = [pair.partition("=") for pair in urlsplit(url).query.split("&") if pair]
    return "&".join(f"{name}={value}" for name, value in sorted((name, value) for name, _, value in pairs))


def _signed_headers(url: str, headers: Mapping[str, str]) -> dict[str, str]:
    """Names in lower case and in order, values with single blanks; the client sends `Host` itself."""
    signed = {name.lower(): " ".join(value.split()) for name, value in headers.items()}
    signed.setdefault("host", _host(url))
    return {name: signed[name] for name in sorted(signed) if name not in _UNSIGNED}


def _host(url: str) -> str:
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return host if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f"{host}:{parts.port}"


def _key(secret_key: str, scope: str) -> bytes:
    key = f"AWS4{secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key
