"""Filled templates: what the connector's own parameters give in a template is filled in once, not for each request.

A request that brings the parameters `messages` and `user` leaves all other placeholders to the connector. They are
filled when the first such request comes; the next ones fill what is left. The result is the same as that of the
template itself, which a property test checks: request values are final, and a placeholder that the connector cannot
fill, or not without an error, is left as it is.
"""

from collections.abc import Iterable, Mapping

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.template import (
    TO_STRING,
    ConnectorParameters,
    Parameters,
    Placeholder,
    Template,
    find_placeholders,
)

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
        changed = self._changed_by(given)
        own = Parameters(self._parameters, {})
        literals: list[str] = []
        left: list[Placeholder] = []
        parts = [self._template.literals[0]]  # of the literal that follows those in the list
        size = 0
        for placeholder, literal in zip(self._template.placeholders, self._template.literals[1:], strict=True):
            value = None if placeholder.name in changed else _own_value(placeholder, own)
            if value is None:
                left.append(placeholder)
                literals.append("".join(parts))
                parts = [literal]
            else:
                parts += (value, literal)
                size += len(value)
                if size > MAX_FILLED_CHARS:
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


def _own_value(placeholder: Placeholder, own: Parameters) -> str | None:
    """Return what the connector alone puts in for a placeholder, None if it cannot fill it."""
    template = Template(("", ""), (placeholder,))
    try:
        return template.render_json(own)
    except InvalidRequest:  # UnfilledPlaceholders among them
        return None
