"""`${parameters.x}` templates, compiled once per connector version and filled per request.

A place is *quoted* when it stands inside a JSON string of the template, and *bare* otherwise:

    "${parameters.x}"            any value, JSON-escaped
    ${parameters.x}              JSON only: a number, list, object ..., or a string whose whole text is JSON
    ${parameters.x:-default}     the default is template text, put in as it is
    "${parameters.x:-null}"      with its quotes: null when x is absent or null

Where this departs from ML Commons (design: its users report these as defects): a request's value is never
substituted again; a string at a quoted place is always escaped, also when it looks like JSON; a string at a bare
place must be JSON; escaping is plain JSON. A *connector's* parameter may itself hold placeholders; those are filled
with text inside text, and with JSON inside JSON.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext

_PLACEHOLDER = re.compile(r"(\$)?\$\{parameters\.([^\s{}:]+?)(?::-([^}]*))?\}")
_STRING_EDGE = re.compile(r'\\.|"', re.DOTALL)
_TO_STRING = ".toString()"


@dataclass(frozen=True, slots=True)
class Placeholder:
    name: str
    default: str | None
    quoted: bool
    or_null: bool = False  # `"${parameters.x:-null}"`, whose quotes belong to the placeholder


class Missing(InvalidRequest):
    """Placeholders without a value; `names` in order of appearance."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        super().__init__(f"Some parameter placeholder not filled in payload: {', '.join(self.names)}")


class Parameters:
    """A request's parameters over a connector's. Request values are final; connector values are templates."""

    def __init__(self, connector: "ConnectorParameters", request: Mapping[str, str]) -> None:
        self.connector = connector
        self.request = request

    def get(self, name: str, default: str | None = None) -> str | None:
        """The value as text, or `default`."""
        found = self.text(name, ())
        return default if found is None else found

    def text(self, name: str, within: tuple[str, ...]) -> str | None:
        """The value as text; a connector's value with its own placeholders filled with text."""
        if name in self.request:
            return self.request[name]
        if name not in self.connector.values and name.endswith(_TO_STRING):
            return self.text(name.removesuffix(_TO_STRING), within) if within else None
        template = self.connector.templates.get(name)
        if template is None:
            return self.connector.values.get(name)
        return template.text.render_text(self, _deeper(name, within))

    def json(self, name: str, within: tuple[str, ...]) -> str | None:
        """The value as JSON text; InvalidRequest names the parameter if it is other text."""
        if name not in self.request and (template := self.connector.templates.get(name)) is not None:
            return template.json.render_json(self, _deeper(name, within))
        value = self.text(name, within)
        if value is None or isinstance(value, jsontext.JsonText) or jsontext.is_json(value):
            return value
        raise InvalidRequest(
            f"Parameter [{name}] stands at a place without quotes in the connector's template, so it must be JSON"
        )


@dataclass(frozen=True)
class _ValueTemplate:
    """A connector parameter that holds placeholders, read both ways."""

    source: str

    @cached_property
    def text(self) -> "Template":
        return Template.compile(self.source, json=False)

    @cached_property
    def json(self) -> "Template":
        return Template.compile(self.source)


@dataclass(frozen=True, slots=True)
class ConnectorParameters:
    """A connector's parameters, those with placeholders compiled."""

    values: Mapping[str, str]
    templates: Mapping[str, _ValueTemplate] = field(default_factory=dict)

    @classmethod
    def compile(cls, values: Mapping[str, str]) -> "ConnectorParameters":
        templates = {name: _ValueTemplate(value) for name, value in values.items() if "${parameters." in value}
        return cls(values, templates)


@dataclass(frozen=True, slots=True)
class Template:
    """Literals and placeholders in turn: `literals[0] placeholders[0] literals[1] ...`."""

    literals: tuple[str, ...]
    placeholders: tuple[Placeholder, ...]

    @classmethod
    def compile(cls, source: str, *, json: bool = True) -> "Template":
        """`json` is false for what is no JSON: a URL, a header. There, all places are quoted (plain text)."""
        literals: list[str] = []
        placeholders: list[Placeholder] = []
        start = 0
        quoted = False
        for found in _PLACEHOLDER.finditer(source):
            literal = source[start : found.start() + len(found[1] or "")]
            quoted = _ends_in_string(literal, quoted) if json else True
            start = found.end()
            or_null = (
                json and found[3] == "null" and literal.endswith('"') and quoted and source[start : start + 1] == '"'
            )
            if or_null:
                literal = literal[:-1]
                start += 1
                quoted = False
            if found[1]:  # `$${...}` is the text `${...}`, which then counts as not filled
                placeholders.append(Placeholder(found[2], None, quoted))
            else:
                placeholders.append(Placeholder(found[2], found[3], quoted or or_null, or_null))
            literals.append(literal)
        literals.append(source[start:])
        return cls(tuple(literals), tuple(placeholders))

    def render_json(self, parameters: Parameters, within: tuple[str, ...] = ()) -> str:
        """The filled JSON text; Missing or InvalidRequest names what is wrong."""
        values = []
        for placeholder in self.placeholders:  # a loop: a comprehension would be a frame at each level of a template
            values.append(_json_value(placeholder, parameters, within))  # noqa: PERF401
        return self._fill(values)

    def render_text(self, parameters: Parameters, within: tuple[str, ...] = ()) -> str:
        """The filled text, no escaping."""
        return self._fill(
            [
                placeholder.default if (value := parameters.text(placeholder.name, within)) is None else value
                for placeholder in self.placeholders
            ]
        )

    def map_literals(self, change: Callable[[str], str]) -> "Template":
        """The same template with its own text changed: what `change` puts in is never read as a placeholder."""
        return Template(tuple(change(literal) for literal in self.literals), self.placeholders)

    def _fill(self, values: list[str | None]) -> str:
        parts = [self.literals[0]]
        missing: list[str] = []
        for placeholder, value, literal in zip(self.placeholders, values, self.literals[1:], strict=True):
            if value is None:
                missing.append(placeholder.name)
            else:
                parts.append(value)
            parts.append(literal)
        if missing:
            raise Missing(missing)
        return "".join(parts)


def fill_with_stand_ins(
    source: str, connector: ConnectorParameters, request: Mapping[str, str], stand_in: Callable[[str], str]
) -> str:
    """Fill text such as a URL; each parameter that neither side gives becomes `stand_in(name)`."""
    template = Template.compile(source, json=False)
    values = dict(request)
    while True:
        try:
            return template.render_text(Parameters(connector, values))
        except Missing as missing:
            values |= {name: stand_in(name) for name in missing.names}


def _json_value(placeholder: Placeholder, parameters: Parameters, within: tuple[str, ...]) -> str | None:
    if not placeholder.quoted:
        value = parameters.json(placeholder.name, within)
        return placeholder.default if value is None else value
    value = parameters.text(placeholder.name, within)
    if placeholder.or_null:
        absent = value is None or (value == "null" and isinstance(value, jsontext.JsonText))
        return "null" if absent else f'"{jsontext.escape(str(value))}"'
    return placeholder.default if value is None else jsontext.escape(value)


def _ends_in_string(text: str, inside: bool) -> bool:
    for edge in _STRING_EDGE.finditer(text):
        if edge[0] == '"':
            inside = not inside
    return inside


def _deeper(name: str, within: tuple[str, ...]) -> tuple[str, ...]:
    if name in within:
        raise InvalidRequest(
            f"Infinite loop in property interpolation of parameters.{name}: {'->'.join([*within, name])}"
        )
    return (*within, name)
