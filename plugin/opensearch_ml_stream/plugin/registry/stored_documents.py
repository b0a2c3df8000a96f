"""Helpers for stored documents: lookup, optimistic rewrite, field order, and validation of a request body's fields."""

from collections.abc import Callable, Mapping
from typing import Any

from opensearch_ml_stream.connectors.documents import Connector, blank_name, read_connector, read_model
from opensearch_ml_stream.connectors.errors import Conflict, InvalidRequest, MLStreamError, NotFound
from opensearch_ml_stream.connectors.syntax.jsontext import scalar_text
from opensearch_ml_stream.plugin.store import Document, Index, Store, Written

Json = Mapping[str, Any]

MAX_ATTEMPTS = 10
MAX_FOUND = 1000
IS_REMOTE: Json = {"term": {"algorithm": "REMOTE"}}
"""The query of remote models, which a store with ML Commons' index has beside others."""


async def existing(store: Store, index: Index, id: str, missing: MLStreamError) -> Document:
    """Return the document of that id; raise `missing` if there is none."""
    document = await store.get(index, id)
    if document is None:
        raise missing
    return document


async def existing_model(store: Store, model_id: str) -> Document:
    """Return the model's document; NotFound if there is none."""
    return await existing(store, Index.MODEL, model_id, NotFound("Failed to find model"))


async def existing_connector(store: Store, connector_id: str) -> Document:
    """Return the connector's document; NotFound if there is none."""
    return await existing(store, Index.CONNECTOR, connector_id, NotFound(f"Failed to find connector:{connector_id}"))


async def connector_of(store: Store, model: Json) -> tuple[Connector, Document | None]:
    """Return the connector of a model's source, and its document if it is not in the model.

    InvalidRequest for what ML Commons may have stored and cannot be called here: a model that is not remote, or has no
    connector. NotFound if the connector was deleted.
    """
    algorithm = model.get("algorithm", "REMOTE")
    if algorithm != "REMOTE":
        raise InvalidRequest(f"The function category {algorithm} is not supported here, only remote models are")
    definition = read_model(model)
    if definition.connector is not None:
        return definition.connector, None
    if not definition.connector_id:
        raise InvalidRequest("The model has no connector, so it cannot be called")
    document = await existing_connector(store, definition.connector_id)
    return read_connector(document.source), document


async def rewrite(
    store: Store, index: Index, id: str, change: Callable[[Document], Json | None], missing: MLStreamError
) -> Written | None:
    """Replace the document by `change(document)`, again if another writer came first; write nothing for None.

    Raises `missing` if there is no such document, Conflict if another writer came first MAX_ATTEMPTS times.
    """
    for attempt in range(MAX_ATTEMPTS):
        document = await existing(store, index, id, missing)
        source = change(document)
        if source is None:
            return None
        try:
            return await store.put(index, id, source, if_seq_no=document.seq_no, if_primary_term=document.primary_term)
        except Conflict:
            if attempt == MAX_ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


async def find(
    store: Store, index: Index, field: str, value: str, tenant_id: str | None = None
) -> list[tuple[str, Json]]:
    """Return ids and sources (at most MAX_FOUND) of the documents whose string field is exactly the value.

    Those of a tenant alone, if there is one.
    """
    filters: list[Json] = [{"term": {f"{field}.keyword": value}}]
    filters += [] if tenant_id is None else [{"term": {"tenant_id": tenant_id}}]
    response = await store.search(index, {"query": {"bool": {"filter": filters}}, "size": MAX_FOUND})
    hits = response["hits"]["hits"]
    return [(hit["_id"], hit["_source"]) for hit in hits if hit["_source"].get(field) == value]


def in_order(source: Json, fields: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields that are not null: those of `fields` in that order, then all others."""
    ordered = {name: source[name] for name in fields if source.get(name) is not None}
    return ordered | {name: value for name, value in source.items() if name not in fields and value is not None}


def merged(stored: Json, changes: Json) -> dict[str, Any]:
    """Return the stored object with the changes: objects merged field by field, all other values replaced.

    This is what OpenSearch's partial update (`_update` with a `doc`) does.
    """
    both = {**stored, **changes}
    for name, change in changes.items():
        present = stored.get(name)
        if isinstance(present, Mapping) and isinstance(change, Mapping):
            both[name] = merged(present, change)
    return both


def id_of(body: Json, name: str) -> str | None:
    """Return a field that must be the id of a document; None if absent, null or empty, which no id is."""
    return string_of(body, name) or None


def string_of(body: Json, name: str) -> str | None:
    """Return a field that must be a string (a number or boolean counts as one); None if absent or null."""
    value = body.get(name)
    return None if value is None else scalar_text(value, name)


def name_of(body: Json, kind: str) -> str:
    """Return the body's `name`, of a resource of this kind. InvalidRequest if it is absent, null or blank."""
    name = string_of(body, "name")
    if name is None:
        raise InvalidRequest(f"{kind} name is null")
    if not name.strip():
        raise blank_name(kind.capitalize())
    return name


def object_of(body: Json, name: str) -> Json | None:
    """Return a field that must be a JSON object; None if absent or null."""
    value = body.get(name)
    if value is None or isinstance(value, Mapping):
        return value
    raise InvalidRequest(f"{name} must be an object")


def flag_of(body: Json, name: str) -> bool | None:
    """Return a field that must be true or false; None if absent or null."""
    value = body.get(name)
    if value is None or isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    raise InvalidRequest(f"{name} must be true or false")


def strings_of(body: Json, name: str) -> list[str] | None:
    """Return a field that must be an array of strings; None if absent or null."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidRequest(f"{name} must be an array of strings")
    return value
