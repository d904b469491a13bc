# Does the tasks of standard input with the client, one after the other, and prints what
# came of each.
import base64
import json
import re
import sys

from gerbang_merchant import CallbackError, Client, GerbangError, NoAnswer, verify_callback


def done(task):
    try:
        if "verify" in task:
            given = task["verify"]
            told = verify_callback(given["headers"], base64.b64decode(given["body"]), *given["secrets"])
            return {"callback": {"id": told.id, "event": told.event, "data": told.data}}
        client = Client(
            task["base_url"], task["key"], task["merchant_id"], timeout=task["timeout_ms"] / 1000, retries=task["retries"], longest_wait=5
        )
        call = getattr(client, re.sub("[A-Z]", lambda found: "_" + found[0].lower(), task["call"]))
        answer = call(*([task["request"]] if "request" in task else []), **task.get("options", {}))
        return {"data": answer.data, "message": answer.message, "request_id": answer.request_id, "replayed": answer.replayed}
    except GerbangError as refused:
        return {"error": {"error_code": refused.code, "sent": refused.sent, "retry": refused.retry}}
    except NoAnswer as none:
        return {"no_answer": none.reference}
    except CallbackError:
        return {"unverified": True}


print(json.dumps([done(task) for task in json.load(sys.stdin)]))
