"""Which model has a custom handler at a path, by what the keeper has last written."""

from collections.abc import Mapping
from re import Pattern
from typing import NamedTuple

from opensearch_ml_stream.extensions.runtimes.service.runtime_models import RuntimeModels
from opensearch_ml_stream.extensions.runtimes.service.status import HandlerStatus, ModelStatus
from opensearch_ml_stream.runtimes.path_templates import pattern_of


class _Route(NamedTuple):
    pattern: Pattern[str]
    method: str
    model: str


class RuntimeHandlers:
    """Finds handlers; the table of them is made anew only when the keeper has written."""

    def __init__(self, models: RuntimeModels) -> None:
        self._models = models
        self._read: Mapping[str, ModelStatus] | None = None  # what the table was made of
        self._routes: list[_Route] = []

    def find(self, path: str) -> dict[str, str]:
        """Return the names of the models that have a handler at a path, by its method."""
        models = self._models.current()
        if models is not self._read:
            self._read, self._routes = models, _table(models)
        found: dict[str, str] = {}
        for route in self._routes:
            if route.pattern.fullmatch(path) is not None:
                found.setdefault(route.method, route.model)
        return found


def _table(models: Mapping[str, ModelStatus]) -> list[_Route]:
    handlers = [(handler, name) for name, model in models.items() for handler in model.handlers]
    return [_route(handler, name) for handler, name in sorted(handlers, key=lambda one: one[0].number)]


def _route(handler: HandlerStatus, model: str) -> _Route:
    return _Route(pattern_of(handler.path), handler.method, model)
