"""A provider's stream behind its model's output guardrail: text is passed on once the guardrail has accepted it.

Patterns hold back the last characters, or the whole text (see `stream_filters`). Stop words and guard models hold text
to the end of a sentence, and check each sentence together with the one before. Text and reasoning are held separately.
Tool calls are held to the end of the stream and checked as a payload is, since their arguments are JSON. A runtime's
further outputs are passed on with the text they came with, and those that hold text are checked as a payload is.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, ToolCall, to_chunk_list
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.predict.guardrails.configuration import Guard, LocalGuard
from opensearch_ml_stream.connectors.predict.guardrails.stream_filters import (
    HeldToolCalls,
    PatternFilter,
    SentenceCutter,
)
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.predictions.guardrail_checks import GuardrailChecks, pattern_name
from opensearch_ml_stream.plugin.predictions.provider_stream import ProviderStream

_NOTHING = Chunk()


class GuardedStream:
    """Chunks that the output guardrail has accepted, then one outcome.

    When text is refused, all that is held is dropped, and the outcome is an Ending with finish reason `content_filter`
    that names the guardrail. A guardrail that does not respond is an UpstreamError.
    """

    __slots__ = (
        "_checks", "_guard", "_has_refused", "_outputs", "_reasoning", "_signature", "_stream", "_text", "_tool_calls",
        "outcome",
    )  # fmt: skip

    def __init__(self, stream: ProviderStream, guard: Guard, checks: GuardrailChecks, held: int) -> None:
        self._stream = stream
        self._guard = guard
        self._checks = checks
        self._text = _Channel(guard, checks, held)
        self._reasoning = _Channel(guard, checks, held)
        self._tool_calls = HeldToolCalls()
        self._outputs = _HeldOutputs()
        self._signature = ""  # of the reasoning, which may be let go until the end
        self._has_refused = False  # the model refuses in the text from here on
        self.outcome: Ending | MLStreamError | None = None

    @property
    def chunks(self) -> int:
        """How many chunks have come from the provider so far."""
        return self._stream.chunks

    @property
    def first_chunk(self) -> float | None:
        """When the provider's first chunk came (CLOCK_MONOTONIC), None before."""
        return self._stream.first_chunk

    def on_first_chunk(self, tell: Callable[[], None]) -> None:
        """Call this when the provider's first chunk comes, or now if it has come."""
        self._stream.on_first_chunk(tell)

    def terminal_fields(self, ending: Ending) -> dict[str, Any]:
        """Return what the terminal object says beside the stream's ending."""
        return self._stream.terminal_fields(ending)

    async def read(self) -> Chunks:
        """Return the next chunks; none only if the outcome is set."""
        while self.outcome is None:
            try:
                chunk = await self._read_accepted()
            except _Refused as refused:
                ending = self._stream.outcome
                ending = ending if isinstance(ending, Ending) else Ending()
                self.outcome = replace(ending, finish_reason="content_filter", guardrail=refused.guardrail)
            except MLStreamError as error:
                self.outcome = error
            else:
                self.outcome = self._stream.outcome
                if chunk != _NOTHING:
                    return [chunk]
        return []

    async def pump(self, encode: Callable[[Chunks], bytes], write: Callable[[bytes], bool]) -> Chunks:
        """Encode and write chunks as they come, until `write` returns False or the outcome is set.

        Returns the chunks that came with the outcome; those are not written.
        """
        while True:
            chunks = await self.read()
            if self.outcome is not None:
                return chunks
            if not write(encode(chunks)):
                return []

    async def _read_accepted(self) -> Chunk:
        """Read once, and return what the guardrail releases now."""
        chunks = to_chunk_list(await self._stream.read())
        has_ended = self._stream.outcome is not None
        for chunk in chunks:
            self._tool_calls.add(chunk.tool_calls)
            self._signature += chunk.signature
            self._has_refused = self._has_refused or bool(chunk.refusal)
            self._outputs.add(chunk)
        text = await self._text.accepted("".join([chunk.text for chunk in chunks]), has_ended)
        reasoning = await self._reasoning.accepted("".join([chunk.reasoning for chunk in chunks]), has_ended)
        outputs = self._outputs.released(text)
        for output in outputs:
            if output.get("datatype") == "BYTES":
                _raise_if_refused(await self._checks.payload_refused_by(self._guard, jsontext.dumps(output)))
        calls = await self._accepted_tool_calls() if has_ended else ()
        refusal = text if self._has_refused else ""
        return Chunk(text, reasoning, calls, outputs, self._signature if has_ended else "", refusal)

    async def _accepted_tool_calls(self) -> tuple[ToolCall, ...]:
        calls = self._tool_calls.joined()
        for call in calls:
            arguments = jsontext.dumps(call.arguments) if call.is_text else call.arguments or "null"
            payload = f'{{"name":{jsontext.dumps(call.name)},"arguments":{arguments}}}'
            _raise_if_refused(await self._checks.payload_refused_by(self._guard, payload))
        return calls


class _HeldOutputs:
    """A runtime's further outputs, held until the text of the same responses has been passed on."""

    __slots__ = ("_held", "_text_came", "_text_gone")

    def __init__(self) -> None:
        self._held: deque[tuple[int, Mapping[str, Any]]] = deque()  # with the length of the text up to them
        self._text_came = 0
        self._text_gone = 0

    def add(self, chunk: Chunk) -> None:
        """Add those of a chunk."""
        self._text_came += len(chunk.text)
        self._held.extend((self._text_came, output) for output in chunk.outputs)

    def released(self, text: str) -> tuple[Mapping[str, Any], ...]:
        """Return the outputs that may be passed on with this text."""
        self._text_gone += len(text)
        released: list[Mapping[str, Any]] = []
        while self._held and self._held[0][0] <= self._text_gone:
            released.append(self._held.popleft()[1])
        return tuple(released)


class _Refused(Exception):
    """Raised with the name of the guardrail that refuses a text."""

    def __init__(self, guardrail: str) -> None:
        self.guardrail = guardrail


class _Channel:
    """One of a stream's two texts, filtered by the guardrail."""

    __slots__ = ("_checked", "_checks", "_guard", "_is_used", "_patterns", "_sentences")

    def __init__(self, guard: Guard, checks: GuardrailChecks, held: int) -> None:
        self._guard = guard
        self._checks = checks
        self._patterns = PatternFilter(guard.regex, held) if isinstance(guard, LocalGuard) and guard.regex else None
        self._sentences = None if isinstance(guard, LocalGuard) and not guard.stop_words else SentenceCutter()
        self._checked = ""  # the sentences that were checked last
        self._is_used = False

    async def accepted(self, text: str, is_last: bool) -> str:
        """Return the part of the text so far that may be passed on now."""
        self._is_used = self._is_used or bool(text)
        if not self._is_used:  # a pattern may match an empty text
            return ""
        if self._patterns is not None:
            text = self._patterns.feed(text) + (self._patterns.close() if is_last else "")
            if self._patterns.refused_by is not None:
                raise _Refused(pattern_name(self._patterns.refused_by))
        if self._sentences is not None:
            text = self._sentences.feed(text) + (self._sentences.close() if is_last else "")
            await self._check_sentences(text)
        return text

    async def _check_sentences(self, text: str) -> None:
        if text and not text.isspace():
            _raise_if_refused(await self._checks.text_refused_by(self._guard, self._checked + text))
            self._checked = text


def _raise_if_refused(guardrail: str | None) -> None:
    if guardrail is not None:
        raise _Refused(guardrail)
