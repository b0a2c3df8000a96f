"""Bodies of `/v1/completions` as conversations."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.conversation.conversation import Text, Turn
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.openai_api.protocol.completions_request import read_completions_request


@pytest.mark.parametrize("prompt", ["Once", ["Once"]])
def test_a_prompt_is_a_turn_of_the_user(prompt: Any) -> None:
    read = read_completions_request({"prompt": prompt, "max_tokens": 5, "stop": ["."], "best_of": 1})
    assert read.turns == (Turn("user", (Text("Once"),)),)
    assert read.options == {"max_tokens": 5, "stop": ["."]}
    assert read.unknown == {}
    assert read.member("turns") == "prompt"


def test_what_only_this_api_has_is_unknown() -> None:
    read = read_completions_request({"prompt": "Once", "echo": True, "suffix": "End", "best_of": 3, "logprobs": 2})
    assert read.unknown == {"echo": True, "suffix": "End", "best_of": 3}
    assert read.options == {"logprobs": True, "top_logprobs": 2}
    assert read.member("top_logprobs") == "logprobs"


@pytest.mark.parametrize("prompt", [None, 5, [], [1, 2], [[1, 2]], ["a", "b"]])
def test_anything_but_one_text_is_refused(prompt: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^prompt must be"):
        read_completions_request({"prompt": prompt})
