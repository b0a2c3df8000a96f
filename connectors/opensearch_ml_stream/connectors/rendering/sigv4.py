"""AWS Signature Version 4: sign a request to an AWS service.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html. For services whose path is
encoded twice, which is all but S3. Pure: the time is an argument, so the same input gives the same bytes.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit, urlunsplit

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.connectors.rendering.unfilled_values import is_to_be_given, not_given

_ALGORITHM = "AWS4-HMAC-SHA256"
_KEYS = ("access_key", "secret_key", "session_token")
_CONTENT_HASH = "x-amz-content-sha256"
# Set here, whatever values the request has.
_SET_HEADERS = ("authorization", "x-amz-date", "x-amz-security-token")
# Proxies and clients change these in transit.
_UNSIGNED_HEADERS = ("connection", "expect", "transfer-encoding", "user-agent", "x-amzn-trace-id")
_DEFAULT_PORTS = {"http": 80, "https": 443}


def sign(
    request: ProviderRequest, credential: Mapping[str, str], region: str, service: str, now: datetime
) -> ProviderRequest:
    """Return the request with its signature in the headers. Its URL must be sent as it is, not encoded again.

    `credential` holds access_key, secret_key and, if it is temporary, session_token; `now` is an aware datetime. The
    header `x-amz-content-sha256`, if there is one (blueprints set it to "required"), gets the body's hash.
    InvalidRequest if a key is missing or still to be given.
    """
    access_key, secret_key = credential.get("access_key"), credential.get("secret_key")
    if not access_key or not secret_key:
        raise InvalidRequest("Missing credential: aws_sigv4 needs access_key and secret_key")
    for name in _KEYS:
        if is_to_be_given(credential.get(name)):
            raise not_given(f"credential [{name}]")
    timestamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    request = replace(request, url=_wire_url(request.url))
    body_hash = hashlib.sha256(request.body).hexdigest()
    headers = {
        name: body_hash if name.lower() == _CONTENT_HASH else value
        for name, value in request.headers.items()
        if name.lower() not in _SET_HEADERS
    }
    headers["X-Amz-Date"] = timestamp
    if credential.get("session_token"):
        headers["X-Amz-Security-Token"] = credential["session_token"]
    signed = _signed_headers(request.url, headers)
    names = ";".join(signed)
    scope = f"{timestamp[:8]}/{region}/{service}/aws4_request"
    request_hash = hashlib.sha256(_canonical_request(request, signed, body_hash).encode()).hexdigest()
    string_to_sign = "\n".join([_ALGORITHM, timestamp, scope, request_hash])
    signature = hmac.new(_signing_key(secret_key, scope), string_to_sign.encode(), hashlib.sha256).hexdigest()
    headers["Authorization"] = (
        f"{_ALGORITHM} Credential={access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return replace(request, headers=headers)


def _canonical_request(request: ProviderRequest, signed: Mapping[str, str], body_hash: str) -> str:
    lines = [f"{name}:{value}" for name, value in signed.items()]
    method, path, query = request.method.upper(), _canonical_path(request.url), _canonical_query(request.url)
    return "\n".join([method, path, query, *lines, "", ";".join(signed), body_hash])


def _wire_url(url: str) -> str:
    """Return the URL as AWS's own clients send it: the colons of its path (of Bedrock's model ids) are encoded."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=quote(parts.path, safe="/%-._~!$&'()*+,;=@") or "/"))


def _canonical_path(url: str) -> str:
    """Return the path of a URL encoded once more, without empty and dot segments."""
    path = urlsplit(url).path
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment not in ("", "."):
            segments.append(segment)
    normalized = "/" + "/".join(segments)
    return quote(normalized + "/" if path.endswith("/") and segments else normalized, safe="/~")


def _canonical_query(url: str) -> str:
    pairs = [pair.partition("=") for pair in urlsplit(url).query.split("&") if pair]
    return "&".join(f"{name}={value}" for name, value in sorted((name, value) for name, _, value in pairs))


def _signed_headers(url: str, headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers to sign: names in lower case and sorted, values with single blanks, `host` included."""
    signed = {name.lower(): " ".join(value.split()) for name, value in headers.items()}
    signed.setdefault("host", _host(url))
    return {name: signed[name] for name in sorted(signed) if name not in _UNSIGNED_HEADERS}


def _host(url: str) -> str:
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return host if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f"{host}:{parts.port}"


def _signing_key(secret_key: str, scope: str) -> bytes:
    key = f"AWS4{secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key
