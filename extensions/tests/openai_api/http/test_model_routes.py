"""Models as OpenAI's API lists them."""

from opensearch_ml_stream.extensions.openai_api.http.model_routes import model_list


def test_a_name_that_two_models_have_is_no_id() -> None:
    listed = model_list(
        [
            ("1", {"name": "a/b", "created_time": 1_700_000_000_123}),
            ("2", {"name": "twice"}),
            ("3", {"name": "twice"}),
            ("4", {}),
        ]
    )
    assert listed["object"] == "list"
    assert [model["id"] for model in listed["data"]] == ["a/b", "2", "3", "4"]
    assert listed["data"][0] == {
        "id": "a/b",
        "object": "model",
        "created": 1_700_000_000,
        "owned_by": "opensearch-ml-stream",
    }
