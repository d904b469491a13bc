"""How a merchant's server verifies a callback, with the standard library alone:
take verify_svc or verify_webhook. Either is enough to know where a callback
comes from; verify_webhook also refuses what is older than five minutes, and
remember the webhook-id to recognise a repetition.

    CALLBACK_SECRET=whsec_... python3 verify.py HEADERS-FILE BODY-FILE

During a rotation CALLBACK_SECRET holds both secrets, with a space between.
"""

import base64
import binascii
import hashlib
import hmac
import os
import re
import sys
import time

# headers: a dict with lower-case names.
# body: the received bytes, before any JSON is parsed (Flask: request.get_data()).


def verify_svc(headers, body, secrets):
    """The key is the whole secret, whsec_ included."""
    given = headers.get("x-svc-signature", "").encode()
    return any(
        hmac.compare_digest(given, hmac.new(secret.encode(), body, hashlib.sha256).hexdigest().encode())
        for secret in secrets
    )


def verify_webhook(headers, body, secrets, now=None):
    """The key is the part after whsec_, decoded."""
    now = time.time() if now is None else now
    event_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not event_id or not re.fullmatch("[0-9]{1,15}", timestamp) or abs(now - int(timestamp)) > 300:
        return False
    signed = f"{event_id}.{timestamp}.".encode() + body
    for secret in secrets:
        try:
            key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except binascii.Error:
            continue
        if not key:
            continue
        want = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
        for given in headers.get("webhook-signature", "").split(" "):
            if hmac.compare_digest(given.encode(), want):
                return True
    return False


def main():
    secrets = os.environ.get("CALLBACK_SECRET", "").split()
    if len(sys.argv) != 3 or not secrets:
        sys.exit("usage: CALLBACK_SECRET=whsec_... python3 verify.py HEADERS-FILE BODY-FILE")
    headers = {}
    with open(sys.argv[1], encoding="latin-1") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
    with open(sys.argv[2], "rb") as file:
        body = file.read()
    svc = verify_svc(headers, body, secrets)
    webhook = verify_webhook(headers, body, secrets)
    print("X-Svc-Signature:", "right" if svc else "wrong")
    print("webhook-signature:", "right" if webhook else "wrong")
    sys.exit(0 if svc and webhook else 1)


if __name__ == "__main__":
    main()
