"""The streams that the provider sends, by the API that it speaks: all of their bytes but a chunk's number and time."""

from dataclasses import dataclass

from bench.traffic.stream_plan import MARKER_LENGTH

PADDED_PATH = "/padded"
"""How the paths begin at which each event has a padding of its own, as OpenAI's have."""

_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
_END_OF_EVENT = b"}\n\n"


@dataclass(frozen=True, slots=True)
class StreamForm:
    """The events that a stream begins and ends with, and one of text: its bytes before the text and after it.

    Events of text have the `paddings` in turn as their last members.
    """

    begin: bytes
    before_text: bytes
    after_text: bytes
    end: bytes
    paddings: tuple[bytes, ...] = (b"",)

    def first(self) -> bytes:
        """The response's head and the events before the text."""
        return _HEAD + _http_chunk(self.begin)

    def chunks(self, text: int) -> tuple[bytes, ...]:
        """Chunks to be filled in with their numbers and times, and taken in turn: `chunks(30)[0] % (number, ns)`."""
        filled = self.before_text + b"~" * MARKER_LENGTH + b"x" * (text - MARKER_LENGTH) + self.after_text
        padded = [filled.removesuffix(_END_OF_EVENT) + padding + _END_OF_EVENT for padding in self.paddings]
        return tuple(_http_chunk(event).replace(b"~" * MARKER_LENGTH, b"~%06dt%019d~") for event in padded)

    def last(self) -> bytes:
        """The events after the text and the end of the body."""
        return _http_chunk(self.end) + b"0\r\n\r\n"


def form_of(path: str) -> StreamForm:
    """The form of the streams at a path."""
    if path.endswith("/messages"):
        return ANTHROPIC
    return PADDED if path.startswith(PADDED_PATH) else OPENAI


def _http_chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


_CHAT_EVENT = (
    b'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench",'
    b'"service_tier":"default","system_fingerprint":"fp_bench","choices":[%b]%b}\n\n'
)
_CHAT_USAGE = b',"usage":{"prompt_tokens":9,"completion_tokens":200,"total_tokens":209}'
_PADDINGS = tuple(b',"obfuscation":"%b"' % b"aW9uNGt4cQ5zR2vL"[:length] for length in range(1, 17))


def _chat_event(delta: bytes, finish: bytes = b"null") -> bytes:
    return _CHAT_EVENT % (b'{"index":0,"delta":{%b},"logprobs":null,"finish_reason":%b}' % (delta, finish), b"")


def _chat(paddings: tuple[bytes, ...]) -> StreamForm:
    before, after = _chat_event(b'"content":"|"').split(b"|")
    begin = _chat_event(b'"role":"assistant","content":"","refusal":null')
    end = _chat_event(b"", b'"stop"') + _CHAT_EVENT % (b"", _CHAT_USAGE) + b"data: [DONE]\n\n"
    return StreamForm(begin, before, after, end, paddings)


def _message_event(kind: bytes, members: bytes) -> bytes:
    return b'event: %b\ndata: {"type":"%b"%b}\n\n' % (kind, kind, members)


def _messages() -> StreamForm:
    message = (
        b',"message":{"id":"msg_bench","type":"message","role":"assistant","model":"bench","content":[],'
        b'"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}'
    )
    start = b',"index":0,"content_block":{"type":"text","text":""}'
    delta = b',"index":0,"delta":{"type":"text_delta","text":"|"}'
    stop = b',"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":200}'
    before, after = _message_event(b"content_block_delta", delta).split(b"|")
    return StreamForm(
        _message_event(b"message_start", message) + _message_event(b"content_block_start", start),
        before,
        after,
        _message_event(b"content_block_stop", b',"index":0')
        + _message_event(b"message_delta", stop)
        + _message_event(b"message_stop", b""),
    )


OPENAI = _chat((b"",))
PADDED = _chat(_PADDINGS)
ANTHROPIC = _messages()
