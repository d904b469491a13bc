import base64, hashlib, hmac, os, time
from http.server import BaseHTTPRequestHandler, HTTPServer

key = base64.b64decode(os.environ["CALLBACK_SECRET"].removeprefix("whsec_"))


def verified(headers, body):
    moment = headers.get("webhook-timestamp", "")
    if not moment.isdigit() or abs(time.time() - int(moment)) > 300:
        return False
    signed = f"{headers.get('webhook-id')}.{moment}.".encode() + body
    want = "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return any(hmac.compare_digest(want, given) for given in headers.get("webhook-signature", "").split(" "))


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        genuine = verified(self.headers, body)
        self.send_response(204 if genuine else 401)
        self.end_headers()
        if genuine:
            print(body.decode(), flush=True)


HTTPServer(("", int(os.environ.get("PORT", 3000))), Receiver).serve_forever()
