const { API, KEY, MERCHANT } = process.env;

const answer = await fetch(`${API}/payments/create`, {
  method: "POST",
  headers: { Authorization: `Bearer ${KEY}`, "Content-Type": "application/json" },
  body: JSON.stringify({
    merchant_id: MERCHANT, external_id: `first-${Date.now()}`,
    amount: 50000, payer_email: "payer@example.com", description: "First payment",
  }),
});
console.log(await answer.text());
