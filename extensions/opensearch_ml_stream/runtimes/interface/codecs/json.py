"""JSON in tensors and of responses, as `mlserver.codecs.json` has it."""

import json
from typing import Any

from opensearch_ml_stream.runtimes.interface import json_bytes
from opensearch_ml_stream.runtimes.interface.codecs.decoded import InputOrOutput
from opensearch_ml_stream.runtimes.interface.codecs.lists import as_list


class JSONEncoderWithArray(json.JSONEncoder):
    """Encodes arrays and numbers of NumPy too."""

    def default(self, o: Any) -> Any:
        """Give an array's elements, or a number of Python."""
        return o.tolist() if hasattr(o, "tolist") else super().default(o)


def encode_to_json_bytes(v: Any) -> bytes:
    """Encode a value, bytes as text."""
    return json_bytes.dumps(v)


def decode_from_bytelike_json_to_dict(v: bytes | str) -> Any:
    """Decode JSON."""
    return json_bytes.loads(v)


def encode_to_json(v: Any, use_bytes: bool = True) -> str | bytes:
    """Encode a value, compact; ValueError for NaN."""
    encoder = JSONEncoderWithArray(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    encoded = encoder.encode(v)
    return encoded.encode() if use_bytes else encoded


def decode_json_input_or_output(input_or_output: InputOrOutput) -> list[Any]:
    """Decode each element of a tensor."""
    return [json.loads(element) for element in as_list(input_or_output.data.root)]
