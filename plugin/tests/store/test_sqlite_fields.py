"""How a field's values are compared, by the mappings."""

from typing import Any

import pytest

from opensearch_ml_stream.plugin.store import Document, Index
from opensearch_ml_stream.plugin.store.mappings import FIELDS
from opensearch_ml_stream.plugin.store.sqlite_fields import Kind, exact, find_field


def values(name: str, source: dict[str, Any], index: Index = Index.MODEL) -> list[Any]:
    return find_field(FIELDS[index], name).read(Document("id", source, 1, 0, 1))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_id", Kind.EXACT),
        ("name", Kind.TEXT),
        ("name.keyword", Kind.EXACT),
        ("description", Kind.TEXT),
        ("description.keyword", Kind.NOTHING),
        ("model_state", Kind.EXACT),
        ("model_state.keyword", Kind.NOTHING),
        ("created_time", Kind.EXACT),
        ("rate_limiter", Kind.EXACT),
        ("rate_limiter.limit", Kind.EXACT),
        ("interface.input.deep", Kind.EXACT),
        ("user", Kind.NOTHING),
        ("user.name", Kind.NOTHING),
        ("user.name.keyword", Kind.NOTHING),
        ("connector.parameters.model", Kind.EXACT),
        ("connector.name.keyword", Kind.EXACT),
        ("not_mapped", Kind.TEXT),
        ("not_mapped.keyword", Kind.EXACT),
        ("guardrails.input_guardrail.regex", Kind.TEXT),
    ],
)
def test_the_mapping_says_how_a_field_is_compared(name: str, kind: Kind) -> None:
    field = find_field(FIELDS[Index.MODEL], name)
    assert (field.name, field.kind) == (name, kind)


def test_the_id_is_a_field() -> None:
    assert values("_id", {}) == ["id"]


def test_values_are_found_in_arrays_on_the_way_and_nulls_are_none() -> None:
    source = {"a": [{"b": [1, [2]]}, {"b": None}, {"c": 3}, "text"], "n": None}
    assert values("a.b", source) == [1, 2]
    assert values("n", source) == []
    assert values("gone.deeper", source) == []


def test_a_flat_object_has_every_value_in_it() -> None:
    source = {"rate_limiter": {"limit": "5", "more": [{"x": 1}, [2, None]]}}
    assert values("rate_limiter", source) == ["5", 1, 2]
    assert values("rate_limiter.more", source) == [1, 2]
    assert values("rate_limiter.more.x", source) == [1]


def test_a_nested_object_has_no_values_for_plain_queries() -> None:
    assert values("user.name", {"user": {"name": "ann"}}) == []


def test_a_keyword_sub_field_holds_strings_up_to_its_ignore_above() -> None:
    assert values("name.keyword", {"name": ["a" * 256, "b" * 257, 1]}) == ["a" * 256]
    roles = {"owner": {}, "access": "x"}
    assert values("access.keyword", roles, Index.CONNECTOR) == []
    assert values("backend_roles.keyword", {"backend_roles": ["r"]}, Index.CONNECTOR) == ["r"]


@pytest.mark.parametrize(
    ("value", "spelling"), [(True, "true"), (False, "false"), (1, "1"), (1.0, "1"), (1.5, "1.5"), ("1", "1")]
)
def test_equal_values_have_one_spelling(value: Any, spelling: str) -> None:
    assert exact(value) == spelling
