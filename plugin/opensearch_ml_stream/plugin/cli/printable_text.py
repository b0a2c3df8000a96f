"""Text of models and servers as a terminal may have it: nothing in it moves the cursor, or is more than text."""

import re

# No quotes are taken for a part of one, though they may be: a shell's quoted words have to stay quoted.
_SEQUENCE = r"\x1b\[[0-?]*[ !#-&(-/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
# Also what turns the direction of writing around: code that is shown would not be the code that is copied.
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f\ud800-\udfff]"
_UNWANTED = re.compile(f"{_SEQUENCE}|{_CONTROL}")
_CONTROL_CHARACTER = re.compile(_CONTROL)
_BREAKS = re.compile(r"[\t-\r\x85\u2028\u2029]+")


def printable(text: str) -> str:
    """Return a text without escape sequences and control characters; tabs and line breaks stay.

    Of a sequence that is cut between two texts what remains is letters, as no text keeps the character that begins it.
    """
    return _UNWANTED.sub("", text)


def printable_json(text: str) -> str:
    """Return JSON text with the control characters that it may hold as they are written as JSON's escapes."""
    return _CONTROL_CHARACTER.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    """Return a text with a space for each of its line breaks and tabs, or for several in a row."""
    return _BREAKS.sub(" ", text)
