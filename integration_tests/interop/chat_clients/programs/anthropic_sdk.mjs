// Anthropic's SDK: messages and its stream helper.
import Anthropic from '@anthropic-ai/sdk';
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';
import {
  COUNTRY_QUESTION, Country, QUESTION, WEATHER_QUESTION, WEATHER_SCHEMA, getWeather, must, run,
} from './checks.mjs';

const client = new Anthropic({ maxRetries: 0 });
const asked = (model, content) => ({
  model, max_tokens: 100, system: 'You are terse.', messages: [{ role: 'user', content }],
});

async function text(model) {
  const answer = await client.messages.create(asked(model, QUESTION));
  return [answer.content[0].text, answer.usage.input_tokens, answer.usage.output_tokens];
}

async function stream(model) {
  const events = client.messages.stream(asked(model, QUESTION));
  const pieces = [];
  events.on('text', (piece) => pieces.push(piece));
  const answer = await events.finalMessage();
  must(answer.content[0].text === pieces.join('') && pieces.length > 1, `${pieces}`);
  return [answer.content[0].text, answer.usage.input_tokens, answer.usage.output_tokens];
}

async function tools(model) {
  const tools = [{ name: 'get_weather', input_schema: WEATHER_SCHEMA }];
  const given = { ...asked(model, WEATHER_QUESTION), tools };
  const answer = await client.messages.stream(given).finalMessage();
  const call = answer.content.find((block) => block.type === 'tool_use');
  const result = { type: 'tool_result', tool_use_id: call.id, content: getWeather(call.input) };
  const { content } = answer;
  const messages = [...given.messages, { role: 'assistant', content }, { role: 'user', content: [result] }];
  return (await client.messages.create({ ...given, messages })).content[0].text;
}

async function structured(model) {
  const output_config = { format: zodOutputFormat(Country) };
  return (await client.messages.parse({ ...asked(model, COUNTRY_QUESTION), output_config })).parsed_output;
}

await run({ text, stream, tools, structured });
