"""Whose the paths of custom handlers are: of two models with the same one, that which had it first."""

import logging
from collections.abc import Mapping

from opensearch_ml_stream.extensions.runtimes.service.status import HandlerStatus, ModelStatus
from opensearch_ml_stream.rest_handlers.base_path import Paths

log = logging.getLogger("opensearch_ml_stream")

_Route = tuple[str, str]  # method and path


class HandlerPaths:
    """The methods and paths that are taken, in the order in which they were, each with its model's name."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._owners: dict[_Route, str] = {}
        self._refused: set[tuple[str, _Route]] = set()  # of which the log has said so

    def share_out(self, models: Mapping[str, ModelStatus]) -> None:
        """Give numbers to the handlers of loaded models, and leave out those whose paths are others'.

        The log says which. The path of a model that is loaded no more is free again.
        """
        asked = {(name, (one.method, one.path)) for name, model in models.items() for one in model.handlers}
        self._owners = {route: name for route, name in self._owners.items() if (name, route) in asked}
        self._refused &= asked
        for name, model in models.items():
            kept = [route for one in model.handlers if self._takes(name, route := (one.method, one.path))]
            model.handlers = [HandlerStatus(*route) for route in dict.fromkeys(kept)]
        numbers = {route: number for number, route in enumerate(self._owners)}
        for model in models.values():
            for handler in model.handlers:
                handler.number = numbers[handler.method, handler.path]

    def _takes(self, name: str, route: _Route) -> bool:
        reserved = self._paths.is_reserved(route[1])
        owner = None if reserved else self._owners.setdefault(route, name)
        if owner == name:
            return True
        if (name, route) not in self._refused:
            self._refused.add((name, route))
            reason = "the path is the server's own" if reserved else f"it is that of model {owner}, loaded before"
            log.warning("runtime %s: the custom handler %s %s is not served: %s", name, *route, reason)
        return False
