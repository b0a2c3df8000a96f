"""Hints at misspelt parameters of a call: a name that the connector's templates have no place for, but nearly one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.rendering.template import TO_STRING, find_placeholders

MAX_HINTS = 8  # of a call
_MAX_NAMES = 100  # of a connector, that hints are given for
_LENGTHS = range(4, 65)  # of a name without `_` and `-`: shorter ones are like others by chance
_READ_BESIDE_TEMPLATES = ("_llm_interface", "response_filter")


@dataclass(frozen=True, slots=True)
class ParameterHints:
    """What the parameters of an action are called, found once per connector version.

    `near` holds them as they are compared, and with each of their letters left out: a name is near another if one
    letter more, less, another or changed for its neighbour makes it the other.
    """

    known: frozenset[str]
    near: Mapping[str, str]

    def of(self, unknown: Iterable[str]) -> list[str]:
        """Return a hint for each name, of the first MAX_HINTS, that is near a known one; in linear time."""
        hints: list[str] = []
        for name in islice((name for name in unknown if not name.startswith("_")), MAX_HINTS):
            found = next((self.near[form] for form in _forms(name) if form in self.near), None)
            if found is not None:
                hints.append(f"The connector has no place for the parameter [{name}]; did you mean [{found}]?")
        return hints


def find_parameter_hints(action: Action, parameters: Mapping[str, str]) -> ParameterHints:
    """Return what an action and its connector's parameters name: what they hold, and what stands in their templates."""
    templates = [action.request_body or "", action.url, *action.headers.values(), *parameters.values()]
    placed = [match[2].removesuffix(TO_STRING) for template in templates for match in find_placeholders(template)]
    names = dict.fromkeys([*placed, *parameters])
    near: dict[str, str] = {}
    for name in islice((name for name in names if not name.startswith("_")), _MAX_NAMES):
        for form in _forms(name):
            near.setdefault(form, name)
    return ParameterHints(frozenset((*names, *_READ_BESIDE_TEMPLATES)), near)


def _forms(name: str) -> list[str]:
    """Return a name as it is compared, and that with each of its letters left out; none for one that is too short."""
    plain = name.lower().replace("_", "").replace("-", "") if len(name) < 2 * _LENGTHS.stop else ""
    if len(plain) not in _LENGTHS:
        return []
    return [plain, *(plain[:position] + plain[position + 1 :] for position in range(len(plain)))]
