"""Tests of the client with a running service. test/clients/python.test.ts starts one and sets COUPON_TEST."""

from __future__ import annotations

import http.server
import io
import json
import os
import ssl
import threading
import time
import typing
import unittest
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import coupon_client
from coupon_client import ClientA, ClientB, NoAnswer, new_request_id, verify_webhook

given = json.loads(os.environ.get("COUPON_TEST", "null"))


class Checked:
    """A client that compares each answer with its type."""

    def __init__(self, client: ClientA | ClientB) -> None:
        self.client = client

    def __getattr__(self, name: str) -> typing.Any:
        method = getattr(self.client, name)
        expected = typing.get_type_hints(method)["return"]

        def call(*args: object, **options: object) -> object:
            answer = method(*args, **options)
            if not name.endswith("_pages"):
                check(answer, expected, name)
            return answer

        return call


def check(value: typing.Any, expected: typing.Any, place: str) -> None:
    """Fails unless the value has exactly the fields of its type, with values of their types."""
    problem = find_problem(value, expected, place)
    if problem is not None:
        raise AssertionError(problem)


def find_problem(value: typing.Any, expected: typing.Any, place: str) -> str | None:
    origin, args = typing.get_origin(expected), typing.get_args(expected)
    if expected is typing.Any or origin is dict:
        return None
    if origin is typing.Union:
        problems = [find_problem(value, option, place) for option in args]
        return None if None in problems else "; ".join(map(str, problems))
    if origin is typing.Literal:
        return None if value in args else f"{place} is {value!r}, not one of {args}"
    if origin is list:
        problems = [find_problem(item, args[0], f"{place}[{index}]") for index, item in enumerate(value)]
        return next(filter(None, problems), None)
    if not hasattr(expected, "__required_keys__"):
        return None if isinstance(value, expected) else f"{place} is {value!r}, not {expected}"
    missing, unknown = expected.__required_keys__ - set(value), set(value) - set(expected.__annotations__)
    if missing or unknown:
        return f"{place} lacks {missing} and has unknown {unknown}"
    hints = typing.get_type_hints(expected)
    problems = [find_problem(value[name], hints[name], f"{place}.{name}") for name in value]
    return next(filter(None, problems), None)


class Receiver(http.server.BaseHTTPRequestHandler):
    """Keeps the webhooks that arrive."""

    received: list[tuple[dict[str, str], bytes]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.received.append((dict(self.headers.items()), body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def wait_until(what: str, find: typing.Callable[[], typing.Any]) -> typing.Any:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        found = find()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited 60 s for {what}")


@unittest.skipIf(given is None, "COUPON_TEST names no service")
class WithService(unittest.TestCase):
    def connect(
        self, key: str, kind: type[ClientA] | type[ClientB], url: str | None = None, **options: typing.Any
    ) -> typing.Any:
        client = kind(url or given["url"], key, given["secrets"][key], **options)
        self.addCleanup(client.close)
        return client

    def setUp(self) -> None:
        self.a = Checked(self.connect("ak_a", ClientA))
        self.pos = Checked(self.connect("ak_pos", ClientB))
        self.maker = Checked(self.connect("ak_maker", ClientB))

    def test_life_in_variant_a(self) -> None:
        """Variant A: a coupon is locked, confirmed, shown and reversed"""
        lock_request_id, code = new_request_id(), given["codesA"].pop()
        coupon = {"coupon": code, "merchant": "mch_a"}
        self.assertEqual(self.a.query(coupon)["coupon"]["status"], "ISSUED")
        items = [{"sku": "S", "quantity": 2, "amount": Decimal("19.90")}]
        order = {"store": "Main Street", "terminal": "2", "order_amount": Decimal("45.50"), "currency": "EUR"}
        lock = self.a.lock(
            {**coupon, **order, "request_id": lock_request_id, "order_id": "47", "redemption_context": {"items": items}}
        )
        self.assertEqual(lock["discount_amount"], Decimal("4.55"))
        with self.assertRaises(coupon_client.CouponLocked) as caught:
            self.a.redeem({**coupon, "order_amount": 1})
        self.assertEqual(caught.exception.details, {"lock_expires_at": lock["lock_expires_at"]})
        confirmed = self.a.confirm({**coupon, "lock_request_id": lock_request_id})
        self.assertEqual(confirmed, {"ok": True, "redemption": lock["redemption"], "status": "REDEEMED"})
        shown = self.a.query(coupon)["coupon"]["redemption"]
        self.assertEqual((shown["status"], shown["discount_amount"]), ("REDEEMED", Decimal("4.55")))
        reversal = self.a.reverse({"redemption": lock["redemption"], "reason": "returned"})
        self.assertEqual((reversal["redemption"], reversal["status"]), (lock["redemption"], "REVERSED"))
        with self.assertRaises(coupon_client.RedemptionReversed):
            self.a.reverse({"redemption": lock["redemption"]})
        recorded = self.a.get_request(lock_request_id)["request"]
        self.assertEqual((recorded["operation"], recorded["response"]), ("lock", lock))

    def test_life_in_variant_b(self) -> None:
        """Variant B: a batch is made and released; coupons are redeemed, cancelled and voided"""
        made = self.maker.create_batch({"template": "tpl_b", "total_count": 2, "distributor": "pty_dist"})["batch"]
        batch = made["external_id"]
        self.assertEqual((made["status"], made["total_count"], made["minted_count"]), ("PENDING", 2, 0))
        with self.assertRaises(coupon_client.NotFound) as caught:
            self.pos.get_batch(batch)
        self.assertEqual(caught.exception.details, {"resource": "batch"})
        wait_until("a minted batch", lambda: self.maker.get_batch(batch)["batch"]["status"] == "COMPLETED")
        self.assertEqual(self.maker.allocate_batch({"batch": batch})["batch"]["status"], "ALLOCATED")
        coupon = {"coupon": given["codesB"].pop(), "merchant": "mch_b"}
        place = {"store": "S1", "terminal": "T1"}
        lock_request_id = new_request_id()
        lock = self.pos.lock({**coupon, **place, "request_id": lock_request_id})
        cancelled = self.pos.cancel({"coupon": coupon["coupon"], "lock_request_id": lock_request_id})
        self.assertEqual((cancelled["redemption"], cancelled["status"]), (lock["redemption"], "CANCELLED"))
        self.assertEqual(self.pos.redeem({**coupon, **place})["discount_amount"], 5)
        self.assertEqual(self.pos.query(coupon)["coupon"]["status"], "REDEEMED")
        other = {"coupon": given["codesB"].pop(), "merchant": "mch_b"}
        self.assertEqual(self.pos.void({**other, "reason": "printed twice"})["status"], "VOIDED")
        with self.assertRaises(coupon_client.CouponVoided):
            self.pos.redeem(other)
        with self.assertRaises(coupon_client.InvalidRequest) as invalid:
            self.pos.redeem({**other, "redemption_context": {}})
        self.assertEqual([issue["path"] for issue in invalid.exception.details["issues"]], ["redemption_context"])
        self.assertIsNotNone(self.maker.suspend_batch({"batch": batch, "reason": "leaked"})["batch"]["suspended_at"])
        self.assertIsNone(self.maker.resume_batch({"batch": batch})["batch"]["suspended_at"])
        self.assertIsNone(self.maker.recall_batch({"batch": batch})["batch"]["recall"]["finished_at"])
        with self.assertRaises(coupon_client.BatchSuspended):
            self.maker.resume_batch({"batch": batch})

    def test_own_things(self) -> None:
        """Both variants: lists, a quote, a redemption and a file of codes"""
        for owner, till, template, merchant, discount in [
            (self.a, self.a, "tpl_percent", "mch_a", 2),
            (self.maker, self.pos, "tpl_b", "mch_b", 5),
        ]:
            code = given["codesA" if merchant == "mch_a" else "codesB"].pop()
            order = {"coupon": code, "merchant": merchant, "order_amount": 20}
            quote = till.query(order)["quote"]
            self.assertEqual((quote["redeemable"], quote["discount_amount"]), (True, discount))
            order_id = new_request_id()
            redemption = till.redeem({**order, "order_id": order_id})["redemption"]
            listed = till.list_redemptions(merchant, order_id)["redemptions"]
            self.assertEqual([entry["redemption"] for entry in listed], [redemption])
            shown = till.get_redemption(redemption)["redemption"]
            self.assertEqual(shown["order_id"], order_id)

            def find(till: typing.Any = till, merchant: str = merchant, redemption: str = redemption) -> bool:
                pages = till.redemption_pages(merchant, limit=2)
                return redemption in [entry["redemption"] for page in pages for entry in page["redemptions"]]

            wait_until("the redemption in the list", find)
            owner.create_batch({"template": template, "total_count": 1})
            pages = list(owner.batch_pages(template=template, limit=1))
            for page in pages:
                check(page, coupon_client.BatchPage, "page")
            ids = [batch["external_id"] for page in pages for batch in page["batches"]]
            self.assertEqual((len(set(ids)), pages[-1]["next_cursor"]), (len(pages), None))
            self.assertIn(shown["batch_id"], ids)
            into = io.BytesIO()
            downloaded = owner.export_codes(shown["batch_id"], into)
            self.assertEqual(downloaded.bytes, len(into.getvalue()))
            self.assertTrue(into.getvalue().startswith(b"age-encryption.org/v1\n"))
            self.assertNotIn(code.encode(), into.getvalue())
        events = self.a.pull_events(expand=True)["events"]
        self.assertTrue(all("data" in event for event in events))

    def test_refused_callers(self) -> None:
        """A wrong secret, an unknown key and a reused request_id are typed errors"""
        for key, secret in [("ak_a", "x" * 32), ("ak_nobody", given["secrets"]["ak_a"])]:
            with ClientA(given["url"], key, secret) as client, self.assertRaises(coupon_client.Unauthenticated):
                client.pull_events()
        request = {"request_id": new_request_id(), "coupon": given["codesA"].pop(), "merchant": "mch_a"}
        first = self.a.redeem({**request, "order_amount": 10})
        self.assertEqual(self.a.redeem({**request, "order_amount": Decimal("10.00")}), first)
        with self.assertRaises(coupon_client.IdempotencyKeyReused) as caught:
            self.a.redeem({**request, "order_amount": 11})
        self.assertEqual(caught.exception.request_id, request["request_id"])

    def test_large_body(self) -> None:
        """A body that is too large is refused, and the next call works"""
        request = {"coupon": given["codesA"][0], "merchant": "mch_a", "redemption_context": {"note": "x" * 200_000}}
        with self.assertRaises(coupon_client.PayloadTooLarge):
            self.a.redeem(request)
        self.a.pull_events()

    def test_events(self) -> None:
        """The pages of events have each event once, in order, up to the end"""
        code = given["codesA"].pop()
        redemption = self.a.redeem({"coupon": code, "merchant": "mch_a", "order_amount": 10})["redemption"]

        def find() -> list[str]:
            pages = list(self.a.event_pages(limit=2))
            events = [event for page in pages for event in page["events"]]
            is_found = any(event["redemption_id"] == redemption for event in events)
            return [event["event_id"] for event in events] if is_found else []

        ids = wait_until("an event", find)
        self.assertEqual(len(set(ids)), len(ids))
        first = self.a.pull_events(limit=1)
        self.assertEqual([event["event_id"] for event in first["events"]], ids[:1])
        rest = [event for page in self.a.event_pages(first["next_cursor"]) for event in page["events"]]
        self.assertEqual([event["event_id"] for event in rest][: len(ids) - 1], ids[1:])
        with self.assertRaises(coupon_client.InvalidRequest):
            self.a.pull_events("no cursor")

    def test_reconciliations(self) -> None:
        """Each listed file is downloaded whole, and the list continues after its last date"""
        for client in (self.a, Checked(self.connect("ak_dist", ClientB))):
            pages = list(client.reconciliation_pages(limit=1))
            for page in pages:
                check(page, coupon_client.ReconciliationPage, "page")
            days = [day for page in pages for day in page["reconciliations"]]
            self.assertEqual(len(days), 1)
            for file in days[0]["files"]:
                into, again = io.BytesIO(), io.BytesIO()
                self.assertEqual(client.download(file, into), (file["bytes"], file["sha256"]))
                client.get_reconciliation(days[0]["business_date"], file["kind"], again)
                self.assertEqual(again.getvalue(), into.getvalue())
                self.assertEqual(into.getvalue().count(b"\r\n"), file["rows"] + 1)
            self.assertEqual(list(client.reconciliation_pages(pages[-1]["next_cursor"])), [])
            with self.assertRaises(coupon_client.NotFound):
                client.get_reconciliation("1999-01-01", "detail", io.BytesIO())
        of_a = io.BytesIO()
        date = next(self.a.reconciliation_pages())["reconciliations"][0]["business_date"]
        self.a.get_reconciliation(date, "summary", of_a, distributor="pty_a")
        self.assertIn(b"pty_a", of_a.getvalue())

    def test_close_day(self) -> None:
        """These tenants are no sandboxes"""
        for client in (self.a, self.maker):
            with self.assertRaises(coupon_client.NotASandbox):
                client.close_day({"distributor": None})

    def test_open_portal(self) -> None:
        """Each caller gets a link of its own"""
        links = [client.open_portal({})["url"] for client in (self.a, self.maker)]
        self.assertEqual([link.count("/sign-in?link=lnk_") for link in links], [1, 1])
        self.assertNotEqual(*links)

    def test_webhooks(self) -> None:
        """The service's own webhooks are verified: a test of each type, and a replayed event"""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", given["receiverPort"]), Receiver)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        types = [
            value for kind in typing.get_args(coupon_client.EventType) for value in typing.get_args(kind) or [kind]
        ]
        sent = {self.a.test_webhook({"event_type": name})["event_id"]: name for name in types}
        self.assertEqual(len(sent), 7)
        found = wait_until("test events", lambda: self.find_received(set(sent)))
        for event_id, (headers, body) in found.items():
            event = verify_webhook(given["webhookSecret"], headers, body)
            check(event, coupon_client.Event, "event")
            self.assertEqual((event["event_id"], event["event_type"]), (event_id, sent[event_id]))
            self.assertTrue(coupon_client.is_test_webhook(headers))
            with self.assertRaises(coupon_client.WebhookError):
                verify_webhook(given["webhookSecret"], headers, body + b" ")
        past = wait_until("an event", lambda: self.a.pull_events(limit=1)["events"])[0]
        self.assertEqual(self.a.replay_events({"event_id": past["event_id"]})["replayed"], 1)
        self.assertGreater(
            self.a.replay_events({"from": "2026-01-01T00:00:00Z", "to": past["recorded_at"]})["replayed"], -1
        )
        headers, body = wait_until("a replay", lambda: self.find_received({past["event_id"]}))[past["event_id"]]
        self.assertEqual(verify_webhook([given["webhookSecret"]], headers, body), past)
        self.assertFalse(coupon_client.is_test_webhook(headers))
        # The worker records an attempt after the answer, so the event is here before its attempt is shown.
        shown = wait_until("the attempt of the replay", lambda: self.find_taken(past["event_id"]))
        self.assertEqual(shown["party_id"], "pty_a")
        with self.assertRaises(coupon_client.NotFound):
            self.maker.get_webhook()

    def find_received(self, ids: set[str]) -> dict[str, tuple[dict[str, str], bytes]]:
        found = {headers["webhook-id"]: (headers, body) for headers, body in list(Receiver.received)}
        return {event_id: found[event_id] for event_id in ids} if ids <= set(found) else {}

    def find_taken(self, event_id: str) -> coupon_client.Webhook | None:
        webhook = self.a.get_webhook("pty_a")["webhook"]
        taken = {attempt["event_id"] for attempt in webhook["attempts"] if attempt["http_status"] == 204}
        return webhook if event_id in taken else None

    def test_private_ca(self) -> None:
        """https works with a private CA, and an unknown CA is refused without a repeat"""
        context = ssl.create_default_context(cafile=given["caFile"])
        self.assertIn("events", self.connect("ak_a", ClientA, given["tlsUrl"], ssl_context=context).pull_events())
        with self.assertRaisesRegex(NoAnswer, "SSLCertVerificationError"):
            self.connect("ak_a", ClientA, given["tlsUrl"]).pull_events()

    def test_cut_answers(self) -> None:
        """Behind a network that cuts answers, each call ends with its one redemption"""
        client = self.connect("ak_a", ClientA, given["cutUrl"], total_timeout=60)
        codes = given["cutCodes"]

        def redeem(code: str) -> str:
            request_id = f"cut-{codes.index(code)}"
            return str(
                client.redeem({"request_id": request_id, "coupon": code, "merchant": "mch_a", "order_amount": 10})[
                    "redemption"
                ]
            )

        with ThreadPoolExecutor(8) as pool:
            redemptions = list(pool.map(redeem, codes))
        self.assertEqual(len(set(redemptions)), len(codes))
        Path(given["redemptionsFile"]).write_text(json.dumps(redemptions), encoding="utf-8")

    def test_leaks(self) -> None:
        """Many calls of 64 threads leave no connection and no thread behind"""
        threads = threading.active_count()
        files = count_files()
        client = self.connect("ak_a", ClientA, pool_size=8)
        coupon = {"coupon": given["codesA"][0], "merchant": "mch_a"}
        most = 0

        def call(index: int) -> str:
            nonlocal most
            if index % 50 == 0:
                most = max(most, count_files())
            return str(client.query(coupon)["coupon"]["status"])

        with ThreadPoolExecutor(64) as pool:
            self.assertEqual(set(pool.map(call, range(given["calls"]))), {"ISSUED"})
        self.assertLessEqual(count_files() - files, 8)
        client.close()
        self.assertEqual((count_files(), threading.active_count()), (files, threads))
        self.assertLessEqual(most - files, 65)


def count_files() -> int:
    folder = "/proc/self/fd" if os.path.exists("/proc/self/fd") else "/dev/fd"
    return len(os.listdir(folder))


if __name__ == "__main__":
    unittest.main()
