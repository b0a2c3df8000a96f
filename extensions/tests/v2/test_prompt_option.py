"""The member `v2` of a model's `_sidecar`."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.model_options import InputOptions, read_sidecar_settings
from opensearch_ml_stream.extensions.v2.extension import EXTENSION


def prompt(v2: Any) -> str | None:
    return read_sidecar_settings({"v2": v2}, EXTENSION.model_options).of(InputOptions).prompt


def test_the_prompt_is_the_parameter_for_a_text() -> None:
    assert [prompt(v2) for v2 in ({"prompt": "my_param"}, {"prompt": None}, {}, None)] == ["my_param", None, None, None]


@pytest.mark.parametrize(
    ("v2", "reason"),
    [
        (1, "_sidecar.v2 must be an object"),
        ({"promt": "p"}, "_sidecar.v2 has no member [promt]; it knows prompt"),
        ({"prompt": 1}, "_sidecar.v2.prompt must be the name of a parameter in the connector's template"),
        ({"prompt": "a b"}, "_sidecar.v2.prompt must be the name of a parameter in the connector's template"),
        ({"prompt": "x" * 513}, "_sidecar.v2.prompt must be the name of a parameter in the connector's template"),
    ],
)
def test_what_is_no_name_of_a_parameter_is_refused(v2: Any, reason: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        prompt(v2)
    assert raised.value.reason == reason
