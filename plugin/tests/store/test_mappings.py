"""The bodies that indices are created with."""

from typing import Any

import pytest

from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.mappings import FIELDS, index_body


def field_types(properties: dict[str, Any], path: str = "") -> dict[str, Any]:
    """The definition of each field by its dotted path."""
    found: dict[str, Any] = {}
    for name, definition in properties.items():
        inner = definition.get("properties", {})
        if "type" in definition:
            found[path + name] = {key: value for key, value in definition.items() if key != "properties"}
        found |= field_types(inner, f"{path}{name}.")
    return found


@pytest.mark.parametrize("index", list(Index))
def test_every_field_is_in_its_indexs_body(index: Index) -> None:
    body = index_body(index)
    assert set(field_types(body["mappings"]["properties"])) == set(FIELDS[index])


@pytest.mark.parametrize(
    ("index", "version"),
    [
        (Index.MODEL, 13),
        (Index.CONNECTOR, 4),
        (Index.TASK, 5),
        (Index.CONFIG, 5),
        (Index.CONTROLLER, 1),
        (Index.MODEL_GROUP, 4),
        (Index.DEPLOYMENT, 1),
    ],
)
def test_an_index_names_the_version_of_ml_commons_schema(index: Index, version: int) -> None:
    assert index_body(index)["mappings"]["_meta"] == {"schema_version": version}


def test_the_index_of_keys_is_on_all_nodes_and_the_others_on_two() -> None:
    settings = {index: index_body(index, f"p{index}")["settings"]["index"] for index in Index}
    assert settings.pop(Index.CONFIG) == {"number_of_shards": 1, "auto_expand_replicas": "0-all"}
    assert list(settings.values()) == [{"number_of_shards": 1, "auto_expand_replicas": "0-1"}] * (len(Index) - 1)


def test_short_names_of_types_are_spelt_out() -> None:
    types = field_types(index_body(Index.MODEL)["mappings"]["properties"])
    assert types["name"] == {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
    assert types["user.roles"] == {"type": "text", "fields": {"keyword": {"type": "keyword"}}}
    assert types["created_time"] == {"type": "date", "format": "strict_date_time||epoch_millis"}
    assert types["user"] == {"type": "nested"}
    assert types["model_config.additional_config"] == {"type": "flat_object"}


def test_each_body_is_its_own() -> None:
    index_body(Index.MODEL)["mappings"]["properties"]["name"]["type"] = "changed"
    assert index_body(Index.MODEL)["mappings"]["properties"]["name"]["type"] == "text"
