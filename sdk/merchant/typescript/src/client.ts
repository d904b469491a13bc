import { randomUUID } from "node:crypto";
import { Operations, type Error as Refusal } from "./generated.js";

/** The answer to a call. */
export interface Result<T> {
  data: T;
  /** Where the call has one. */
  message: string;
  /** To quote when asking about a request. */
  requestId: string;
  /** An earlier request under this reference was answered so. */
  replayed: boolean;
}

/** What changes one call. */
export interface Options {
  /** Where the end of what the call makes is told. */
  callbackUrl?: string;
  /**
   * The reference of a call whose request has none. Unless given, a call that moves money
   * gets a random one, so that its repetition is never a second one.
   */
  idempotencyKey?: string;
}

export interface Settings {
  baseUrl: string;
  /** sk_live_... or sk_test_... */
  key: string;
  merchantId: string;
  /** Bounds one attempt, in milliseconds; 60,000 unless given, longer than any call takes. */
  timeout?: number;
  /** How often a call is repeated where that is safe; 2 unless given. */
  retries?: number;
  /** Bounds the wait before a repetition, in milliseconds; 30,000 unless given. */
  longestWait?: number;
}

/** An error that the gateway tells. */
export class GerbangError extends Error {
  readonly code: Refusal["error_code"];
  readonly sent: Refusal["sent"];
  readonly retry: Refusal["retry"];
  readonly requestId: string;
  constructor(readonly body: Refusal, readonly status: number) {
    super(`${body.error_code}: ${body.message} (sent: ${body.sent}, retry: ${body.retry}, request ${body.request_id})`);
    this.name = "GerbangError";
    this.code = body.error_code;
    this.sent = body.sent;
    this.retry = body.retry;
    this.requestId = body.request_id;
  }
}

/**
 * No answer came. Whether the call was carried out is not known: call again with the same
 * reference, which never makes a second.
 */
export class NoAnswer extends Error {
  constructor(readonly reference: string, cause: unknown) {
    super(`no answer: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = "NoAnswer";
  }
}

interface Envelope<T> {
  success: boolean;
  message?: string;
  data?: T;
}

/** Calls the API with one key. */
export class Client extends Operations {
  readonly #settings: Required<Settings>;

  constructor(settings: Settings) {
    super();
    this.#settings = { timeout: 60_000, retries: 2, longestWait: 30_000, ...settings, baseUrl: settings.baseUrl.replace(/\/+$/, "") };
  }

  /**
   * Makes a call and repeats it where that is safe: when no answer came, and when the error
   * says that the same request may be sent again and waiting a moment can help.
   */
  protected async send<T>(path: string, money: boolean, request: object, options: Options = {}): Promise<Result<T>> {
    const { baseUrl, key, merchantId, timeout, retries, longestWait } = this.#settings;
    const body: Record<string, unknown> = { ...request };
    if (merchantId) body["merchant_id"] = merchantId;
    const headers: Record<string, string> = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    if (options.callbackUrl) headers["x-callback-url"] = options.callbackUrl;
    const own = String(body["refund_id"] ?? body["external_id"] ?? body["ref_id"] ?? ""); // a refund names its payment, too
    const idempotencyKey = options.idempotencyKey || (money && own === "" ? randomUUID() : "");
    if (idempotencyKey) headers["idempotency-key"] = idempotencyKey;
    const reference = own || idempotencyKey;

    for (let attempt = 0; ; attempt++) {
      let failure: Error;
      let wait: number;
      try {
        const answer = await fetch(baseUrl + path, {
          method: "POST", headers, body: JSON.stringify(body), redirect: "error", signal: AbortSignal.timeout(timeout),
        });
        const told = await answer.text();
        const read = parse<T>(told);
        if (answer.status === 200 && read?.success) {
          return {
            data: read.data as T, message: read.message ?? "", requestId: answer.headers.get("x-request-id") ?? "",
            replayed: answer.headers.get("idempotent-replayed") === "true",
          };
        }
        const refusal = read as unknown as Refusal | undefined;
        if (refusal?.error_code) {
          failure = new GerbangError(refusal, answer.status);
          wait = helps(refusal, answer, attempt);
        } else {
          failure = new NoAnswer(reference, `HTTP ${answer.status} that is not Gerbang's`);
          wait = pause(attempt);
        }
      } catch (cause) {
        failure = new NoAnswer(reference, cause);
        wait = pause(attempt);
      }
      if (wait === 0 || wait > longestWait || attempt >= retries) throw failure;
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

function parse<T>(text: string): Envelope<T> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Envelope<T>) : undefined;
  } catch {
    return undefined;
  }
}

/** How many milliseconds to wait before the same request is sent again, 0 for never. */
function helps(refusal: Refusal, answer: Response, attempt: number): number {
  if (refusal.retry !== "later" && refusal.retry !== "lookup_first") return 0;
  const after = answer.headers.get("retry-after");
  if (after !== null && /^\d+$/.test(after)) {
    // retry_at tells the real time, where that is hours away.
    const until = refusal.retry_at ? Date.parse(refusal.retry_at) - Date.now() : 0;
    return Math.max(Number(after) * 1000, until, 1);
  }
  return answer.status === 500 ? pause(attempt) : 0; // else what stands in the way is not gone in a moment
}

/** 0.5, 1, 2 ... seconds. */
const pause = (attempt: number): number => 500 * 2 ** Math.min(attempt, 6);
