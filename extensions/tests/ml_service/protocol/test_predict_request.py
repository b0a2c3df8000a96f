import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.protobuf_wire import MAX_FIELDS, length_delimited
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText
from opensearch_ml_stream.extensions.ml_service.protocol.predict_request import read_predict_request


def field(number: int, content: bytes | str) -> bytes:
    return length_delimited(bytes([number << 3 | 2]), content if isinstance(content, bytes) else content.encode())


def message(role: str, content: str) -> bytes:
    return field(1, field(1, role) + field(2, content))


def request(*parameters: bytes, model_id: str = "m") -> bytes:
    return field(1, model_id) + field(3, field(1, b"".join(parameters)))


def parameters_of(*fields: bytes) -> dict[str, str]:
    return dict(read_predict_request(request(*fields)).parameters)


def refusal(data: bytes) -> str:
    with pytest.raises(InvalidRequest) as refused:
        read_predict_request(data)
    return refused.value.reason


def test_messages_become_the_parameter_that_a_template_takes_as_json() -> None:
    parameters = parameters_of(message("system", "Be brief."), message("user", 'Say "é"'))
    assert parameters == {
        "messages": '[{"role":"system","content":"Be brief."},{"role":"user","content":"Say \\"é\\""}]'
    }
    assert isinstance(parameters["messages"], JsonText)


def test_text_and_interface_become_parameters_of_the_rest_api() -> None:
    parameters = parameters_of(field(2, "[1]"), field(3, "Why?"), field(4, "openai/v1/chat/completions"))
    assert parameters == {"inputs": "[1]", "question": "Why?", "_llm_interface": "openai/v1/chat/completions"}
    assert not any(isinstance(value, JsonText) for value in parameters.values())


def test_a_field_that_is_not_set_is_no_parameter_and_one_that_is_empty_is_one() -> None:
    assert parameters_of() == {}
    assert parameters_of(field(2, "")) == {"inputs": ""}
    assert parameters_of(field(1, b""), field(1, field(1, "user"))) == {"messages": '[{},{"role":"user"}]'}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "model_id is required"),
        (request(model_id=""), "model_id is required"),
        (field(1, "m"), "MlPredictModelStreamRequest must have request body"),
        (field(1, "m") + field(3, b""), "Request body must have parameters"),
    ],
)
def test_what_is_missing_is_named_in_the_words_of_ml_commons(data: bytes, reason: str) -> None:
    assert refusal(data) == reason


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (field(1, b"\xff"), "model_id"),
        (request(field(2, b"\xff")), "inputs"),
        (request(field(1, field(2, b"\xe9"))), "content"),
    ],
)
def test_text_that_is_not_utf8_is_refused_by_its_name(data: bytes, name: str) -> None:
    assert refusal(data) == f"{name} is not UTF-8"


@pytest.mark.parametrize("others", [field(2, b"\x08\x01"), b"\x48\x05", b"\x4d1234", b"\x4912345678", b"\xa2\x06\x01a"])
def test_fields_that_nobody_asked_for_are_skipped(others: bytes) -> None:
    read = read_predict_request(others + request(others, field(2, "a")) + others)
    assert (read.model_id, read.parameters) == ("m", {"inputs": "a"})


def test_of_several_strings_the_last_counts_and_of_several_messages_all() -> None:
    twice = request(field(2, "a"), model_id="n") + field(3, field(1, message("user", "hi"))) + field(1, "m")
    read = read_predict_request(twice + field(3, field(1, field(2, "b"))))
    assert read.model_id == "m"
    assert read.parameters == {"inputs": "b", "messages": '[{"role":"user","content":"hi"}]'}


_MALFORMED = [
    b"\x00",  # field number 0
    b"\x02\x00",
    b"\x0a",  # no length
    b"\x0a\x05abcd",  # a length that lies
    b"\x0a\xff\xff\xff\xff\x0f",
    b"\x0b\x0c",  # a group
    b"\x0f",  # no wire type
    b"\x0d123",
    b"\x09123",
    b"\x08\xff",
    b"\x08" + b"\xff" * 10 + b"\x01",
    b"\xff" * 9 + b"\x01\x00",  # a field number of 61 bits
    request() + b"\x1a\x02\x0a\x05",  # in a message within
]


@pytest.mark.parametrize("data", _MALFORMED)
def test_what_is_no_protobuf_is_refused(data: bytes) -> None:
    assert refusal(data) == "The request is not a protobuf message"


def test_a_request_of_many_empty_messages_is_refused_before_they_are_kept() -> None:
    assert refusal(request(b"\x0a\x00" * MAX_FIELDS)).startswith("The request has more than 40000 fields")
    assert len(parameters_of(b"\x0a\x00" * (MAX_FIELDS - 10))["messages"]) == 3 * (MAX_FIELDS - 10) + 1


def test_a_large_request_may_have_more_fields() -> None:
    many = [message("user", "a" * 120)] * MAX_FIELDS
    assert parameters_of(*many)["messages"].count("user") == MAX_FIELDS
