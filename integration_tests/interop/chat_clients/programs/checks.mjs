// Runs checks of a client on models, each named as an argument, and prints a line of JSON for each: [model, check, what
// it returned], or the error as a string.
import { z } from 'zod';

export const QUESTION = 'What is the meaning of life?';
export const WEATHER_QUESTION = 'How warm is it in Oslo?';
export const COUNTRY_QUESTION = 'Which country has Oslo as its capital?';
export const Country = z.object({ name: z.string(), capital: z.string() });
export const City = z.object({ city: z.string() });
export const WEATHER_SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string', description: 'Name of the city' } },
  required: ['city'],
  additionalProperties: false,
};

export const getWeather = ({ city }) => (city === 'Oslo' ? '12 degrees' : `nobody knows ${city}`);

export function must(condition, message) {
  if (!condition) throw new Error(message);
}

export async function run(checks) {
  for (const model of process.argv.slice(2)) {
    for (const [name, check] of Object.entries(checks)) {
      const got = await check(model).catch((error) => `${error.name}: ${error.message}`);
      console.log(JSON.stringify([model, name, got]));
    }
  }
}
