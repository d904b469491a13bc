// Plays the upstream, with the door that sdk/sandbox/README.md describes. It keeps
// its charges in memory: a simulator that is started again knows nothing of them.
import { createHash, createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { renameSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { parseArgs } from 'node:util';
import { exitWithHost } from './parent.js';

const accounts = new Map(); // by API key
const hooks = new Map(); // by API key
const revoked = new Set(); // API keys
const charges = new Map(); // by account and reference
const byURL = new Map();
const faults = []; // ordered for the next creates
let ahead = 0; // milliseconds that the clock was set forward

const token = process.env.GERBANG_SANDBOX_TOKEN ?? '';
const now = () => new Date(Date.now() + ahead);

// Answer is thrown to answer with anything but 200.
class Answer extends Error {
  constructor(status, document) {
    super();
    Object.assign(this, { status, document });
  }
}
const refuse = (status, code, message) => { throw new Answer(status, { error: { code, message } }); };
const door = (status, error) => { throw new Answer(status, { error }); };

const accountID = (key) => createHash('sha256').update(`account:${key}`).digest('hex').slice(0, 24);

// shown is a charge as the upstream shows it.
function shown(charge) {
  const { key, ...rest } = charge;
  if (rest.status === 'open' && new Date(rest.expires_at) <= now()) Object.assign(charge, { status: 'expired', updated_at: rest.expires_at });
  return { ...rest, status: charge.status, updated_at: charge.updated_at };
}

const upstream = {
  'POST /charges': ({ key, body: { reference, amount, email }, base }) => {
    if (typeof reference !== 'string' || !Number.isSafeInteger(amount) || amount < 1000 || typeof email !== 'string') refuse(422, 'refused', 'a charge has a reference, an email and at least 1000 rupiah');
    if (amount > 10_000_000_000) refuse(422, 'refused', 'a charge is at most 10000000000 rupiah');
    const name = `${key} ${reference}`;
    if (!charges.has(name)) { // the same reference is the same charge
      const id = `ch_${randomUUID()}`;
      const charge = {
        key, id, reference, amount, currency: 'IDR', status: 'open', url: `${base}/pay/${id}`,
        updated_at: now().toISOString(), expires_at: new Date(now().getTime() + 86_400_000).toISOString(),
      };
      charges.set(name, charge);
      byURL.set(`/pay/${id}`, charge);
    }
    throw new Answer(201, shown(charges.get(name)));
  },
  'GET /charges': ({ key, query }) => {
    const charge = charges.get(`${key} ${query.get('reference')}`);
    return charge ? shown(charge) : refuse(404, 'not_found', 'no such charge');
  },
};

const orders = {
  'POST connect': ({ body: { merchant, mode, version = 1 }, base }) => {
    const derive = (purpose) => createHmac('sha256', token).update([purpose, merchant, mode, version].join('\0')).digest('hex').slice(0, 40);
    const key = derive('key');
    const secret = derive('secret');
    accounts.set(key, { secret });
    return { account: key, callback_token: secret, credentials: { api_key: key, notify_secret: secret, base_url: base } };
  },
  'POST hooks': ({ body: { account, callback_url: url } }) => {
    if (!/^https?:/.test(url)) door(400, 'callback_url must be an http or https URL');
    hooks.set(account, url);
    return { account_id: accountID(account) };
  },
  'POST revoke': ({ body: { account } }) => {
    revoked.add(account);
    return {};
  },
  'POST pay': async ({ body: { url, amount } }) => {
    const charge = url && byURL.get(new URL(url).pathname);
    if (!charge) door(404, 'nothing of this upstream');
    if (shown(charge).status !== 'open') door(409, `it is ${charge.status}`);
    Object.assign(charge, { status: 'paid', paid: amount ?? charge.amount, channel: 'QRIS', updated_at: now().toISOString() });
    await announce(charge);
    return { provider: 'nodepay', reference: charge.reference, amount: charge.paid, state: charge.status };
  },
  'GET movements': ({ query }) => [...charges.values()]
    .filter(({ reference }) => !query.has('reference') || reference === query.get('reference'))
    .map(({ key, reference, amount, status, updated_at: at }) => ({ provider: 'nodepay', account: accountID(key), reference, destination: '', amount, state: status, at })),
  'POST faults': ({ body: { fault, count = 1 } }) => {
    if (!['error_500', 'error_500_after'].includes(fault)) door(400, 'unknown fault, known are error_500 and error_500_after');
    for (let i = 0; i < count; i++) faults.push(fault);
    return { fault, count };
  },
  'POST clock': ({ body: { advance } }) => {
    const units = { h: 3_600_000, m: 60_000, s: 1000 };
    const [, count, unit] = /^(\d+)([hms])$/.exec(advance) ?? door(400, 'advance must look like 2160h or 30m');
    ahead += count * units[unit];
    return { now: now().toISOString() };
  },
  'GET describe': () => ({ provider: 'nodepay', operations: [{ name: 'charge', moves_money: true }], magic: [], prefixes: [] }),
};

// announce tells an account's server of a charge, a few times.
async function announce(charge) {
  const url = hooks.get(charge.key);
  const body = JSON.stringify(shown(charge));
  const signature = createHmac('sha256', accounts.get(charge.key).secret).update(body).digest('hex');
  for (let tries = 0; url && tries < 3; tries++) {
    const headers = { 'Content-Type': 'application/json', 'X-Signature': signature };
    const answer = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal: AbortSignal.timeout(3000) }).catch(() => ({ ok: false }));
    if (answer.ok) return;
  }
}

async function read(request) {
  let text = '';
  for await (const chunk of request) if ((text += chunk).length > 1 << 20) throw new Answer(413, { error: 'the body is too large' });
  try {
    return JSON.parse(text || '{}');
  } catch {
    throw new Answer(400, { error: 'the body is not JSON' });
  }
}

// permitted compares a bearer token without telling how far it was right.
function permitted(request, want) {
  const [a, b] = [request.headers.authorization ?? '', `Bearer ${want}`].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(a, b);
}

async function answer(request) {
  const base = `http://${request.headers.host}`;
  const { pathname, searchParams: query } = new URL(request.url, base);
  const body = await read(request);
  if (pathname.startsWith('/_sandbox/')) {
    if (!permitted(request, token)) door(401, 'the control API wants its bearer token');
    const order = orders[`${request.method} ${pathname.slice('/_sandbox/'.length)}`] ?? door(404, 'there is no such order');
    return order({ body, query, base });
  }
  const key = /^Bearer (.+)$/.exec(request.headers.authorization)?.[1];
  if (!accounts.has(key) || revoked.has(key)) refuse(401, 'unauthorized', 'no such API key');
  const handler = upstream[`${request.method} ${pathname}`] ?? refuse(404, 'no_route', 'there is no such path');
  const fault = request.method === 'POST' ? faults.shift() : undefined;
  if (fault === 'error_500_after') await (async () => handler({ key, body, query, base }))().catch(() => {});
  if (fault) refuse(500, 'internal', 'internal error');
  return handler({ key, body, query, base });
}

export async function sandbox(args) {
  const { values } = parseArgs({ args, options: { listen: { type: 'string', default: '127.0.0.1:8090' }, state: { type: 'string' }, 'ready-file': { type: 'string' } } });
  if (!token) throw new Error('GERBANG_SANDBOX_TOKEN is required');
  exitWithHost();
  const server = http.createServer((request, response) => {
    const reply = (status, document) => {
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(document));
    };
    answer(request).then((document) => reply(200, document), (error) => {
      if (!(error instanceof Answer)) console.error(error);
      reply(error.status ?? 500, error.document ?? { error: 'internal error' });
    });
  });
  const [, host, port] = /^(.*):(\d+)$/.exec(values.listen);
  await new Promise((resolve) => { server.listen(Number(port), host, resolve); });
  const ready = values['ready-file'];
  if (!ready) return;
  writeFileSync(`${ready}.new`, JSON.stringify({ url: `http://${host}:${server.address().port}` }));
  renameSync(`${ready}.new`, ready);
}
