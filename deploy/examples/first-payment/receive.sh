openssl dgst -sha256 -hmac "$CALLBACK_SECRET" -r body.json | cut -d ' ' -f 1
