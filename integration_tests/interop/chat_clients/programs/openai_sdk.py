"""OpenAI's SDK: chat completions and responses."""

import json

import openai
from checks import COUNTRY_QUESTION, QUESTION, WEATHER_QUESTION, WEATHER_SCHEMA, Country, get_weather, run

client = openai.OpenAI(max_retries=0)
FUNCTION = {"name": "get_weather", "description": "Say how warm it is in a city.", "parameters": WEATHER_SCHEMA}


def asked(question):
    return [{"role": "system", "content": "You are terse."}, {"role": "user", "content": question}]


def text(model):
    answer = client.chat.completions.create(model=model, messages=asked(QUESTION), max_completion_tokens=100)
    assert answer.choices[0].finish_reason == "stop"
    return [answer.choices[0].message.content, answer.usage.prompt_tokens, answer.usage.completion_tokens]


def stream(model):
    options = {"include_usage": True}
    with client.chat.completions.stream(model=model, messages=asked(QUESTION), stream_options=options) as events:
        pieces = [event.delta for event in events if event.type == "content.delta"]
        answer = events.get_final_completion()
    assert answer.choices[0].message.content == "".join(pieces) and len(pieces) > 1
    return ["".join(pieces), answer.usage.prompt_tokens, answer.usage.completion_tokens]


def tools(model):
    messages = asked(WEATHER_QUESTION)
    given = {"tools": [{"type": "function", "function": FUNCTION}], "model": model}
    message = client.chat.completions.create(messages=messages, **given).choices[0].message
    return client.chat.completions.create(messages=answered(messages, message), **given).choices[0].message.content


def streamed_tools(model):
    messages = asked(WEATHER_QUESTION)
    given = {"tools": [{"type": "function", "function": FUNCTION}], "model": model}
    with client.chat.completions.stream(messages=messages, **given) as events:
        message = events.get_final_completion().choices[0].message
    with client.chat.completions.stream(messages=answered(messages, message), **given) as events:
        return events.get_final_completion().choices[0].message.content


def answered(messages, message):
    [call] = message.tool_calls
    result = get_weather(**json.loads(call.function.arguments))
    return [*messages, message, {"role": "tool", "tool_call_id": call.id, "content": result}]


def structured(model):
    answer = client.chat.completions.parse(model=model, messages=asked(COUNTRY_QUESTION), response_format=Country)
    return answer.choices[0].message.parsed.model_dump()


def responses_text(model):
    answer = client.responses.create(model=model, instructions="You are terse.", input=QUESTION, store=False)
    assert answer.status == "completed"
    return [answer.output_text, answer.usage.input_tokens, answer.usage.output_tokens]


def responses_stream(model):
    with client.responses.stream(model=model, instructions="You are terse.", input=QUESTION) as events:
        pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
        answer = events.get_final_response()
    assert answer.output_text == "".join(pieces) and len(pieces) > 1
    return ["".join(pieces), answer.usage.input_tokens, answer.usage.output_tokens]


def responses_tools(model):
    given = {"model": model, "tools": [{"type": "function", "strict": True, **FUNCTION}]}
    asked = [{"role": "user", "content": WEATHER_QUESTION}]
    with client.responses.stream(input=asked, **given) as events:
        answer = events.get_final_response()
    [call] = [item for item in answer.output if item.type == "function_call"]
    result = get_weather(**json.loads(call.arguments))
    output = {"type": "function_call_output", "call_id": call.call_id, "output": result}
    return client.responses.create(input=[*asked, *answer.output, output], **given).output_text


def responses_structured(model):
    return client.responses.parse(model=model, input=COUNTRY_QUESTION, text_format=Country).output_parsed.model_dump()


def listed(model):
    assert client.models.retrieve(model).object == "model"
    return model in [one.id for one in client.models.list()]


if __name__ == "__main__":
    run(
        text=text, stream=stream, tools=tools, streamed_tools=streamed_tools, structured=structured,
        responses_text=responses_text, responses_stream=responses_stream, responses_tools=responses_tools,
        responses_structured=responses_structured, listed=listed,
    )  # fmt: skip
