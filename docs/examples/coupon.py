"""One coupon's life, with clients/python. In the root of the project:

PYTHONPATH=clients/python python3 docs/examples/coupon.py
"""

import io
import json
import os
import subprocess
import time

from coupon_client import ClientB, new_request_id

url = os.environ.get("SERVICE") or "http://127.0.0.1:" + os.environ.get("PORT", "8080")
with open(os.environ.get("DATA_DIR", ".data") + "/demo.json") as file:
    secrets = json.load(file)
maker, till, distributor = [ClientB(url, key, secrets[key]) for key in ("ak_demo_maker", "ak_demo_pos", "ak_demo_dist")]

# The maker orders a coupon, waits until it is minted, and releases it to the distributor.
batch = maker.create_batch({"request_id": new_request_id(), "template": "tpl_fiveoff", "total_count": 1})["batch"]
print("create_batch", batch["status"])
for attempt in range(60):
    batch = maker.get_batch(batch["external_id"])["batch"]
    if batch["status"] != "PENDING":
        break
    time.sleep(0.5)
print("get_batch", batch["status"])
released = maker.allocate_batch({"request_id": new_request_id(), "batch": batch["external_id"]})
print("allocate_batch", released["batch"]["status"])
print("list_batches", maker.list_batches(template="tpl_fiveoff", limit=1)["batches"][0]["status"])

# The operator's command hands over the code. A maker with a public key can also fetch it, encrypted: export_codes.
csv = subprocess.check_output(["npm", "run", "-s", "codes", "--", batch["external_id"]], text=True)
code = csv.splitlines()[1].split(",")[1]

# A list of codes is missing: the maker suspends the batch, and the till sees it. Then the list is found.
sale = {"coupon": code, "merchant": "mch_corner"}
question = {**sale, "order_amount": 45.50}
stopped = {"batch": batch["external_id"]}
print("suspend_batch", maker.suspend_batch({"request_id": new_request_id(), **stopped})["batch"]["status"])
print("query", till.query(question)["quote"]["code"])
print("resume_batch", maker.resume_batch({"request_id": new_request_id(), **stopped})["batch"]["status"])

# The till shows the discount while goods are scanned.
print("query", till.query(question)["quote"]["discount_amount"])

# It locks the coupon, takes the discount off the order, and confirms when the customer has paid.
place = {"store": "S1", "terminal": "T1"}
lock_id = new_request_id()
lock = till.lock({"request_id": lock_id, **sale, **place, "order_id": "4711", "order_amount": 45.50})
print("lock", lock["discount_amount"])
confirmed = till.confirm({"request_id": new_request_id(), "lock_request_id": lock_id, **sale})
print("confirm", confirmed["status"])

# The customer returns the goods. The returns desk knows the number of the order. The newest redemption comes first.
found = till.list_redemptions("mch_corner", order_id="4711")["redemptions"][0]
print("list_redemptions", found["status"])

# The template says "reissued": the coupon can be used again.
returned = {"redemption": found["redemption"], "reason": "goods returned"}
print("reverse", till.reverse({"request_id": new_request_id(), **returned})["status"])
print("get_redemption", till.get_redemption(found["redemption"])["redemption"]["status"])

# The next order redeems it in one step, and is returned too.
order = {"request_id": new_request_id(), **sale, **place, "order_id": "4712", "order_amount": 24.90}
redeemed = till.redeem(order)
print("redeem", redeemed["discount_amount"])
returned = {"redemption": redeemed["redemption"], "reason": "goods returned"}
print("reverse", till.reverse({"request_id": new_request_id(), **returned})["status"])

# The customer of the third order leaves without paying: the till gives up its lock.
lock_id = new_request_id()
lock = till.lock({"request_id": lock_id, **sale, **place, "order_id": "4713", "order_amount": 60})
print("lock", lock["discount_amount"])
cancelled = till.cancel({"request_id": new_request_id(), "lock_request_id": lock_id, "coupon": code})
print("cancel", cancelled["status"])

# The till voids the unused coupon, and looks at it.
print("void", till.void({"request_id": new_request_id(), **sale, "reason": "printed twice"})["status"])
coupon = till.query(sale)["coupon"]
print("query", coupon["status"])

# The distributor pulls the events of this coupon; they arrive within seconds.
events = []
for attempt in range(60):
    feed = [event for page in distributor.event_pages() for event in page["events"]]
    events = [event["event_type"] for event in feed if event["coupon_id"] == coupon["coupon_id"]]
    if events[-1:] == ["coupon.voided"]:
        break
    time.sleep(0.5)
print("pull_events", *events)

# It downloads the newest statement. The first one comes after midnight.
days = [day for page in distributor.reconciliation_pages() for day in page["reconciliations"]]
print("list_reconciliations", days[-1]["business_date"] if days else "none")
for listed in days[-1]["files"] if days else []:
    if listed["kind"] == "summary":
        output = io.BytesIO()
        distributor.download(listed, output)
        for line in output.getvalue().decode().splitlines()[1:]:
            print("get_reconciliation", line)

# It asks how the deliveries to its webhook go.
print("get_webhook", distributor.get_webhook()["webhook"]["status"])
