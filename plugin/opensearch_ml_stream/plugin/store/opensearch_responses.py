"""Read the responses of OpenSearch, and refuse those of any other server.

A proxy, or another server on its port, may send 200 with JSON of its own. Read as "there is no such document", it would
make every model disappear, so anything that OpenSearch does not send is Unavailable.
"""

from collections.abc import Collection, Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.plugin.store import Document, Written
from opensearch_ml_stream.plugin.store.opensearch_errors import not_opensearch

Json = Mapping[str, Any]


def read_document(response: Any) -> Document | None:
    """Return the document of a get; None if it, or its index, is missing."""
    if is_missing(response):
        return None
    source = _member(response, "_source", Mapping)
    version, seq_no, primary_term = (_member(response, name, int) for name in ("_version", "_seq_no", "_primary_term"))
    return Document(_member(response, "_id", str), source, version, seq_no, primary_term)


def read_sequence(response: Any) -> tuple[int, int] | None:
    """Return sequence number and primary term of a get without source; None if document or index is missing."""
    if is_missing(response):
        return None
    return _member(response, "_seq_no", int), _member(response, "_primary_term", int)


def read_written(response: Any) -> Written:
    """Return the outcome of a write."""
    id, seq_no = _member(response, "_id", str), _member(response, "_seq_no", int)
    return Written(id, seq_no, _member(response, "_primary_term", int), response)


def read_search(response: Any) -> dict[str, Any]:
    """Return a search response, whose hits have an id and, if any, an object as source."""
    for hit in _member(_member(response, "hits", Mapping), "hits", list):
        _member(hit, "_id", str)
        if "_source" in hit:
            _member(hit, "_source", Mapping)
    return dict(response)


def read_total(response: Any) -> int:
    """Return how many documents a search has found."""
    total: int = _member(_member(_member(response, "hits", Mapping), "total", Mapping), "value", int)
    return total


def read_objects(response: Any) -> Mapping[str, Mapping[str, Any]]:
    """Return a response that holds nothing but objects, such as pipelines by name."""
    if not isinstance(response, Mapping) or not all(isinstance(value, Mapping) for value in response.values()):
        raise not_opensearch()
    return response


def read_changed_settings(response: Any) -> dict[str, object]:
    """Return a cluster's changed settings from their flat form: transient ones beat persistent ones."""
    return {**_member(response, "persistent", Mapping), **_member(response, "transient", Mapping)}


def read_statuses(response: Any) -> dict[str, str]:
    """Return the health of each index by its name, of a cluster's health by indices."""
    indices = _member(response, "indices", Mapping)
    return {name: _member(health, "status", str) for name, health in indices.items()}


def check_indices(response: Any, names: Collection[str]) -> None:
    """Check the description of indices, each of which may be an alias: Unavailable if one cannot be read or written."""
    of_alias: dict[str, list[bool | None]] = {}
    for index, described in read_objects(response).items():
        aliases = described.get("aliases", {})
        of_index = {index, *aliases}.intersection(names)
        if "verified_before_close" in described.get("settings", {}).get("index", {}):
            raise _unusable(of_index, "is closed")
        if str(described.get("mappings", {}).get("dynamic")) not in ("None", "true", "false"):
            raise _unusable(of_index, "has a strict mapping, which takes no new fields; check the index templates")
        for name in of_index - {index}:
            of_alias.setdefault(name, []).append(aliases[name].get("is_write_index"))
    for name, are_written in of_alias.items():
        if True not in are_written and are_written != [None]:
            raise _unusable({name}, "is an alias without an index to write to")


def _unusable(names: Collection[str], why: str) -> Unavailable:
    return Unavailable(f"OpenSearch's index {', '.join(sorted(names))} {why}")


def read_script_result(response: Any) -> str:
    """Return a Painless script's result."""
    return str(_member(response, "result", object))


def check_info(response: Any) -> None:
    """Check the response to `GET /`, which has a version's number."""
    _member(_member(response, "version", Mapping), "number", str)


def check_security_health(response: Any) -> None:
    """Check the response of the security plugin's `health`; Unavailable if the plugin is not yet up."""
    if _member(response, "status", str) != "UP":
        raise Unavailable("The cluster's security plugin is not up yet")


def read_auth_info(response: Any) -> Mapping[str, Any]:
    """Return the security plugin's description of a user, who must have a name."""
    _member(response, "user_name", str)
    info: Mapping[str, Any] = response
    return info


def no_hits() -> dict[str, Any]:
    """Return the search response of an index that does not exist."""
    shards = {"total": 0, "successful": 0, "skipped": 0, "failed": 0}
    hits = {"total": {"value": 0, "relation": "eq"}, "max_score": 0.0, "hits": []}
    return {"took": 0, "timed_out": False, "_shards": shards, "hits": hits}


def is_missing(response: Any) -> bool:
    """Whether OpenSearch says that there is no such document, or no such index."""
    if not isinstance(response, Mapping):
        raise not_opensearch()
    error = response.get("error")
    no_index = isinstance(error, Mapping) and error.get("type") == "index_not_found_exception"
    return no_index or response.get("found") is False


def _member(response: Any, name: str, kind: type) -> Any:
    """Return a member of a JSON object; Unavailable if there is none of that kind."""
    value = response.get(name) if isinstance(response, Mapping) else None
    if value is None or not isinstance(value, kind):
        raise not_opensearch()
    return value
