// The provider: what a call, a lookup and a notification mean at this upstream. The
// upstream is src/sandbox.js; sdk/WIRE.md says what each outcome promises.
import { createHmac, timingSafeEqual } from 'node:crypto';
import manifest from '../manifest.json';
import { deadline } from './deadline.js';
import { ask } from './upstream.js';

// The numbers of provider.proto.
const Outcome = { UNKNOWN: 0, PENDING: 2, REFUSED: 3, NOT_SENT: 4 };
const Blame = { NONE: 0, UPSTREAM: 1, ACCOUNT: 2, LIMIT: 3 };
const Status = { UNKNOWN: 0, NOT_FOUND: 1, PENDING: 2, DONE: 3, EXPIRED: 5 };

const statuses = { open: Status.PENDING, paid: Status.DONE, expired: Status.EXPIRED };

export const handlers = () => ({
  Describe: () => ({ manifest: Buffer.from(JSON.stringify(manifest)) }),
  Call: call,
  Lookup: async (request, signal) => ({ update: await lookup(request, signal) }),
  Notify: notify,
});

const credentialsOf = ({ credentials }) => JSON.parse(credentials.toString());

const base = ({ base_url: url }) => url.replace(/\/$/, '');

// cleaner takes an account's secrets out of the upstream's words.
const cleaner = ({ api_key: key, notify_secret: secret }) => (text) => `${text}`.replaceAll(key, '[removed]').replaceAll(secret, '[removed]').slice(0, 500);

async function call(request, signal) {
  const sendBy = deadline(request);
  if (request.operation !== '/nodepay/create') return { outcome: Outcome.NOT_SENT, detail: 'this plugin has no such operation' };
  const account = credentialsOf(request.connection);
  const order = JSON.parse(request.body.toString());
  if (performance.now() > sendBy) return { outcome: Outcome.NOT_SENT, detail: 'send_by had passed when the call arrived' };
  const answer = await ask({
    url: `${base(account)}/charges`, key: account.api_key, method: 'POST', sendBy, signal,
    body: { reference: request.reference, amount: request.amount, email: order.payer_email },
  });
  if (answer.failed) return { outcome: answer.sent ? Outcome.UNKNOWN : Outcome.NOT_SENT, blame: Blame.UPSTREAM, detail: answer.failed };
  const charge = chargeOf(answer, 201);
  if (charge?.reference === request.reference && charge.amount === request.amount) {
    return {
      outcome: Outcome.PENDING,
      provider_reference: charge.id,
      expires_at: timestamp(charge.expires_at),
      data: Buffer.from(JSON.stringify({ payment_url: charge.url })),
    };
  }
  const { code, message } = errorOf(answer);
  const detail = cleaner(account)(`${answer.status} ${code ?? 'in no form of the upstream'}`);
  switch (code) {
    case 'refused':
      return { outcome: Outcome.REFUSED, refusal: { code: 'PROVIDER_REJECTED', message: cleaner(account)(message) }, detail };
    case 'unauthorized': // turned away before it was looked at
      return { outcome: Outcome.NOT_SENT, blame: Blame.ACCOUNT, detail };
    case 'internal': // the upstream's own end of the call, and not a proxy's
      return { outcome: Outcome.UNKNOWN, blame: Blame.UPSTREAM, errored: true, detail };
    default:
      return { outcome: Outcome.UNKNOWN, blame: blameOf(answer), detail };
  }
}

async function lookup(request, signal) {
  const account = credentialsOf(request.connection);
  const answer = await ask({
    url: `${base(account)}/charges?reference=${encodeURIComponent(request.reference)}`, key: account.api_key, method: 'GET', signal,
  });
  if (answer.failed) return { status: Status.UNKNOWN, blame: Blame.UPSTREAM, detail: answer.failed };
  const charge = chargeOf(answer, 200);
  if (charge?.reference === request.reference) return update(charge);
  const { code } = errorOf(answer);
  const detail = cleaner(account)(`${answer.status} ${code ?? 'in no form of the upstream'}`);
  switch (code) {
    case 'not_found': // in the upstream's own words: a proxy's 404 proves nothing
      return { reference: request.reference, status: Status.NOT_FOUND };
    case 'unauthorized':
      return { status: Status.UNKNOWN, blame: Blame.ACCOUNT, detail };
    default:
      return { status: Status.UNKNOWN, blame: blameOf(answer), detail };
  }
}

// notify verifies the signature over the bytes of the body, before it reads them.
function notify({ connection, headers, body }) {
  const { notify_secret: secret } = credentialsOf(connection);
  const want = createHmac('sha256', secret).update(body).digest();
  const given = headers.find(({ name }) => name.toLowerCase() === 'x-signature')?.values[0] ?? '';
  const got = Buffer.from(/^[0-9a-f]{64}$/.test(given) ? given : '', 'hex');
  if (got.length !== want.length || !timingSafeEqual(got, want)) return { status: 401, detail: 'the signature is not the upstream\'s' };
  let charge;
  try {
    charge = chargeOf({ status: 200, document: JSON.parse(body.toString()) }, 200);
  } catch {
    charge = undefined;
  }
  if (!charge) return { status: 400, detail: 'signed, and not understood' };
  return { updates: [update(charge)], status: 200, content_type: 'application/json', body: Buffer.from('{}') };
}

// update is what a charge says of its movement.
const update = (charge) => ({
  reference: charge.reference,
  provider_reference: charge.id,
  status: statuses[charge.status],
  amount: charge.paid ?? charge.amount,
  currency: 'IDR',
  event_id: `${charge.id}/${charge.status}`,
  at: timestamp(charge.updated_at),
  expires_at: timestamp(charge.expires_at),
  channel: charge.channel ?? '',
});

// chargeOf is an answer's charge, undefined where anything in it is not as it must be.
function chargeOf({ status, document: c }, want) {
  const texts = [c?.id, c?.reference, c?.url, c?.updated_at, c?.expires_at];
  const whole = (n) => Number.isSafeInteger(n) && n > 0;
  if (status !== want || !texts.every((t) => typeof t === 'string' && t !== '')) return undefined;
  if (Number.isNaN(Date.parse(c.updated_at)) || Number.isNaN(Date.parse(c.expires_at))) return undefined;
  if (!whole(c.amount) || (c.paid !== undefined && !whole(c.paid)) || c.currency !== 'IDR' || statuses[c.status] === undefined) return undefined;
  return c;
}

// errorOf is the upstream's own error, with the one status that it has.
function errorOf({ status, document }) {
  const { code, message } = document?.error ?? {};
  const known = { refused: 422, unauthorized: 401, not_found: 404, internal: 500 };
  return typeof message === 'string' && known[code] === status ? { code, message } : {};
}

// blameOf says whose fault an answer in no form of the upstream is: 429 is our account's alone, and passes.
const blameOf = ({ status }) => (status === 429 ? Blame.LIMIT : Blame.UPSTREAM);

function timestamp(text) {
  const at = Date.parse(text);
  return { seconds: Math.floor(at / 1000), nanos: (at % 1000) * 1e6 };
}
