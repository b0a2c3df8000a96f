"""Calls for a conversation with one model: the request, how its stream is decoded, how a whole answer is read."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, to_chunk_list
from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer, as_one
from opensearch_ml_stream.connectors.conversation.as_sent import DecoderAsSent
from opensearch_ml_stream.connectors.conversation.dialect import ClientRequest
from opensearch_ml_stream.connectors.decoding.contract import StreamDecoder
from opensearch_ml_stream.connectors.decoding.detected_framing import is_stream
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.provider_errors import error_without_result
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.connectors.stream_spec import Streaming, StreamSpec
from opensearch_ml_stream.connectors.syntax import provider_json
from opensearch_ml_stream.connectors.unstreamed_response import decode_whole_response
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel


class StreamCall(NamedTuple):
    """The request of a stream, the function that makes its decoder, and hints for the caller.

    `client` is the client's request if the stream is the answer in a conversation.
    """

    request: ProviderRequest
    new_decoder: Callable[[], StreamDecoder]
    warnings: Sequence[str] = ()
    client: ClientRequest | None = None


MAX_STREAM_BYTES = 1024 * 1024  # of a stream in place of a whole response, which is decoded at once


def speaks_as(model: CompiledModel, client: ClientRequest) -> bool:
    """Whether a model's provider speaks the dialect of a client."""
    return model.dialect is not None and model.dialect.name == client.dialect


def stream_request(client: ClientRequest, model: CompiledModel) -> StreamCall:
    """Return the request of a stream. InvalidRequest for what the model's provider or template cannot express."""
    streaming: Streaming = model.spec({})
    request, dialect = model.render_conversation(client, streaming), model.dialect
    if dialect is None or dialect.as_sent is None or dialect.name != client.dialect:
        return StreamCall(request, streaming.decoder, _warnings(client, model), client)
    if not isinstance(streaming, StreamSpec) or model.guardrails.output is not None:
        return StreamCall(request, streaming.decoder, (), client)
    decoder = partial(DecoderAsSent, dialect.as_sent(client.wants_usage), model.redactor.body)
    return StreamCall(request, partial(streaming.decoder_with, decoder), (), client)


def _warnings(client: ClientRequest, model: CompiledModel) -> Sequence[str]:
    """Return warnings for the client of parts of the request that the provider does not get."""
    if speaks_as(model, client):
        return ()
    return [f"{member} was left out: the model's provider has no such thing" for member in client.conversation.left_out]


def whole_request(client: ClientRequest, model: CompiledModel) -> ProviderRequest:
    """Return the request of an answer in one piece. InvalidRequest as of `stream_request`."""
    return model.render_conversation(client)


def read_answer(body: bytes, client: ClientRequest, model: CompiledModel, *, names_model: bool) -> WholeAnswer:
    """Read a provider's whole response. UpstreamError if its form is unknown."""
    response: Any = None
    try:
        response = provider_json.loads(body)
    except ValueError:
        said = _read_stream(body, model)
    else:
        response = response[0] if isinstance(response, list) and len(response) == 1 else response
        is_object = isinstance(response, dict)
        said = decode_whole_response(response, model.providers, may_be_empty=True) if is_object else None
    if said is None:
        if (error := error_without_result(response)) is not None:
            raise error.redacted(model.redactor.error)
        raise UpstreamError("The provider's response has an unknown form; ask for a stream instead")
    as_sent = response if speaks_as(model, client) else None
    extra: dict[str, Any] = {"model_id": model.model_id} if names_model else {}
    if warnings := _warnings(client, model):
        extra["warnings"] = warnings
    return WholeAnswer(*said, model.model_id, as_sent or {}, as_sent is not None, extra)


def _read_stream(body: bytes, model: CompiledModel) -> tuple[Chunk, Ending] | None:
    """Read a stream that came in place of a whole response; None for a body that is not one, or is too long.

    None also where the model has an output guardrail: it has read the body, in which a text is split over events.
    UpstreamError if the stream ends with one.
    """
    if len(body) > MAX_STREAM_BYTES or model.guardrails.output is not None:
        return None
    if not is_stream(body) or not model.can_stream:
        return None
    decoder = model.spec({}).decoder()
    chunks = [*to_chunk_list(decoder.feed(body)), *to_chunk_list(decoder.close())]
    if isinstance(decoder.outcome, UpstreamError):
        raise decoder.outcome.redacted(model.redactor.error)
    return as_one(chunks), decoder.outcome or Ending()
