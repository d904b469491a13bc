// Does the tasks of standard input with the client, one after the other, and prints what
// came of each.
import { Client, GerbangError, NoAnswer, CallbackError, verifyCallback } from "@gerbang/merchant";
import { readFileSync } from "node:fs";

async function done(task) {
  try {
    if (task.verify) {
      const { id, event, data } = verifyCallback(task.verify.headers, Buffer.from(task.verify.body, "base64"), ...task.verify.secrets);
      return { callback: { id, event, data } };
    }
    const client = new Client({
      baseUrl: task.base_url, key: task.key, merchantId: task.merchant_id, timeout: task.timeout_ms, retries: task.retries, longestWait: 5000,
    });
    const options = {};
    if (task.options?.callback_url) options.callbackUrl = task.options.callback_url;
    if (task.options?.idempotency_key) options.idempotencyKey = task.options.idempotency_key;
    const { data, message, requestId, replayed } = await client[task.call](...(task.request ? [task.request] : []), options);
    return { data, message, request_id: requestId, replayed };
  } catch (fault) {
    if (fault instanceof GerbangError) return { error: { error_code: fault.code, sent: fault.sent, retry: fault.retry } };
    if (fault instanceof NoAnswer) return { no_answer: fault.reference };
    if (fault instanceof CallbackError) return { unverified: true };
    throw fault;
  }
}

const outcomes = [];
for (const task of JSON.parse(readFileSync(0, "utf8"))) outcomes.push(await done(task));
console.log(JSON.stringify(outcomes));
