"""Text of models and servers as a terminal may have it: nothing in it moves the cursor, or is more than text."""

import re

_SEQUENCE = r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
# Also what turns the direction of writing around: code that is shown would not be the code that is copied.
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
_UNWANTED = re.compile(f"{_SEQUENCE}|{_CONTROL}")


def printable(text: str) -> str:
    """Return a text without escape sequences and control characters; tabs and line breaks stay."""
    return _UNWANTED.sub("", text)
