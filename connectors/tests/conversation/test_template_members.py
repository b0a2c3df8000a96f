"""Bodies of conversations: what a connector's template fixes, what it has by default, and what it leaves open."""

import json
from typing import Any

import pytest

from opensearch_ml_stream.connectors.conversation.conversation import Conversation
from opensearch_ml_stream.connectors.conversation.dialect import Dialect, Refuse
from opensearch_ml_stream.connectors.conversation.template_members import MAX_FOLLOWED, CannotBeTold, TemplateMembers
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.rendering.template import MAX_PLACEHOLDERS, ConnectorParameters, Template
from tests.counted_work import steps

ASKED = {"messages": [{"role": "user", "content": "Hello"}]}
CANNOT_BE_TOLD = "has words of its own at .* which cannot be told from the place of the conversation"


def write(conversation: Conversation, refuse: Refuse) -> dict[str, Any]:
    raise NotImplementedError


def dialect(*turns: str, **instead_of: tuple[str, ...]) -> Dialect:
    return Dialect("any", write, turns or ("messages", "system"), instead_of=instead_of)


def members(template: str, **parameters: str) -> TemplateMembers:
    found = TemplateMembers.read(Template.compile(template), ConnectorParameters.compile(parameters))
    assert found is not None
    return found


def body(template: str, written: dict[str, Any], spoken: Dialect | None = None, /, **parameters: str) -> dict[str, Any]:
    return members(template, **parameters).body(spoken or dialect(), written)


@pytest.mark.parametrize(
    ("literal", "said"),
    [("0", 1), ('"a"', "b"), ("null", 1), ("[]", ["x"]), ('[{"name":"f"}]', []), ("false", True), ('""', {"a": 1})],
)
def test_a_literal_member_wins(literal: str, said: object) -> None:
    assert body(f'{{"x":{literal}}}', {"x": said, "y": 1}) == {"x": json.loads(literal), "y": 1}


def test_objects_are_walked_member_by_member() -> None:
    template = '{"config":{"inner":{"a":0},"b":${parameters.b}},"empty":{}}'
    said = {"config": {"inner": {"a": 9, "c": 1}, "b": 2, "d": 3}, "empty": {"e": 4}}
    assert body(template, said, b="5") == {
        "config": {"inner": {"a": 0, "c": 1}, "b": 2, "d": 3},
        "empty": {"e": 4},
    }
    assert body(template, {}, b="5") == {"config": {"inner": {"a": 0}, "b": 5}, "empty": {}}
    assert body(template, {"config": "none"}, b="5")["config"] == {"inner": {"a": 0}, "b": 5}
    assert body('{"config":{"b":${parameters.b}}}', {"config": "none"}, b="5") == {"config": "none"}


@pytest.mark.parametrize(
    ("template", "default"),
    [
        ('{"x":${parameters.x}}', 7),
        ('{"x":"${parameters.x}"}', "7"),
        ('{"x":${parameters.y:-8}}', 8),
        ('{"x":"${parameters.y:-a\\u0022b}"}', 'a"b'),
        ('{"x":["${parameters.x}"]}', ["7"]),
        ('{"x":${parameters.within}}', {"z": [7]}),
        ('{"x":"${parameters.within}"}', '{"z":[7]}'),
        ('{"a":1, "x":${parameters.x:-null}}', 7),
        ('{"x":"${parameters.x:-null}"}', "7"),
    ],
)
def test_what_the_connectors_parameters_or_a_default_fill_is_a_default(template: str, default: object) -> None:
    parameters = {"x": "7", "within": '{"z":[${parameters.x}]}'}
    assert body(template, {}, **parameters)["x"] == default
    assert body(template, {"x": "said"}, **parameters)["x"] == "said"


def test_a_text_with_words_of_the_template_around_a_connectors_parameter_is_fixed() -> None:
    assert body('{"user":"team-${parameters.team}"}', {"user": "root"}, team="a") == {"user": "team-a"}


def test_what_is_open_is_what_is_said_or_is_left_out_if_it_is_optional() -> None:
    template = '{"a":${parameters.a:-null}, "b":"${parameters.b:-null}", "d":{"e":${parameters.e:-null}}}'
    assert body(template, {}) == {}
    assert body(template, {"a": 1, "b": "x", "d": {"e": 3}}) == {"a": 1, "b": "x", "d": {"e": 3}}


@pytest.mark.parametrize(
    "template", ['{"x":${parameters.q}}', '{"x":"a${parameters.q}"}', '{"x":["a",${parameters.q}]}']
)
def test_what_nobody_gives_is_refused_by_its_name(template: str) -> None:
    with pytest.raises(InvalidRequest, match=r"needs the parameter \[q\], which no conversation gives"):
        body(template, ASKED)


def test_a_parameter_without_quotes_that_is_no_json_counts_as_not_given() -> None:
    with pytest.raises(InvalidRequest, match=r"needs the parameter \[limit\]"):
        body('{"max_tokens":${parameters.limit}}', ASKED, limit="your limit")
    assert body('{"max_tokens":${parameters.limit}}', {"max_tokens": 5}, limit="your limit") == {"max_tokens": 5}


@pytest.mark.parametrize("template", ['{"x":"a${parameters.q}"}', '{"x":["a","${parameters.q}"]}'])
def test_a_value_that_is_fixed_in_part_only_cannot_be_replaced(template: str) -> None:
    with pytest.raises(CannotBeTold):
        body(template, {"x": "said"})


def test_members_that_say_the_same_as_one_that_is_written_are_left_out() -> None:
    spoken = dialect("messages", max_completion_tokens=("max_tokens", "options.limit"))
    template = '{"max_tokens":${parameters.limit}, "options":{"limit":${parameters.limit},"a":1}}'
    assert body(template, {}, spoken, limit="5") == {"max_tokens": 5, "options": {"limit": 5, "a": 1}}
    written = {"max_completion_tokens": 9}
    assert body(template, written, spoken, limit="5") == {"options": {"a": 1}, "max_completion_tokens": 9}


def test_a_literal_one_that_says_the_same_wins() -> None:
    spoken = dialect("messages", max_completion_tokens=("max_tokens",))
    assert body('{"max_tokens":5}', {"max_completion_tokens": 9}, spoken) == {"max_tokens": 5}


def test_another_place_for_what_is_said_is_left_out_unless_the_template_has_words_of_its_own_there() -> None:
    spoken = dialect("messages", messages=("prompt",))
    assert body('{"prompt":"${parameters.prompt}"}', ASKED, spoken) == ASKED
    assert body('{"prompt":"${parameters.prompt}"}', ASKED, spoken, prompt="${parameters.inputs}") == ASKED
    for prompt in ("Sing", "Sing: ${parameters.inputs}"):
        with pytest.raises(CannotBeTold, match=r"at \[prompt\]"):
            body('{"prompt":"${parameters.prompt}"}', ASKED, spoken, prompt=prompt)


def test_what_the_provider_requires_has_the_dialects_default_where_nobody_says_it() -> None:
    spoken = Dialect("any", write, ("messages",), defaults={"max_tokens": 64})
    assert body('{"messages":${parameters.messages}}', ASKED, spoken) == {"max_tokens": 64, **ASKED}
    assert body('{"max_tokens":${parameters.limit}}', {}, spoken, limit="5") == {"max_tokens": 5}
    assert body('{"x":1}', {"max_tokens": 7}, spoken) == {"x": 1, "max_tokens": 7}


@pytest.mark.parametrize(
    "messages",
    [
        "${parameters.messages}",
        "${parameters.messages:-null}",
        '"${parameters.messages}"',
        '[{"role":"user","content":"${parameters.inputs}"}]',
        '[{"role":"system","content":"${parameters.s}"},{"role":"user","content":[{"type":"text","text":"${parameters.inputs}"}]}]',
        '[${parameters._chat_history:-}{"role":"user","content":"${parameters.prompt}"}${parameters._interactions:-}]',
        "[${parameters.one}]",
        "${parameters.own}",
    ],
)
def test_a_place_of_turns_takes_the_conversation(messages: str) -> None:
    own = '[{"role":"user","content":"${parameters.inputs}"}]'
    assert body(f'{{"messages":{messages}}}', ASKED, own=own) == ASKED


@pytest.mark.parametrize(
    "messages",
    [
        '[{"role":"system","content":"Be kind"},{"role":"user","content":"${parameters.inputs}"}]',
        '[{"role":"system","content":"${parameters.kind}"},${parameters._chat_history:-}{"role":"user","content":"${parameters.prompt}"}]',
        '[{"role":"system","content":"Be kind"}]',
        "${parameters.own}",
    ],
)
def test_the_templates_own_turns_come_first(messages: str) -> None:
    own = '[{"role":"system","content":"${parameters.kind}"},{"role":"user","content":"${parameters.inputs}"}]'
    kind = {"role": "system", "content": "Be kind"}
    made = body(f'{{"messages":{messages}}}', ASKED, own=own, kind="Be kind")
    assert made == {"messages": [kind, *ASKED["messages"]]}


@pytest.mark.parametrize(
    "messages",
    [
        '[{"role":"user","content":"Answer politely: ${parameters.inputs}"}]',
        '[{"role":"user","content":"${parameters.inputs}"},{"role":"assistant","content":"Well,"}]',
        '[{"role":"user","content":[{"type":"text","text":"Politely"},{"type":"text","text":"${parameters.inputs}"}]}]',
        '[{"role":"user","name":"bob","content":"${parameters.inputs}"}]',
        '"Answer politely: ${parameters.inputs}"',
        '"${parameters.a}${parameters.b}"',
        "${parameters.own}",
        "7",
    ],
)
def test_words_that_cannot_be_told_from_the_place_of_the_conversation_are_not_passed_by(messages: str) -> None:
    with pytest.raises(CannotBeTold, match=CANNOT_BE_TOLD):
        body(f'{{"messages":{messages}}}', ASKED, own='[{"role":"user","content":"Politely: ${parameters.inputs}"}]')


@pytest.mark.parametrize(
    ("own", "said", "joined"),
    [
        ('"Be kind"', "Be brief", "Be kind\n\nBe brief"),
        ('"${parameters.kind}"', "Be brief", "Be kind\n\nBe brief"),
        ('""', "Be brief", "Be brief"),
        ("null", "Be brief", "Be brief"),
        ('"${parameters.open}"', "Be brief", "Be brief"),
        (
            '"Be kind"',
            [{"type": "text", "text": "Be brief", "cache_control": {}}],
            [{"type": "text", "text": "Be kind"}, {"type": "text", "text": "Be brief", "cache_control": {}}],
        ),
        (
            '[{"type":"text","text":"Be kind"}]',
            "Be brief",
            [{"type": "text", "text": "Be kind"}, {"type": "text", "text": "Be brief"}],
        ),
        ('[{"text":"Be kind"}]', [{"text": "Be brief"}], [{"text": "Be kind"}, {"text": "Be brief"}]),
        ('[{"text":"${parameters.open}"}]', [{"text": "Be brief"}], [{"text": "Be brief"}]),
        (
            '{"role":"system","parts":[{"text":"Be kind"}]}',
            {"role": "user", "parts": [{"text": "Be brief"}]},
            {"role": "system", "parts": [{"text": "Be kind"}, {"text": "Be brief"}]},
        ),
        (
            '{"role":"system","parts":[{"text":"${parameters.open}"}]}',
            {"parts": [{"text": "Be brief"}]},
            {"parts": [{"text": "Be brief"}]},
        ),
    ],
)
def test_a_system_text_of_the_template_and_the_clients_are_joined_by_their_forms(
    own: str, said: Any, joined: object
) -> None:
    assert body(f'{{"system":{own}}}', {"system": said}, kind="Be kind") == {"system": joined}


def test_a_system_text_of_the_template_stays_without_one_of_the_client_and_an_open_one_is_left_out() -> None:
    assert body('{"system":"Be kind"}', ASKED) == {"system": "Be kind", **ASKED}
    assert body('{"system":"${parameters.system}"}', ASKED) == ASKED
    assert body('{"i":{"parts":[{"text":"${parameters.s}"}]}}', ASKED, dialect("messages", "i.parts")) == ASKED


@pytest.mark.parametrize(
    "template",
    [
        "${parameters.body}",
        '["${parameters.x}"]',
        '{"x":1}\n{"x":2}',
        '{"${parameters.name}":1}',
        "{${parameters.members}}",
        '{"x":1,"x":2}',
        '{"x":-${parameters.x}}',
        '{"x":"\ue000"}',
        '{"x":${parameters.loop}}',
        '{"x":' + "[" * 150 + "]" * 150 + "}",
        '{"x":' + '{"y":' * 150 + "1" + "}" * 150 + "}",
    ],
)
def test_a_template_whose_members_cannot_be_known_has_none(template: str) -> None:
    loop = ConnectorParameters.compile({"loop": "[${parameters.loop}]"})
    assert TemplateMembers.read(Template.compile(template), loop) is None


@pytest.mark.parametrize("quote", ['"', ""])
def test_parameters_that_hold_each_other_ten_times_are_followed_to_a_bound(quote: str) -> None:
    ten = ",".join(["${parameters.p%d}"] * 10)
    values = {f"p{level}": f"[{ten}]" % ((level + 1,) * 10) for level in range(12)} | {"p12": "1"}
    template = Template.compile('{"x":' + quote + "${parameters.p0}" + quote + "}")

    def read() -> None:
        assert TemplateMembers.read(template, ConnectorParameters.compile(values)) is None

    assert steps(read) < 100 * MAX_FOLLOWED


def test_work_is_linear_in_the_placeholders_and_in_what_is_said() -> None:
    def work(count: int) -> tuple[int, int]:
        template = Template.compile("{" + ",".join(f'"m{one}":${{parameters.p{one}}}' for one in range(count)) + "}")
        values = ConnectorParameters.compile({f"p{one}": f"[{one}]" for one in range(count)})
        found = [TemplateMembers(members("{}").root)]
        read = steps(lambda: found.append(TemplateMembers.read(template, values) or found[0]))
        said = {f"m{one}": one for one in range(0, count, 2)}
        made = steps(lambda: found[1].body(dialect(), said))
        assert found[1].body(dialect(), said) == {f"m{one}": said.get(f"m{one}", [one]) for one in range(count)}
        return read, made

    few, many = work(MAX_PLACEHOLDERS // 10), work(MAX_PLACEHOLDERS)
    assert many[0] < 12 * few[0]
    assert many[1] < 12 * few[1]


def test_a_body_of_a_template_that_is_nested_as_deep_as_may_be_is_made() -> None:
    deep = '{"x":' * 90 + "${parameters.x:-null}" + "}" * 90
    said: Any = 1
    for _ in range(90):
        said = {"x": said}
    assert body(deep, said) == said


@pytest.mark.parametrize(
    ("template", "written", "limit"),
    [
        ("{}", {}, 4096),
        ("{}", {"max_tokens": 7}, 7),
        ('{"max_tokens":100}', {}, 100),
        ('{"max_tokens":${parameters.max_tokens}}', {}, 4096),
        ('{"max_tokens":${parameters.max_tokens}}', {"max_tokens": 7}, 7),
        ('{"max_tokens":${parameters.own}}', {}, 200),
        ('{"max_tokens":${parameters.max_tokens:-300}}', {}, 300),
        ('{"max_tokens":${parameters.max_tokens:-null}}', {}, 4096),
    ],
)
def test_a_default_of_the_dialect_stands_where_neither_client_nor_template_says_anything(
    template: str, written: dict[str, Any], limit: int
) -> None:
    spoken = Dialect("any", write, ("messages",), defaults={"max_tokens": 4096})
    assert body(template, written, spoken, own="200") == {"max_tokens": limit}


@pytest.mark.parametrize("said", ["", "x", "max_tokens", "y"])
@pytest.mark.parametrize(
    "template",
    [
        '{"model":"${parameters.model}","messages":${parameters.messages}}',
        '{"model":"a","messages":${parameters.messages},"x":${parameters.x:-null},"max_tokens":${parameters.n:-5}}',
        '{"messages":[{"role":"user","content":"${parameters.prompt}"}],"x":1}',
        '{"messages":${parameters.messages},"x":${parameters.x:-null},"y":${parameters.y:-7}}',
        '{"messages":${parameters.messages},"x":${parameters.x:-7},"y":${parameters.y:-null}}',
    ],
)
def test_a_template_of_whole_values_gives_what_it_gives_member_by_member(template: str, said: str) -> None:
    written = ASKED | ({said: 9} if said else {})
    walked = template[:-1] + ',"walked":{"inner":0}}'  # an object is walked, and the rest with it
    spoken = dialect(x=("y",), y=("x",))
    merged = body(template, written, spoken, model="m")
    assert merged | {"walked": {"inner": 0}} == body(walked, written, spoken, model="m")


@pytest.mark.parametrize("said", [{}, {"x": 1}, {"y": 1}])
def test_a_template_of_whole_values_takes_no_step_for_each_of_its_members(said: dict[str, int]) -> None:
    def request(count: int) -> int:
        fixed = "".join(f',"{number}":1' for number in range(count))
        template = '{"messages":${parameters.messages},"x":${parameters.x:-null},"y":${parameters.y:-null}'
        read, spoken = members(template + fixed + "}"), dialect(x=("y",), y=("x",))
        read.body(spoken, ASKED | said)
        return steps(lambda: read.body(spoken, ASKED | said))

    assert request(20) == request(1)


def test_each_dialect_of_a_template_is_merged_by_its_own_members() -> None:
    read = members('{"max_tokens":5,"messages":${parameters.messages}}')
    other = dialect(limit=("max_tokens",))
    for _ in range(2):
        assert read.body(dialect(), ASKED) == {"max_tokens": 5, **ASKED}
        assert read.body(other, ASKED | {"limit": 7}) == {"max_tokens": 5, **ASKED}
