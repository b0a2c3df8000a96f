"""Looks for planted secrets in everything that was written, by other means than the sidecar's own redaction."""

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import httpx

_PIECE = 12
_ESCAPE = re.compile(rb"\\+(?:u00|x)([2-7][0-9a-f])|%([2-7][0-9a-f])|&#x([2-7][0-9a-f]);|&#([0-9]{2,3});")


def traces(secrets: tuple[str, ...], data: bytes) -> list[str]:
    """The pieces of secrets that the data holds, in any form, and where."""
    lower = data.lower()
    plain = lower
    for _ in range(3):
        plain = _ESCAPE.sub(_unescaped, plain).lower()
    return [
        f"{piece.decode()} at {position}: {text[max(0, position - 40) : position + 60]!r}"
        for secret in secrets
        for piece in _pieces(secret)
        for text in dict.fromkeys((lower, plain))
        if (position := text.find(piece)) >= 0
    ]


def _unescaped(match: re.Match[bytes]) -> bytes:
    digits = match[1] or match[2] or match[3]
    return bytes.fromhex(digits.decode()) if digits else bytes([int(match[4]) % 256])


def _pieces(secret: str) -> Iterator[bytes]:
    data = secret.encode()
    for start in range(len(data) - _PIECE + 1):
        piece = data[start : start + _PIECE]
        yield piece.lower()
        yield piece.hex().encode()
        for before in range(3):
            text = base64.b64encode(b"\0" * before + piece)
            inner = text[-(-8 * before // 6) : 8 * (before + len(piece)) // 6].lower()
            yield inner
            yield inner.replace(b"+", b"-").replace(b"/", b"_")


def written_in(response: httpx.Response) -> bytes:
    """All that a client sees of a response."""
    head = "\n".join(f"{name}: {value}" for name, value in response.headers.multi_items())
    return f"{response.status_code}\n{head}\n\n".encode() + response.content


def written_below(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Each file below a folder, with what it holds now."""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            yield file, file.read_bytes()


def command_lines(pid: int) -> Iterator[bytes]:
    """The command lines of a process and of those that it started, as `ps` shows them."""
    yield Path(f"/proc/{pid}/cmdline").read_bytes()
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from command_lines(int(child))
