import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.rest_handlers.http.requests import is_json, read_flag


@pytest.mark.parametrize(("text", "flag"), [("", True), ("true", True), ("false", False)])
def test_a_flag_without_a_value_is_true(text: str, flag: bool) -> None:
    assert read_flag(text) is flag


def test_a_flag_that_is_neither_true_nor_false_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"Failed to parse value \[yes\]"):
        read_flag("yes")


@pytest.mark.parametrize(
    ("content_type", "json"),
    [
        ("application/json", True),
        ("Application/JSON; charset=UTF-8", True),
        ("application/vnd.opensearch+json;compatible-with=7", True),
        ("application/yaml", False),
        ("text/plain", False),
        ("", False),
    ],
)
def test_only_json_is_taken_for_json(content_type: str, json: bool) -> None:
    assert is_json(content_type) is json
