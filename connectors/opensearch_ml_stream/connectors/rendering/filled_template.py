"""Filled templates: the connector's own parameters are filled into a template once, not for each request.

A request that brings the parameters `messages` and `user` leaves all other placeholders to the connector. They are
filled when the first such request comes; the next ones fill what is left. A connector's value that holds placeholders
of the request is put in with them, so that it is no template within the template. The result is the same as that of the
template itself, which a property test checks: request values are final, and a placeholder that the connector cannot
fill, or not without an error, is left as it is.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.template import (
    MAX_NESTED_PARAMETERS,
    TO_STRING,
    ConnectorParameters,
    Parameters,
    Placeholder,
    Template,
    find_placeholders,
)
from opensearch_ml_stream.connectors.syntax import jsontext

MAX_KEPT = 16  # filled templates of one template: callers may send any parameters
MAX_FILLED_CHARS = 16 * 1024  # put into one of them


class FilledTemplates(dict[frozenset[str], Template]):
    """A JSON template of a connector, filled as far as it can be: by the names of the parameters that a request gives.

    Of a request's parameters only those in `names` can change what the template gives.
    """

    __slots__ = ("_parameters", "_readers", "_template", "names")

    def __init__(self, template: Template, parameters: ConnectorParameters) -> None:
        super().__init__()
        self._template = template
        self._parameters = parameters
        self._readers = _find_readers(parameters)
        self.names = parameter_names((placeholder.name for placeholder in template.placeholders), parameters)

    def __missing__(self, given: frozenset[str]) -> Template:
        if len(self) >= MAX_KEPT:
            return self._template
        self[given] = filled = self._fill(given)
        return filled

    def _fill(self, given: frozenset[str]) -> Template:
        """Return the template with all but those placeholders filled that the parameters `given` can change.

        The template as it is, if that would take more than MAX_FILLED_CHARS.
        """
        filling = _Filling(self._parameters, given, self._changed_by(given))
        literals: list[str] = []
        left: list[Placeholder] = []
        parts: list[str] = []  # of the literal that follows those in the list
        for part in filling.parts(self._template):
            if isinstance(part, str):
                parts.append(part)
            else:
                left.append(part)
                literals.append("".join(parts))
                parts = []
        if filling.size > MAX_FILLED_CHARS:
            return self._template
        return Template((*literals, "".join(parts)), tuple(left))

    def _changed_by(self, given: Iterable[str]) -> set[str]:
        """Return the names of all parameters whose value depends on those `given`, these among them."""
        changed: set[str] = set()
        waiting = list(given)
        while waiting:
            name = waiting.pop()
            if name not in changed:
                changed.add(name)
                waiting += self._readers.get(name, ())
        return changed


def parameter_names(names: Iterable[str], parameters: ConnectorParameters) -> frozenset[str]:
    """Return these names and those of all parameters that the connector's values of these names hold."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        if (value := parameters.templates.get(name)) is not None:
            for read in _names_in(value.source):
                waiting += (read, read.removesuffix(TO_STRING))
    return frozenset(found)


def _find_readers(parameters: ConnectorParameters) -> Mapping[str, list[str]]:
    """Return for each parameter those of the connector's parameters whose values hold it."""
    readers: dict[str, list[str]] = {}
    for name, value in parameters.templates.items():
        for read in _names_in(value.source):
            readers.setdefault(read, []).append(name)
            readers.setdefault(read.removesuffix(TO_STRING), []).append(name)
    return readers


def _names_in(source: str) -> list[str]:
    return [match[2] for match in find_placeholders(source)]


class _Filling:
    """One filling of a template, for requests that give the parameters `given`, on which those in `changed` depend.

    `size` counts the characters that the connector puts in. Each of its values is put in once at most where it depends
    on the request, so that values that hold one another do not grow without bound.
    """

    def __init__(self, parameters: ConnectorParameters, given: frozenset[str], changed: set[str]) -> None:
        self._own = Parameters(parameters, {})
        self._templates = parameters.templates
        self._given = given
        self._changed = changed
        self._spliced: set[str] = set()
        self.size = 0

    def parts(self, template: Template) -> Iterator[str | Placeholder]:
        """Return literals, and the placeholders that are left, until more is put in than may be."""
        yield template.literals[0]
        for placeholder, literal in zip(template.placeholders, template.literals[1:], strict=True):
            for part in self._filled(placeholder):
                self.size += len(part) if isinstance(part, str) else 0
                yield part
            if self.size > MAX_FILLED_CHARS:
                return
            yield literal

    def _filled(self, placeholder: Placeholder) -> list[str | Placeholder]:
        if placeholder.name not in self._changed:
            value = _own_value(placeholder, self._own)
            return [placeholder if value is None else value]
        if placeholder.name in self._given:  # so its member is not left out
            return [placeholder.member, replace(placeholder, member="")] if placeholder.member else [placeholder]
        return self._inner_parts(placeholder) or [placeholder]

    def _inner_parts(self, outer: Placeholder) -> list[str | Placeholder] | None:
        """Return what a connector's value with placeholders puts in; None where it must be rendered each time.

        That is where the request leaves one of them open, and where the value is put in already, or holds itself.
        """
        if outer.or_null or outer.name in self._spliced or len(self._spliced) == MAX_NESTED_PARAMETERS:
            return None
        self._spliced.add(outer.name)
        value = self._templates[outer.name]
        template = value.text.map_literals(jsontext.escape) if outer.quoted else value.json
        parts: list[str | Placeholder] = [outer.member, template.literals[0]]
        for placeholder, literal in zip(template.placeholders, template.literals[1:], strict=True):
            inner = _within_json(placeholder) if outer.quoted else placeholder
            filled = self._filled(inner)
            is_open = filled == [inner] and inner.name not in self._given
            if is_open or inner.name.endswith(TO_STRING):  # whose value is another one within a template
                return None
            parts += (*filled, literal)
        return parts


def _within_json(placeholder: Placeholder) -> Placeholder:
    """Return a placeholder of a text as one of a JSON string, which the text becomes a part of."""
    default = placeholder.default
    return placeholder if default is None else replace(placeholder, default=jsontext.escape(default))


def _own_value(placeholder: Placeholder, own: Parameters) -> str | None:
    """Return what the connector alone puts in for a placeholder, None if it cannot fill it."""
    template = Template(("", ""), (placeholder,))
    try:
        return template.render_json(own)
    except InvalidRequest:  # UnfilledPlaceholders among them
        return None
