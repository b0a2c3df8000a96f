"""Templates with `${parameters.x}` placeholders, compiled once per connector version and filled for each request.

A placeholder is *quoted* if it stands inside a JSON string of the template, *bare* otherwise:

    "${parameters.x}"            any value, escaped as JSON
    ${parameters.x}              JSON only: a number, array, object ..., or a string whose whole content is JSON
    ${parameters.x:-default}     the default is part of the template and is put in as it is
    "${parameters.x:-null}"      replaced with its quotes: null if x is absent or null

Differences from ML Commons, whose users report its ways as defects: a request's value is never substituted again; a
string at a quoted placeholder is always escaped, even if it looks like JSON; a string at a bare placeholder must be
JSON; escaping is plain JSON. The value of a *connector's* parameter may itself hold placeholders. Inside it they are
filled unescaped if the value is used as text, as JSON if it is used as JSON.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext

PLACEHOLDER_PATTERN = r"\$\{parameters\.([^\s{}:]+?)(?::-([^}]*))?\}"  # groups: name, default

_PLACEHOLDER = re.compile(rf"(\$)?{PLACEHOLDER_PATTERN}")
_STRING_EDGE = re.compile(r'\\.|"', re.DOTALL)
_TO_STRING = ".toString()"


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One `${parameters.name}` of a template. `or_null` is set for `"${parameters.x:-null}"`, which owns its quotes."""

    name: str
    default: str | None
    quoted: bool
    or_null: bool = False


class UnfilledPlaceholders(InvalidRequest):
    """Placeholders have neither a value nor a default; `names` holds them in order of appearance."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        super().__init__(f"Some parameter placeholder not filled in payload: {', '.join(self.names)}")


class Parameters:
    """A request's parameters over a connector's. Request values are final, connector values may hold placeholders.

    `enclosing` holds the names of the connector parameters whose values are being filled, outermost first.
    """

    def __init__(self, connector: "ConnectorParameters", request: Mapping[str, str]) -> None:
        self.connector = connector
        self.request = request

    def get(self, name: str, default: str | None = None) -> str | None:
        """Return the value as text, `default` if neither side has it."""
        value = self.text(name, ())
        return default if value is None else value

    def text(self, name: str, enclosing: tuple[str, ...]) -> str | None:
        """Return the value as text, with the placeholders of a connector's value filled with text; None if absent."""
        if name in self.request:
            return self.request[name]
        if name not in self.connector.values and name.endswith(_TO_STRING):
            return self.text(name.removesuffix(_TO_STRING), enclosing) if enclosing else None
        template = self.connector.templates.get(name)
        if template is None:
            return self.connector.values.get(name)
        return template.text.render_text(self, _enter(name, enclosing))

    def json(self, name: str, enclosing: tuple[str, ...]) -> str | None:
        """Return the value as JSON text, None if absent. InvalidRequest names the parameter if it is not JSON."""
        if name not in self.request and (template := self.connector.templates.get(name)) is not None:
            return template.json.render_json(self, _enter(name, enclosing))
        value = self.text(name, enclosing)
        if value is None or isinstance(value, jsontext.JsonText) or jsontext.is_json(value):
            return value
        raise InvalidRequest(
            f"Parameter [{name}] has a placeholder without quotes in the connector's template, so it must be JSON"
        )


@dataclass(frozen=True)
class _ValueTemplate:
    """The value of a connector parameter that holds placeholders, compiled as text and as JSON when it is needed."""

    source: str

    @cached_property
    def text(self) -> "Template":
        return Template.compile(self.source, json=False)

    @cached_property
    def json(self) -> "Template":
        return Template.compile(self.source)


@dataclass(frozen=True, slots=True)
class ConnectorParameters:
    """A connector's parameters, with a template for each value that holds placeholders."""

    values: Mapping[str, str]
    templates: Mapping[str, _ValueTemplate] = field(default_factory=dict)

    @classmethod
    def compile(cls, values: Mapping[str, str]) -> "ConnectorParameters":
        """Find the values that hold placeholders."""
        templates = {name: _ValueTemplate(value) for name, value in values.items() if "${parameters." in value}
        return cls(values, templates)


@dataclass(frozen=True, slots=True)
class Template:
    """A compiled template: literals and placeholders in turn, `literals[0] placeholders[0] literals[1] ...`."""

    literals: tuple[str, ...]
    placeholders: tuple[Placeholder, ...]

    @classmethod
    def compile(cls, source: str, *, json: bool = True) -> "Template":
        """Compile a template. `json` is false for a URL or a header, where every placeholder counts as quoted."""
        literals: list[str] = []
        placeholders: list[Placeholder] = []
        start = 0
        quoted = False
        for match in _PLACEHOLDER.finditer(source):
            escape, name, default = match.groups()
            literal = source[start : match.start() + len(escape or "")]
            quoted = _ends_in_string(literal, quoted) if json else True
            start = match.end()
            or_null = (
                json and default == "null" and literal.endswith('"') and quoted and source[start : start + 1] == '"'
            )
            if or_null:
                literal = literal[:-1]
                start += 1
                quoted = False
            if escape:  # `$${...}` is the literal text `${...}`, which then counts as unfilled
                placeholders.append(Placeholder(name, None, quoted))
            else:
                placeholders.append(Placeholder(name, default, quoted or or_null, or_null))
            literals.append(literal)
        literals.append(source[start:])
        return cls(tuple(literals), tuple(placeholders))

    def render_json(self, parameters: Parameters, enclosing: tuple[str, ...] = ()) -> str:
        """Return the filled template, its values as JSON. UnfilledPlaceholders, or InvalidRequest for a value."""
        values = []
        # No comprehension: before Python 3.12 it is a stack frame of its own at each level of nested templates.
        for placeholder in self.placeholders:
            values.append(_json_value(placeholder, parameters, enclosing))  # noqa: PERF401
        return self._fill(values)

    def render_text(self, parameters: Parameters, enclosing: tuple[str, ...] = ()) -> str:
        """Return the filled template, its values as text without escaping. UnfilledPlaceholders if one is absent."""
        return self._fill(
            [
                placeholder.default if (value := parameters.text(placeholder.name, enclosing)) is None else value
                for placeholder in self.placeholders
            ]
        )

    def map_literals(self, change: Callable[[str], str]) -> "Template":
        """Return the template with `change` applied to its literals, which are not searched for placeholders again."""
        return Template(tuple(change(literal) for literal in self.literals), self.placeholders)

    def _fill(self, values: list[str | None]) -> str:
        parts = [self.literals[0]]
        unfilled: list[str] = []
        for placeholder, value, literal in zip(self.placeholders, values, self.literals[1:], strict=True):
            if value is None:
                unfilled.append(placeholder.name)
            else:
                parts.append(value)
            parts.append(literal)
        if unfilled:
            raise UnfilledPlaceholders(unfilled)
        return "".join(parts)


def fill_with_stand_ins(
    source: str, connector: ConnectorParameters, request: Mapping[str, str], stand_in: Callable[[str], str]
) -> str:
    """Fill a template that is not JSON, such as a URL, although parameters are missing.

    Each parameter that neither the request nor the connector gives becomes `stand_in(name)`.
    """
    template = Template.compile(source, json=False)
    values = dict(request)
    while True:
        try:
            return template.render_text(Parameters(connector, values))
        except UnfilledPlaceholders as error:
            values |= {name: stand_in(name) for name in error.names}


def _json_value(placeholder: Placeholder, parameters: Parameters, enclosing: tuple[str, ...]) -> str | None:
    if not placeholder.quoted:
        value = parameters.json(placeholder.name, enclosing)
        return placeholder.default if value is None else value
    value = parameters.text(placeholder.name, enclosing)
    if placeholder.or_null:
        absent = value is None or (value == "null" and isinstance(value, jsontext.JsonText))
        return "null" if absent else f'"{jsontext.escape(str(value))}"'
    return placeholder.default if value is None else jsontext.escape(value)


def _ends_in_string(text: str, inside: bool) -> bool:
    """Return whether a JSON string is open at the end of `text`; `inside` says whether one is at its beginning."""
    for edge in _STRING_EDGE.finditer(text):
        if edge[0] == '"':
            inside = not inside
    return inside


def _enter(name: str, enclosing: tuple[str, ...]) -> tuple[str, ...]:
    """Return `enclosing` with `name` added. InvalidRequest if it is there already: the parameters name each other."""
    if name in enclosing:
        raise InvalidRequest(
            f"Infinite loop in property interpolation of parameters.{name}: {'->'.join([*enclosing, name])}"
        )
    return (*enclosing, name)
