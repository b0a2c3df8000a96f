"""The member `v2` of a model's `_sidecar`: the parameter of its templates that a text goes to."""

import re

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.model_options import InputOptions, ModelOption, members_of

_PARAMETER_NAME = re.compile(r"[^\s{}:]{1,512}")  # as placeholders have them


def _read(value: object) -> InputOptions:
    prompt = members_of(value, "_sidecar.v2", InputOptions).get("prompt")
    if prompt is not None and not (isinstance(prompt, str) and _PARAMETER_NAME.fullmatch(prompt)):
        raise InvalidRequest("_sidecar.v2.prompt must be the name of a parameter in the connector's template")
    return InputOptions(prompt)


V2_OPTION = ModelOption(InputOptions, _read)
