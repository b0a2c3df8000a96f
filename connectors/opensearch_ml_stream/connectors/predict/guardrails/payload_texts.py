r"""The texts of a JSON payload that a guardrail checks: as it is sent, and as its reader will see it.

ML Commons checks the payload alone. There a JSON escape hides a word (`\u0062omb` is "bomb" to the provider), and so
does a text that is divided over the parts of a message's content.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.predict.guardrails.patterns import GuardPattern

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)


def refusing_pattern(patterns: Sequence[GuardPattern], payload: str) -> int | None:
    """Return the index of the first pattern that refuses one of the payload's texts. Errors as `payload_texts`."""
    for text in payload_texts(payload):
        encoded = text.encode()
        for index, pattern in enumerate(patterns):
            if pattern.refuses(encoded):
                return index
    return None


def payload_texts(payload: str) -> Iterator[str]:
    """Yield the payload, each string in it decoded, and the joined text parts of each message.

    UpstreamError if the payload is nested too deeply to be read.
    """
    yield payload
    for match in _STRING.finditer(payload):
        token = match[0]
        yield _decode(token) if "\\" in token else token[1:-1]
    yield from _joined_parts(payload)


def readable_text(payload: str) -> str:
    """Return the payload, followed by a line for each text that cannot be read in it as it is.

    For readers of text: guard models, and queries for stop words. Errors as `payload_texts`.
    """
    hidden = [_decode(match[0]) for match in _STRING.finditer(payload) if "\\" in match[0]]
    return "\n".join([payload, *hidden, *_joined_parts(payload)])


def _decode(token: str) -> str:
    try:
        return _well_formed(json.loads(token, strict=False))
    except ValueError:
        return token[1:-1]


def _well_formed(text: str) -> str:
    """Return the text without halves of characters, which an escape in JSON may be and UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()


def _joined_parts(payload: str) -> Iterator[str]:
    """Yield the text of each array with several parts of text: objects with a string `text`, or strings in `content`.

    Other arrays of strings are texts of their own, as those to be embedded.
    """
    for value in _parse(payload):
        pending = [("", value)] if isinstance(value, list | tuple) else []
        while pending:
            name, node = pending.pop()
            if isinstance(node, tuple):
                pending += [pair for pair in node if isinstance(pair[1], list | tuple)]
                continue
            read = _content_text if name == "content" else _text_of
            texts = [text for text in map(read, node) if text is not None]
            if len(texts) > 1:
                yield _well_formed("".join(texts))
            pending += [("", item) for item in node if isinstance(item, list | tuple)]


def _text_of(part: Any) -> str | None:
    if not isinstance(part, tuple):
        return None
    return next((text for name, text in part if name == "text" and isinstance(text, str)), None)


def _content_text(part: Any) -> str | None:
    return part if isinstance(part, str) else _text_of(part)


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
        raise UpstreamError("the payload is nested too deeply to be checked") from None


# Pairs, so that a name that stands twice hides nothing; numbers as floats, which may have any number of digits.
_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_int=float, strict=False)
