# The signature of a callback whose body is in body.json: what X-Svc-Signature says.
openssl dgst -sha256 -hmac "$CALLBACK_SECRET" -r body.json | cut -d ' ' -f 1
