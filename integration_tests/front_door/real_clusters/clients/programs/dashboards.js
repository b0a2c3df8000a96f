// Calls a cluster as OpenSearch Dashboards does: with its client, built with its options, and as its Console.
//
// Reads {node, ca, headers, compression, calls} from stdin: a call is [API of the client or "console", arguments].
// Writes one result for each to stdout. "$NAME" in arguments is the newest NAME among the responses' members.
'use strict';

const { readFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const modules = createRequire(`${process.argv[2]}/`);
const { Client, errors } = modules('@opensearch-project/opensearch');

// The client of the server, and from it the one of a request: without a password, with the caller's own headers.
function dashboardsClient({ node, ca, headers, compression }) {
  const url = new URL(node);
  url.port = url.port || (url.protocol === 'https:' ? '443' : '80');
  const options = {
    sniffOnStart: false,
    sniffOnConnectionFault: false,
    sniffInterval: false,
    headers: { 'x-opensearch-product-origin': 'opensearch-dashboards' },
    memoryCircuitBreaker: { enabled: false, maxPercentage: 1 },
    pingTimeout: 30000,
    requestTimeout: 30000,
    nodes: [{ url }],
  };
  if (ca) options.ssl = { ca: [readFileSync(ca, 'utf8')], rejectUnauthorized: true };
  if (compression) options.compression = 'gzip';
  return new Client(options).child({ headers });
}

const kept = {};

function keep(value) {
  if (value === null || typeof value !== 'object') return;
  for (const [name, member] of Object.entries(value)) {
    if (typeof member === 'string') kept[name] = member;
  }
}

function filled(value) {
  if (typeof value === 'string') return value.startsWith('$') && value.slice(1) in kept ? kept[value.slice(1)] : value;
  if (Array.isArray(value)) return value.map(filled);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, filled(member)]));
}

async function call(client, api, given) {
  const parts = api.split('.');
  const method = parts.pop();
  const owner = parts.reduce((object, part) => object[part], client);
  try {
    const { statusCode, headers, body, warnings } = await owner[method](filled(given));
    keep(body);
    return { status: statusCode, headers, body, warnings };
  } catch (error) {
    return { error: error.name, message: error.message, status: error.statusCode, body: error.body };
  }
}

// What the Console shows: the handler of its route gives the client's response back, or an error as text.
async function shownByConsole(client, { method, path, body, contentType = 'application/json' }) {
  const headers = { 'x-forwarded-for': '127.0.0.1', 'x-forwarded-host': 'dashboards:5601', 'x-forwarded-proto': 'http' };
  if (body) headers['content-type'] = contentType;
  const url = new URL(path, 'http://dashboards');
  if (!url.searchParams.has('pretty')) url.searchParams.append('pretty', 'true');
  try {
    const response = await client.transport.request({ path: url.pathname + url.search, method, body }, { headers });
    const { statusCode: status, body: content } = response;
    if (method === 'HEAD') return { status, shown: `${status} - ${content}` };
    return { status, shown: typeof content === 'string' ? content : JSON.stringify(content) };
  } catch (error) {
    if (error instanceof errors.ResponseError) return { status: error.statusCode, shown: JSON.stringify(error.meta.body) };
    return { status: 502, shown: `502.${error.statusCode || 0}`, error: error.message };
  }
}

async function main() {
  const given = JSON.parse(readFileSync(0, 'utf8'));
  const client = dashboardsClient(given);
  const results = [];
  for (const [api, args] of given.calls) {
    results.push(await (api === 'console' ? shownByConsole(client, args) : call(client, api, args)));
  }
  process.stdout.write(JSON.stringify(results));
  await client.close();
}

main();
