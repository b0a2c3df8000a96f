// OpenSearch's client for JavaScript with its defaults: the version that it reads, and one streamed prediction.
//
// Arguments: the folder of modules, the client's name there, URL, model, key ("" for none).
// Prints the version and each line of the stream as it comes; of an error its name, status and message.
'use strict';

const { createRequire } = require('node:module');
const { createInterface } = require('node:readline');

const [modules, name, node, model, key] = process.argv.slice(2);
const { Client } = createRequire(`${modules}/`)(name);

async function main() {
  const client = new Client({ node, headers: key ? { authorization: `Bearer ${key}` } : {} });
  const info = await client.info();
  console.log(info.body.version.number);
  const path = `/_plugins/_ml/models/${model}/_predict/stream`;
  const body = { parameters: { inputs: 'hi' } };
  const response = await client.transport.request({ method: 'POST', path, body }, { asStream: true });
  for await (const line of createInterface({ input: response.body })) console.log(line);
}

main().catch((error) => console.log(error.name, error.statusCode, error.message));
