"""Connectors to servers with OpenAI's interface: those of a provider, and the ones that an engine ships.

A model of a provider is written as for Seldon's API runtime: an ordinary connector calls it, no process runs. The
fields are those of docs.seldon.ai/llm-module, "OpenAI", "Gemini" and "Reference: API" (LLM module 0.7):
`parameters.extra.provider_id` and `.config`. Keys come from the environment, under the names that the providers' own
clients read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.client_config import client_config_document
from opensearch_ml_stream.connectors.documents import connector_document
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import ModelFolder
from opensearch_ml_stream.extensions.runtimes.protocol.runtime_urls import engine_url
from opensearch_ml_stream.runtimes.engine_settings import CHAT, EngineSettings, read_engine_settings
from opensearch_ml_stream.runtimes.shipped_runtimes import LLAMA_CPP, VLLM, find_engine

SHORT_NAME = "openai"
_SELDON_PACKAGE = "mlserver_llm_api."
_KEY = "api_key"  # name of the credential

_OPENAI = "https://api.openai.com/v1"
_GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai"  # speaks OpenAI's interface
_AZURE_VERSION = "2024-10-21"

_MESSAGES = '[{"role":"user","content":"${parameters.inputs}"}]'
_SAMPLING = (
    "temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "seed", "presence_penalty",
    "frequency_penalty", "logit_bias",
)  # fmt: skip
_OPTIONAL = {
    "chat.completions": (*_SAMPLING, "tools", "tool_choice", "response_format"),
    "completions": _SAMPLING,
    "embeddings": ("dimensions",),
}
_EMBEDDING = {
    "pre_process_function": "connector.pre_process.openai.embedding",
    "post_process_function": "connector.post_process.openai.embedding",
}

READ_TIMEOUT_SECONDS = 3600  # a call may wait in the server for the calls before it

_SAMPLING_OF_ENGINES = ("top_k", "min_p", "repetition_penalty", "min_tokens", "logprobs", "top_logprobs")
_OF_VLLM = (*_SAMPLING_OF_ENGINES, "parallel_tool_calls", "chat_template_kwargs", "structured_outputs", "ignore_eos")
_FURTHER: Mapping[str, Mapping[str, str]] = {  # members of a request beside OpenAI's, by their parameters
    VLLM: {name: name for name in _OF_VLLM},
    LLAMA_CPP: {**{name: name for name in _SAMPLING_OF_ENGINES}, "repetition_penalty": "repeat_penalty"},
}
_WITHOUT_EFFECT = ("model", "stream", "stream_options", "user")  # in settings that were written for OpenAI


def is_remote_model(implementation: str) -> bool:
    """Return whether a model with this `implementation` is run by a provider."""
    return implementation == SHORT_NAME or implementation.startswith(_SELDON_PACKAGE)


def provider_connector(settings: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the connector for a model-settings.json of a provider's model.

    Its credential is a reference, `env:OPENAI_API_KEY`, which is resolved when the connector is stored. The environment
    has defaults: OPENAI_BASE_URL, AZURE_OPENAI_ENDPOINT, OPENAI_API_VERSION. InvalidRequest names the field that is
    wrong or not supported here.
    """
    extra = _object(_object(settings, "parameters", "parameters"), "extra", "parameters.extra")
    if extra.get("prompt_utils"):
        raise InvalidRequest("parameters.extra.prompt_utils is not supported; write the prompt into the requests")
    config = _object(extra, "config", "parameters.extra.config") if "config" in extra else extra
    model_type = _text(config, "model_type") or "chat.completions"
    if model_type not in _OPTIONAL:
        raise InvalidRequest(
            f"parameters.extra.config.model_type [{model_type}] is not supported; it is one of {', '.join(_OPTIONAL)}"
        )
    url, headers, credential = _endpoint(extra, config, environment)
    fixed = _object(config, "llm_parameters", "parameters.extra.config.llm_parameters")
    name = str(settings.get("name") or config.get("model_id"))
    model = _text(config, "model_id") or _text(config, "azure_deployment")
    if not model:
        raise InvalidRequest("parameters.extra.config.model_id is missing")
    connector = openai_connector(name, url, model, OpenAIRequests(model_type, fixed, {}))
    (action,) = connector["actions"]
    return {**connector, "credential": {_KEY: credential}, "actions": [{**action, "headers": headers}]}


def engine_of(model: ModelFolder) -> str | None:
    """Return the engine whose server runs the model, None for any other model."""
    return find_engine(str(model.settings.get("implementation") or ""), model.parameters.get("extra"))


def engine_connector(key: str, model: ModelFolder, engine: str) -> dict[str, Any]:
    """Return the document of the connector to the model's server; `key` is the name of its processes.

    It has neither the server's address nor its key: callers get these from the process beside the server.
    """
    settings = _settings(model)
    fixed = {name: value for name, value in settings.llm_parameters.items() if name not in _WITHOUT_EFFECT}
    requests = OpenAIRequests(settings.model_type, fixed, _FURTHER[engine])
    connector = openai_connector(key, f"{engine_url(key)}/v1/<path>", model.name, requests)
    config = client_config_document({"read_timeout": READ_TIMEOUT_SECONDS})
    return connector_document({**connector, "client_config": config}, inline=True)


@dataclass(frozen=True, slots=True)
class OpenAIRequests:
    """The requests of a connector to a server with OpenAI's interface.

    `fixed` are members of every request; callers may override some. `further` maps parameters to the server's names of
    members beside OpenAI's.
    """

    model_type: str
    fixed: Mapping[str, Any]
    further: Mapping[str, str]

    def parameters(self, model: str) -> dict[str, Any]:
        """Return the connector's parameters."""
        parameters: dict[str, Any] = {"model": model}
        if self.model_type == "chat.completions":
            parameters["messages"] = _MESSAGES
        elif self.model_type == "completions":
            parameters["prompt"] = "${parameters.inputs}"
        # Callers may override these; a text cannot stand there without quotes.
        return parameters | {name: value for name, value in self.fixed.items() if self._is_changeable(name, value)}

    def body(self) -> str:
        """Return the template; optional members are left out if a request does not have them."""
        content = {
            "chat.completions": '"messages": ${parameters.messages}',
            "completions": '"prompt": "${parameters.prompt}"',
            "embeddings": '"input": ${parameters.input}',
        }[self.model_type]
        members = ['"model": "${parameters.model}"', content]
        literal = {name: value for name, value in self.fixed.items() if not self._is_changeable(name, value)}
        for name, value in literal.items():
            members.append(f"{jsontext.dumps(self.further.get(name, name))}: {jsontext.dumps(value)}")
        optional = {**{name: name for name in _OPTIONAL[self.model_type]}, **self._further()}
        members += [
            f'"{theirs}": ${{parameters.{name}:-null}}' for name, theirs in optional.items() if name not in literal
        ]
        return "{ " + ", ".join(members) + " }"

    def _further(self) -> Mapping[str, str]:
        return {} if self.model_type == "embeddings" else self.further

    def _is_changeable(self, name: str, value: object) -> bool:
        return (name in _OPTIONAL[self.model_type] or name in self._further()) and not isinstance(value, str)


def openai_connector(name: str, url: str, model: str, requests: OpenAIRequests) -> dict[str, Any]:
    """Return the connector to a server with OpenAI's interface, without credential; `<path>` in the URL is replaced."""
    action = {
        "action_type": "PREDICT",
        "method": "POST",
        "url": url.replace("<path>", requests.model_type.replace(".", "/")),
        "request_body": requests.body(),
        **(_EMBEDDING if requests.model_type == "embeddings" else {}),
    }
    return {
        "name": f"runtime {name}",
        "version": "1",
        "protocol": "http",
        "parameters": requests.parameters(model),
        "actions": [action],
    }


def _endpoint(
    extra: Mapping[str, Any], config: Mapping[str, Any], environment: Mapping[str, str]
) -> tuple[str, dict[str, str], str]:
    """Return the URL with `<path>` in it, the headers and the credential of the provider."""
    provider = extra.get("provider_id", "openai")
    bearer = {"Authorization": f"Bearer ${{credential.{_KEY}}}"}
    if provider == "gemini":
        variable = "GOOGLE_API_KEY" if "GOOGLE_API_KEY" in environment else "GEMINI_API_KEY"
        return f"{_base(config, 'base_url', _GEMINI)}/<path>", bearer, f"env:{variable}"
    api_type = "azure" if provider == "azure" else _text(config, "api_type") or "open_ai"
    if provider not in ("openai", "azure") or api_type not in ("open_ai", "azure", "azure_ad"):
        raise InvalidRequest(
            f"parameters.extra.provider_id [{provider}] with api_type [{api_type}] is not supported; it is openai or "
            "gemini, with an api_type of open_ai, azure or azure_ad"
        )
    if api_type == "open_ai":
        if organization := _text(config, "organization"):
            bearer["OpenAI-Organization"] = organization
        base = _base(config, "base_url", environment.get("OPENAI_BASE_URL") or _OPENAI)
        return f"{base}/<path>", bearer, "env:OPENAI_API_KEY"
    url = _azure_url(config, environment)
    if api_type == "azure_ad":
        return url, bearer, _text(config, "azure_ad_token") or "env:AZURE_OPENAI_AD_TOKEN"
    variable = "OPENAI_API_KEY" if "AZURE_OPENAI_API_KEY" not in environment else "AZURE_OPENAI_API_KEY"
    return url, {"api-key": f"${{credential.{_KEY}}}"}, f"env:{variable}"


def _azure_url(config: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    endpoint = _base(config, "azure_endpoint", environment.get("AZURE_OPENAI_ENDPOINT", ""))
    deployment = _text(config, "azure_deployment") or _text(config, "model_id")
    if not endpoint or not deployment:
        raise InvalidRequest("An Azure model needs azure_endpoint and model_id (its deployment) in its config")
    version = _text(config, "api_version") or environment.get("OPENAI_API_VERSION") or _AZURE_VERSION
    return f"{endpoint}/openai/deployments/{deployment}/<path>?api-version={version}"


def _object(parent: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
    value = parent.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{path} must be an object")
    return value


def _text(config: Mapping[str, Any], name: str) -> str:
    value = config.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidRequest(f"parameters.extra.config.{name} must be a string")
    return value or ""


def _base(config: Mapping[str, Any], name: str, default: str) -> str:
    return (_text(config, name) or default).rstrip("/")


def _settings(model: ModelFolder) -> EngineSettings:
    try:
        return read_engine_settings(model.parameters.get("extra"), str(model.folder), None)
    except ValueError:  # the model's process reports the error
        return EngineSettings("", CHAT, {}, {})
