from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from dataclasses import dataclass
from typing import Any, Iterable, Protocol


class Headers(Protocol):
    """The headers of a request, as every framework has them."""

    def items(self) -> Iterable[tuple[str, str]]: ...


@dataclass(frozen=True)
class Callback:
    """A verified callback. One whose id was seen is done."""

    id: str
    event: str  # payments.status_update, ...
    data: Any  # of the event's type: PaymentEventData, ...


class CallbackError(Exception):
    """The callback is not Gerbang's, or too old: answer 400 and do nothing."""

    def __init__(self) -> None:
        super().__init__("the callback is not verified")


def verify_callback(headers: Headers, body: bytes, *secrets: str) -> Callback:
    """Checks the Standard Webhooks signature of the received bytes, by any of the secrets:
    two while a secret is rotated."""
    told = {name.lower(): value for name, value in headers.items()}
    id, timestamp = told.get("webhook-id", ""), told.get("webhook-timestamp", "")
    if not id or not re.fullmatch(r"\d{1,15}", timestamp, re.ASCII) or abs(time.time() - int(timestamp)) > 300:
        raise CallbackError
    given = told.get("webhook-signature", "").encode("utf-8", "replace").split()
    for secret in secrets:
        try:
            key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except ValueError:  # binascii.Error, too
            continue
        signature = hmac.digest(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256)
        want = b"v1," + base64.b64encode(signature)
        if not key or not any(hmac.compare_digest(one, want) for one in given):
            continue
        try:
            content = json.loads(body)
            return Callback(id, content["event"], content["data"])
        except (ValueError, TypeError, KeyError):
            break
    raise CallbackError
