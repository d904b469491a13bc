import json, os, time, urllib.request

request = urllib.request.Request(
    os.environ["API"] + "/payments/create",
    headers={"Authorization": "Bearer " + os.environ["KEY"], "Content-Type": "application/json"},
    data=json.dumps({
        "merchant_id": os.environ["MERCHANT"], "external_id": f"first-{time.time_ns()}",
        "amount": 50000, "payer_email": "payer@example.com", "description": "First payment",
    }).encode(),
)
try:
    print(urllib.request.urlopen(request).read().decode())
except urllib.error.HTTPError as refused:
    print(refused.read().decode())
