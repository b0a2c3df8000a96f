"""Diagnoses of a connector's document against providers that are healthy, or broken in one way each."""

import gzip
from collections.abc import Callable

import pytest
from integration_tests.diagnosis.diagnoses import (
    KEY,
    PROMPT,
    SETTINGS,
    connector,
    diagnosed,
    failure,
    of_script,
    pass_time,
    steps,
)
from integration_tests.support.fake_provider import (
    SSE_HEAD,
    Act,
    FakeProvider,
    Request,
    Script,
    chunk,
    chunked_stream,
    head,
    json_response,
    openai_delta,
    openai_stream,
)

from opensearch_ml_stream.extensions.doctor.diagnosis import diagnose
from opensearch_ml_stream.extensions.doctor.diagnosis.connector_file import diagnose_connector
from opensearch_ml_stream.extensions.doctor.diagnosis.recording import read_recording
from opensearch_ml_stream.extensions.doctor.diagnosis.report import STEP_NAMES


async def test_a_healthy_provider_works_in_every_step() -> None:
    diagnosis = await of_script(openai_stream(["Deep", " sea"]))
    report = diagnosis.report
    assert report.works
    verdicts = {step.name: step.verdict for step in report.steps}
    assert verdicts == dict.fromkeys(STEP_NAMES, "ok") | {"tls": "skipped"}
    assert steps(diagnosis)["end"].details["usage"] == {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    assert steps(diagnosis)["spec"].details["spec"] == "openai/v1/chat/completions"
    stream = report.stream
    assert stream is not None
    assert stream.status == 200
    assert stream.headers["content-type"] == "text/event-stream"
    assert len(stream.chunks) == 2
    assert stream.outcome["finish_reason"] == "stop"


async def test_the_template_is_shown_filled_and_without_the_credential() -> None:
    diagnosis = await of_script(openai_stream(["a"]))
    details = steps(diagnosis)["template"].details
    assert PROMPT in details["body"]
    assert details["headers"]["Authorization"] == "Bearer ${credential.openAI_key}"


async def test_a_parameter_that_is_missing_is_named() -> None:
    document = connector("http://127.0.0.1:1")
    diagnosis = await diagnose_connector(document, {}, SETTINGS)
    step = failure(diagnosis)
    assert step.name == "template"
    assert step.advice == (
        "Give these parameters with the request (--set NAME=VALUE), or defaults in the connector's: prompt"
    )


async def test_a_document_that_is_no_connector_is_explained() -> None:
    step = failure(await diagnosed({"name": "c"}))
    assert (step.name, step.summary) == ("document", "Connector version is null")


async def test_a_credential_in_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_THE_TEST", KEY)
    async with FakeProvider(openai_stream(["a"])) as provider:
        document = connector(provider.url, credential={"openAI_key": "env:KEY_OF_THE_TEST"})
        assert (await diagnosed(document)).report.works
        assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"
    step = failure(await diagnosed(connector("http://127.0.0.1:1", credential={"openAI_key": "env:NO_SUCH_NAME"})))
    assert (step.name, "openAI_key" in step.summary) == ("document", True)


async def test_a_connector_that_cannot_stream_is_told_so_without_a_call() -> None:
    document = connector("http://127.0.0.1:1")
    document["actions"][0]["url"] = "http://127.0.0.1:1/v1/embeddings"
    assert failure(await diagnosed(document)).name == "spec"


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (401, "does not take the credential"),
        (404, "url and the parameter for the model"),
        (307, "redirects"),
        (429, "limits this account"),
        (503, "The fault is the provider's"),
    ],
)
async def test_a_refusal_is_shown_with_the_providers_words_and_what_to_do(status: int, advice: str) -> None:
    diagnosis = await of_script(json_response({"error": {"message": f"no: key {KEY}"}}, status))
    step = failure(diagnosis)
    assert (step.name, step.details["status"]) == ("response", status)
    assert "no: key ***" in step.summary
    assert step.advice is not None and advice in step.advice
    assert diagnosis.report.stream is not None and diagnosis.report.stream.status == status


async def test_a_connection_that_is_closed_before_a_response_fails_the_response() -> None:
    step = failure(await of_script([Act.CLOSE]))
    assert (step.name, "closed the connection before it responded" in step.summary) == ("response", True)


def silent_for(seconds: float) -> Callable[[Request], Script]:
    """A provider that is asked, and sends nothing while so much time passes at once."""

    def respond(_: Request) -> Script:
        pass_time(seconds)
        return [Act.WAIT]

    return respond


async def test_a_provider_that_is_silent_fails_after_its_read_timeout() -> None:
    step = failure(await of_script(silent_for(40), client_config={"read_timeout": 39}))
    assert step.name == "response"
    assert step.advice is not None and "read_timeout" in step.advice


async def test_a_diagnosis_gives_up_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnose, "TOTAL_SECONDS", 39)
    step = failure(await of_script(silent_for(40), client_config={"read_timeout": 60}))
    assert (step.name, "not complete within 39 s" in step.summary) == ("response", True)


@pytest.mark.slow
async def test_a_diagnosis_that_gives_up_in_the_stream_shows_what_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnose, "TOTAL_SECONDS", 2)
    diagnosis = await of_script([SSE_HEAD, chunk(openai_delta("a")), Act.WAIT])
    assert failure(diagnosis).name == "end"
    assert steps(diagnosis)["first_token"].verdict == "ok"


async def test_a_stream_that_is_cut_is_no_good_end() -> None:
    for act in (Act.CLOSE, Act.RESET):
        step = failure(await of_script([SSE_HEAD, chunk(openai_delta("a")), 0.05, act]))
        assert step.name == "end"
        assert step.summary.startswith("127.0.0.1:")
        assert step.advice is not None and "closed the connection too early" in step.advice


async def test_a_page_in_place_of_a_stream_is_told_so() -> None:
    page = b"<html>Welcome</html>"
    diagnosis = await of_script([head(content_type="text/html", content_length=str(len(page))) + page])
    step = failure(diagnosis)
    assert step.name == "first_token"
    assert step.advice is not None and "_llm_interface" in step.advice
    end = steps(diagnosis)["end"]
    assert end.summary.startswith("The provider responded with text/html") and end.advice is None


async def test_one_whole_object_in_place_of_a_stream_is_a_warning() -> None:
    whole = {"choices": [{"message": {"role": "assistant", "content": "Deep"}, "finish_reason": "stop"}]}
    diagnosis = await of_script(json_response(whole))
    assert diagnosis.report.works
    assert steps(diagnosis)["end"].verdict == "warning"
    assert "no stream" in steps(diagnosis)["end"].summary


async def test_a_compressed_stream_is_a_warning() -> None:
    body = gzip.compress(b"".join([openai_delta("a"), b"data: [DONE]\n\n"]))
    script = [head(content_type="text/event-stream", content_encoding="gzip", content_length=str(len(body))) + body]
    diagnosis = await of_script(script)
    assert diagnosis.report.works
    step = steps(diagnosis)["response"]
    assert (step.verdict, "compressed (gzip)" in step.summary) == ("warning", True)


async def test_a_call_that_is_retried_is_a_warning() -> None:
    async with FakeProvider(
        lambda request: openai_stream(["a"]) if request.connection > 1 else [*json_response({}, 503), Act.CLOSE]
    ) as provider:
        diagnosis = await diagnosed(
            connector(provider.url, client_config={"max_retry_times": 2, "retry_backoff_millis": 1})
        )
        assert len(provider.requests) == 2
    assert diagnosis.report.works
    step = steps(diagnosis)["response"]
    assert (step.verdict, step.details["attempts"]) == ("warning", 2)


async def test_a_recording_is_of_the_stream_without_key_and_prompt() -> None:
    pieces = [openai_delta("You said: "), *(openai_delta(word) for word in PROMPT.split(" ")), b"data: [DONE]\n\n"]
    async with FakeProvider(chunked_stream(pieces, pause=0.02)) as provider:
        diagnosis = await diagnosed(connector(provider.url), record=True)
    recording = diagnosis.recording
    assert recording is not None
    assert read_recording(diagnosis.to_json()["recording"]).body == recording.body
    assert (recording.status, recording.end) == (200, "complete")
    assert recording.headers == (("content-type", "text/event-stream"),)
    assert b"You said: " in recording.body
    assert b"Alice" not in recording.body


async def test_a_response_too_large_for_a_recording_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opensearch_ml_stream.extensions.doctor.diagnosis.observed_response.MAX_BYTES", 100)
    async with FakeProvider(openai_stream(["a", "b", "c"])) as provider:
        diagnosis = await diagnosed(connector(provider.url), record=True)
    assert diagnosis.report.works
    assert diagnosis.to_json()["no_recording"] == "the response is larger than a recording may be"
