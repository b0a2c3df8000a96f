"""What is sent to a provider for a client's conversation: one body, or parameters for the connector's template.

The body is written by the provider's dialect. Without a known dialect, a conversation fills the template's parameters:
a single text fills the one for a prompt, several turns of text the one for messages, and options those of their names.
Anything else is refused.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from opensearch_ml_stream.connectors.conversation.conversation import Conversation, Media, Text, Turn
from opensearch_ml_stream.connectors.conversation.dialect import ClientRequest, Dialect, Refuse
from opensearch_ml_stream.connectors.conversation.template_members import CannotBeTold, NotGiven, TemplateMembers
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.model_inputs import ChatForm, ModelInputs
from opensearch_ml_stream.connectors.rendering.compiled_action import CompiledAction, ProviderRequest
from opensearch_ml_stream.connectors.rendering.filled_template import parameter_names
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters, Template
from opensearch_ml_stream.connectors.stream_spec import Streaming
from opensearch_ml_stream.connectors.syntax import jsontext

SYSTEM_PARAMETERS = ("system_prompt", "system", "system_instruction")

_BETWEEN_TEXTS = "\n\n"
_WITHOUT_SYSTEM = frozenset({"contents"})  # of Gemini, whose turns are the user's and the model's
_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "max_tokens": (
        "max_completion_tokens", "max_new_tokens", "max_output_tokens", "max_tokens_to_sample", "max_gen_len",
        "max_length", "maxTokens", "maxOutputTokens", "maxTokenCount", "num_predict", "n_predict",
    ),
    "top_p": ("topP",),
    "top_k": ("topK",),
    "stop": ("stop_sequences", "stopSequences"),
    "seed": ("random_seed",),
    "n": ("num_generations", "candidateCount"),
}  # fmt: skip
_HAS_NO_PLACE = "the connector's template has no place for it"


@dataclass(frozen=True, slots=True)
class TemplateParameters:
    """The parameters of a body template that a conversation can fill.

    `names` are all that callers may give, `bare` those that stand in the template as JSON, `quoted` those that are
    texts there, `own` those to which the connector gives a value.
    """

    inputs: ModelInputs
    names: frozenset[str]
    bare: frozenset[str] = frozenset()
    quoted: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()

    @classmethod
    def find(
        cls, template: Template | None, connector: ConnectorParameters, inputs: ModelInputs
    ) -> "TemplateParameters":
        """Find the parameters of a template."""
        placeholders = () if template is None else template.placeholders
        return cls(
            inputs,
            parameter_names((one.name for one in placeholders), connector),
            frozenset(one.name for one in placeholders if not one.quoted),
            frozenset(one.name for one in placeholders if one.quoted),
            frozenset(connector.values),
        )

    def fill(self, conversation: Conversation, refuse: Refuse) -> dict[str, str]:
        """Return the parameters that say a conversation; what they cannot say is refused."""
        for path in conversation.unknown:
            refuse(path, "it is not known to the sidecar, and the provider has another API than the client")
        for name, value in (
            ("tools", conversation.tools),
            ("tool_choice", conversation.tool_choice),
            ("parallel_tool_calls", conversation.parallel_tool_calls),
            ("answer_format", conversation.answer_format),
        ):
            if value not in ((), None):
                refuse(conversation.member(name), _HAS_NO_PLACE)
        filled = self._fill_turns(_Texts(conversation, refuse))
        for name, value in conversation.options.items():
            filled |= self._fill_option(conversation, name, value, refuse)
        return filled

    def _fill_turns(self, texts: "_Texts") -> dict[str, str]:
        system, said = texts.system(), texts.said()
        chat, prompt = self._chat(), self.inputs.prompt
        if chat is None and prompt is None:
            raise InvalidRequest("The template of this model's connector has no parameter that takes a conversation")
        filled: dict[str, str] = {}
        takes_system = chat is not None and chat.parameter not in _WITHOUT_SYSTEM
        if system and (name := next((one for one in SYSTEM_PARAMETERS if one in self.names), None)) is not None:
            filled[name] = _BETWEEN_TEXTS.join(text for _, text in system)
            system = []
        if system and not takes_system:
            texts.refuse_system()
            system = []
        if chat is not None and (system or prompt is None or not _is_one_text(said)):
            messages = texts.in_order(with_system=bool(system))
            return filled | chat.fill([chat.write(role, text) for role, text in messages])
        if not _is_one_text(said):
            texts.refuse_turns("the connector's template takes one text of the user")
            said = [turn for turn in said if turn[0] == "user"][-1:]
        if not said or prompt is None:
            raise InvalidRequest("A conversation needs a text of the user: the connector's template takes nothing else")
        return filled | {prompt: said[0][1]}

    def _chat(self) -> ChatForm | None:
        """Return how messages are given; None where that would replace turns of the connector's own."""
        chat = self.inputs.chat
        return None if chat is None or (chat.message is None and chat.parameter in self.own) else chat

    def _fill_option(self, conversation: Conversation, name: str, value: Any, refuse: Refuse) -> dict[str, str]:
        place = next((one for one in (name, *_SPELLINGS.get(name, ())) if one in self.names), None)
        if place is None:
            refuse(conversation.member(name), _HAS_NO_PLACE)
            return {}
        if isinstance(value, list | dict) and place in self.quoted:
            if not isinstance(value, list) or len(value) != 1 or not isinstance(value[0], str):
                refuse(conversation.member(name), "the connector's template has a place for one text only")
                return {}
            value = value[0]
        if isinstance(value, str) and place in self.bare - self.quoted:
            value = jsontext.quote(value)
        return {place: jsontext.to_parameter(value)}


_RoleAndText = tuple[str, str]


class _Texts:
    """The turns of a conversation as texts; whatever else they hold is refused."""

    def __init__(self, conversation: Conversation, refuse: Refuse) -> None:
        self._refuse = refuse
        self._place = conversation.members.get("turns", "messages")
        self._system_place = conversation.members.get("system", self._place)
        self._turns: Sequence[_RoleAndText] = [
            ("system" if turn.role == "developer" else turn.role, self._text(turn)) for turn in conversation.turns
        ]

    def system(self) -> list[_RoleAndText]:
        return [turn for turn in self._turns if turn[0] == "system"]

    def said(self) -> list[_RoleAndText]:
        return [turn for turn in self._turns if turn[0] != "system"]

    def in_order(self, *, with_system: bool) -> Sequence[_RoleAndText]:
        return self._turns if with_system else self.said()

    def refuse_system(self) -> None:
        self._refuse(self._system_place, "the connector's template has no place for instructions of the system")

    def refuse_turns(self, why: str) -> None:
        self._refuse(self._place, why)

    def _text(self, turn: Turn) -> str:
        if turn.name:
            self._refuse(f"{self._place}.name", _HAS_NO_PLACE)
        texts: list[str] = []
        for part in turn.parts:
            if isinstance(part, Text):
                texts.append(part.text)
                if part.cache is not None:
                    self._refuse(f"{self._place}.cache_control", _HAS_NO_PLACE)
            else:
                kind = part.kind if isinstance(part, Media) else type(part).__name__.lower()
                self._refuse(f"{self._place}.{kind}", "the connector's template takes texts alone")
        return _BETWEEN_TEXTS.join(texts)


def _is_one_text(said: Sequence[_RoleAndText]) -> bool:
    return len(said) == 1 and said[0][0] == "user"


_INDEX = re.compile(r"\[[0-9]*\]")
_TEMPLATE = "by its template's parameters"  # the provider, where no dialect of it is known


@dataclass(slots=True)
class Refusing:
    """Refuses members that a provider cannot take, except those that the model's `_sidecar.drop_params` names.

    The name of a member is its path in the client's body, with or without array indexes: both `messages.name` and
    `messages[].name` name the member of each message.
    """

    drop: frozenset[str]
    provider: str

    def __call__(self, member: str, why: str = "") -> None:
        """Raise InvalidRequest that names a member, unless it is to be dropped."""
        if _without_places(member) in map(_without_places, self.drop):
            return
        reason = f": {why}" if why else ""
        raise InvalidRequest(
            f"[{member}] cannot be sent to this model's provider ({self.provider}){reason}. Leave it out, or let the "
            "model's _sidecar.drop_params name it"
        )


class ConversationRequest(NamedTuple):
    """What a conversation is sent as: a `body`, or `parameters` for the template where that is None."""

    body: Mapping[str, Any] | None
    parameters: Mapping[str, str]

    def render(self, action: CompiledAction, stream: Streaming | None = None) -> ProviderRequest:
        """Return the provider's request, with streaming turned on as `stream` says, if it is given.

        InvalidRequest as from `CompiledAction.render`.
        """
        return action.render(self.parameters, stream) if self.body is None else action.render_body(self.body, stream)


@dataclass(frozen=True, slots=True)
class ConversationTemplate:
    """What a connector's template adds to the requests of conversations, compiled once per connector version.

    `members` is None if the template is not a JSON object whose members are known without a request.
    """

    members: TemplateMembers | None
    parameters: TemplateParameters

    @classmethod
    def compile(cls, action: CompiledAction, inputs: ModelInputs) -> "ConversationTemplate":
        """Read the template of an action."""
        members = None if action.body is None else TemplateMembers.read(action.body, action.parameters)
        return cls(members, TemplateParameters.find(action.body, action.parameters, inputs))

    @classmethod
    def without_template(cls, inputs: ModelInputs) -> "ConversationTemplate":
        """Return what there is to say of a model whose requests are made of parameters by something else."""
        return cls(None, TemplateParameters(inputs, inputs.names))

    def request(
        self, client: ClientRequest, dialect: Dialect | None, drop: Collection[str] = ()
    ) -> ConversationRequest:
        """Return what is sent for a client's request; `dialect` is the provider's, `drop` what may be left out.

        InvalidRequest that names the client's member which cannot be said, or what the connector leaves open.
        """
        if dialect is None or self.members is None:
            return self._by_parameters(client, Refusing(frozenset(drop), _TEMPLATE))
        refuse = Refusing(frozenset(drop), dialect.name)
        try:
            return ConversationRequest(self.members.body(dialect, written_body(client, dialect, refuse)), {})
        except (CannotBeTold, NotGiven) as error:
            if isinstance(error, NotGiven) and error.name != self.parameters.inputs.prompt:
                raise
            return self._by_parameters(client, _with_reason(Refusing(frozenset(drop), _TEMPLATE), error))

    def _by_parameters(self, client: ClientRequest, refuse: Refuse) -> ConversationRequest:
        return ConversationRequest(None, self.parameters.fill(client.conversation, refuse))


def written_body(client: ClientRequest, dialect: Dialect, refuse: Refusing) -> dict[str, Any]:
    """Return a client's request in a provider's dialect: as the client sent it, where that is its own."""
    if client.dialect != dialect.name:
        return dialect.write(client.conversation, refuse)
    body = dict(client.body)
    for path in map(_without_places, refuse.drop):
        if path not in dialect.turns:  # which can be dropped in part only, by a dialect that cannot say all of them
            body = _dropped(body, path.split("."))
    return dialect.adapt(body, refuse)


def _without_places(path: str) -> str:
    return _INDEX.sub("", path)


def _with_reason(refuse: Refuse, error: InvalidRequest) -> Refuse:
    def refuse_with_reason(member: str, why: str = "") -> None:
        refuse(member, f"{why}; {error.reason}" if why else error.reason)

    return refuse_with_reason


def _dropped(value: Any, path: list[str]) -> Any:
    """Return a copy of a value without the members at a path, in each element of an array on the way."""
    if isinstance(value, list):
        return [_dropped(element, path) for element in value]
    if not isinstance(value, Mapping) or path[0] not in value:
        return value
    if len(path) == 1:
        return {name: member for name, member in value.items() if name != path[0]}
    return {**value, path[0]: _dropped(value[path[0]], path[1:])}
