// Vercel's AI SDK with its providers of OpenAI (responses, chat), of servers like OpenAI's, and of Anthropic.
import { createAnthropic } from '@ai-sdk/anthropic';
import { openai } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Output, generateText, stepCountIs, streamText, tool } from 'ai';
import { City, COUNTRY_QUESTION, Country, QUESTION, WEATHER_QUESTION, getWeather, must, run } from './checks.mjs';

const compatible = createOpenAICompatible({
  name: 'sidecar',
  baseURL: process.env.OPENAI_BASE_URL,
  apiKey: process.env.OPENAI_API_KEY,
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const anthropic = createAnthropic({ baseURL: `${process.env.ANTHROPIC_BASE_URL}/v1` });
const given = { system: 'You are terse.', maxRetries: 0, maxOutputTokens: 100 };

function checks(prefix, provider) {
  async function text(name) {
    const { text, usage } = await generateText({ ...given, model: provider(name), prompt: QUESTION });
    return [text, usage.inputTokens, usage.outputTokens];
  }

  async function stream(name) {
    const errors = [];
    const onError = ({ error }) => errors.push(error);
    const { textStream, usage } = streamText({ ...given, onError, model: provider(name), prompt: QUESTION });
    const pieces = [];
    for await (const piece of textStream) pieces.push(piece);
    if (errors.length) throw errors[0];
    must(pieces.length > 1, `${pieces}`);
    return [pieces.join(''), (await usage).inputTokens, (await usage).outputTokens];
  }

  async function tools(name) {
    const weather = tool({ description: 'Say how warm it is.', inputSchema: City, execute: async (city) => getWeather(city) });
    const errors = [];
    const streamed = streamText({
      ...given,
      onError: ({ error }) => errors.push(error),
      model: provider(name),
      prompt: WEATHER_QUESTION,
      tools: { get_weather: weather },
      stopWhen: stepCountIs(3),
    });
    const steps = await Promise.resolve(streamed.steps).catch((error) => {
      throw errors[0] ?? error;
    });
    return steps.at(-1).text;
  }

  async function structured(name) {
    const output = Output.object({ schema: Country });
    return (await generateText({ ...given, model: provider(name), output, prompt: COUNTRY_QUESTION })).output;
  }

  return Object.fromEntries(
    Object.entries({ text, stream, tools, structured }).map(([name, check]) => [`${prefix}_${name}`, check]),
  );
}

await run({
  ...checks('responses', openai),
  ...checks('openai', openai.chat),
  ...checks('compatible', compatible),
  ...checks('anthropic', anthropic),
});
