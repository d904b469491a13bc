curl -sS "$API/payments/create" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' -d '{
  "merchant_id": "'"$MERCHANT"'", "external_id": "first-'"$(date +%s)"'",
  "amount": 50000, "payer_email": "payer@example.com", "description": "First payment"
}'
