"""JSON scalars as text: the strings that a document holds, whatever scalar its author wrote for them.

A name, a header or a credential may be given as a number or a boolean. ML Commons keeps the text that was written, so
that the header `1.10` is not sent as `1.1`, nor `true` as `True`.
"""

from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest


class WrittenNumber(float):
    """A number whose text Python would write differently, such as 0.10 or 1e3. It counts and is stored as any other."""

    __slots__ = ("text",)
    text: str


def parse_number(text: str) -> float:
    """Return a number with a fraction or an exponent; a WrittenNumber if its text would be lost."""
    value = float(text)
    if repr(value) == text:
        return value
    number = WrittenNumber(value)
    number.text = text
    return number


def scalar_text(value: Any, name: str) -> str:
    """Return a string as it is, a number or boolean as JSON has it. InvalidRequest for null, an object, an array."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, WrittenNumber):
        return value.text
    if isinstance(value, int | float):
        return str(value)
    raise InvalidRequest(f"{name} must be a string")


def scalar_texts(values: dict[str, Any], name: str) -> dict[str, str]:
    """Return an object whose values are scalars with these as text. InvalidRequest names the first that is none."""
    return {key: scalar_text(value, f"{name}.{key}") for key, value in values.items()}
