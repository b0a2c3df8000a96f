"""An event of a provider's stream: its framing makes events of bytes, its reader makes chunks of events."""

from dataclasses import dataclass, field
from typing import Any

import orjson

from opensearch_ml_stream.connectors.syntax import provider_json


@dataclass(slots=True)
class Event:
    """One framed event: its name ("" where the framing has none) and its data."""

    name: str
    data: bytes
    _payload: Any = field(default=None, repr=False, compare=False)

    @property
    def payload(self) -> Any:
        """The data as JSON, parsed once, whoever reads it. ValueError if it is none.

        Data that only `provider_json` can read becomes the JSON that it means.
        """
        if self._payload is None:
            try:
                self._payload = orjson.loads(self.data)
            except orjson.JSONDecodeError:
                repaired = provider_json.repair(self.data)
                self._payload = orjson.loads(repaired)
                self.data = repaired
        return self._payload

    @classmethod
    def of(cls, payload: Any, name: str = "") -> "Event":
        """Return the event of a payload."""
        return cls(name, orjson.dumps(payload), payload)
