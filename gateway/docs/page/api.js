// Shows the API and has it tried: with a test key alone, the caller's own merchant id, and
// references that are new each time the page is opened.
"use strict";

const field = (id) => document.getElementById(id);
const said = field("said");
const base = new URL("..", location.href).href.replace(/\/$/, "");
const fresh = Array.from(crypto.getRandomValues(new Uint8Array(4)), (n) => n.toString(16).padStart(2, "0")).join("");

document.getElementById("keys").addEventListener("submit", (event) => event.preventDefault());

const dark = matchMedia("(prefers-color-scheme: dark)");
const shade = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", shade);
shade();

// refer gives the references of examples an end of their own: a payment that an earlier
// reader made under the same one would only be shown again.
function refer(value) {
  if (Array.isArray(value)) return value.map(refer);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) =>
    [name, (name === "external_id" || name === "ref_id") && typeof member === "string" ? `${member}-${fresh}` : refer(member)]));
}

function prepare(description) {
  description.servers = [{ url: base }];
  for (const methods of Object.values(description.paths)) {
    for (const operation of Object.values(methods)) {
      // A header's example would be sent with every try.
      for (const parameter of operation.parameters ?? []) {
        if (parameter.in === "header") delete parameter.example;
      }
      for (const content of Object.values(operation.requestBody?.content ?? {})) {
        for (const example of Object.values(content.examples ?? {})) example.value = refer(example.value);
      }
    }
  }
  return description;
}

// complete adds what the reader has entered above. A live key is never sent, wherever it
// was entered: then the answer is AUTH_FAILED. Swagger UI breaks where this throws.
function complete(request) {
  const key = field("key").value.trim();
  const merchant = field("merchant").value.trim();
  said.textContent = key || request.headers.Authorization ? "" : said.dataset.missing;
  if (key.startsWith("sk_test_")) request.headers.Authorization = `Bearer ${key}`;
  else if (key) said.textContent = said.dataset.other;
  if (merchant && typeof request.body === "string") {
    try {
      const body = JSON.parse(request.body);
      if (body.merchant_id === placeholder) request.body = JSON.stringify({ ...body, merchant_id: merchant }, null, 2);
    } catch { /* not JSON yet: the API says so */ }
  }
  const safe = (text) => {
    if (typeof text !== "string" || !text.includes("sk_live_")) return text;
    said.textContent = said.dataset.live;
    return text.replace(/sk_live_\w*/g, "sk_test_");
  };
  request.body = safe(request.body);
  request.url = safe(request.url);
  for (const name of Object.keys(request.headers)) request.headers[name] = safe(request.headers[name]);
  return request;
}

// Swagger UI leaves parts of its own without a name, a level or a stop of the keyboard.
const lacking = {
  ".examples-select-element": { "aria-label": "Example" },
  ".body-param__text": { "aria-label": "Request body" },
  ".content-type": { "aria-label": "Media type" },
  ".information-container": { role: "region", "aria-label": "Description" },
  ".models > h4": { "aria-level": "2" },
  ".microlight": { tabindex: "0" },
};
const complement = () => {
  for (const [selector, attributes] of Object.entries(lacking)) {
    for (const [name, value] of Object.entries(attributes)) {
      for (const one of document.querySelectorAll(`#swagger-ui ${selector}:not([${name}])`)) one.setAttribute(name, value);
    }
  }
};
new MutationObserver(complement).observe(field("swagger-ui"), { childList: true, subtree: true });

let placeholder = "";

// What makes something stands first, and then how it is found again.
const order = [/create|order$|transfer\/(bank|wallet)$|balance|banks/, /^(?!.*refund).*status$/, /^(?!.*refund).*list$/];
const place = (path) => (order.findIndex((of) => of.test(path)) + order.length + 1) % (order.length + 1);

fetch("../openapi.json").then((answer) => answer.json()).then((description) => {
  const examples = description.paths["/payments/create"]?.post?.requestBody?.content?.["application/json"]?.examples ?? {};
  placeholder = Object.values(examples)[0]?.value?.merchant_id ?? "";
  SwaggerUIBundle({
    spec: prepare(description),
    dom_id: "#swagger-ui",
    presets: [SwaggerUIBundle.presets.apis],
    layout: "BaseLayout",
    validatorUrl: null,
    tryItOutEnabled: true,
    persistAuthorization: false,
    docExpansion: "list",
    operationsSorter: (a, b) => place(a.get("path")) - place(b.get("path")),
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    requestInterceptor: complete,
  });
}).catch((fault) => { said.textContent = `${said.dataset.failed} ${fault.message}`; });
