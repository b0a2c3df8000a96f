import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.protobuf_wire import MAX_FIELDS, Shape, check_field_count, length_delimited

FIRST = b"\x0a"  # field 1, a string or a message
SHAPE: Shape = {1: {1: {}}}


def counted(data: bytes, shape: Shape = SHAPE) -> bool:
    """Whether there are no more fields than there may be."""
    try:
        check_field_count(data, shape)
    except InvalidRequest as refused:
        assert refused.reason.startswith("The request has more than ")
        return False
    return True


@pytest.mark.parametrize("field", [b"\x0a\x00", b"\x10\x01", b"\x10\xff\x01", b"\x8a\x00\x00", b"\x25abcd"])
def test_as_many_fields_are_let_through_as_there_may_be(field: bytes) -> None:
    assert counted(field * MAX_FIELDS)
    assert not counted(field * (MAX_FIELDS + 1))


def test_fields_of_messages_within_count_and_those_of_strings_do_not() -> None:
    many = b"\x0a\x00" * (MAX_FIELDS + 1)
    assert not counted(length_delimited(FIRST, many))
    assert not counted(length_delimited(FIRST, length_delimited(FIRST, many)))
    assert counted(length_delimited(FIRST, length_delimited(FIRST, length_delimited(FIRST, many))))
    assert counted(length_delimited(b"\x12", many))
    assert not counted(length_delimited(FIRST, many[: len(many) // 4 * 2]) * 3)


def test_a_large_message_may_have_a_field_for_each_eight_bytes() -> None:
    assert counted(length_delimited(b"\x12", b"x" * 6) * (2 * MAX_FIELDS))
    assert not counted(length_delimited(b"\x12", b"x" * 5) * (2 * MAX_FIELDS))


def test_a_message_that_is_small_is_not_counted() -> None:
    assert counted(b"\xff" * 1_000)


@pytest.mark.parametrize("end", [b"\x0a", b"\x0a\x7f", b"\x0f", b"\x25a", b"\x0a\xff\xff\xff\xff\x0f"])
def test_a_fault_ends_the_count(end: bytes) -> None:
    assert counted(b"\x12\x00" * (MAX_FIELDS - 1) + end)


@pytest.mark.parametrize("group", [b"\x0b\x0c", b"\xa3\x3f\xa4\x3f", b"\x0c"])
def test_no_group_hides_the_fields_behind_it(group: bytes) -> None:
    """protobuf's parser skips a group, and reads on."""
    for data in (group, length_delimited(FIRST, group)):
        with pytest.raises(InvalidRequest, match="not a protobuf message"):
            check_field_count(data + b"\x0a\x00" * (MAX_FIELDS + 1), SHAPE)


@pytest.mark.parametrize("end", [b"\x10", b"\x10" + b"\xff" * 11, b"\xff" * 11, b"\x12\xff"])
def test_a_number_without_an_end_is_no_protobuf(end: bytes) -> None:
    with pytest.raises(InvalidRequest, match="not a protobuf message"):
        check_field_count(b"\x12\x00" * (MAX_FIELDS - 1) + end, SHAPE)
