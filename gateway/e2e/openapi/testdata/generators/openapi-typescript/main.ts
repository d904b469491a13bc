// Makes a payment with the types of openapi-typescript and openapi-fetch, has it paid, and
// asks until it is.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const { GERBANG_URL = "", GERBANG_KEY = "", GERBANG_MERCHANT = "", SANDBOX = "", REFERENCE = "" } = process.env;
const client = createClient<paths>({ baseUrl: GERBANG_URL, headers: { authorization: `Bearer ${GERBANG_KEY}` } });
const made = await client.POST("/payments/create", {
  body: { merchant_id: GERBANG_MERCHANT, amount: 50000, payer_email: "payer@example.com", external_id: REFERENCE },
});
if (!made.data) throw new Error(made.error.error_code);
await fetch(`${SANDBOX}/pay`, { method: "POST", body: JSON.stringify({ url: made.data.data.checkout_url }) });
for (let status = ""; status !== "PAID"; await new Promise((wake) => setTimeout(wake, 200))) {
  const now = await client.POST("/payments/status", { body: { external_id: REFERENCE } });
  if (!now.data) throw new Error(now.error.error_code);
  status = now.data.data.status;
}
console.log("PAID");
