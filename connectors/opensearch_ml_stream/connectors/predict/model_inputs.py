"""What a connector's action takes of a text, a chat or tensors, found in its templates once per version of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.documents import Action
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.pre_process import ranks_texts, takes_texts, text_parameter
from opensearch_ml_stream.connectors.rendering.template import ConnectorParameters, Placeholder, Template
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText, to_json

PROMPTS = ("inputs", "prompt", "question")  # the parameters that blueprints give a text in
INPUT = "input"  # where texts go without a function
TEXT = "text"  # what an input of texts is called where the template has no name for it
MESSAGES = "messages"
TENSORS = "tensors"

_MAX_FORM_CHARS = 512  # each message of a chat is made in the form
_ROLES: Mapping[str, Mapping[str, str]] = {"contents": {"assistant": "model"}}  # Gemini's name for who responds


@dataclass(frozen=True, slots=True)
class ChatForm:
    """The parameter that takes a chat's messages, and how the connector writes a message.

    `message` is the connector's own message of a user with `prompt` in place of the text, None for
    `{"role": ..., "content": ...}`.
    """

    parameter: str = MESSAGES
    message: Any = None
    prompt: str = ""

    def write(self, role: str, content: Any) -> dict[str, Any]:
        """Return a message for JSON."""
        role = _ROLES.get(self.parameter, {}).get(role, role)
        if self.message is None or not isinstance(content, str):
            return {"role": role, "content": content}
        message: dict[str, Any] = _filled(self.message, self.prompt, content)
        return {**message, "role": role}

    def fill(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """Return the parameter with these messages."""
        return {self.parameter: _json(messages)}


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """What an action takes.

    `names` are the parameters that its templates use, and `free` those of them that the connector leaves to the caller.
    `prompt` is the one for a text, None if it takes none; `chat` how it takes messages. `takes_texts` is whether any
    number of texts go to its `pre_process_function`, as `text_docs` do, and `ranks` whether a query goes there with
    them. `as_json` are the names whose place has no quotes, where JSON goes, and `needed` those without a default.
    `texts` are names of an input of texts: by these no parameter is meant, although one may be named so.
    """

    names: frozenset[str]
    free: frozenset[str]
    prompt: str | None
    chat: ChatForm | None
    takes_texts: bool
    ranks: bool = False
    as_json: frozenset[str] = frozenset()
    needed: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()

    @property
    def takes_tensors(self) -> bool:
        """Whether the template has a place for the tensors themselves."""
        return TENSORS in self.names

    def fill_text(self, text: str) -> dict[str, str]:
        """Return the parameter that a text fills: the one for a text, or a chat of one message; none without either."""
        if self.prompt is not None:
            return {self.prompt: _json([text]) if self.prompt in self.as_json else text}
        return {} if self.chat is None else self.chat.fill([self.chat.write("user", text)])

    def describe(self) -> str:
        """Return what the model takes, for who sent something else."""
        takes = ["any tensors"] if self.takes_tensors else []
        if self.takes_texts:
            takes.append("a BYTES tensor of texts")
        elif self.ranks:
            takes.append("BYTES tensors named query and documents")
        elif self.prompt is not None or self.chat is not None:
            takes.append("a text in a BYTES tensor")
        if self.chat is not None:
            takes.append("a chat in BYTES tensors named role and content")
        named = sorted(self.free - {self.prompt, TENSORS})[:20]
        if named:
            takes.append(f"tensors named {', '.join(named)}")
        return "; ".join(takes) or "no tensors"


def find_model_inputs(action: Action, connector: ConnectorParameters, prompt: str | None = None) -> ModelInputs:
    """Return what an action takes; `prompt` is the parameter for a text, if the model's settings name one."""
    places = _places(action, connector)
    names = frozenset(place.name for place in places)
    free = frozenset(name for name in names if name not in connector.values)
    as_json = frozenset(place.name for place in places if not place.quoted)
    of_texts = prompt is None and takes_texts(action, free)
    if of_texts and not (action.pre_process_function or action.post_process_function) and INPUT not in as_json:
        prompt, of_texts = INPUT, False  # a place in quotes is for one text, and a list of them would be a text of JSON
    found = prompt or (None if of_texts else next((name for name in PROMPTS if name in free), None))
    return ModelInputs(
        names,
        free,
        found,
        _chat_form(connector, names, found),
        of_texts,
        prompt is None and ranks_texts(action),
        as_json,
        frozenset(place.name for place in places if place.default is None) & free,
        _texts(action) if of_texts else frozenset(),
    )


def _texts(action: Action) -> frozenset[str]:
    """Return the names of an input of texts. Where no function has to do with embeddings, `input` is a parameter."""
    own = text_parameter(action) if action.pre_process_function or action.post_process_function else None
    return frozenset({TEXT} if own is None else {TEXT, own})


def _places(action: Action, connector: ConnectorParameters) -> set[Placeholder]:
    """Return the placeholders of an action, and of the values of the connector's parameters that are in its places.

    Where a value stands as a text, each of its own is quoted.
    """
    body, url = Template.compile(action.request_body or ""), Template.compile(action.url, json=False)
    places = set[Placeholder]()
    read = set[tuple[str, bool]]()
    left = [*body.placeholders, *url.placeholders]
    while left:
        place = left.pop()
        places.add(place)
        value = connector.templates.get(place.name)
        if value is not None and (place.name, place.quoted) not in read:
            read.add((place.name, place.quoted))
            left += (value.text if place.quoted else value.json).placeholders
    return places


def _chat_form(connector: ConnectorParameters, names: frozenset[str], prompt: str | None) -> ChatForm | None:
    if prompt is not None:
        for name in sorted(names & connector.templates.keys()):
            message = _message(connector.values[name], _placeholder(prompt))
            if message is not None:
                return ChatForm(name, message, _placeholder(prompt))
    return ChatForm() if MESSAGES in names else None


def _message(value: str, prompt: str) -> Any:
    """Return the only message of a connector's parameter, None if it is not one that a text alone fills."""
    if len(value) > _MAX_FORM_CHARS or f'"{prompt}"' not in value:
        return None
    try:
        messages = jsontext.parse(value, "")
    except InvalidRequest:
        return None
    is_one = isinstance(messages, list) and len(messages) == 1 and isinstance(messages[0], dict)
    return messages[0] if is_one and "role" in messages[0] else None


def _json(value: Any) -> JsonText:
    return JsonText(to_json(value).decode())


def _placeholder(name: str) -> str:
    return f"${{parameters.{name}}}"


def _filled(form: Any, prompt: str, text: str) -> Any:
    """Return a JSON value with a text in place of the string `prompt`."""
    if isinstance(form, dict):
        return {name: _filled(value, prompt, text) for name, value in form.items()}
    if isinstance(form, list):
        return [_filled(value, prompt, text) for value in form]
    return text if form == prompt else form
