import { createHmac, timingSafeEqual } from "node:crypto";
import type { CallbackBody } from "./generated.js";

/** A verified callback. One whose id was seen is done. */
export type Callback = CallbackBody & { id: string };

/** The callback is not Gerbang's, or too old: answer 400 and do nothing. */
export class CallbackError extends Error {
  override name = "CallbackError";
  constructor() {
    super("the callback is not verified");
  }
}

/**
 * Checks the Standard Webhooks signature of the received bytes, by any of the secrets: two
 * while a secret is rotated. Headers have lower-case names, as Node's req.headers.
 */
export function verifyCallback(headers: Record<string, string | string[] | undefined>, body: Uint8Array | string, ...secrets: string[]): Callback {
  const header = (name: string): string => String(headers[name] ?? "");
  const id = header("webhook-id");
  const timestamp = header("webhook-timestamp");
  if (!id || !/^\d{1,15}$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > 300) throw new CallbackError();
  const given = header("webhook-signature").split(" ");
  for (const secret of secrets) {
    const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
    if (key.length === 0) continue;
    const want = Buffer.from("v1," + createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64"));
    if (!given.some((one) => one.length === want.length && timingSafeEqual(Buffer.from(one), want))) continue;
    try {
      return { ...(JSON.parse(Buffer.from(body as Uint8Array).toString()) as CallbackBody), id };
    } catch {
      throw new CallbackError();
    }
  }
  throw new CallbackError();
}
