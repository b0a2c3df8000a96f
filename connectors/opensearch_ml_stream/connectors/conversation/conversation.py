"""The neutral form of a conversation, between the APIs of clients and the dialects of providers.

A client API reads a request's body into a `Conversation`; a provider's dialect (`dialect`) writes its request from it.
All values are frozen; JSON within them (schemas, options) is as the client sent it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

JSONObject = Mapping[str, Any]
NONE: JSONObject = MappingProxyType({})
_NO_PARAMETERS: JSONObject = {"type": "object", "properties": {}}

Role = Literal["system", "developer", "user", "assistant"]

OPTION_NAMES = (
    "max_tokens",  # int: of the answer, reasoning included where the provider counts it
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "stop",  # list of strings
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",  # bool
    "top_logprobs",
    "n",
    "reasoning_effort",  # none, minimal, low, medium, high, xhigh
    "reasoning_tokens",  # int: a budget of tokens for reasoning; 0 for none
    "reasoning_summary",  # whether and how a summary of the reasoning is wanted
    "verbosity",
    "user",  # who asks, as the client names them
    "metadata",
    "service_tier",
    "modalities",
    "audio",
)
"""Names of the options of a conversation: sampling, limits and the like."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text. `cache` is Anthropic's `cache_control`, None without one; so in all parts."""

    text: str
    cache: JSONObject | None = None


@dataclass(frozen=True, slots=True)
class Media:
    """An image, a sound or a file: exactly one of `data` (base64), `url`, `file_id` and `text` is not empty.

    `media_type` is "" where it is not known; `text` is that of a document of plain text; `detail` is OpenAI's wish for
    the resolution of an image.
    """

    kind: Literal["image", "audio", "file"]
    media_type: str = ""
    data: str = ""
    url: str = ""
    file_id: str = ""
    text: str = ""
    name: str = ""
    detail: str = ""
    cache: JSONObject | None = None


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Reasoning of an earlier answer.

    `signature` is the provider's proof of the text, `encrypted` stands in place of a text that the provider keeps to
    itself; both are of use to the provider that made them alone.
    """

    text: str = ""
    signature: str = ""
    encrypted: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of an earlier answer. `arguments` are JSON text."""

    id: str
    name: str
    arguments: str
    cache: JSONObject | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool returned for the call of that id; `name` is the tool's, as the call said it."""

    id: str
    parts: tuple[Text | Media, ...]
    name: str = ""
    is_error: bool = False
    cache: JSONObject | None = None


Part = Text | Media | Reasoning | Call | Result


@dataclass(frozen=True, slots=True)
class Turn:
    """A message. Results stand in turns of the user, in the order in which the client sent them."""

    role: Role
    parts: tuple[Part, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the model may call; `parameters` are a JSON schema, None where it takes none."""

    name: str
    description: str = ""
    parameters: JSONObject | None = None
    strict: bool | None = None
    cache: JSONObject | None = None

    @property
    def schema(self) -> JSONObject:
        """The schema of its parameters, which not all providers let one leave out: an empty object's for none."""
        return _NO_PARAMETERS if self.parameters is None else self.parameters


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Which tools are to be called; `name` is that of the only one where `mode` is "named"."""

    mode: Literal["auto", "none", "required", "named"]
    name: str = ""


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """The format of the answer: any JSON, or JSON of a schema."""

    kind: Literal["json", "schema"]
    name: str = ""
    description: str = ""
    schema: JSONObject | None = None
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation, and what its next answer is to be like.

    `options` are by OPTION_NAMES, none of them None. `unknown` are the members of the client's request that have no
    place here, by their paths, as far as they ask for something: only a provider of the client's own dialect takes
    them. `members` say how the client names what it calls otherwise: neutral names -> paths in its body. `left_out`
    are those that every other provider goes without, which the client is told.
    """

    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    answer_format: AnswerFormat | None = None
    options: JSONObject = field(default_factory=dict)
    unknown: JSONObject = field(default_factory=dict)
    members: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def member(self, name: str) -> str:
        """Return what the client calls a member of this form."""
        return self.members.get(name, name)
