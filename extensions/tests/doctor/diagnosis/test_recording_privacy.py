from zlib import crc32

import orjson
import pytest

from opensearch_ml_stream.connectors.decoding.aws_eventstream import AWSEventStreamFraming
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.doctor.diagnosis.recording import Read, Recording
from opensearch_ml_stream.extensions.doctor.diagnosis.recording_privacy import without_secrets

KEY = "sk-proj-0123456789abcdef"
PROMPT = "Tell nobody that Alice lives in Rome"
HIDDEN = "".join(" " if character == " " else "*" for character in PROMPT)
REQUEST = orjson.dumps({"model": "gpt-like-model", "messages": [{"role": "assistant", "content": PROMPT}]})


def recording(*reads: bytes, content_type: str = "text/event-stream") -> Recording:
    timed = tuple(Read(float(number), data) for number, data in enumerate(reads))
    return Recording(200, (("content-type", content_type),), timed, "complete", 99.0)


def cleaned(*reads: bytes, content_type: str = "text/event-stream") -> Recording:
    return without_secrets(recording(*reads, content_type=content_type), {"key": KEY}, REQUEST)


def event(text: str) -> bytes:
    return b"data: " + orjson.dumps({"model": "gpt-like-model", "choices": [{"delta": {"content": text}}]}) + b"\n\n"


def test_a_stream_without_secrets_stays_what_it_was() -> None:
    reads = (event("Deep")[:20], event("Deep")[20:] + event(" sea")[:7], event(" sea")[7:], b"data: [DONE]\n\n")
    assert cleaned(*reads) == recording(*reads)


def test_an_echoed_prompt_is_taken_out_of_one_event_and_its_length_stays() -> None:
    body = cleaned(event(f"You said: {PROMPT}!")).body
    assert body == event(f"You said: {HIDDEN}!")


def test_a_prompt_that_is_echoed_token_by_token_is_taken_out() -> None:
    tokens = [PROMPT[start : start + 3] for start in range(0, len(PROMPT), 3)]
    result = cleaned(*(event(token) for token in ["Sure: ", *tokens, " (end)"]))
    hidden = [HIDDEN[start : start + 3] for start in range(0, len(PROMPT), 3)]
    assert result.body == b"".join(map(event, ["Sure: ", *hidden, " (end)"]))
    assert [read.milliseconds for read in result.reads] == [float(number) for number in range(len(tokens) + 2)]


def test_a_key_is_taken_out_wherever_it_stands() -> None:
    reads = (event(KEY[:9]), event(KEY[9:]), f"key {KEY} is wrong\n".encode(), b'{"%b": 1}\n' % KEY.encode(), b"\xff\n")
    body = cleaned(*reads).body
    assert KEY.encode() not in body
    assert KEY[9:].encode() not in body
    assert b"key **" in body
    assert body.endswith(b"\xff\n")


def test_a_secret_of_the_json_array_framing_is_taken_out_over_its_lines() -> None:
    lines = b'[{\n  "text": "Tell nobody that"\n},\n{\n  "text": " Alice lives in Rome",\n  "done": true\n}]\n'
    body = cleaned(lines, content_type="application/json").body
    assert orjson.loads(body) == [{"text": HIDDEN[:16]}, {"text": HIDDEN[16:], "done": True}]


def test_a_secret_that_is_cut_by_a_read_is_taken_out() -> None:
    whole = event(f"You said: {PROMPT}!")
    for cut in range(len(whole)):
        result = cleaned(whole[:cut], whole[cut:])
        assert result.body == event(f"You said: {HIDDEN}!")
        assert len(result.reads[0].data) == cut


def frame(payload: bytes) -> bytes:
    headers = b"\x0b:event-type\x07\x00\x05chunk"
    prelude = (16 + len(headers) + len(payload)).to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    data = prelude + crc32(prelude).to_bytes(4, "big") + headers + payload
    return data + crc32(data).to_bytes(4, "big")


def test_frames_of_an_aws_event_stream_stay_whole() -> None:
    body = cleaned(
        frame(orjson.dumps({"text": PROMPT[:10]})) + frame(b'{ "text": "' + PROMPT[10:].encode() + b'"}')[:9],
        frame(b'{ "text": "' + PROMPT[10:].encode() + b'"}')[9:] + b"\x00\x00",
        content_type="application/vnd.amazon.eventstream",
    ).body
    framing = AWSEventStreamFraming()
    events = framing.feed(body)
    assert framing.error is None
    assert [event.data for event in events] == [
        b'{"text":"%b"}' % HIDDEN[:10].encode(),
        b'{"text":"%b"}' % HIDDEN[10:].encode(),
    ]


def test_words_of_the_protocol_are_no_prompt() -> None:
    reads = (b'data: {"role": "assistant", "model": "gpt-like-model"}\n\n',)
    assert cleaned(*reads) == recording(*reads)


def test_a_prompt_too_long_to_be_searched_for_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="Record a shorter prompt"):
        without_secrets(recording(b""), {}, orjson.dumps({"prompt": "a" * 70_000}))


def test_a_line_nested_too_deeply_is_searched_as_text() -> None:
    deep = b"[" * 900 + b'"' + PROMPT.encode() + b'"' + b"]" * 900
    assert PROMPT.encode() not in cleaned(deep).body


def test_a_prompt_in_any_script_is_taken_out_and_its_length_stays() -> None:
    prompt = "Скажи никому, что Алиса живёт в Риме 🙂🙂"
    echo = event(f"→ {prompt} ←")
    request = orjson.dumps({"prompt": prompt})
    hidden = "".join(" " if character == " " else "*" for character in prompt)
    assert without_secrets(recording(echo), {}, request).body == event(f"→ {hidden} ←")


def test_a_prompt_whose_white_space_was_changed_is_taken_out() -> None:
    assert cleaned(event(PROMPT.replace(" ", "\n"))).body == event(HIDDEN.replace(" ", "\n"))
    assert cleaned(*map(event, PROMPT.split(" "))).body == b"".join(map(event, HIDDEN.split(" ")))


def test_a_response_that_echoes_a_prompt_all_the_time_keeps_its_protocol() -> None:
    reads = [event(PROMPT)] * 2_000
    assert cleaned(*reads).body == event(HIDDEN) * 2_000


def test_too_many_lines_or_secrets_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="lines"):
        cleaned(b"\n" * 200_000)
    with pytest.raises(InvalidRequest, match="too often"):
        cleaned(event(KEY[:8] * 20_000))
