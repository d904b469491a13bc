// Asks the upstream over HTTP, and tells apart what reached it from what did not.
import http from 'node:http';
import https from 'node:https';

const maxAnswer = 1 << 20; // bytes; no answer of this upstream comes near
const connectWithin = 3_000; // milliseconds

const agents = {
  'http:': new http.Agent({ keepAlive: true, timeout: 30_000 }),
  'https:': new https.Agent({ keepAlive: true, timeout: 30_000 }),
};

// ask makes one request: {url, key, method, body, sendBy, signal}, where sendBy is of
// performance.now(). It gives {status, document}, where document is undefined unless
// the whole answer was a JSON object, or {failed, sent}: why there was no whole answer,
// and whether the upstream may have got the request. It follows no redirect, because
// the credentials would go with it.
export function ask({ url: address, key, method, body, sendBy = Infinity, signal }) {
  return new Promise((resolve) => {
    const url = new URL(address);
    const text = body === undefined ? undefined : JSON.stringify(body);
    const left = () => sendBy - performance.now();
    let sent = false;
    const fail = (why) => {
      resolve({ failed: why, sent });
      request.destroy();
    };
    const request = (url.protocol === 'https:' ? https : http).request(url, {
      method,
      agent: agents[url.protocol],
      headers: { Authorization: `Bearer ${key}`, ...(text && { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) }) },
    });
    const giveUp = () => fail('no answer in time');
    signal.addEventListener('abort', giveUp, { once: true });
    request.on('close', () => signal.removeEventListener('abort', giveUp));
    request.on('error', (error) => fail(error.code ?? error.name)); // never its message: it may quote what was sent
    request.on('socket', (socket) => {
      if (request.reusedSocket) {
        sent = true;
        return;
      }
      // The request waits in the socket until it is connected.
      const slow = setTimeout(() => fail('no connection in time'), Math.min(left(), connectWithin));
      socket.once('close', () => clearTimeout(slow));
      socket.once(url.protocol === 'https:' ? 'secureConnect' : 'connect', () => {
        clearTimeout(slow);
        if (url.protocol === 'http:' && left() <= 0) fail('send_by has passed');
        else sent = true;
      });
    });
    request.on('response', (response) => {
      const chunks = [];
      let size = 0;
      response.on('data', (chunk) => {
        size += chunk.length;
        if (size > maxAnswer) fail('the answer is too long');
        else chunks.push(chunk);
      });
      response.on('error', () => fail('the answer was cut'));
      response.on('end', () => resolve({ status: response.statusCode, document: object(Buffer.concat(chunks)) }));
    });
    request.end(text);
    if (signal.aborted) giveUp();
  });
}

function object(bytes) {
  try {
    const value = JSON.parse(bytes.toString());
    return typeof value === 'object' && !Array.isArray(value) ? value ?? undefined : undefined;
  } catch {
    return undefined;
  }
}
