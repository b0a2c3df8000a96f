"""The provider: what an echo sends, such as `{"word": "sky"}`, and `{"done": true, "words": 5}` at the end."""

from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.decoding.contract import Outcome, truncated
from opensearch_ml_stream.connectors.decoding.ndjson import NDJSONFraming
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec


class Echo:
    """Reads the events of one stream."""

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        """Append the event's word, or return the outcome; what is raised for another event skips it."""
        payload: Any = event.payload
        if payload.get("done") is True:
            return Ending(usage=Usage(output_tokens=payload["words"]))
        chunks.append(Chunk(payload["word"]))
        return None

    def end_of_input(self) -> Outcome:
        """Return a truncation: only `"done": true` is a good end."""
        return truncated('"done": true')


_STREAM = StreamSpec(name="echo", enable=Enable(body={"stream": True}), framing=NDJSONFraming, reader=Echo)

ECHO = Provider(interfaces=(Interface(("echo",), _STREAM, (r"/_plugins/_ml/echo\?",)),))
