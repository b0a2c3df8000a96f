"""Models that an engine's own server runs: which they are, and the connectors that call them."""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.client_config import client_config_document
from opensearch_ml_stream.connectors.documents import connector_document
from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import ModelFolder
from opensearch_ml_stream.extensions.runtimes.keeper.remote_models import OpenAIRequests, openai_connector
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_urls import engine_url
from opensearch_ml_stream.runtimes.engine_settings import CHAT, EngineSettings, read_engine_settings
from opensearch_ml_stream.runtimes.shipped import LLAMA_CPP, VLLM, find_engine

READ_TIMEOUT_SECONDS = 3600  # a call waits in the server until the ones before it have ended

_SAMPLING = ("top_k", "min_p", "repetition_penalty", "min_tokens", "logprobs", "top_logprobs")
_OF_VLLM = (*_SAMPLING, "parallel_tool_calls", "chat_template_kwargs", "structured_outputs", "ignore_eos")
_FURTHER: Mapping[str, Mapping[str, str]] = {  # members of a request beside OpenAI's, by their parameters
    VLLM: {name: name for name in _OF_VLLM},
    LLAMA_CPP: {**{name: name for name in _SAMPLING}, "repetition_penalty": "repeat_penalty"},
}
_WITHOUT_EFFECT = ("model", "stream", "stream_options", "user")  # in files that are written for OpenAI


def engine_of(model: ModelFolder) -> str | None:
    """Return the engine whose server runs the model, None for any other model."""
    return find_engine(str(model.settings.get("implementation") or ""), model.parameters.get("extra"))


def engine_connector(key: str, model: ModelFolder, engine: str) -> dict[str, Any]:
    """Return the document of the connector to the model's server; `key` is the name that its processes have.

    Where the server is, and its key, are not in it: who calls it is told by the process beside the server.
    """
    settings = _settings(model)
    fixed = {name: value for name, value in settings.llm_parameters.items() if name not in _WITHOUT_EFFECT}
    requests = OpenAIRequests(settings.model_type, fixed, _FURTHER[engine])
    connector = openai_connector(key, f"{engine_url(key)}/v1/<path>", model.name, requests)
    config = client_config_document({"read_timeout": READ_TIMEOUT_SECONDS})
    return connector_document({**connector, "client_config": config}, inline=True)


def _settings(model: ModelFolder) -> EngineSettings:
    try:
        return read_engine_settings(model.parameters.get("extra"), str(model.folder), None)
    except ValueError:  # of which the model's process says what is wrong
        return EngineSettings("", CHAT, {}, {})
