"""One version of a model with its connector, compiled once for all its calls."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation_request import ConversationTemplate
from opensearch_ml_stream.connectors.conversation.dialect import ClientRequest, Dialect
from opensearch_ml_stream.connectors.documents import PREDICT, Connector, Model
from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError
from opensearch_ml_stream.connectors.known_providers import SHIPPED, KnownProviders
from opensearch_ml_stream.connectors.model_options import InputOptions, SidecarSettings
from opensearch_ml_stream.connectors.predict.guardrails.configuration import Guardrails, read_guardrails
from opensearch_ml_stream.connectors.predict.inputs import PredictInput, RemoteInput
from opensearch_ml_stream.connectors.predict.model_inputs import ModelInputs, find_model_inputs
from opensearch_ml_stream.connectors.predict.model_interface import InterfaceSchema
from opensearch_ml_stream.connectors.predict.parameter_hints import ParameterHints, find_parameter_hints
from opensearch_ml_stream.connectors.predict.pre_process import ScriptStep, Step, plan_steps
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction, ProviderRequest
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters
from opensearch_ml_stream.connectors.stream_spec import Streaming, StreamSpec
from opensearch_ml_stream.connectors.stream_spec_lookup import choose_spec, spec_for
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.connector_protocol import ModelAction, ModelProtocol
from opensearch_ml_stream.plugin.credentials.external import is_external, resolve_credential
from opensearch_ml_stream.plugin.credentials.redaction import Redactor
from opensearch_ml_stream.plugin.limits.rate_limits import RateLimit, read_rate_limiter
from opensearch_ml_stream.plugin.registry.default_model_interfaces import default_interface

MAX_CACHED_SPECS = 16  # per model: a caller may send any `_llm_interface`
MAX_INTERFACE_CHARS = 100  # of an `_llm_interface` whose spec is cached
NO_SETTINGS = SidecarSettings()
_LLM_INTERFACE = "_llm_interface"


class CompiledModel:
    """One version of a model with its connector, ready to be called.

    `protocol` calls the model in place of a provider, None for a remote model. `own_requests` make its requests in
    place of the connector's templates, None where the templates do. Holds the credentials in clear text: never log or
    store it.
    """

    def __init__(
        self,
        model_id: str,
        definition: Model,
        connector: Connector,
        credential: Mapping[str, str],
        *,
        external_credentials_enabled: bool = False,
        settings: SidecarSettings = NO_SETTINGS,
        limiters_by_user: Mapping[str, Any] = MappingProxyType({}),
        protocol: ModelProtocol | None = None,
        providers: KnownProviders = SHIPPED,
    ) -> None:
        self.model_id = model_id
        self.definition = definition
        self.connector = connector
        self.settings = settings
        self.protocol = protocol
        self.own_requests = None if protocol is None else protocol.own_requests
        self.providers = providers
        self._limiters_by_user = limiters_by_user
        self._limits_by_user: dict[str, RateLimit | None] = {}  # read when they are needed first
        self._stored_credential = credential
        self._has_external_credential = is_external(credential)
        self._external_credentials_enabled = external_credentials_enabled
        self._parameters = ConnectorParameters.compile(connector.parameters)
        self._compiled: dict[str, tuple[Mapping[str, str], CompiledAction]] = {}
        self._redactor: tuple[Mapping[str, str], Redactor] | None = None
        self._specs: dict[tuple[str, str], StreamSpec | MLStreamError] = {}

    @property
    def pool_key(self) -> str:
        """The id of what `max_connection` limits: the connector, or the model if its connector is inline."""
        return self.definition.connector_id or self.model_id

    @property
    def credential(self) -> Mapping[str, str]:
        """The credentials in clear, external ones (`env:`, `file:`) as they are now."""
        if not self._has_external_credential:
            return self._stored_credential
        return resolve_credential(self._stored_credential, self._external_credentials_enabled)

    @property
    def redactor(self) -> Redactor:
        """What takes the credentials out of the provider's responses; made again only if one has changed."""
        credential = self.credential
        if self._redactor is None or self._redactor[0] != credential:
            self._redactor = (credential, Redactor(credential))
        return self._redactor[1]

    def action(self, action_type: str = PREDICT) -> ModelAction:
        """Return the compiled action; it is compiled again only if an external credential has changed."""
        if self.own_requests is not None:
            return self.own_requests.action(action_type)
        credential = self.credential
        cached = self._compiled.get(action_type)
        if cached is not None and cached[0] == credential:
            return cached[1]
        action = self.connector.action(action_type)
        stream = self._stream(action_type)
        compiled = CompiledAction.compile(action, self._parameters, credential, self.providers, stream)
        self._compiled[action_type] = (credential, compiled)
        return compiled

    @cached_property
    def rate_limit(self) -> RateLimit | None:
        """The model's `rate_limiter`, None without one. Raises InvalidRequest that names what is wrong in it."""
        return read_rate_limiter(self.definition.document.get("rate_limiter"))

    def user_limit(self, user: str) -> RateLimit | None:
        """Return a user's limit in the model's controller, None without one or for "", who has not logged in.

        Raises InvalidRequest that names what is wrong in it.
        """
        limits = self._limits_by_user
        if not user or user not in self._limiters_by_user:
            return None
        if user not in limits:
            limits[user] = read_rate_limiter(self._limiters_by_user[user], f"user_rate_limiter.{user}")
        return limits[user]

    @cached_property
    def has_limits(self) -> bool:
        """Whether an input guardrail, limits or budgets of the model, right or wrong, may refuse a call."""
        settings, limits, guardrails = self.settings, self.settings.limits, self._guardrails
        return (
            isinstance(guardrails, InvalidRequest)
            or guardrails.input is not None
            or self.definition.document.get("rate_limiter") is not None
            or bool(self._limiters_by_user)
            or bool(settings.budgets)
            or settings.prices is not None
            or limits.max_streams is not None
            or limits.max_streams_per_user is not None
        )

    @cached_property
    def is_timed(self) -> bool:
        """Whether the model's own limits bound the times of its provider calls."""
        return self.settings.limits.are_of_time

    @cached_property
    def inputs(self) -> ModelInputs:
        """What the model takes. Raises InvalidRequest if its connector has no predict action."""
        if self.own_requests is not None:
            return self.own_requests.inputs
        return find_model_inputs(self.connector.action(), self._parameters, self.settings.of(InputOptions).prompt)

    @cached_property
    def _parameter_hints(self) -> ParameterHints | None:
        """What the templates of the predict action name; None where there is none, or a protocol in its place."""
        action = next((one for one in self.connector.actions if one.action_type == PREDICT), None)
        if action is None or self.protocol is not None:
            return None
        return find_parameter_hints(action, self._parameters.values)

    def warnings(self, parameters: Mapping[str, str], action_type: str | None = None) -> Sequence[str]:
        """Return hints at parameters of a call that the connector does not use, if they look misspelt."""
        hints = self._parameter_hints
        if hints is None or action_type not in (None, PREDICT) or not (unknown := parameters.keys() - hints.known):
            return ()
        return hints.of(name for name in parameters if name in unknown)

    @property
    def guardrails(self) -> Guardrails:
        """The model's `guardrails`. Raises InvalidRequest that names what is wrong in them: nothing passes then."""
        if isinstance(self._guardrails, InvalidRequest):
            raise self._guardrails.with_traceback(None)
        return self._guardrails

    @cached_property
    def _guardrails(self) -> Guardrails | InvalidRequest:
        try:
            return read_guardrails(self.definition.document.get("guardrails"))
        except InvalidRequest as error:
            return error

    def compile_guardrails(self) -> None:
        """Compile the guardrails ahead of the first prediction, in a thread: that may take a second."""
        _ = self._guardrails

    def check_input(self, predict_input: PredictInput, steps: Sequence[Mapping[str, str]] | None = None) -> None:
        """Raise InvalidRequest if the model's interface does not allow the input.

        With `steps` it must allow it with the parameters of each of them, in place of its own.
        """
        if (schema := self._input_schema) is not None:
            schema.validate_input(predict_input, [predict_input.parameters] if steps is None else steps)

    def steps(self, action: ModelAction, predict_input: PredictInput) -> Sequence[Step | ScriptStep]:
        """Return the calls of a whole prediction by an action, in the order of their results."""
        if self.own_requests is not None:
            return self.own_requests.steps(predict_input)
        return plan_steps(action.action, self.connector.parameters, predict_input)

    def readable_text(self, request: ProviderRequest) -> str:
        """Decode a request's body for guardrails, by its charset: decoded as UTF-8 it might pass them unread."""
        if self.own_requests is not None:
            return self.own_requests.readable_text(request.body)
        return request.body.decode(request.charset, "replace")

    def check_output(self, response: Mapping[str, Any]) -> None:
        """Raise InvalidRequest if a whole predict response does not match the model's interface."""
        if (schema := self._output_schema) is not None:
            schema.validate(response)

    @property
    def promises_output(self) -> bool:
        """Whether the model's interface has a schema for whole predict responses."""
        return self._output_schema is not None

    @cached_property
    def _input_schema(self) -> InterfaceSchema | None:
        return self._schema("input")

    @cached_property
    def _output_schema(self) -> InterfaceSchema | None:
        """The schema of responses; None also for that which the model has only by its connector."""
        given = self._interface("output")
        action = next(iter(self.connector.actions), None)
        default = action and default_interface(self.connector.parameters, action.post_process_function)
        if given and default and jsontext.value_or_text(given) == jsontext.value_or_text(default["output"]):
            return None
        return self._schema("output")

    def _schema(self, side: str) -> InterfaceSchema | None:
        """Return the schema of one side of the model's `interface`, None without one."""
        text = self._interface(side)
        return None if text in ("", "null") else InterfaceSchema.compile(text, side)

    def _interface(self, side: str) -> str:
        schema = (self.definition.document.get("interface") or {}).get(side, "")
        return schema if isinstance(schema, str) else jsontext.dumps(schema)

    @cached_property
    def dialect(self) -> Dialect | None:
        """The dialect of its provider's conversations; None if unknown, or if the interface has an input schema.

        That schema is of parameters, so conversations have to be rendered as parameters, and checked.
        """
        if self.own_requests is not None or self._input_schema is not None:
            return None
        try:
            return choose_spec(self.connector, self.connector.action(), {}, self.providers).dialect
        except InvalidRequest:
            return None

    @cached_property
    def can_stream(self) -> bool:
        """Whether it is known how its provider streams."""
        return self._stream(PREDICT) is not None

    @cached_property
    def _conversation_template(self) -> ConversationTemplate:
        action = self.action()
        if isinstance(action, CompiledAction):
            return ConversationTemplate.compile(action, self.inputs)
        return ConversationTemplate.without_template(self.inputs)

    def render_conversation(self, client: ClientRequest, stream: Streaming | None = None) -> ProviderRequest:
        """Return the request for a conversation, with streaming turned on as `stream` says, if it is given.

        InvalidRequest for what provider, template or interface refuse.
        """
        made = self._conversation_template.request(client, self.dialect, self.settings.drop_params)
        if made.body is None:
            self.check_input(RemoteInput(made.parameters))
        action = self.action()
        return (
            made.render(action, stream)
            if isinstance(action, CompiledAction)
            else action.render(made.parameters, stream)
        )

    def _stream(self, action_type: str) -> Streaming | None:
        """Return how this connector's action streams; None where it does not, or that is not known."""
        try:
            return self.spec({}, action_type)
        except MLStreamError:
            return None

    def spec(self, parameters: Mapping[str, str], action_type: str = PREDICT) -> Streaming:
        """Return how this connector's action streams; InvalidRequest if it cannot."""
        if self.own_requests is not None:
            return self.own_requests.spec
        name = parameters.get(_LLM_INTERFACE, "")
        key = (action_type, name)
        spec = self._specs.get(key)
        if spec is None:
            try:
                action = self.connector.action(action_type)
                spec = spec_for(self.connector, action, {_LLM_INTERFACE: name} if name else {}, self.providers)
            except MLStreamError as error:
                spec = error
            if len(self._specs) < MAX_CACHED_SPECS and len(name) <= MAX_INTERFACE_CHARS:
                self._specs[key] = spec
        if isinstance(spec, MLStreamError):
            raise spec.with_traceback(None)
        return spec
