// OpenAI's SDK: chat completions with its stream helper and tool runner, and responses.
import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import {
  COUNTRY_QUESTION, Country, QUESTION, WEATHER_QUESTION, WEATHER_SCHEMA, getWeather, must, run,
} from './checks.mjs';

const client = new OpenAI({ maxRetries: 0 });
const asked = (content) => [{ role: 'developer', content: 'You are terse.' }, { role: 'user', content }];

async function text(model) {
  const answer = await client.chat.completions.create({ model, messages: asked(QUESTION) });
  return [answer.choices[0].message.content, answer.usage.prompt_tokens, answer.usage.completion_tokens];
}

async function stream(model) {
  const options = { stream_options: { include_usage: true } };
  const events = client.chat.completions.stream({ model, messages: asked(QUESTION), ...options });
  const pieces = [];
  events.on('content', (piece) => pieces.push(piece));
  const content = await events.finalContent();
  const usage = await events.totalUsage();
  must(content === pieces.join('') && pieces.length > 1, `${content}: ${pieces}`);
  return [content, usage.prompt_tokens, usage.completion_tokens];
}

function tools(model, more = {}) {
  const weather = {
    type: 'function',
    function: { name: 'get_weather', parse: JSON.parse, parameters: WEATHER_SCHEMA, function: getWeather },
  };
  return client.chat.completions.runTools({ model, messages: asked(WEATHER_QUESTION), tools: [weather], ...more }).finalContent();
}

async function structured(model) {
  const response_format = zodResponseFormat(Country, 'country');
  const answer = await client.chat.completions.parse({ model, messages: asked(COUNTRY_QUESTION), response_format });
  return answer.choices[0].message.parsed;
}

async function responsesText(model) {
  const answer = await client.responses.create({ model, instructions: 'You are terse.', input: QUESTION, store: false });
  return [answer.output_text, answer.usage.input_tokens, answer.usage.output_tokens];
}

async function responsesStream(model) {
  const events = client.responses.stream({ model, input: QUESTION });
  const pieces = [];
  events.on('response.output_text.delta', (event) => pieces.push(event.delta));
  const answer = await events.finalResponse();
  must(answer.output_text === pieces.join('') && pieces.length > 1, `${answer.output_text}: ${pieces}`);
  return [answer.output_text, answer.usage.input_tokens, answer.usage.output_tokens];
}

async function responsesTools(model) {
  const tool = { type: 'function', name: 'get_weather', strict: true, parameters: WEATHER_SCHEMA };
  const input = asked(WEATHER_QUESTION);
  const first = await client.responses.create({ model, input, tools: [tool] });
  const call = first.output.find((item) => item.type === 'function_call');
  const output = getWeather(JSON.parse(call.arguments));
  const told = { type: 'function_call_output', call_id: call.call_id, output };
  return (await client.responses.create({ model, input: [...input, ...first.output, told], tools: [tool] })).output_text;
}

async function responsesStructured(model) {
  const format = zodTextFormat(Country, 'country');
  return (await client.responses.parse({ model, input: COUNTRY_QUESTION, text: { format } })).output_parsed;
}

await run({
  text,
  stream,
  tools: async (model) => tools(model),
  streamed_tools: async (model) => tools(model, { stream: true }),
  structured,
  responses_text: responsesText,
  responses_stream: responsesStream,
  responses_tools: responsesTools,
  responses_structured: responsesStructured,
});
