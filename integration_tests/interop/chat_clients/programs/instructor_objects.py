"""Instructor on both SDKs, by a tool and by a schema."""

import anthropic
import instructor
import openai
from checks import COUNTRY_QUESTION, Country, run

MESSAGES = [{"role": "user", "content": COUNTRY_QUESTION}]


def openai_check(mode):
    client = instructor.from_openai(openai.OpenAI(max_retries=0), mode=mode)

    def check(model):
        answer = client.create(model=model, response_model=Country, messages=MESSAGES, max_retries=0)
        return answer.model_dump()

    return check


def partial(model):
    """The last of the objects that are made of a stream."""
    client = instructor.from_openai(openai.OpenAI(max_retries=0))
    parts = client.create_partial(model=model, response_model=Country, messages=MESSAGES, max_retries=0)
    return list(parts)[-1].model_dump()


def of_anthropic(model):
    client = instructor.from_anthropic(anthropic.Anthropic(max_retries=0))
    given = {"model": model, "max_tokens": 100, "messages": MESSAGES}
    return client.create(response_model=Country, max_retries=0, **given).model_dump()


if __name__ == "__main__":
    run(
        openai_tool_object=openai_check(instructor.Mode.TOOLS),
        openai_schema_object=openai_check(instructor.Mode.JSON_SCHEMA),
        openai_partial_object=partial,
        anthropic_object=of_anthropic,
    )
