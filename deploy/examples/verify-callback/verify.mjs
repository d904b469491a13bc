// How a merchant's server verifies a callback, with Node's own modules alone:
// take verifySvc or verifyWebhook. Either is enough to know where a callback
// comes from; verifyWebhook also refuses what is older than five minutes, and
// remember the webhook-id to recognise a repetition.
//
//   CALLBACK_SECRET=whsec_... node verify.mjs HEADERS-FILE BODY-FILE
//
// During a rotation CALLBACK_SECRET holds both secrets, with a space between.
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";

// headers: an object with lower-case names, as Node's req.headers.
// body: a Buffer with the received bytes, before any JSON is parsed
// (express: express.raw({ type: "*/*" })).

// The key is the whole secret, whsec_ included.
export function verifySvc(headers, body, secrets) {
  const given = headers["x-svc-signature"] ?? "";
  return secrets.some((secret) => equal(given, createHmac("sha256", secret).update(body).digest("hex")));
}

// The key is the part after whsec_, decoded.
export function verifyWebhook(headers, body, secrets, now = Date.now()) {
  const id = headers["webhook-id"];
  const timestamp = headers["webhook-timestamp"] ?? "";
  if (!id || !/^\d+$/.test(timestamp) || Math.abs(now / 1000 - Number(timestamp)) > 300) return false;
  const given = (headers["webhook-signature"] ?? "").split(" ");
  return secrets.some((secret) => {
    const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
    if (key.length === 0) return false;
    const want = "v1," + createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
    return given.some((signature) => equal(signature, want));
  });
}

function equal(a, b) {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}

const [, , headersFile, bodyFile] = process.argv;
const secrets = (process.env.CALLBACK_SECRET ?? "").split(" ").filter(Boolean);
if (!headersFile || !bodyFile || secrets.length === 0) {
  console.error("usage: CALLBACK_SECRET=whsec_... node verify.mjs HEADERS-FILE BODY-FILE");
  process.exit(2);
}
const headers = {};
for (const line of readFileSync(headersFile, "utf8").split(/\r?\n/)) {
  const colon = line.indexOf(":");
  if (colon > 0) headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
}
const body = readFileSync(bodyFile);
const svc = verifySvc(headers, body, secrets);
const webhook = verifyWebhook(headers, body, secrets);
console.log("X-Svc-Signature:", svc ? "right" : "wrong");
console.log("webhook-signature:", webhook ? "right" : "wrong");
process.exit(svc && webhook ? 0 : 1);
