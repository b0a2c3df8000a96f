"""Local models, which an extension runs on this server: what V2 needs of their connector protocol."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest, UpstreamError
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceRequest
from opensearch_ml_stream.plugin.connector_protocol import ConnectorProtocol


class KnowsReadiness(ABC):
    """A model's protocol that knows whether the model can be called now."""

    @abstractmethod
    def check_ready(self) -> None:
        """Return if the model can be called; raise what a call would raise."""


class SpeaksV2(KnowsReadiness):
    """The protocol of a model that gets inference requests as they were written, and whose responses are passed on.

    They are the `LocalResponse`s of its predictions.
    """

    @property
    @abstractmethod
    def version(self) -> str | None:
        """The model's own version, which overrides that of its document; None if it has none."""

    @abstractmethod
    def inference_parameters(self, request: InferenceRequest, id: str, *, has_fallbacks: bool) -> Mapping[str, str]:
        """Return a request as parameters of a prediction; `id` is that of the request, or a new one.

        If there are fallback models, the parameters that these take are among them.
        """

    @abstractmethod
    def metadata(self, name: str, versions: Sequence[str], parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the model's metadata; `versions` are those of the store, `parameters` ours."""


class Unloaded(InvalidRequest):
    """A model of a repository is unloaded, or was unloaded before it responded: V2 does not find it."""


class RaisedByModel(UpstreamError):
    """An error that a model raised with its own HTTP status, `provider_status`, and `words`; see `own_errors`."""

    words = ""


@contextmanager
def own_errors() -> Iterator[None]:
    """Give an error that a model raised the status and the words of the model.

    For callers of V2 and of custom handlers, whose clients compare them.
    """
    try:
        yield
    except RaisedByModel as error:
        error.status = error.provider_status or error.status
        error.reason = error.words or error.reason
        raise


class V2Repository(ABC):
    """A connector protocol whose models are loaded and unloaded on their own, as in the model repository of V2."""

    @abstractmethod
    def model_id(self, name: str, version: str) -> str:
        """Return the id that a model of this name and own version has, if there is one."""

    @abstractmethod
    def is_unloaded(self, model_id: str) -> bool | None:
        """Return whether a model of the repository is unloaded, so that V2 does not find it; None for other models.

        This overrides the model's document, which is updated later.
        """

    @abstractmethod
    async def find_new(self, name: str) -> None:
        """Look for models of this name that have come since; return once they are in the store."""

    @abstractmethod
    def index_entry(self, model_id: str, source: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the entry of a stored model in the repository's index; an empty one for other models."""


def repositories(protocols: Iterable[ConnectorProtocol]) -> list[V2Repository]:
    """Return those of the protocols that are repositories."""
    return [protocol for protocol in protocols if isinstance(protocol, V2Repository)]
