"""Responses of a cluster, asked directly and through the front door: what must be the same, and what differs."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

# Headers that are not the cluster's response: of one connection (RFC 9110, 7.6.1), and the date, which OpenSearch does
# not send and a gateway adds (6.6.1).
_NOT_THE_CLUSTERS = {"connection", "keep-alive", "transfer-encoding", "date"}
# Members whose values are another each time: ids that the cluster makes up, times, sizes and counts of what runs.
_VOLATILE = re.compile(
    r"took|uuid|.*_uuid|_scroll_id|pit_id|creation_time|creation_date|history_.*|.*timestamp|epoch|date|.*_date|"
    r".*time|_seq_no|.*_time|.*_times|.*_(in_)?(milli|nano|second|byte)s|.*_millis_.*|nodes?|.*_nodes?|.*node_id|"
    r"task|tasks|.*task_id|.*task_resource_usage|content-length|allocation_id|relocation_id|segments|pid|fetched|"
    r".*ephemeral_id|state_id|remote_address|translog|process|jvm|os|fs|number_of_pending_tasks|.*percent_as_number"
)
_MADE_UP = re.compile(
    r"(?=[a-z0-9_-]*[A-Z])[A-Za-z0-9_-]{20,}={0,2}|\d+(?:\.\d+)?(?=ms|micros|nanos|b\b|kb\b|mb\b|gb\b)"
)
_NUMBER = re.compile(r"\d+(?:\.\d+)*")
_MASK = "(masked)"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request's line, and the response to it. Header names are in lower case, in the order they came."""

    request: str
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def json(self) -> Any:
        """The body's value; None where it is no JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


def exchange(client: httpx.Client, method: str, path: str, **options: Any) -> Exchange:
    """Sends a request, and reads its response whole."""
    base = str(client.base_url).rstrip("/")  # put before it, as httpx takes //a/b for a host
    response = client.request(method, base + path, **options)
    headers = [(name.lower(), value) for name, value in response.headers.multi_items()]
    return Exchange(f"{method} {path}", response.status_code, headers, response.content)


def differences(direct: Sequence[Exchange], through: Sequence[Exchange]) -> list[str]:
    """What is not the same in two runs of the same requests, a line for each."""
    found = [line for one, other in zip(direct, through, strict=False) for line in _between(one, other)]
    if len(direct) != len(through):
        found.append(f"{len(direct)} requests directly, {len(through)} through the front door")
    return found


def headers_of_cluster(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that must be the same directly and through the front door."""
    return {name: value for name, value in headers.items() if name.lower() not in _NOT_THE_CLUSTERS}


def masked(value: Any) -> Any:
    """JSON without what is another each time: the members and texts that the cluster makes up."""
    if isinstance(value, dict):
        return {
            _MADE_UP.sub(_MASK, key): _MASK if _VOLATILE.fullmatch(key) and not _is_plain(member) else masked(member)
            for key, member in value.items()
        }
    if isinstance(value, list | tuple):
        return [masked(member) for member in value]
    return _MADE_UP.sub(_MASK, value) if isinstance(value, str) else value


def masked_text(text: str) -> str:
    """A text, such as one of `_cat`, without its numbers, the widths of its columns, and what the cluster makes up."""
    return _NUMBER.sub("0", _MADE_UP.sub(_MASK, re.sub(r"[ \t]+", " ", text)))


def first_difference(one: Any, other: Any, path: str = "") -> str:
    """Where two JSON values that are not the same differ first."""
    if isinstance(one, dict) and isinstance(other, dict) and set(one) == set(other):
        return next(first_difference(one[key], other[key], f"{path}.{key}") for key in one if one[key] != other[key])
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return next(first_difference(a, b, f"{path}[{at}]") for at, (a, b) in pairs if a != b)
    return f"{path or '(whole)'}: {str(one)[:300]} | {str(other)[:300]}"


def _between(direct: Exchange, through: Exchange) -> Iterator[str]:
    if _MADE_UP.sub(_MASK, direct.request) != _MADE_UP.sub(_MASK, through.request):
        yield f"other requests: {direct.request} | {through.request}"
    if direct.status != through.status:
        yield f"{direct.request}: status {direct.status} | {through.status}: {through.body[:300]!r}"
    if (one := _headers(direct)) != (other := _headers(through)):
        yield f"{direct.request}: headers {sorted(set(one) - set(other))} | {sorted(set(other) - set(one))}"
    if (one_body := _body(direct)) != (other_body := _body(through)):
        yield f"{direct.request}: body {first_difference(one_body, other_body)}"


def _headers(response: Exchange) -> list[tuple[str, str]]:
    """The response's own, with the body's length where it must be the same."""
    kept = [(name, value) for name, value in response.headers if name not in _NOT_THE_CLUSTERS]
    is_masked = response.body and _body(response) != (response.json() or response.body)
    volatile = {"task_resource_usage", "content-length"} if is_masked else {"task_resource_usage"}
    return sorted((name, _MASK if name in volatile else _MADE_UP.sub(_MASK, value)) for name, value in kept)


def _body(response: Exchange) -> Any:
    """The body's JSON or text with what is volatile masked."""
    value = response.json()
    if isinstance(value, dict | list):
        return masked(value)
    return masked_text(response.body.decode("utf-8", "replace"))


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool)
