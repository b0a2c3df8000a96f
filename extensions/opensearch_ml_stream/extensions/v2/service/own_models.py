"""Models that an extension runs: what V2 asks of their connector protocol."""

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
        """Return if the model can be called; raise what a call would."""


class SpeaksV2(KnowsReadiness):
    """A model's protocol: the model gets inference requests as they were written, and its responses go on as they are.

    They are the `OwnResponse`s of its predictions.
    """

    @property
    @abstractmethod
    def version(self) -> str | None:
        """The model's own version, which counts before that of its document; None if it has none."""

    @abstractmethod
    def inference_parameters(self, request: InferenceRequest, id: str, *, has_fallbacks: bool) -> Mapping[str, str]:
        """Return the parameters of a prediction that hold a request; `id` is that of the request, or the one it gets.

        If remote models may have to answer in its place, what they take of the request is among them.
        """

    @abstractmethod
    def metadata(self, name: str, versions: Sequence[str], parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the model's metadata; `versions` are those of the store, `parameters` ours."""


class Unloaded(InvalidRequest):
    """A model of a repository is unloaded, or was before it responded: under V2 it is not found."""


class RaisedByModel(UpstreamError):
    """What a model raised with an HTTP status of its own, `provider_status`, and `words`; see `own_errors`."""

    words = ""


@contextmanager
def own_errors() -> Iterator[None]:
    """Let what a model raises have the status and the words that it gave.

    For callers of V2, and of routes of a model's own, whose clients compare them.
    """
    try:
        yield
    except RaisedByModel as error:
        error.status = error.provider_status or error.status
        error.reason = error.words or error.reason
        raise


class V2Repository(ABC):
    """A connector protocol whose models come and go on their own, as in the model repository of V2."""

    @abstractmethod
    def model_id(self, name: str, version: str) -> str:
        """Return the id that a model of this name and own version has, if there is one."""

    @abstractmethod
    def is_unloaded(self, model_id: str) -> bool | None:
        """Return whether a model of the repository is unloaded, so that V2 does not find it; None for one of others.

        It counts before what the model's document says, which follows it.
        """

    @abstractmethod
    async def find_new(self, name: str) -> None:
        """Look for models of this name that have come since; return once they are in the store."""

    @abstractmethod
    def index_entry(self, model_id: str, source: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what the repository's index says of a stored model; nothing for one of others."""


def repositories(protocols: Iterable[ConnectorProtocol]) -> list[V2Repository]:
    """Return those of the protocols that are repositories."""
    return [protocol for protocol in protocols if isinstance(protocol, V2Repository)]
