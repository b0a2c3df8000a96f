"""A conversation with everything in it that requests have places for."""

from opensearch_ml_stream.connectors.conversation.conversation import (
    AnswerFormat,
    Call,
    Conversation,
    Media,
    Reasoning,
    Result,
    Text,
    Tool,
    ToolChoice,
    Turn,
)

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}

RICH = Conversation(
    turns=(
        Turn("system", (Text("Be brief."), Text("Be kind.", cache={"type": "ephemeral"}))),
        Turn("developer", (Text("No jokes."),)),
        Turn(
            "user",
            (
                Text("What is this?"),
                Media("image", "image/png", data="aW1n", detail="low"),
                Media("image", url="https://x/y.png"),
                Media("audio", "audio/mpeg", data="c25k"),
                Media("file", "application/pdf", data="cGRm", name="a.pdf"),
                Media("file", file_id="file-1"),
                Media("file", "text/plain", text="a note", name="note"),
            ),
            name="ann",
        ),
        Turn(
            "assistant",
            (
                Reasoning("think", signature="s"),
                Text("I look."),
                Call("c1", "weather", '{"city": "Ulm"}'),
                Call("c2", "time", ""),
            ),
        ),
        Turn(
            "user",
            (
                Text("And?"),
                Result("c2", (Text("noon"), Text("sharp")), name="time"),
                Result("c1", (Text("broken"), Media("image", "image/png", data="bWFw")), is_error=True),
            ),
        ),
    ),
    tools=(Tool("weather", "Tells it", SCHEMA, strict=True), Tool("time")),
    tool_choice=ToolChoice("named", "weather"),
    parallel_tool_calls=False,
    answer_format=AnswerFormat("schema", "place", "A place", SCHEMA, strict=True),
    options={
        "max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "stop": ["END"], "seed": 7, "presence_penalty": 0.1,
        "frequency_penalty": 0.2, "logit_bias": {"5": 1}, "logprobs": True, "top_logprobs": 2, "n": 2,
        "reasoning_effort": "low", "reasoning_summary": "auto", "verbosity": "low", "user": "u1",
        "metadata": {"k": "v"}, "service_tier": "flex",
    },
)  # fmt: skip

ASKED = (Turn("user", (Text("Hi"),)),)


def asking(**options: object) -> Conversation:
    """A short conversation with these options, which its client calls otherwise."""
    return Conversation(ASKED, options=options, members={name: f"their_{name}" for name in options})
