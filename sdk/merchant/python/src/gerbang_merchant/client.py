from __future__ import annotations

import http.client
import json
import re
import time
import urllib.request
import uuid
from datetime import datetime, timezone
from email.message import Message
from typing import Any, Mapping, cast

from .generated import Error, Operations, Result


class GerbangError(Exception):
    """An error that the gateway tells."""

    def __init__(self, body: Error, status: int) -> None:
        self.body = body
        self.status = status
        self.code = body["error_code"]
        self.sent = body.get("sent", "")  # no, refused or unknown
        self.retry = body.get("retry", "")  # never, after_change, later or lookup_first
        self.request_id = body.get("request_id", "")
        super().__init__(
            f"{self.code}: {body.get('message', '')} (sent: {self.sent}, retry: {self.retry}, request {self.request_id})"
        )

    def __reduce__(self) -> tuple[Any, ...]:  # it may cross processes
        return GerbangError, (self.body, self.status)


class NoAnswer(Exception):
    """No answer came. Whether the call was carried out is not known: call again with the
    same reference, which never makes a second."""

    def __init__(self, reference: str, cause: str) -> None:
        self.reference = reference
        self.cause = cause
        super().__init__(f"no answer: {cause}")

    def __reduce__(self) -> tuple[Any, ...]:
        return NoAnswer, (self.reference, self.cause)


class _AsItIs(urllib.request.HTTPErrorProcessor):
    """Takes every answer as it is: no redirect is followed, no status is an exception."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response

    https_response = http_response


class Client(Operations):
    """Calls the API with one key. Threads may share it.

    timeout bounds each wait for the server in one attempt, in seconds; longer than any call takes.
    retries is how often a call is repeated where that is safe.
    longest_wait bounds the wait before a repetition, in seconds.
    """

    def __init__(
        self, base_url: str, key: str, merchant_id: str, *, timeout: float = 60, retries: int = 2, longest_wait: float = 30
    ) -> None:
        if not re.fullmatch(r"https?://[!-~]+", base_url):
            raise ValueError("base_url must begin with https:// or http://, and have no spaces")
        if not re.fullmatch(r"[!-~]+", key):
            raise ValueError("the key has a space, a line break or another character that no key has")
        self._base_url = base_url.rstrip("/")
        self._key = key
        self._merchant_id = merchant_id
        self._timeout = timeout
        self._retries = retries
        self._longest_wait = longest_wait
        self._opener = urllib.request.build_opener(_AsItIs)

    def _send(
        self, path: str, money: bool, request: Mapping[str, Any], callback_url: str | None, idempotency_key: str | None
    ) -> Result[Any]:
        """Makes a call and repeats it where that is safe: when no answer came, and when the
        error says that the same request may be sent again and waiting a moment can help."""
        body = dict(request)
        if self._merchant_id:
            body["merchant_id"] = self._merchant_id
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        if callback_url:
            headers["X-Callback-URL"] = callback_url
        # A refund names its payment, too.
        reference = str(body.get("refund_id") or body.get("external_id") or body.get("ref_id") or "")
        key = idempotency_key or (uuid.uuid4().hex if money and not reference else "")
        if key:
            headers["Idempotency-Key"] = key
        reference = reference or key
        text = json.dumps(body).encode()

        attempt = 0
        while True:
            failure: GerbangError | NoAnswer
            try:
                status, told, answer = self._post(path, headers, text)
            except (OSError, http.client.HTTPException) as cause:
                failure, wait = NoAnswer(reference, str(cause) or type(cause).__name__), _pause(attempt)
            else:
                if status == 200 and answer.get("success") is True:
                    return Result(
                        answer.get("data"),
                        answer.get("message", ""),
                        told.get("X-Request-Id", ""),
                        told.get("Idempotent-Replayed") == "true",
                    )
                if isinstance(answer.get("error_code"), str):
                    failure = GerbangError(answer, status)  # type: ignore[arg-type]  # as the document says
                    wait = _helps(failure, told, attempt)
                else:
                    failure, wait = NoAnswer(reference, f"HTTP {status} that is not Gerbang's"), _pause(attempt)
            if wait == 0 or wait > self._longest_wait or attempt >= self._retries:
                raise failure
            time.sleep(wait)
            attempt += 1

    def _post(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Message, dict[str, Any]]:
        request = urllib.request.Request(self._base_url + path, body, headers, method="POST")
        with self._opener.open(request, timeout=self._timeout) as response:
            text = response.read()
        answer: Any = None
        try:
            answer = json.loads(text)
        except ValueError:
            pass
        return response.status, response.headers, cast(dict[str, Any], answer) if isinstance(answer, dict) else {}


def _helps(failure: GerbangError, told: Message, attempt: int) -> float:
    """How many seconds to wait before the same request is sent again, 0 for never."""
    if failure.retry not in ("later", "lookup_first"):
        return 0
    after = told.get("Retry-After", "")
    if re.fullmatch(r"\d+", after):
        # retry_at tells the real time, where that is hours away.
        at = failure.body.get("retry_at")
        until = (datetime.fromisoformat(at) - datetime.now(timezone.utc)).total_seconds() if at else 0
        return max(float(after), until, 0.001)
    return _pause(attempt) if failure.status == 500 else 0  # else what stands in the way is not gone in a moment


def _pause(attempt: int) -> float:
    """0.5, 1, 2 ... seconds."""
    return 0.5 * 2.0 ** min(attempt, 6)
