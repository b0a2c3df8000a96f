"""Templates with `${parameters.x}` placeholders, compiled once per connector version and filled for each request.

A placeholder is *quoted* if it stands inside a JSON string of the template, *bare* otherwise:

    "${parameters.x}"            any value, escaped as JSON
    ${parameters.x}              JSON only: a number, array, object ..., or a string whose whole content is JSON
    ${parameters.x:-default}     the default is part of the template and is put in as it is
    "${parameters.x:-null}"      replaced with its quotes: null if x is absent or null
    , "x": ${parameters.x:-null} an optional member: left out, with its comma and name, if x is absent

Differences from ML Commons, whose users report its ways as defects: a request's value is never substituted again; a
string at a quoted placeholder is always escaped, even if it looks like JSON; a string at a bare placeholder must be
JSON; escaping is plain JSON; an optional member is left out, where ML Commons sends null. What `no_escape_params`
lists has been escaped by its caller: it is taken for the text that it stands for, and may give a bare placeholder part
of an array or object, as ML Commons' agents do (`{"role": ...},`), but never leave that. The value of a *connector's*
parameter may itself hold placeholders. Inside it they are filled unescaped if the value is used as text, as JSON if it
is used as JSON.

A rendering takes time linear in the template and its output: each of the connector's parameters is filled once, and
what it gives is bounded (MAX_RENDERED_CHARS), for parameters that hold one another ten times grow tenfold at each step.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext

MAX_PLACEHOLDERS = 1_000  # of one template
MAX_RENDERED_CHARS = 16 * 1024 * 1024  # of a rendered template, or twice what the request's parameters have together
MAX_NESTED_PARAMETERS = 50  # connector parameters within each other

_PLACEHOLDER = re.compile(r"(\$)?\$\{parameters\.([^\s{}:]+?)(?::-([^}]*))?\}")  # groups: escape, name, default
TO_STRING = ".toString()"
_NO_ESCAPE = "no_escape_params"  # names with commas between, of values that are escaped already
_SKIP_VALIDATION = "skip_validating_missing_parameters"


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One `${parameters.name}` of a template.

    `or_null` is set for `"${parameters.x:-null}"`, which owns its quotes. `member` is what stands before the value of
    an optional member, from its comma on.
    """

    name: str
    default: str | None
    quoted: bool
    or_null: bool = False
    member: str = ""


class UnfilledPlaceholders(InvalidRequest):
    """Placeholders have neither a value nor a default; `names` holds them in order of appearance."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(dict.fromkeys(names))
        super().__init__(f"Some parameter placeholder not filled in payload: {', '.join(self.names)}")


class Parameters:
    """A request's parameters over a connector's. Request values are final, connector values may hold placeholders.

    `enclosing` holds the names of the connector parameters whose values are being filled, outermost first. `stand_in`
    gives the text of a parameter that neither side has. `fragments` are those of the request's that may be part of an
    array or object. One object serves one rendering: it keeps what it has filled.
    """

    def __init__(
        self,
        connector: "ConnectorParameters",
        request: Mapping[str, str],
        stand_in: Callable[[str], str | None] = lambda name: None,
        fragments: frozenset[str] = frozenset(),
    ) -> None:
        self.connector = connector
        self.request = request
        self.stand_in = stand_in
        self.fragments = fragments
        self._texts: dict[str, str] = {}
        self._jsons: dict[str, str] = {}

    def get(self, name: str, default: str | None = None) -> str | None:
        """Return the value as text, `default` if neither side has it."""
        value = self.text(name, ())
        return default if value is None else value

    def text(self, name: str, enclosing: tuple[str, ...]) -> str | None:
        """Return the value as text, with the placeholders of a connector's value filled with text; None if absent."""
        if name in self.request:
            return self.request[name]
        if name not in self.connector.values:
            base = name.removesuffix(TO_STRING)
            if enclosing and base != name and (base in self.request or base in self.connector.values):
                return self.text(base, enclosing)
            return None
        template = self.connector.templates.get(name)
        if template is None:
            return self.connector.values[name]
        if name not in self._texts:
            self._texts[name] = template.text.render_text(self, _enter(name, enclosing))
        return self._texts[name]

    def json(self, name: str, enclosing: tuple[str, ...]) -> str | None:
        """Return the value as JSON text, None if absent. InvalidRequest names the parameter if it is not JSON."""
        if name not in self.request and (template := self.connector.templates.get(name)) is not None:
            if name not in self._jsons:
                self._jsons[name] = template.json.render_json(self, _enter(name, enclosing))
            return self._jsons[name]
        value = self.text(name, enclosing)
        if value is None or isinstance(value, jsontext.JsonText) or jsontext.is_json(value):
            return value
        if name in self.fragments and _is_fragment(value):
            return value
        raise InvalidRequest(
            f"Parameter [{name}] has a placeholder without quotes in the connector's template, so it must be JSON: "
            "a number, true, false, null, an array, an object, or a string that holds one of these; "
            r'a text there has quotes of its own, as in "\"text\""'
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
        for match in find_placeholders(source):
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
            member = _optional_member(literal) if json and default == "null" and not quoted and not or_null else ""
            if escape:  # `$${...}` is the literal text `${...}`, which then counts as unfilled
                placeholders.append(Placeholder(name, None, quoted))
            elif member:
                placeholders.append(Placeholder(name, "", quoted=False, member=member))
                literal = literal.removesuffix(member)
            else:
                placeholders.append(Placeholder(name, default, quoted or or_null, or_null))
            literals.append(literal)
            if len(placeholders) > MAX_PLACEHOLDERS:
                raise InvalidRequest(f"A template of the connector has more than {MAX_PLACEHOLDERS} placeholders")
        literals.append(source[start:])
        return cls(tuple(literals), tuple(placeholders))

    def render_json(self, parameters: Parameters, enclosing: tuple[str, ...] = ()) -> str:
        """Return the filled template, its values as JSON. UnfilledPlaceholders, or InvalidRequest for a value."""
        values = []
        # No comprehension: before Python 3.12 it is a stack frame of its own at each level of nested templates.
        for placeholder in self.placeholders:
            values.append(_json_value(placeholder, parameters, enclosing))  # noqa: PERF401
        return self._fill(values, parameters)

    def render_text(self, parameters: Parameters, enclosing: tuple[str, ...] = ()) -> str:
        """Return the filled template, its values as text without escaping. UnfilledPlaceholders if one is absent."""
        return self._fill(
            [_text_value(placeholder, parameters, enclosing) for placeholder in self.placeholders],
            parameters,
        )

    def map_literals(self, change: Callable[[str], str]) -> "Template":
        """Return the template with `change` applied to its literals, which are not searched for placeholders again."""
        return Template(tuple(change(literal) for literal in self.literals), self.placeholders)

    def _fill(self, values: list[str | None], parameters: Parameters) -> str:
        filled = [value for value in values if value is not None]
        if len(filled) < len(values):
            pairs = zip(self.placeholders, values, strict=True)
            raise UnfilledPlaceholders([placeholder.name for placeholder, value in pairs if value is None])
        parts = [""] * (2 * len(filled) + 1)
        parts[::2] = self.literals
        parts[1::2] = filled
        size = sum(map(len, parts))
        if size > MAX_RENDERED_CHARS:
            check_rendered_size(size, parameters.request)
        return "".join(parts)


def body_parameters(connector: ConnectorParameters, request: Mapping[str, str]) -> Parameters:
    """Return the parameters that fill a request body, as `no_escape_params` and its like among them want it.

    With `skip_validating_missing_parameters` a quoted placeholder without a value stays as it stands.
    """
    own = connector.values
    listed = request.get(_NO_ESCAPE, own.get(_NO_ESCAPE, ""))
    skips = request.get(_SKIP_VALIDATION, own.get(_SKIP_VALIDATION, "")).lower() == "true"
    if not listed and not skips:
        return Parameters(connector, request)
    names = frozenset(name.strip() for name in listed.split(",")).intersection(request)
    request = {**request, **{name: _unescape(request[name]) for name in names}}
    return Parameters(connector, request, _as_it_stands if skips else lambda name: None, names)


def fill_with_stand_ins(
    source: str, connector: ConnectorParameters, request: Mapping[str, str], stand_in: Callable[[str], str]
) -> str:
    """Fill a template that is not JSON, such as a URL, although parameters are missing.

    Each parameter that neither the request nor the connector gives becomes `stand_in(name)`.
    """
    return Template.compile(source, json=False).render_text(Parameters(connector, request, stand_in))


def find_placeholders(source: str) -> Iterator[re.Match[str]]:
    """Return the placeholders of a template: matches with the groups escape (a `$` before it), name and default."""
    # Up to the last brace: a default without its end would be searched from each of the placeholders before it.
    return _PLACEHOLDER.finditer(source, 0, source.rfind("}") + 1)


def check_rendered_size(size: int, request: Mapping[str, str]) -> None:
    """Raise InvalidRequest if a rendered template has more characters than it may have for a request's parameters."""
    if size > MAX_RENDERED_CHARS and size > 2 * sum(map(len, request.values())):
        raise InvalidRequest(
            f"A template of the connector, filled with the parameters, has more than {MAX_RENDERED_CHARS} characters, "
            "and more than twice as many as the parameters"
        )


def _as_it_stands(name: str) -> str:
    return f"${{parameters.{name}}}"


def _unescape(value: str) -> str:
    """Return the text that a string's content in JSON stands for; a value that is none as it is."""
    if "\\" not in value:
        return value
    try:
        return str(json.loads(f'"{value}"'))
    except json.JSONDecodeError:
        return value


def _is_fragment(value: str) -> bool:
    """Return whether a value is whole elements of an array or whole members of an object."""
    inner = value.strip().removeprefix(",").removesuffix(",")
    return not inner or jsontext.is_json(f"[{inner}]") or jsontext.is_json(f"{{{inner}}}")


def _text_value(placeholder: Placeholder, parameters: Parameters, enclosing: tuple[str, ...]) -> str | None:
    value = parameters.text(placeholder.name, enclosing)
    if value is None:
        value = placeholder.default
    return parameters.stand_in(placeholder.name) if value is None else value


def _json_value(placeholder: Placeholder, parameters: Parameters, enclosing: tuple[str, ...]) -> str | None:
    if not placeholder.quoted:
        value = parameters.json(placeholder.name, enclosing)
        if value is None:
            return placeholder.default
        return placeholder.member + value if placeholder.member else value
    value = parameters.text(placeholder.name, enclosing)
    if placeholder.or_null:
        absent = value is None or (value == "null" and isinstance(value, jsontext.JsonText))
        return "null" if absent else jsontext.quote(str(value))
    if value is None and placeholder.default is not None:
        return placeholder.default
    value = parameters.stand_in(placeholder.name) if value is None else value
    return None if value is None else jsontext.quote(value)[1:-1]


def _optional_member(literal: str) -> str:
    """Return the end of a literal that is `, "name":`, empty if it ends otherwise. It does not end in a string."""
    before_colon = literal.rstrip().removesuffix(":")
    name = before_colon.rstrip()
    start = name.rfind('"', 0, -1)
    before = name[: max(start, 0)].rstrip()
    if before_colon == literal.rstrip() or not name.endswith('"') or not before.endswith(","):
        return ""
    return literal[len(before) - 1 :]


def _ends_in_string(text: str, inside: bool) -> bool:
    """Return whether a JSON string is open at the end of `text`; `inside` says whether one is at its beginning."""
    if "\\" in text:
        text = text.replace("\\\\", "").replace('\\"', "")
    return inside != (text.count('"') % 2 == 1)


def _enter(name: str, enclosing: tuple[str, ...]) -> tuple[str, ...]:
    """Return `enclosing` with `name` added. InvalidRequest if it is there already: the parameters name each other."""
    if name in enclosing:
        raise InvalidRequest(
            f"Infinite loop in property interpolation of parameters.{name}: {'->'.join([*enclosing, name])}"
        )
    if len(enclosing) >= MAX_NESTED_PARAMETERS:
        raise InvalidRequest(f"The connector's parameters hold each other more than {MAX_NESTED_PARAMETERS} deep")
    return (*enclosing, name)
