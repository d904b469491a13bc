import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const key = Buffer.from(process.env.CALLBACK_SECRET.replace(/^whsec_/, ""), "base64");

function verified(headers, body) {
  const timestamp = headers["webhook-timestamp"] ?? "";
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= 300)) return false;
  const signed = createHmac("sha256", key).update(`${headers["webhook-id"]}.${timestamp}.`).update(body);
  const want = Buffer.from(`v1,${signed.digest("base64")}`);
  return (headers["webhook-signature"] ?? "").split(" ").map((given) => Buffer.from(given))
    .some((given) => given.length === want.length && timingSafeEqual(given, want));
}

createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray());
  const genuine = verified(request.headers, body);
  response.writeHead(genuine ? 204 : 401).end();
  if (genuine) console.log(body.toString());
}).listen(process.env.PORT ?? 3000);
