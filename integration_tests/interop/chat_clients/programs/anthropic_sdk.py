"""Anthropic's SDK: messages, its stream helper and its tool runner."""

import anthropic
from checks import COUNTRY_QUESTION, QUESTION, WEATHER_QUESTION, WEATHER_SCHEMA, Country, get_weather, run

client = anthropic.Anthropic(max_retries=0)


def asked(question, model):
    messages = [{"role": "user", "content": question}]
    return {"model": model, "max_tokens": 100, "system": "You are terse.", "messages": messages}


def text(model):
    answer = client.messages.create(**asked(QUESTION, model))
    assert answer.stop_reason == "end_turn"
    return [answer.content[0].text, answer.usage.input_tokens, answer.usage.output_tokens]


def stream(model):
    with client.messages.stream(**asked(QUESTION, model)) as events:
        pieces = list(events.text_stream)
        answer = events.get_final_message()
    assert answer.content[0].text == "".join(pieces) and len(pieces) > 1
    return ["".join(pieces), answer.usage.input_tokens, answer.usage.output_tokens]


def tools(model):
    given = asked(WEATHER_QUESTION, model)
    given["tools"] = [{"name": "get_weather", "description": "Say how warm it is.", "input_schema": WEATHER_SCHEMA}]
    with client.messages.stream(**given) as events:
        answer = events.get_final_message()
    assert answer.stop_reason == "tool_use"
    [call] = [block for block in answer.content if block.type == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": call.id, "content": get_weather(**call.input)}
    given["messages"] += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
    return client.messages.create(**given).content[0].text


def tool_runner(model):
    given = asked(WEATHER_QUESTION, model)
    runner = client.beta.messages.tool_runner(tools=[anthropic.beta_tool(get_weather)], **given)
    return runner.until_done().content[0].text


def structured(model):
    answer = client.messages.parse(output_format=Country, **asked(COUNTRY_QUESTION, model))
    return answer.parsed_output.model_dump()


def counted(model):
    messages = [{"role": "user", "content": QUESTION}]
    return client.messages.count_tokens(model=model, messages=messages).input_tokens > 0


if __name__ == "__main__":
    run(text=text, stream=stream, tools=tools, tool_runner=tool_runner, structured=structured, counted=counted)
