"""A gate that notes what is asked of it, and may refuse."""

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.rest_handlers.callers import Caller, Scope

CALLER = Caller("ann", frozenset({"team-a"}))


class RecordingGate:
    """Notes the actions of each request; raises `error` if there is one."""

    asks_for_login = False

    def __init__(self, error: MLStreamError | None = None) -> None:
        self.asked: list[tuple[str, ...]] = []
        self._error = error

    async def admit(self, scope: Scope, *actions: str) -> Caller:
        """Return CALLER."""
        self.asked.append(actions)
        if self._error is not None:
            raise self._error
        return CALLER
