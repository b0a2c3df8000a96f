"""Open Inference Protocol (V2), as MLServer, Seldon, KServe and Triton stream it.

https://github.com/kserve/open-inference-protocol. There are two dialects: MLServer sends tensors (`outputs`), the
protocol's generate extension `text_output`. Neither has a terminator: a server that fails breaks the connection, so the
end of the body is a good end.
"""

from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import FINISHING, Finishing, Outcome
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.provider_errors import read_error
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

_TEXT_TENSORS = ("content", "text_output", "output", "text")


class OpenInference:
    """Reads events of both dialects."""

    __slots__ = ("_finish", "_model")

    def __init__(self) -> None:
        self._finish: str | None = None
        self._model: str | None = None

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        """Append the event's text; `error` ends the stream."""
        payload: Any = event.payload
        if payload.get("error"):
            return read_error(payload)
        outputs = payload.get("outputs")
        text = _joined(payload["text_output"]) if outputs is None else _tensor_text(outputs)
        if text:
            chunks.append(Chunk(text))
        self._model = self._model or event_fields.name(payload.get("model_name"))
        self._finish = (
            event_fields.name(event_fields.mapping(payload.get("details")).get("finish_reason")) or self._finish
        )
        return FINISHING if self._finish is not None else None

    def end_of_input(self) -> Outcome:
        """Return a good ending: the stream has no terminator."""
        return Ending(finish_reason(self._finish), self._finish, model=self._model)


def _tensor_text(outputs: list[dict[str, Any]]) -> str:
    """Return the text of the first tensor that is named in _TEXT_TENSORS, else of the first BYTES tensor."""
    by_name = {output.get("name"): output for output in reversed(outputs)}
    named = next((by_name[name] for name in _TEXT_TENSORS if name in by_name), None)
    tensor = named or next((output for output in outputs if output.get("datatype") == "BYTES"), None)
    return "" if tensor is None else _joined(tensor["data"])


def _joined(data: Any) -> str:
    """Return the strings of tensor data, which may be nested by the tensor's shape, as one."""
    return "".join([_joined(element) for element in data]) if isinstance(data, list) else event_fields.text(data)


OPEN_INFERENCE = StreamSpec(
    name="v2/models/infer_stream",
    enable=Enable(url=(("/infer", "/infer_stream"), ("/generate", "/generate_stream"))),
    framing=SSEFraming,
    reader=OpenInference,
    has_fast_path=True,
)

PROVIDER = Provider(
    interfaces=(
        Interface(
            (OPEN_INFERENCE.name, "v2/models/generate_stream"),
            OPEN_INFERENCE,
            (r"/v2/models/.+/(infer|generate)(_stream)?\?",),
        ),
    )
)
