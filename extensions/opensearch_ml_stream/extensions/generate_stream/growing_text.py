"""Wire format of `/generate-stream`: every event repeats the text before it, as the servers of vLLM's tutorials do.

    data: {"text": "all so far"}

    data: [DONE]

If each token repeated the text, a text of n bytes would cost more than n * n / 2 bytes. So an upstream read is one
event, and a long text is only sent again when it has grown by 1/256: a text of up to 256 bytes with every read, one of
10,000 bytes with every 40 new bytes. In all, at most 257 bytes are sent for each byte of the text.
"""

from collections.abc import Callable
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunks, Ending, TextRun, to_chunk_list
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.wire_format import WireFormat

MAX_TEXT_BYTES = 1_000_000  # of a response, some 250,000 tokens
_LEAST_GROWTH = 256  # an event each time that the text has grown by 1/256
_ID = b"id: 1\n"


class GrowingText(WireFormat):
    """The format of one stream. Reasoning, tool calls and further outputs are not part of the text.

    With `event_id` the first event has an id. A browser's EventSource opens its URL again when the body ends, and sends
    the last event's id in `Last-Event-ID`, so a server can tell that the response was made and paid for. Without it a
    blank line follows each comment, since hand-written readers split the body at blank lines; with it none does, since
    some readers (httpx-sse) would take that for an event without data.

    `too_long` is called once, when the text passes MAX_TEXT_BYTES; what comes after it is dropped.
    """

    content_type = "text/event-stream"

    def __init__(self, too_long: Callable[[], None], *, event_id: bool = False) -> None:
        self._too_long = too_long
        self._text = bytearray()  # the inside of a JSON string
        self._sent = 0  # how much of it the last event held
        self._id = _ID if event_id else b""
        self._comment_end = b"\n" if event_id else b"\n\n"
        self._is_full = False

    @property
    def heartbeat(self) -> bytes:
        """A comment; before the first event that has an id, an event with that id and no text yet."""
        return self._id + b'data: {"text": ""}\n\n' if self._id else b": ping" + self._comment_end

    def chunks(self, chunks: Chunks) -> bytes:
        """Encode the text with all chunks of one upstream read, or a comment if it has grown by too little."""
        if not self._is_full:
            self._grow(chunks)
            if len(self._text) > MAX_TEXT_BYTES:
                self._is_full = True
                self._too_long()
        unsent = len(self._text) - self._sent
        if not self._id and (not unsent or unsent * _LEAST_GROWTH < len(self._text)):
            return b":" + self._comment_end
        return self._event(b"")

    def last(self, chunks: Chunks, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode the whole text, if it was not sent yet, and the end."""
        self._grow(chunks)
        return self.ending(ending, extra)

    def ending(self, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode the end.

        A response that is not whole says why, as `finish_reason` beside its text: there is no place for it in `[DONE]`.
        """
        reason = b"" if ending.finish_reason == "stop" else b', "finish_reason": ' + orjson.dumps(ending.finish_reason)
        event = self._event(reason) if reason or len(self._text) > self._sent else b""
        return event + self._take_id() + b"data: [DONE]\n\n"

    def error(self, error: MLStreamError) -> bytes:
        """Encode the error beside the text so far, so that a client that reads the text alone goes on showing it.

        No `[DONE]` follows: the response is not done.
        """
        return self._event(b', "error": %b, "status": %d' % (orjson.dumps(error.reason), error.status))

    def _grow(self, chunks: Chunks) -> None:
        if isinstance(chunks, TextRun):
            self._text += chunks.replace(TextRun.SEPARATOR, b"")
        else:
            for chunk in to_chunk_list(chunks):
                self._text += orjson.dumps(chunk.text)[1:-1]

    def _event(self, members: bytes) -> bytes:
        self._sent = len(self._text)
        return b"".join([self._take_id(), b'data: {"text": "', self._text, b'"', members, b"}\n\n"])

    def _take_id(self) -> bytes:
        event_id, self._id = self._id, b""
        return event_id
