"""The use cases behind the V2 protocol, for HTTP and gRPC.

`name` is a model's name or its id, `version` its number, None for the newest one. Errors are MLStreamErrors: NotFound
in MLServer's words, `Model my-model with version v1 not found`, for a model that does not exist or is not deployed.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from opensearch_ml_stream.connectors.predict.inputs import PredictInput
from opensearch_ml_stream.extensions.v2.protocol.local_responses import LocalResponse
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceRequest, InferenceResponse, ResponseShape
from opensearch_ml_stream.rest_handlers.callers import Caller
from opensearch_ml_stream.rest_handlers.routes.predict_stream import ProviderStream


@dataclass(frozen=True, slots=True)
class UnreadRequest:
    """A request that is only read once its caller may use the model. `size` is in bytes.

    `read` returns it; InvalidRequest or InvalidBody for other bytes. A thread may call it.
    """

    size: int
    read: Callable[[], InferenceRequest]


@dataclass(frozen=True, slots=True)
class Inference:
    """An inference that can be made: its caller, the parameters of its prediction, the shape of its responses.

    `inputs` are the predictions of a whole inference, in order. A stream takes only one, and, if it `takes_further`,
    further ones while it is open.
    """

    caller: Caller
    model_id: str
    parameters: Mapping[str, str]
    shape: ResponseShape
    inputs: Sequence[PredictInput] = ()
    takes_further: bool = False

    @property
    def size(self) -> int:
        """How many characters the parameters have."""
        return sum(map(len, self.parameters.values()))


NextInference = Callable[[], Awaitable[Inference | None]]
"""Returns the next inference of an open stream, None if there are no more; it may wait for a client."""


class InferenceModels(Protocol):
    """Inferences by models, and the models themselves."""

    async def prepare(self, caller: Caller, name: str, version: str | None, request: UnreadRequest) -> Inference:
        """Return the inference for a request; no provider is called yet.

        The request is only read for a caller who may use the model. InvalidRequest for tensors that the model cannot
        take.
        """
        ...

    def stream(
        self, inference: Inference, further: NextInference | None = None
    ) -> AbstractAsyncContextManager[ProviderStream]:
        """Open the provider's stream, as `Predictions.stream` does.

        `further`, for an inference that `takes_further`, is called whenever the model waits for a request; what it
        raises ends the stream.
        """
        ...

    async def infer(self, inference: Inference) -> InferenceResponse | LocalResponse:
        """Make a whole inference."""
        ...

    async def metadata(self, caller: Caller, name: str, version: str | None) -> Mapping[str, Any]:
        """Return a model's metadata: `{"name", "versions", "platform", "inputs", "outputs", "parameters"}`."""
        ...

    async def check_ready(self, caller: Caller, name: str, version: str | None) -> None:
        """Return if the model can be called; raise what a call would raise."""
        ...

    async def index(self, caller: Caller, *, ready: bool) -> Sequence[Mapping[str, Any]]:
        """Return the models that the caller may see, `{"name", "version", "state", "reason"}`; `ready` ones only."""
        ...

    async def load(self, caller: Caller, name: str) -> None:
        """Deploy the model."""
        ...

    async def unload(self, caller: Caller, name: str) -> None:
        """Undeploy the model."""
        ...
