r"""The texts of a JSON payload that a guardrail checks: as they are sent, and as their reader will see them.

ML Commons checks the payload alone. There a JSON escape hides a word (`\u0062omb` is "bomb" to the provider), and so
does a text that is divided over the parts of a message's content. Dialects join some of these with a line break between
them, so what a client says of a conversation is read as well, as it is before a dialect writes it: `said`, JSON text.
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.predict.guardrails.patterns import GuardPattern

MAX_LEVELS = 8  # of JSON in strings of JSON; the arguments of a tool call are one

# What nothing ends goes on to the end of the text, so that no character is read twice.
_STRING = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)(?:"|\\?\Z)', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_TEXTS, _DATA, _REASONING = frozenset({"text", "refusal"}), frozenset({"data"}), frozenset({"thinking"})
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def refusing_pattern(patterns: Sequence[GuardPattern], payload: str, said: str = "") -> int | None:
    """Return the index of the first pattern that refuses one of the payload's texts. Errors as `payload_texts`."""
    for text in payload_texts(payload, said):
        encoded = text.encode()
        for index, pattern in enumerate(patterns):
            if pattern.refuses(encoded):
                return index
    return None


def payload_texts(payload: str, said: str = "") -> Iterator[str]:
    """Yield the payload, each string in it decoded, and the joined text parts of each message; then those of `said`.

    So too of a string that holds strings itself: JSON, as of a tool call's arguments, or what looks like it. A text
    comes once. UpstreamError if the payload is nested too deeply to be read.
    """
    yield payload
    seen: set[str] = set()
    for text, _ in chain(_texts_in(payload, MAX_LEVELS), _texts_in(said, MAX_LEVELS)):
        if text not in seen:
            seen.add(text)
            yield text


def readable_text(payload: str, said: str = "") -> str:
    """Return the payload, followed by a line for each text that cannot be read in it as it is, or is joined in `said`.

    For readers of text: guard models, and queries for stop words. Errors as `payload_texts`.
    """
    hidden = (text for text, is_hidden in _texts_in(payload, MAX_LEVELS) if is_hidden)
    return "\n".join(dict.fromkeys(chain([payload], hidden, _joined_parts(said))))


def _texts_in(text: str, levels: int) -> Iterator[tuple[str, bool]]:
    """Yield the texts in a text, with whether they cannot be read in it as it is."""
    if not levels:
        raise _too_deep()
    for match in _STRING.finditer(text):
        written = match[1]
        if "\\" not in written:
            yield written, False
            continue
        decoded = _decode(written)
        yield decoded, True
        if '"' in decoded:
            yield from _texts_in(decoded, levels - 1)
    for joined in _joined_parts(text):
        yield joined, True


def _decode(written: str) -> str:
    """Return a string without its escapes; of those that JSON does not know, what stands behind the backslash."""
    try:
        return _well_formed(json.loads(f'"{written}"', strict=False))
    except ValueError:
        decoded = _ESCAPE.sub(_unescaped, written)
        return decoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else _ESCAPED.get(escape[2], escape[2])


def _well_formed(text: str) -> str:
    """Return the text without halves of characters, which an escape in JSON may be and UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()


def _joined_parts(payload: str) -> Iterator[str]:
    """Yield the text of each array with several parts of text: objects with a string `text`, or strings in `content`.

    Parts of reasoning are joined for themselves; documents of plain text with the texts beside them, which are joined
    without them too. Other arrays of strings are texts of their own, as those to be embedded.
    """
    for value in _parse(payload):
        pending = [("", value)] if isinstance(value, list | tuple) else []
        while pending:
            name, node = pending.pop()
            if isinstance(node, tuple):
                pending += [pair for pair in node if isinstance(pair[1], list | tuple)]
                continue
            is_content = name == "content"
            kinds = (tuple, str) if is_content else tuple
            parts = [part for part in node if isinstance(part, kinds)]
            if len(parts) > 1:
                yield from _joined(parts, is_content=is_content)
            pending += [("", item) for item in node if isinstance(item, list | tuple)]


def _joined(parts: Sequence[Any], *, is_content: bool) -> Iterator[str]:
    """Yield what several of the parts of a message say together: its texts, these with documents, its reasoning."""
    for read in (_content_text if is_content else _text_of, _text_or_document, _reasoning_of):
        texts = [text for text in map(read, parts) if text is not None]
        if len(texts) > 1:
            yield _well_formed("".join(texts))


def _text_of(part: Any) -> str | None:
    return _string_member(part, _TEXTS)


def _content_text(part: Any) -> str | None:
    return part if isinstance(part, str) else _text_of(part)


def _text_or_document(part: Any) -> str | None:
    """Return a part's text, or that of a document as Anthropic has it: `{"source": {"type": "text", "data": TEXT}}`."""
    if not isinstance(part, tuple):
        return None
    sources = (value for name, value in part if name == "source" and ("type", "text") in _pairs(value))
    return _text_of(part) or next((_string_member(source, _DATA) for source in sources), None)


def _reasoning_of(part: Any) -> str | None:
    return _string_member(part, _REASONING)


def _string_member(value: Any, names: frozenset[str]) -> str | None:
    return next((text for name, text in _pairs(value) if name in names and isinstance(text, str)), None)


def _pairs(value: Any) -> tuple[tuple[str, Any], ...]:
    return value if isinstance(value, tuple) else ()


def _parse(payload: str) -> Iterator[Any]:
    """Yield the value of a JSON payload, or of each of its lines: arrays as lists, objects as tuples of pairs."""
    try:
        try:
            yield _DECODER.decode(payload)
        except json.JSONDecodeError:
            for line in payload.splitlines():
                if line.strip():
                    yield _DECODER.decode(line)
    except json.JSONDecodeError:
        return  # no JSON, so there are no parts in it
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> UpstreamError:
    return UpstreamError("the payload is nested too deeply to be checked")


# Pairs, so that a name that stands twice hides nothing; numbers as floats, which may have any number of digits.
_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_int=float, strict=False)
