"""Work limit: bounds the work of paths, patterns and processors that are not linear in their input by construction."""

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError

# A step stands for about 0.5 µs, so that the limit is near 50 ms for each started MiB of input. A megabyte of
# embeddings can be edited once or twice, a request body of 100 kB a dozen times.
STEPS_FOR_EACH_MEBIBYTE = 50_000
_CHARS_A_STEP = 50  # of text that is copied
_JSON_CHARS_A_STEP = 80  # of text that is parsed or printed, beside the values in it
_CONTAINERS_A_STEP = 2
_SCALARS_A_STEP = 4
_CHARS_A_STEP_OF_EVENTS = 4


class WorkLimit:
    """The steps that one evaluation, or one chain of processors, may still take.

    `name` says in the error what took too long; `characters` is the length of the input. `error` is UpstreamError
    where the input is a provider's response.
    """

    __slots__ = ("_error", "_left", "_limit", "_name")

    def __init__(self, name: str, characters: int = 0, error: type[MLStreamError] = InvalidRequest) -> None:
        self._name = name
        self._limit = STEPS_FOR_EACH_MEBIBYTE * (characters // (1 << 20) + 1)
        self._left = self._limit
        self._error = error

    def spend(self, steps: int) -> None:
        """Count steps. The limit's error if there are too many."""
        self._left -= steps
        if self._left < 0:
            self.refuse(
                f"takes more than {self._limit} steps of work, the limit for an input of this size; use fewer and"
                " simpler paths, patterns and processors, or send less at a time"
            )

    def spend_on_json(self, text: str) -> None:
        """Count the parsing or printing of JSON text: for its length, and for each value in it."""
        # A comma before a blank is prose more often than JSON.
        scalars = text.count(",") - text.count(", ")
        containers = text.count("[") + text.count("{")
        self.spend(1 + len(text) // _JSON_CHARS_A_STEP + scalars // _SCALARS_A_STEP + containers // _CONTAINERS_A_STEP)

    def spend_on_text(self, text: str) -> None:
        """Count text that is copied."""
        self.spend(1 + len(text) // _CHARS_A_STEP)

    def extend(self, characters: int) -> None:
        """Allow steps for further input of this length, up to the limit at the beginning."""
        self._left = min(self._limit, self._left + characters // _CHARS_A_STEP_OF_EVENTS)

    def refuse(self, reason: str) -> None:
        """Raise the limit's error, which begins with its name."""
        raise self._error(f"{self._name} {reason}")
