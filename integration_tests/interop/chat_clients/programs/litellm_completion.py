"""LiteLLM's `completion` as a client of both APIs."""

import json

import litellm
from checks import COUNTRY_QUESTION, QUESTION, WEATHER_QUESTION, WEATHER_SCHEMA, Country, get_weather, run

litellm.suppress_debug_info = True  # it would be printed
FUNCTION = {"name": "get_weather", "description": "Say how warm it is in a city.", "parameters": WEATHER_SCHEMA}


def checks(prefix):
    def ask(model, messages, **more):
        return litellm.completion(model=f"{prefix}/{model}", messages=messages, num_retries=0, **more)

    def asked(question):
        return [{"role": "system", "content": "You are terse."}, {"role": "user", "content": question}]

    def text(model):
        answer = ask(model, asked(QUESTION), max_tokens=100)
        return [answer.choices[0].message.content, answer.usage.prompt_tokens, answer.usage.completion_tokens]

    def stream(model):
        chunks = list(ask(model, asked(QUESTION), stream=True, stream_options={"include_usage": True}))
        pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
        assert len([piece for piece in pieces if piece]) > 1
        usage = litellm.stream_chunk_builder(chunks).usage
        return ["".join(piece or "" for piece in pieces), usage.prompt_tokens, usage.completion_tokens]

    def tools(model):
        given = {"tools": [{"type": "function", "function": FUNCTION}]}
        messages = asked(WEATHER_QUESTION)
        message = ask(model, messages, **given).choices[0].message
        [call] = message.tool_calls
        result = get_weather(**json.loads(call.function.arguments))
        told = {"role": "tool", "tool_call_id": call.id, "content": result}
        return ask(model, [*messages, message, told], **given).choices[0].message.content

    def structured(model):
        answer = ask(model, asked(COUNTRY_QUESTION), response_format=Country)
        return json.loads(answer.choices[0].message.content)

    return {f"{prefix}_{check.__name__}": check for check in (text, stream, tools, structured)}


if __name__ == "__main__":
    run(**checks("openai"), **checks("anthropic"))
