"""The use cases of conversations in any client's API: find the model by its name, return its next answer."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, to_chunk_list
from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer, as_one, whole_calls
from opensearch_ml_stream.connectors.conversation.dialect import ClientRequest
from opensearch_ml_stream.plugin.predictions.model_cache import ModelCache
from opensearch_ml_stream.plugin.predictions.predictor import Predictor
from opensearch_ml_stream.plugin.registry.models_by_name import ModelsByName
from opensearch_ml_stream.rest_handlers.callers import Caller
from opensearch_ml_stream.rest_handlers.routes.predict_stream import ProviderStream


@dataclass(frozen=True, slots=True)
class Conversations:
    """Conversations with the models in the store."""

    names: ModelsByName
    models: ModelCache
    predictor: Predictor

    def stream(self, caller: Caller, name: str, request: ClientRequest) -> AbstractAsyncContextManager[ProviderStream]:
        """Open the stream of the next answer of a model, by its name or id; see `Predictor.stream`.

        Raises NotFound for an unknown model, InvalidRequest if several have the name.
        """
        return self.predictor.converse(caller, partial(self.names.model_id, caller, name), request)

    async def whole(self, caller: Caller, name: str, request: ClientRequest) -> WholeAnswer:
        """Return the next answer of a model in one piece; errors as of `stream`.

        A model whose provider has no known dialect is asked for a stream, if it is known how to read that: nothing
        says how to read a whole response.
        """
        model_id = await self.names.model_id(caller, name)
        model = await self.models.get(caller, model_id)
        if model.dialect is not None or not model.can_stream:
            return await self.predictor.converse_whole(caller, model_id, request)
        async with self.stream(caller, name, request) as stream:
            return await _collected(stream, model_id)


async def _collected(stream: ProviderStream, model_id: str) -> WholeAnswer:
    """Return all that a stream says as one answer; its error is raised."""
    chunks: list[Chunk] = []
    while stream.outcome is None:
        chunks += to_chunk_list(await stream.read())
    outcome = stream.outcome
    if not isinstance(outcome, Ending):
        raise outcome
    said = as_one(chunks)
    chunk = said._replace(tool_calls=whole_calls(said.tool_calls))
    return WholeAnswer(chunk, outcome, model_id, {}, is_as_sent=False, extra=stream.terminal_fields(outcome))
