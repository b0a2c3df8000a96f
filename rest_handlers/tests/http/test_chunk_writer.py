from starlette.types import Message

from opensearch_ml_stream.rest_handlers.http.chunk_writer import CHUNK_WRITER, MessageWriter, chunk_writer


async def test_a_chunk_is_sent_once_by_whoever_drains_first() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    writer = MessageWriter(send)
    assert not writer.write_chunk(b"one")
    await writer.drain()
    await writer.drain()
    assert sent == [{"type": "http.response.body", "body": b"one", "more_body": True}]


def test_the_servers_own_writer_is_taken_where_it_offers_one() -> None:
    async def send(message: Message) -> None:
        raise AssertionError(message)

    own = MessageWriter(send)
    assert chunk_writer({"extensions": {CHUNK_WRITER: own}}, send) is own
    assert isinstance(chunk_writer({}, send), MessageWriter)
