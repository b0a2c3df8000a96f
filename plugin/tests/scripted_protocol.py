"""A connector protocol as an extension contributes one: its models have ids that begin with `own-`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from opensearch_ml_stream.connectors.documents import Connector
from opensearch_ml_stream.connectors.predict.inputs import PredictInput
from opensearch_ml_stream.connectors.predict.model_inputs import ModelInputs
from opensearch_ml_stream.connectors.predict.pre_process import Step
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction, ProviderRequest
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.connectors.stream_spec import Streaming
from opensearch_ml_stream.plugin.connector_protocol import NextRequest
from opensearch_ml_stream.plugin.upstream import UpstreamResponse
from tests.predictions.scripted_provider import Response


@dataclass
class OwnModel:
    """Responds with `response`, and notes what is asked of it; `when_loaded` happens once, when it was just loaded."""

    connector: Connector | None = None
    response: bytes = b'{"ok": true}'
    asked: list[str] = field(default_factory=list)
    requests: list[ProviderRequest] = field(default_factory=list)
    is_loaded: bool = False
    when_loaded: Callable[[], Awaitable[object]] | None = None
    is_silent: bool = False
    spec: Streaming = OPENAI_CHAT

    @property
    def own_requests(self) -> "OwnModel":
        return self

    @property
    def inputs(self) -> ModelInputs:
        return ModelInputs(frozenset({"inputs"}), frozenset({"inputs"}), "inputs", None, takes_texts=False)

    def action(self, action_type: str) -> CompiledAction:
        assert self.connector is not None
        action = replace(self.connector.action(action_type), headers={"X-Own": "1"})
        return CompiledAction.compile(action, ConnectorParameters.compile({}), {})

    def steps(self, predict_input: PredictInput) -> Sequence[Step]:
        return [Step({"inputs": f"step of {type(predict_input).__name__}"})]

    def readable_text(self, body: bytes) -> str:
        return f"readable {body.decode()}"

    @asynccontextmanager
    async def open(
        self, request: ProviderRequest, further: NextRequest | None = None
    ) -> AsyncIterator[UpstreamResponse]:
        self.requests.append(request)
        if self.is_silent:
            await asyncio.Event().wait()
        yield Response([self.response])

    async def load(self) -> None:
        self.asked.append("load")
        await self._loaded()

    async def ensure(self) -> None:
        self.asked.append("ensure")
        await self._loaded()

    async def unload(self) -> None:
        self.asked.append("unload")
        self.is_loaded = False

    async def _loaded(self) -> None:
        self.is_loaded = True
        happens, self.when_loaded = self.when_loaded, None
        if happens is not None:
            await happens()


@dataclass
class OwnProtocol:
    model: OwnModel = field(default_factory=OwnModel)

    def find(self, model_id: str, connector: Connector) -> OwnModel | None:
        self.model.connector = connector
        return self.model if model_id.startswith("own-") else None
