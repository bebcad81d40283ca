"""Tests of the client alone: python3 -m unittest test_coupon_client"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import io
import json
import os
import pickle
import re
import socket
import threading
import time
import unittest
from decimal import Decimal
from pathlib import Path
from unittest import mock

import coupon_client
from coupon_client import (
    ClientA,
    ClientB,
    CouponLocked,
    DownloadError,
    InvalidRequest,
    NoAnswer,
    ServiceError,
    WebhookError,
    is_test_webhook,
    new_request_id,
    sign_request,
    verify_webhook,
)

root = Path(__file__).resolve().parents[2]
secret = "test_secret_0123456789abcdefghijklmnop"
code = "0123456789ABCDEF"


def answer(status: int, body: object, headers: str = "") -> bytes:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} Status\r\ncontent-length: {len(text)}\r\n{headers}\r\n"
    return head.encode() + text


def refusal(status: int, code: str, headers: str = "", details: object = None) -> bytes:
    body = {"code": code, "message": "a message", "request_id": "req_1", "details": details}
    return answer(status, body, headers)


class Script:
    """A server that gives the answers of a list, and keeps the requests.

    An answer of None closes the connection. An empty one is silence, and the connection stays open.
    """

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.connections: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def __enter__(self) -> Script:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            connection.close()

    def bodies(self) -> list[dict[str, object]]:
        return [json.loads(body) for _, _, body in self.requests]

    def _accept(self) -> None:
        try:
            while True:
                connection, _ = self.listener.accept()
                self.connections.append(connection)
                threading.Thread(target=self._serve, args=[connection], daemon=True).start()
        except OSError:
            pass

    def _serve(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb", buffering=0)
        with contextlib.suppress(OSError):
            while self._answer(connection, stream):
                pass
            connection.shutdown(socket.SHUT_RDWR)

    def _answer(self, connection: socket.socket, stream: io.RawIOBase) -> bool:
        """Says whether the connection stays: a whole answer keeps it, a cut one ends it."""
        line = stream.readline().decode().strip()
        if not line:
            return False
        pairs = iter(lambda: stream.readline().decode().strip().split(": ", 1), [""])
        headers = {name.lower(): value for name, value in pairs}
        body = b""
        while len(body) < int(headers.get("content-length", "0")):
            body += stream.read(65_536) or b""
        self.requests.append((line, headers, body))
        text = self.answers.pop(0)
        if text is None:
            return False
        if text == b"":
            return True
        connection.sendall(text)
        head, _, content = text.partition(b"\r\n\r\n")
        return head.endswith(b"content-length: %d" % len(content)) or b"content-length: %d\r\n" % len(content) in head


class TestCase(unittest.TestCase):
    def setUp(self) -> None:
        # Nothing waits: `pauses` has the seconds that the client would have waited, and the clock goes on by them.
        self.pauses: list[float] = []
        clock = time.monotonic
        for name, fake in [("sleep", self.pauses.append), ("monotonic", lambda: clock() + sum(self.pauses))]:
            patch = mock.patch.object(time, name, fake)
            patch.start()
            self.addCleanup(patch.stop)

    def client(self, script: Script, **options: float) -> ClientA:
        client = ClientA(script.url, "ak_1", secret, **options)  # type: ignore[arg-type]
        self.addCleanup(client.close)
        return client


class SignaturesOfRequests(TestCase):
    def test_vectors(self) -> None:
        """Every published vector is signed as published"""
        published = json.loads((root / "test/vectors/signing.json").read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(published["vectors"]), 10)
        for vector in published["vectors"]:
            method, target, timestamp, nonce = (vector[name] for name in ("method", "target", "timestamp", "nonce"))
            signature = sign_request(published["secret"], method, target, timestamp, nonce, vector["body"].encode())
            self.assertEqual(signature, vector["signature"], target)

    def test_raw_target(self) -> None:
        """The signature covers the target and the body as they are sent"""
        file = answer(200, b"", f'etag: "{hashlib.sha256(b"").hexdigest()}"\r\n')
        with Script(file, *[answer(200, {})] * 6) as script:
            client = self.client(script)
            client.get_reconciliation("2026-11-22", "detail", io.BytesIO(), "pty_ü")
            client.pull_events("a+b/ü=", 7)
            client.pull_events("")
            client.pull_events(expand=True)
            client.get_request("r 1/../x?")
            client.get_webhook("pty_1&")
            client.query({"coupon": code, "merchant": "mch_ü"})
        targets = [
            "/v1/reconciliations/2026-11-22/detail?distributor=pty_%C3%BC",
            "/v1/events?cursor=a%2Bb%2F%C3%BC%3D&limit=7",
            "/v1/events",
            "/v1/events?expand=true",
            "/v1/requests/r%201%2F..%2Fx%3F",
            "/v1/webhook?party=pty_1%26",
            "/v1/coupons/query",
        ]
        self.assertEqual([line.split(" ")[1] for line, _, _ in script.requests], targets)
        for line, headers, body in script.requests:
            method, target, _ = line.split(" ")
            lines = [
                method,
                target,
                headers["x-svc-timestamp"],
                headers["x-svc-nonce"],
                hashlib.sha256(body).hexdigest(),
            ]
            text = "".join(f"{line}\n" for line in lines)
            signature = hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
            self.assertEqual(headers["x-svc-signature"], signature, target)
            self.assertRegex(headers["x-svc-nonce"], "^[A-Za-z0-9_-]{16,64}$")
            self.assertEqual(headers["x-svc-access-key"], "ak_1")

    def test_ids(self) -> None:
        """New ids have no place for a coupon code, and never repeat"""
        ids = {new_request_id() for _ in range(1_000)}
        self.assertEqual(len(ids), 1_000)
        for made in ids:
            self.assertLess(max(len(part) for part in made.split("u")), 16)
            self.assertRegex(made, "^[0-9a-fu]{36}$")


class Repeats(TestCase):
    def test_repeats_with_the_same_request_id(self) -> None:
        """5xx, 429 and lost connections are repeated with the same body, a new nonce and a new signature"""
        temporary = [
            refusal(503, "UNAVAILABLE"),
            None,
            b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{",
            refusal(500, "INTERNAL_ERROR"),
            refusal(429, "RATE_LIMITED"),
            answer(502, b"<html>"),
            answer(200, b"<html>"),
            answer(200, b"null"),
            answer(200, b"[]"),
            answer(200, b'"ok"'),
            answer(200, b"[" * 100_000),
            answer(503, b"[" * 100_000),
            b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n\r\n",
            refusal(409, "REQUEST_IN_PROGRESS"),
            refusal(401, "NONCE_REUSED"),
        ]
        with Script(*temporary, answer(200, {"ok": True})) as script:
            client = self.client(script, total_timeout=100)
            self.assertEqual(client.redeem({"coupon": code, "merchant": "mch_1"}), {"ok": True})
        self.assertEqual(len(script.requests), len(temporary) + 1)
        self.assertEqual(len(self.pauses), len(temporary))
        self.assertEqual(len({body for _, _, body in script.requests}), 1)
        for name in ("x-svc-nonce", "x-svc-signature"):
            self.assertEqual(len({headers[name] for _, headers, _ in script.requests}), len(temporary) + 1)

    def test_refusals_are_final(self) -> None:
        """Other refusals are not repeated"""
        wrong = {"limit": "wrong_codes"}
        for status, name, details in [
            (400, "INVALID_REQUEST", None),
            (401, "UNAUTHENTICATED", None),
            (409, "COUPON_LOCKED", None),
            (429, "RATE_LIMITED", wrong),
        ]:
            with Script(refusal(status, name, details=details)) as script, self.assertRaises(ServiceError) as caught:
                self.client(script).redeem({"coupon": code, "merchant": "mch_1"})
            self.assertEqual((len(script.requests), caught.exception.code), (1, name))

    def test_wrong_clock(self) -> None:
        """A client with a wrong clock follows the clock of the service, also in later calls"""
        late = refusal(401, "TIMESTAMP_OUT_OF_WINDOW", details={"server_time": "2026-11-22T07:24:40.000Z"})
        with Script(late, answer(200, {}), answer(200, {})) as script:
            with mock.patch.object(time, "time", lambda: 1_000_000_000.5):
                client = self.client(script)
                client.get_batch("bat_1")
                client.get_batch("bat_1")
        sent = [headers["x-svc-timestamp"] for _, headers, _ in script.requests]
        self.assertEqual(sent, ["1000000000", "1795332280", "1795332280"])

    def test_own_request_id(self) -> None:
        """A request_id of the caller is sent; each call without one gets a new one"""
        with Script(*[answer(200, {})] * 3) as script:
            client = self.client(script)
            client.reverse({"redemption": "red_1", "request_id": "mine"})
            client.reverse({"redemption": "red_1"})
            client.reverse({"redemption": "red_1"})
        ids = [body["request_id"] for body in script.bodies()]
        self.assertEqual((ids[0], len(set(ids))), ("mine", 3))

    def test_retry_after(self) -> None:
        """Retry-After is honoured, in seconds and as a date"""
        date = "Sun, 06 Nov 1994 08:49:37 GMT"
        answers = [refusal(429, "RATE_LIMITED", f"retry-after: {text}\r\n") for text in ("7", date)]
        with Script(*answers, answer(200, {})) as script:
            with mock.patch.object(time, "time", lambda: 784111777.0 - 9):
                self.client(script).get_batch("bat_1")
        self.assertEqual(self.pauses, [7, 9])

    def test_retry_after_and_clock(self) -> None:
        """A Retry-After that is a date is read by the clock of its sender, which may be far from ours"""
        dates = "retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\ndate: Sun, 06 Nov 1994 08:49:30 GMT\r\n"
        malformed = [f"retry-after: Sun, 06 Nov {year} 08:49:37 GMT\r\n" for year in ("99999", "9" * 30)]
        answers = [refusal(429, "RATE_LIMITED", headers) for headers in (dates, *malformed)]
        with Script(*answers, answer(200, {})) as script:
            self.client(script).get_batch("bat_1")
        self.assertEqual(self.pauses[0], 7)
        self.assertLess(sum(self.pauses[1:]), 1)

    def test_retry_after_that_is_too_long(self) -> None:
        """A Retry-After beyond the limit of the call is an error at once, which has it"""
        for seconds in (31, 10**20):
            with Script(refusal(503, "UNAVAILABLE", f"retry-after: {seconds}\r\n")) as script:
                with self.assertRaises(ServiceError) as caught:
                    self.client(script).get_batch("bat_1")
            self.assertEqual((caught.exception.retry_after, len(script.requests), self.pauses), (seconds, 1, []))

    def test_backoff(self) -> None:
        """Pauses grow from at most 0.1 s to at most 5 s, and differ"""
        with Script(*[refusal(503, "UNAVAILABLE")] * 9, answer(200, {})) as script:
            self.client(script, total_timeout=100).get_batch("bat_1")
        most = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5]
        for pause, limit in zip(self.pauses, most):
            self.assertTrue(limit / 2 <= pause <= limit, self.pauses)
        self.assertNotEqual(self.pauses[7], self.pauses[8])

    def test_limit_for_the_whole(self) -> None:
        """When the time for the whole call is over, the last error is raised"""
        with Script(*[refusal(503, "UNAVAILABLE")] * 50) as script, self.assertRaises(coupon_client.Unavailable):
            self.client(script).get_batch("bat_1")
        self.assertEqual(len(script.requests), len(self.pauses) + 1)
        self.assertTrue(20 < sum(self.pauses) < 30, self.pauses)

    def test_lost_connection(self) -> None:
        """When nobody answers, the error has the request_id"""
        with Script(*[None] * 50) as script, self.assertRaises(NoAnswer) as caught:
            self.client(script, total_timeout=2).redeem({"coupon": code, "merchant": "mch_1"})
        self.assertEqual({body["request_id"] for body in script.bodies()}, {caught.exception.request_id})

    def test_may_have_taken_effect(self) -> None:
        """An error says whether the write may have taken effect: a refusal that is not recorded leaves that open"""
        lost, late = None, "retry-after: 99\r\n"
        cases: list[tuple[list[bytes | None], bool]] = [
            ([refusal(409, "COUPON_LOCKED")], False),
            ([refusal(429, "RATE_LIMITED", late)], False),
            ([refusal(401, "UNAUTHENTICATED")], False),
            ([refusal(409, "REQUEST_IN_PROGRESS", late)], True),
            ([refusal(503, "UNAVAILABLE", late)], True),
            ([refusal(500, "INTERNAL_ERROR", late)], True),
            ([answer(502, b"<html>", late)], True),
            ([lost, refusal(409, "COUPON_LOCKED")], False),
            ([lost, refusal(404, "NOT_FOUND")], False),
            ([lost, refusal(404, "ROUTE_NOT_FOUND")], True),
            ([lost, refusal(400, "INVALID_REQUEST")], True),
            ([lost, refusal(401, "UNAUTHENTICATED")], True),
            ([lost, refusal(422, "COUPON_CODE_INVALID")], True),
            ([lost, refusal(422, "IDEMPOTENCY_KEY_REUSED")], True),
            ([lost, refusal(429, "RATE_LIMITED", late)], True),
            ([refusal(503, "UNAVAILABLE"), refusal(429, "RATE_LIMITED", late)], True),
            ([refusal(429, "RATE_LIMITED"), refusal(401, "UNAUTHENTICATED")], False),
            ([refusal(401, "NONCE_REUSED"), refusal(429, "RATE_LIMITED", late)], True),
            ([refusal(401, "NONCE_REUSED"), refusal(409, "COUPON_LOCKED")], False),
            ([lost, refusal(403, "OF_A_GATEWAY")], True),
        ]
        for answers, expected in cases:
            with Script(*answers) as script, self.assertRaises((NoAnswer, ServiceError)) as caught:
                self.client(script).redeem({"coupon": code, "merchant": "mch_1"})
            self.assertEqual(len(script.requests), len(answers), answers)
            self.assertEqual(caught.exception.may_have_taken_effect, expected, answers)

    def test_refused_connection(self) -> None:
        """A refused connection is NoAnswer"""
        with Script() as script:
            url = script.url
        with self.assertRaisesRegex(NoAnswer, "ConnectionRefusedError"):
            ClientB(url, "ak_1", secret, total_timeout=1).get_batch("bat_1")

    def test_silent_service(self) -> None:
        """The time for an answer is for the whole of it, however slowly its bytes come"""
        listener = socket.create_server(("127.0.0.1", 0))
        is_over = threading.Event()

        def drip() -> None:
            connection, _ = listener.accept()
            connection.recv(65_536)
            with connection:
                try:
                    for byte in b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n" + b" " * 100:
                        connection.sendall(bytes([byte]))
                        if is_over.wait(0.02):
                            return
                except OSError:
                    pass

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        client = ClientA(
            f"http://127.0.0.1:{listener.getsockname()[1]}", "ak_1", secret, timeout=0.3, total_timeout=0.3
        )
        with self.assertRaisesRegex(NoAnswer, "time"):
            client.get_batch("bat_1")
        is_over.set()
        thread.join(10)
        listener.close()

    def test_silence_is_repeated(self) -> None:
        """A service that does not answer in time is asked again"""
        # On a busy machine the second answer may be late too.
        with Script(b"", *[answer(200, {"ok": True})] * 50) as script:
            client = self.client(script, timeout=0.5, total_timeout=20)
            self.assertEqual(client.redeem({"coupon": code, "merchant": "mch_1"}), {"ok": True})
        self.assertGreaterEqual(len(script.requests), 2)

    def test_limit_for_each_answer(self) -> None:
        """An answer has the time for one answer, but no longer than what is left for the whole call"""
        limits: list[float] = []
        # The clock stands still, so what is left is what was given.
        with mock.patch.object(socket.socket, "settimeout", lambda _, seconds: limits.append(seconds)):
            with mock.patch.object(time, "monotonic", lambda: 1_000.0):
                for timeout, total_timeout in [(8, 60), (60, 7)]:
                    limits.clear()
                    with Script(answer(200, {})) as script:
                        options = {"connect_timeout": 5, "timeout": timeout, "total_timeout": total_timeout}
                        self.client(script, **options).get_batch("bat_1")
                    self.assertEqual((limits[0], set(limits[1:])), (5, {min(timeout, total_timeout)}))
                # The usual times.
                limits.clear()
                with Script(answer(200, {})) as script:
                    self.client(script).get_batch("bat_1")
                self.assertEqual((limits[0], set(limits[1:])), (5, {10}))


class Pages(TestCase):
    def test_limit_of_each_page(self) -> None:
        """Each page is asked for with the limit of the caller, from the cursor of the page before"""
        for path, entries in [("/v1/events", "events"), ("/v1/reconciliations", "reconciliations")]:
            pages = [{entries: [{}], "next_cursor": "c"}, {entries: [], "next_cursor": "d"}]
            with Script(*[answer(200, page) for page in pages]) as script:
                client = self.client(script)
                read = client.event_pages if entries == "events" else client.reconciliation_pages
                self.assertEqual(list(read("b", 2)), pages[:1])
            targets = [f"{path}?cursor=b&limit=2", f"{path}?cursor=c&limit=2"]
            self.assertEqual([line.split(" ")[1] for line, _, _ in script.requests], targets)


class Connections(TestCase):
    def test_keep_alive(self) -> None:
        """Calls one after the other share a connection, also after a refusal"""
        with Script(answer(200, {}), refusal(404, "NOT_FOUND"), answer(200, {})) as script:
            client = self.client(script)
            client.get_batch("bat_1")
            with self.assertRaises(coupon_client.NotFound):
                client.get_batch("bat_2")
            client.get_batch("bat_3")
            self.assertEqual(len(script.connections), 1)

    def test_close(self) -> None:
        """connection: close is obeyed, and a closed client opens a new connection"""
        with Script(answer(200, {}, "connection: close\r\n"), answer(200, {}), answer(200, {})) as script:
            with self.client(script) as client:
                client.get_batch("bat_1")
                client.get_batch("bat_2")
            client.get_batch("bat_3")
            self.assertEqual(len(script.connections), 3)

    def test_old_connections(self) -> None:
        """A connection that was idle for 30 seconds is not used again"""
        clock = mock.Mock(return_value=1_000.0)
        with Script(answer(200, {}), answer(200, {}), answer(200, {})) as script:
            client = self.client(script)
            with mock.patch.object(time, "monotonic", clock):
                # Seconds since the call before, and connections until then.
                for seconds, connections in [(0, 1), (29, 1), (31, 2)]:
                    clock.return_value += seconds
                    client.get_batch("bat_1")
                    self.assertEqual(len(script.connections), connections)

    def test_lost_connection(self) -> None:
        """After a lost connection the repeat takes a new one: every idle connection may be dead too"""
        content = b"a,b\r\n"
        file = answer(200, content, f'etag: "{hashlib.sha256(content).hexdigest()}"\r\n')
        with Script(file, answer(200, {}), None, answer(200, {"ok": True})) as script:
            client = self.client(script)
            into = io.BytesIO()
            # Needs a second connection, because the first one still has the download.
            into.write = lambda piece: client.get_batch("bat_1") or len(piece)  # type: ignore[assignment]
            client.get_reconciliation("2026-11-22", "detail", into)
            self.assertEqual(len(script.connections), 2)
            self.assertEqual(client.redeem({"coupon": code, "merchant": "mch_1"}), {"ok": True})
            self.assertEqual((len(script.connections), len(self.pauses)), (3, 1))
        self.assertEqual(len({body for _, _, body in script.requests[2:]}), 1)

    def test_stray_answer(self) -> None:
        """A connection that ended, or has an answer that nobody asked for, is not used again"""
        for stray in (answer(200, {"ok": "stray"}), refusal(408, "INVALID_REQUEST"), None):
            with Script(answer(200, {}), answer(200, {"ok": True})) as script:
                client = self.client(script)
                client.get_batch("bat_1")
                if stray is None:
                    script.connections[0].shutdown(socket.SHUT_RDWR)
                else:
                    script.connections[0].sendall(stray)
                self.assertEqual(client.get_batch("bat_2"), {"ok": True})
                self.assertEqual((len(script.connections), self.pauses), (2, []))

    def test_fork(self) -> None:
        """A forked process does not use the connections of its parent"""
        with Script(answer(200, {}), answer(200, {})) as script:
            client = self.client(script)
            client.get_batch("bat_1")
            with mock.patch.object(os, "getpid", lambda: 1):
                client.get_batch("bat_2")
            self.assertEqual(len(script.connections), 2)

    def test_default_port(self) -> None:
        """A URL without a port has the default one, also with an IPv6 address"""
        asked = []
        for url in ("http://[::1]", "https://[2001:db8::5]", "http://shop.example"):
            with mock.patch("socket.create_connection", lambda address, *_: asked.append(address) or self.fail()):
                client = ClientA(url, "ak_1", secret)
                with self.assertRaises(AssertionError):
                    client.get_batch("bat_1")
        self.assertEqual(asked, [("::1", 80), ("2001:db8::5", 443), ("shop.example", 80)])

    def test_url(self) -> None:
        """A URL with a path, a user or another scheme is refused"""
        for url in ("ftp://x", "http://x/path", "http://x?q", "http://me:word@x", "x", "https://"):
            with self.assertRaises(ValueError):
                ClientA(url, "ak_1", secret)


class Errors(TestCase):
    def test_table(self) -> None:
        """There is one class for each code of the documented table"""
        table = (root / "docs/integrate.md").read_text(encoding="utf-8").split("\n## Errors\n")[1]
        documented = re.findall(r"^\| \d{3} \| `([A-Z_]+)` \|", table, re.MULTILINE)
        self.assertGreater(len(documented), 30)
        self.assertEqual(sorted(ServiceError._by_code), sorted(documented))

    def test_operations(self) -> None:
        """Each documented operation is a method of both clients"""
        page = (root / "docs/integrate.md").read_text(encoding="utf-8")
        operations = re.findall(r"^\| \[(\w+)\]\([^)]+\) \| (?:GET|POST) `", page, re.MULTILINE)
        self.assertGreater(len(operations), 13)
        for client in (ClientA, ClientB):
            self.assertEqual([name for name in operations if not callable(getattr(client, name, None))], [])

    def test_typed(self) -> None:
        """An error has its class, code, message, request_id and details"""
        details = {"lock_expires_at": "2026-11-22T07:39:40.425Z"}
        with Script(refusal(409, "COUPON_LOCKED", details=details)) as script:
            with self.assertRaises(CouponLocked) as caught:
                self.client(script).redeem({"coupon": code, "merchant": "mch_1", "request_id": "mine"})
        error = caught.exception
        self.assertEqual((error.status, error.code, error.request_id), (409, "COUPON_LOCKED", "mine"))
        self.assertEqual((error.message, error.details), ("a message", details))
        self.assertEqual(str(error), "409 COUPON_LOCKED: a message (request_id mine)")
        issues = [{"path": "merchant", "message": "is required"}, {"path": "store", "message": "must be a string"}]
        wrong = InvalidRequest(400, "INVALID_REQUEST", "Not valid.", "r", {"issues": issues})
        where = "merchant: is required; store: must be a string"
        self.assertEqual(str(wrong), f"400 INVALID_REQUEST: Not valid. ({where}) (request_id r)")
        self.assertEqual(vars(pickle.loads(pickle.dumps(error))), vars(error))

    def test_request_id(self) -> None:
        """An error names the request_id that was sent, whatever the answer says; a read has that of the service"""
        # The time may end within an attempt.
        with Script(*[refusal(503, "UNAVAILABLE")] * 50) as script:
            with self.assertRaises((NoAnswer, ServiceError)) as caught:
                self.client(script, total_timeout=1).redeem({"coupon": code, "merchant": "mch_1"})
        self.assertEqual({body["request_id"] for body in script.bodies()}, {caught.exception.request_id})
        with Script(refusal(404, "NOT_FOUND")) as script, self.assertRaises(ServiceError) as refused:
            self.client(script).get_batch("bat_1")
        self.assertEqual(refused.exception.request_id, "req_1")

    def test_unknown(self) -> None:
        """An unknown code is a ServiceError with that code; what is not of the service is NoAnswer with its status"""
        with Script(refusal(418, "TEAPOT")) as script, self.assertRaises(ServiceError) as caught:
            self.client(script).get_batch("bat_1")
        self.assertEqual((type(caught.exception), caught.exception.code), (ServiceError, "TEAPOT"))
        for text, status in [(answer(403, b"<html>"), 403), (answer(302, []), 302)]:
            with Script(text) as script, self.assertRaises(NoAnswer) as lost:
                self.client(script).get_batch("bat_1")
            self.assertEqual((lost.exception.status, len(script.requests)), (status, 1))

    def test_no_secrets(self) -> None:
        """Neither a code nor a secret is in an error, in its causes, or in the repr of a client"""
        for texts in ([None] * 20, [refusal(400, "INVALID_REQUEST")], [answer(200, b"?")] * 20):
            with Script(*texts) as script, self.assertRaises((NoAnswer, InvalidRequest)) as caught:
                self.client(script, total_timeout=0.1).lock({"coupon": code, "merchant": "mch_1"})
            error: BaseException | None = caught.exception
            while error is not None:
                shown = f"{error} {error!r} {vars(error)}"
                self.assertNotIn(code, shown)
                self.assertNotIn(secret, shown)
                error = error.__cause__ or error.__context__
        self.assertEqual(repr(ClientB("https://example.com", "ak_1", secret)), "<ClientB https://example.com ak_1>")

    def test_amounts(self) -> None:
        """Amounts are exact: an answer has Decimals, and a request may have them"""
        with Script(answer(200, b'{"discount_amount":0.10}'), answer(200, b'{"discount_amount":8}')) as script:
            client = self.client(script)
            request: coupon_client.RedemptionRequestA = {
                "coupon": code,
                "merchant": "m",
                "order_amount": Decimal("1.10"),
            }
            self.assertEqual(client.lock(request)["discount_amount"], Decimal("0.10"))
            self.assertEqual(client.lock(request)["discount_amount"], 8)
        self.assertIn(b'"order_amount": 1.1}', script.requests[0][2])


class Downloads(TestCase):
    content = b"a,b\r\n" * 20_000
    sha256 = hashlib.sha256(content).hexdigest()

    def file(self, content: bytes = content, sha256: str = sha256) -> bytes:
        return answer(200, content, f'etag: "{sha256}"\r\n')

    def listed(self, **changes: object) -> coupon_client.ReconciliationFile:
        size, href = len(self.content), "/v1/reconciliations/2026-11-22/detail?distributor=pty_1"
        entry = {"kind": "detail", "href": href, "rows": 19_999, "bytes": size, "sha256": self.sha256, **changes}
        return entry  # type: ignore[return-value]

    def test_whole(self) -> None:
        """A file is written where the output stands, and checked against headers and list"""
        into = io.BytesIO(b"before")
        into.seek(6)
        with Script(self.file()) as script:
            self.assertEqual(self.client(script).download(self.listed(), into), (len(self.content), self.sha256))
        self.assertEqual(into.getvalue(), b"before" + self.content)
        self.assertEqual(script.requests[0][0], "GET /v1/reconciliations/2026-11-22/detail?distributor=pty_1 HTTP/1.1")

    def test_broken_off(self) -> None:
        """A download that breaks off starts again, where the output can seek"""
        into = io.BytesIO()
        with Script(self.file(self.content + b"longer")[:-1], refusal(503, "UNAVAILABLE"), self.file()) as script:
            self.client(script).get_reconciliation("2026-11-22", "detail", into)
        self.assertEqual((into.getvalue(), len(script.requests)), (self.content, 3))

    def test_pipe(self) -> None:
        """A pipe cannot seek: what was written is not written twice"""
        into = io.BytesIO()
        into.seekable = lambda: False  # type: ignore[method-assign]
        with Script(self.file()[:-1]) as script, self.assertRaises(DownloadError):
            self.client(script).get_reconciliation("2026-11-22", "detail", into)
        self.assertEqual((into.getvalue(), len(script.requests)), (self.content[:-1], 1))

    def test_slow_output(self) -> None:
        """The time that the output takes does not count"""
        into = io.BytesIO()
        write = into.write
        into.write = lambda piece: time.sleep(60) or write(piece)  # type: ignore[assignment]
        with Script(self.file()) as script:
            self.client(script).get_reconciliation("2026-11-22", "detail", into)
        self.assertEqual((into.getvalue(), len(script.requests)), (self.content, 1))
        self.assertGreater(len(self.pauses), 5)

    def test_other_content(self) -> None:
        """A file that differs from its headers or from the list is refused"""
        other = hashlib.sha256(b"other").hexdigest()
        cases: list[tuple[bytes, dict[str, object]]] = [
            (self.file(self.content[:-1] + b"x"), {}),
            (self.file(sha256=other), {}),
            (answer(200, self.content), {}),
            (self.file(), {"sha256": other}),
            (self.file(), {"bytes": len(self.content) + 1}),
        ]
        for text, changes in cases:
            with Script(text) as script, self.assertRaises(DownloadError):
                self.client(script).download(self.listed(**changes), io.BytesIO())

    def test_full_disk(self) -> None:
        """An error of the output is raised as it is"""
        into = io.BytesIO()
        into.write = mock.Mock(side_effect=OSError(28, "No space left"))  # type: ignore[method-assign]
        with Script(self.file()) as script, self.assertRaisesRegex(OSError, "No space left"):
            self.client(script).download(self.listed(), into)


class Webhooks(TestCase):
    secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
    other = "whsec_" + base64.b64encode(b"another secret of 32 characters.").decode()
    body = (
        b'{"event_id":"evt_01m812943dej3sxxapn959hh12","event_type":"batch.generated",'
        b'"batch_id":"bat_01m8129308eaza9j4hw9x4eamx","occurred_at":"2026-11-22T07:24:40.497Z"}'
    )
    headers = {
        "webhook-id": "evt_01m812943dej3sxxapn959hh12",
        "webhook-timestamp": "1781985600",
        "webhook-signature": "v1,t0fKk/DqYTtls54lOrBpABCkpUF0Ey3le3akrcZ9ybI=",
    }
    now = 1781985600.0

    def assert_refused(self, headers: dict[str, str], body: bytes, **options: float) -> None:
        with self.assertRaises(WebhookError):
            verify_webhook(self.secret, headers, body, **{"now": self.now, **options})

    def test_genuine(self) -> None:
        """The published example is accepted, whatever the case of its headers"""
        for headers in (self.headers, {name.title(): value for name, value in self.headers.items()}):
            event = verify_webhook(self.secret, headers, self.body, now=self.now)
            self.assertEqual(event, json.loads(self.body))
            self.assertFalse(is_test_webhook(headers))
        self.assertTrue(is_test_webhook({**self.headers, "Webhook-Test": "true"}))

    def test_flipped_bits(self) -> None:
        """Every single flipped bit of the headers and of the body is refused"""
        tried = 0
        for bit in range(len(self.body) * 8):
            self.assert_refused(self.headers, flip(self.body, bit))
            tried += 1
        for name, value in self.headers.items():
            for bit in range(len(value) * 8):
                self.assert_refused({**self.headers, name: flip(value.encode(), bit).decode("latin-1")}, self.body)
                tried += 1
        self.assertGreater(tried, 1_900)

    def test_missing(self) -> None:
        """A missing header, an empty signature and moved characters are refused"""
        for name in self.headers:
            self.assert_refused({**self.headers, name: ""}, self.body)
            self.assert_refused({other: value for other, value in self.headers.items() if other != name}, self.body)
        signature = self.headers["webhook-signature"]
        for changed in ("v1,", signature[3:], f"v2,{signature[3:]}", f"{signature}=", signature.replace(",", " ")):
            self.assert_refused({**self.headers, "webhook-signature": changed}, self.body)
        moved = {**self.headers, "webhook-id": f"{self.headers['webhook-id']}.17"}
        self.assert_refused({**moved, "webhook-timestamp": "81985600"}, self.body, now=81985600.0)

    def test_tolerance(self) -> None:
        """A timestamp may be 5 minutes off, and not more"""
        for seconds in (-300.0, 300.0):
            verify_webhook(self.secret, self.headers, self.body, now=self.now + seconds)
        for seconds in (-301.0, 301.0, float("nan")):
            self.assert_refused(self.headers, self.body, now=self.now + seconds)
        self.assert_refused(self.headers, self.body, now=self.now + 11, tolerance_seconds=10)

    def test_replaced_secret(self) -> None:
        """While a secret is replaced, one right signature of two is enough, on both sides"""
        content = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + self.body
        digest = hmac.new(b"another secret of 32 characters.", content, hashlib.sha256).digest()
        second = "v1," + base64.b64encode(digest).decode()
        both = {**self.headers, "webhook-signature": f"{second} {self.headers['webhook-signature']}"}
        for secrets in (self.secret, self.other, [self.secret, self.other], [self.other, self.secret]):
            verify_webhook(secrets, both, self.body, now=self.now)
        verify_webhook([self.other, self.secret], self.headers, self.body, now=self.now)
        with self.assertRaises(WebhookError):
            verify_webhook(self.other, self.headers, self.body, now=self.now)
        with self.assertRaises(WebhookError):
            verify_webhook([], both, self.body, now=self.now)

    def test_malformed_secret(self) -> None:
        """A malformed secret is an error that does not show it"""
        for malformed in ("", "whsec_", "whsec_***", "MDEyMzQ1Njc4OWFiY2RlZg=="):
            with self.assertRaises(ValueError) as caught:
                verify_webhook(malformed, self.headers, self.body, now=self.now)
            self.assertEqual(str(caught.exception), "a webhook secret is whsec_ and base64")


def flip(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)


if __name__ == "__main__":
    unittest.main()
