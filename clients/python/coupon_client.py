"""A client of the coupon service, and the verification of its webhooks, for Python 3.9 and newer.

Copy this file into your project. It needs the standard library only. README.md beside it shows a till.

Create one client per process and share it between threads: `ClientA` for a tenant of Variant A, `ClientB` for a party
of Variant B. Each operation is a method. Writes take a dictionary with the fields of docs/integrate.md. Without a
`request_id` in it, the client makes one. It sends the same `request_id` until the service has answered, so a lost
answer never redeems twice.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import http.client
import io
import json
import os
import random
import re
import selectors
import socket
import ssl
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any, BinaryIO, Callable, ClassVar, Literal, NamedTuple, Optional, Protocol, TypedDict, TypeVar
from typing import Union, cast
from urllib.parse import quote, urlencode, urlsplit

__version__ = "0.1.0"

T = TypeVar("T")


# --- Errors -----------------------------------------------------------------------------------------------------------


class CouponError(Exception):
    """Every error of this module. No error contains a coupon code or a secret."""


class NoAnswer(CouponError):
    """The service did not answer in time. A write may or may not have taken effect.

    Repeat it with `request_id`, or ask `get_request(request_id)` for its outcome. `status` is that of an answer which
    is not from the service, such as a proxy's.
    """

    may_have_taken_effect = True

    def __init__(
        self,
        reason: str,
        request_id: Optional[str] = None,
        status: Optional[int] = None,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(reason, request_id, status, retry_after)
        self.reason = reason
        self.request_id = request_id
        self.status = status
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.reason if self.request_id is None else f"{self.reason} (request_id {self.request_id})"


class DownloadError(CouponError):
    """A downloaded file is not the one that the service announced. Do not use the written file."""


class WebhookError(CouponError):
    """A webhook that the service did not sign, or not within the tolerance. Answer it with 401."""


class ServiceError(CouponError):
    """An answer that is an error. Each code has a subclass below; an unknown code is a plain ServiceError.

    `message` is for people. `request_id` is the one of the request, or one that the service made and logged.
    `retry_after` is how many seconds the service asks to wait. `may_have_taken_effect`: an attempt of this call was not
    answered or failed, and the refusal says nothing about it. Repeat a write with `request_id`, or ask for its outcome.
    It knows this call alone, not an earlier one with the same `request_id`.
    """

    may_have_taken_effect = False

    _by_code: ClassVar[dict[str, type[ServiceError]]] = {}

    def __init_subclass__(cls) -> None:
        # COUPON_LOCKED is CouponLocked.
        cls._by_code[re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).upper()] = cls

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        request_id: Optional[str] = None,
        details: Any = None,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(status, code, message, request_id, details, retry_after)
        self.status = status
        self.code = code
        self.message = message
        self.request_id = request_id
        self.details = details
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.status} {self.code}: {self.message}{self._issues()} (request_id {self.request_id})"

    def _issues(self) -> str:
        """The fields of a 400. The service never repeats their values."""
        issues = self.details.get("issues") if isinstance(self.details, dict) else None
        if not isinstance(issues, list):
            return ""
        named = [f"{one.get('path')}: {one.get('message')}" for one in issues if isinstance(one, dict)]
        return f" ({'; '.join(named)})"


class Issue(TypedDict):
    """A wrong field or header, and what is wrong with it."""

    path: str
    message: str


class Issues(TypedDict):
    issues: list[Issue]


class UsedUpLimit(TypedDict):
    limit: Literal["requests", "wrong_codes"]


class RouteNotFound(ServiceError):
    """No such path."""


class MethodNotAllowed(ServiceError):
    """The path does not have this method."""


class PayloadTooLarge(ServiceError):
    """The body is larger than 64 KiB."""


class UnsupportedMediaType(ServiceError):
    """The body is not JSON."""


class Unauthenticated(ServiceError):
    """The access key or the secret is wrong, or the credential is revoked.

    `details["issues"]` names headers that something between you and the service has changed.
    """

    details: Optional[Issues]


class TimestampOutOfWindow(ServiceError):
    """Your clock is more than 300 seconds off. The client follows `details["server_time"]` and repeats the request."""


class NonceReused(ServiceError):
    """Something between you and the service sent the request twice. The client signs anew and repeats it."""


class RateLimited(ServiceError):
    """A limit is used up. `details["limit"]` names it, `retry_after` says how long to wait.

    requests: the client waits and repeats the request. wrong_codes: the code is wrong, and was not the first one.
    """

    details: UsedUpLimit


class InvalidRequest(ServiceError):
    """`details["issues"]` lists each wrong field (`path`) with a `message`."""

    details: Issues


class CouponCodeInvalid(ServiceError):
    """The service never made this code: it was mistyped or invented."""


class IdempotencyKeyReused(ServiceError):
    """The request_id was used for another request."""


class RequestInProgress(ServiceError):
    """The same request still runs. The client repeats it."""


class NotASandbox(ServiceError):
    """The tenant is no sandbox, so its business days close only after their end."""


class NotFound(ServiceError):
    """`details["resource"]` names what does not exist or is not yours."""


class AmbiguousDistributor(ServiceError):
    """The tenant of Variant A has several distributors. Name one."""


class MerchantNotInScope(ServiceError):
    """The coupon is not for this merchant."""


class LockNotFound(ServiceError):
    """You have no lock with this `lock_request_id` on this coupon at this merchant."""


class LockExpired(ServiceError):
    """The lock ended at `details["lock_expires_at"]`. Lock again."""


class LockCancelled(ServiceError):
    """The lock was cancelled. Lock again."""


class LockConfirmed(ServiceError):
    """The lock was confirmed. Reverse `details["redemption"]` to take it back."""


class BatchSuspended(ServiceError):
    """The maker has suspended the batch. The coupon may work later; one of a recalled batch never does."""


class CouponVoided(ServiceError):
    """The coupon was voided at `details["voided_at"]`."""


class CouponRedeemed(ServiceError):
    """The coupon was used at `details["redeemed_at"]`."""


class CouponExpired(ServiceError):
    """The validity of the coupon ended at `details["valid_to"]`."""


class CouponLocked(ServiceError):
    """Another request holds the coupon until `details["lock_expires_at"]`."""


class CouponNotReleased(ServiceError):
    """The maker has not released the batch."""


class CouponNotYetValid(ServiceError):
    """The validity of the coupon begins at `details["valid_from"]`."""


class TemplateExpired(ServiceError):
    """The validity of the template is over, so no batch can be made from it."""


class CouponNotVoidable(ServiceError):
    """Only an unused coupon can be voided."""


class RedemptionNotReversible(ServiceError):
    """The redemption was not completed."""


class RedemptionReversed(ServiceError):
    """`details["reversal"]` has reversed the redemption at `details["reversed_at"]`."""


class BatchNotCompleted(ServiceError):
    """The batch is still being minted. Try later with a new request_id."""


class BatchAlreadyAllocated(ServiceError):
    """The batch is already released."""


class CodesDestroyed(ServiceError):
    """The operator has destroyed the codes of the batch, so nobody can fetch them again."""


class NoPublicKey(ServiceError):
    """The party has no public key, so its codes cannot be encrypted. Give the operator one (age1…)."""


class WebhookDisabled(ServiceError):
    """Your webhook is off, so nothing would be sent. Ask the operator to enable it."""


class CurrencyMismatch(ServiceError):
    """The coupon is in `details["currency"]`."""


class DiscountNotComputable(ServiceError):
    """The discount needs the field in `details["missing"]`."""


class OrderBelowMinimum(ServiceError):
    """The order is below `details["min_order_amount"]` of the coupon."""


class NoEligibleItems(ServiceError):
    """The coupon is for none of the items of the order."""


class InternalError(ServiceError):
    """The request may or may not have taken effect. The client repeats it."""


class Unavailable(ServiceError):
    """The request may or may not have taken effect. The client repeats it."""


# --- Requests and answers ---------------------------------------------------------------------------------------------

# An amount in an answer is an int, or a Decimal if it has decimals.
Amount = Union[int, Decimal]
AnyAmount = Union[int, float, Decimal]
FileKind = Literal["detail", "summary"]
CouponEventType = Literal["coupon.redeemed", "coupon.reversed", "coupon.voided", "coupon.expired"]
BatchEventType = Literal["batch.generated", "allocation.completed"]
EventType = Union[CouponEventType, BatchEventType, Literal["reconciliation.ready"]]


class _Write(TypedDict, total=False):
    request_id: str


class _Place(_Write, total=False):
    store: Optional[str]
    terminal: Optional[str]
    order_amount: Optional[AnyAmount]
    currency: Optional[str]
    order_id: Optional[str]


class RedemptionRequestB(_Place):
    """The body of lock and redeem in Variant B."""

    coupon: str
    merchant: str


class Item(TypedDict, total=False):
    sku: Optional[str]
    quantity: Optional[AnyAmount]
    amount: Optional[AnyAmount]


class RedemptionContext(TypedDict, total=False):
    items: Optional[list[Item]]


class RedemptionRequestA(RedemptionRequestB, total=False):
    """The body of lock and redeem in Variant A."""

    redemption_context: Optional[RedemptionContext]


class ConfirmRequest(_Write):
    lock_request_id: str
    coupon: str
    merchant: str


class CancelRequest(_Write):
    lock_request_id: str
    coupon: str


class _Reason(_Write, total=False):
    reason: Optional[str]


class VoidRequest(_Reason):
    coupon: str
    merchant: str


class ReverseRequest(_Reason):
    redemption: str


class _Named(TypedDict, total=False):
    request_id: Optional[str]


class _Question(_Named, total=False):
    store: Optional[str]
    terminal: Optional[str]
    order_amount: Optional[AnyAmount]
    currency: Optional[str]


class QueryRequestB(_Question):
    """With `order_amount`, the answer has a `quote`: what a lock would answer now."""

    coupon: str
    merchant: str


class QueryRequestA(QueryRequestB, total=False):
    redemption_context: Optional[RedemptionContext]


class _Distributor(_Write, total=False):
    distributor: Optional[str]


class CreateBatchRequest(_Distributor):
    template: str
    total_count: int


class AllocateBatchRequest(_Write):
    batch: str


class StopBatchRequest(_Reason):
    """The body of suspend_batch, resume_batch and recall_batch."""

    batch: str


class CloseDayRequest(_Write, total=False):
    distributor: Optional[str]


# `from` is a keyword of Python, so this has no class body.
ReplayRequestB = TypedDict(
    "ReplayRequestB",
    {"request_id": str, "event_id": Optional[str], "from": Optional[str], "to": Optional[str]},
    total=False,
)


class ReplayRequestA(ReplayRequestB, total=False):
    """Name `event_id`, or `from` and `to`; and the party, if the tenant has several webhooks."""

    party: Optional[str]


class TestWebhookRequestB(_Write):
    event_type: EventType


class TestWebhookRequestA(TestWebhookRequestB, total=False):
    party: Optional[str]


class Locked(TypedDict):
    ok: Literal[True]
    redemption: str
    coupon_id: str
    discount_amount: Amount
    currency: str
    lock_expires_at: str


class Redeemed(TypedDict):
    ok: Literal[True]
    redemption: str
    coupon_id: str
    discount_amount: Amount
    currency: str


class Confirmed(TypedDict):
    ok: Literal[True]
    redemption: str
    status: Literal["REDEEMED"]


class Cancelled(TypedDict):
    ok: Literal[True]
    redemption: str
    status: Literal["CANCELLED"]


class Voided(TypedDict):
    ok: Literal[True]
    coupon_id: str
    status: Literal["VOIDED"]


class Reversed(TypedDict):
    ok: Literal[True]
    redemption: str
    reversal: str
    status: Literal["REVERSED"]


class CouponRedemption(TypedDict):
    redemption: str
    merchant_id: str
    status: Literal["LOCKED", "REDEEMED", "REVERSED"]
    started_at: str
    discount_amount: Amount
    currency: str


class _Redeemed(TypedDict, total=False):
    redemption: CouponRedemption


class _Coupon(_Redeemed):
    coupon_id: str
    template_id: str
    batch_id: str
    created_at: str
    valid_from: str
    valid_to: str


class CouponA(_Coupon):
    status: Literal["ISSUED", "LOCKED", "REDEEMED", "EXPIRED", "VOIDED"]


class CouponB(_Coupon):
    status: Literal["CREATED", "ISSUED", "LOCKED", "REDEEMED", "EXPIRED", "VOIDED"]


class Quote(TypedDict):
    redeemable: bool
    discount_amount: Optional[Amount]
    currency: str
    code: Optional[str]
    message: Optional[str]


class _Quoted(TypedDict, total=False):
    quote: Quote


class QueriedA(_Quoted):
    ok: Literal[True]
    coupon: CouponA


class QueriedB(_Quoted):
    ok: Literal[True]
    coupon: CouponB


class Recall(TypedDict):
    requested_at: str
    voided_count: int
    finished_at: Optional[str]


class _Recalled(TypedDict, total=False):
    recall: Recall


class Batch(_Recalled):
    external_id: str
    status: Literal["PENDING", "COMPLETED", "ALLOCATED"]
    total_count: int
    minted_count: int
    maker_party_id: str
    distributor_party_id: str
    template_id: str
    created_at: str
    suspended_at: Optional[str]


class BatchAnswer(TypedDict):
    ok: Literal[True]
    batch: Batch


class BatchPage(TypedDict):
    ok: Literal[True]
    batches: list[Batch]
    next_cursor: Optional[str]


class Redemption(TypedDict):
    redemption: str
    status: Literal["LOCKED", "REDEEMED", "REVERSED", "CANCELLED", "LAPSED"]
    coupon_id: str
    batch_id: str
    template_id: str
    merchant_id: str
    store: Optional[str]
    terminal: Optional[str]
    order_id: Optional[str]
    order_amount: Optional[Amount]
    discount_amount: Amount
    currency: str
    lock_request_id: str
    started_at: str
    lock_expires_at: Optional[str]
    redeemed_at: Optional[str]
    reversed_at: Optional[str]
    reversal: Optional[str]
    reason: Optional[str]


class RedemptionAnswer(TypedDict):
    ok: Literal[True]
    redemption: Redemption


class ListedRedemption(Redemption, total=False):
    """`change` and `changed_at` are absent in a list by `order_id`."""

    change: Literal["REDEMPTION", "REVERSAL"]
    changed_at: str


class RedemptionPage(TypedDict):
    ok: Literal[True]
    redemptions: list[ListedRedemption]
    next_cursor: Optional[str]


class RecordedRequest(TypedDict):
    request_id: str
    operation: str
    http_status: Literal[200, 404, 409, 422]
    response: dict[str, Any]
    recorded_at: str


class RequestAnswer(TypedDict):
    ok: Literal[True]
    request: RecordedRequest


class EventData(TypedDict):
    """What does not apply is None. Amounts of a reversal are those of its redemption, not negative."""

    batch_id: str
    template_id: str
    merchant_id: Optional[str]
    store: Optional[str]
    terminal: Optional[str]
    order_id: Optional[str]
    order_amount: Optional[Amount]
    discount_amount: Optional[Amount]
    currency: Optional[str]
    reversal_id: Optional[str]


class _Expanded(TypedDict, total=False):
    data: EventData


class CouponEvent(_Expanded):
    """`data` is there only if you ask for it with `expand`."""

    event_id: str
    event_type: CouponEventType
    coupon_id: str
    redemption_id: Optional[str]
    occurred_at: str
    recorded_at: str


class BatchEvent(TypedDict):
    event_id: str
    event_type: BatchEventType
    batch_id: str
    occurred_at: str


class ReconciliationEvent(TypedDict):
    event_id: str
    event_type: Literal["reconciliation.ready"]
    business_date: str
    distributor_party_id: str
    occurred_at: str


Event = Union[CouponEvent, BatchEvent, ReconciliationEvent]


class EventPage(TypedDict):
    events: list[CouponEvent]
    next_cursor: str


class ReconciliationFile(TypedDict):
    kind: FileKind
    href: str
    rows: int
    bytes: int
    sha256: str


class Reconciliation(TypedDict):
    business_date: str
    distributor_party_id: str
    closed_at: str
    files: list[ReconciliationFile]


class ReconciliationPage(TypedDict):
    reconciliations: list[Reconciliation]
    next_cursor: str


class WebhookAttempt(TypedDict):
    event_id: str
    event_type: EventType
    attempted_at: str
    http_status: Optional[int]
    reason: Optional[str]
    next_attempt_at: Optional[str]


class Webhook(TypedDict):
    party_id: str
    url: str
    status: Literal["healthy", "failing", "paused", "disabled"]
    waiting: int
    parked: int
    attempts: list[WebhookAttempt]


class WebhookAnswer(TypedDict):
    ok: Literal[True]
    webhook: Webhook


class Replayed(TypedDict):
    ok: Literal[True]
    replayed: int


class TestSent(TypedDict):
    ok: Literal[True]
    event_id: str
    event_type: EventType


class PortalOpened(TypedDict):
    ok: Literal[True]
    portal_link: str
    url: str
    expires_at: str


class DayClosed(TypedDict):
    ok: Literal[True]
    distributor_party_id: str
    business_date: str
    next_business_date: str


class Downloaded(NamedTuple):
    bytes: int
    sha256: str


# --- Signatures -------------------------------------------------------------------------------------------------------


def new_request_id() -> str:
    """Returns a new request_id. The letter u is in no coupon code, so the service never takes the id for one."""
    return str(uuid.uuid4()).replace("-", "u")


def sign_request(secret: str, method: str, target: str, timestamp: str, nonce: str, body: bytes) -> str:
    """Returns the `x-svc-signature` of a request. `target` is the path and query exactly as on the request line."""
    lines = [method, target, timestamp, nonce, hashlib.sha256(body).hexdigest(), ""]
    return hmac.new(secret.encode(), "\n".join(lines).encode(), hashlib.sha256).hexdigest()


class Headers(Protocol):
    """A dictionary, or the headers of a web framework."""

    def items(self) -> Iterable[tuple[str, str]]: ...


def verify_webhook(
    secrets: Union[str, Sequence[str]],
    headers: Headers,
    body: bytes,
    *,
    tolerance_seconds: float = 300,
    now: Optional[float] = None,
) -> Event:
    """Returns the event of a webhook that the service signed, and raises WebhookError for any other.

    `body` is the raw body: verify before you parse. `secrets` is one `whsec_…` secret, or several while it is being
    replaced. Every event can come more than once: drop those whose `event_id` you have stored.
    """
    found = {name.lower(): value for name, value in headers.items()}
    webhook_id, timestamp = found.get("webhook-id", ""), found.get("webhook-timestamp", "")
    if re.fullmatch("[0-9]{1,12}", timestamp) is None:
        raise WebhookError("the webhook has no valid timestamp")
    if not abs((time.time() if now is None else now) - int(timestamp)) <= tolerance_seconds:
        raise WebhookError("the timestamp of the webhook is outside the tolerance")
    content = f"{webhook_id}.{timestamp}.".encode(errors="replace") + body
    given = [text.encode(errors="replace") for text in found.get("webhook-signature", "").split(" ")]
    is_genuine = False
    for secret in [secrets] if isinstance(secrets, str) else secrets:
        digest = hmac.new(_read_webhook_secret(secret), content, hashlib.sha256).digest()
        expected = b"v1," + base64.b64encode(digest)
        for signature in given:
            is_genuine |= hmac.compare_digest(expected, signature)
    if not is_genuine:
        raise WebhookError("the signature of the webhook is wrong")
    return cast(Event, json.loads(body))


def is_test_webhook(headers: Headers) -> bool:
    """Says whether a verified webhook is a test. Its ids exist nowhere: answer 2xx and do nothing else."""
    return any(name.lower() == "webhook-test" and value == "true" for name, value in headers.items())


def _read_webhook_secret(secret: str) -> bytes:
    prefix, _, key = secret.partition("_")
    try:
        if prefix == "whsec" and key != "":
            return base64.b64decode(key, validate=True)
    except ValueError:
        pass
    raise ValueError("a webhook secret is whsec_ and base64") from None


# --- Connections ------------------------------------------------------------------------------------------------------


class _Request(NamedTuple):
    method: str
    target: str
    body: bytes = b""
    request_id: Optional[str] = None


@contextlib.contextmanager
def _no_answer(request: _Request) -> Iterator[None]:
    """Turns what the network does into NoAnswer."""
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        raise NoAnswer(f"no answer: {type(error).__name__}: {error}", request.request_id) from error


# This needs no file descriptor. Windows has no poll.
_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)


class _Connection:
    """A connection that is kept for further requests. It has one answer at a time."""

    def __init__(self, host: str, port: int, context: Optional[ssl.SSLContext]) -> None:
        self._http = (
            http.client.HTTPConnection(host, port)
            if context is None
            else http.client.HTTPSConnection(host, port, context=context)
        )
        self._http.response_class = self._respond  # type: ignore[assignment]
        self.process = os.getpid()
        self.idle_since = 0.0

    @property
    def is_open(self) -> bool:
        return self._http.sock is not None

    def connect(self, request: _Request, within: float) -> None:
        with _no_answer(request):
            self._http.timeout = within
            self._http.connect()

    def send(self, request: _Request, headers: Mapping[str, str], until: float) -> None:
        """Sends a request and reads the head of its answer. The answer must be complete at the time `until`."""
        self.request, self.until, self._socket = request, until, self._http.sock
        with _no_answer(request):
            self.set_timeout()
            # http.client sends the target as it is, and that is what the signature covers.
            self._http.request(request.method, request.target, request.body or None, dict(headers))
            self.answer = self._http.getresponse()

    def read(self, size: Optional[int] = None) -> bytes:
        with _no_answer(self.request):
            return self.answer.read(size)

    def set_timeout(self) -> None:
        left = self.until - time.monotonic()
        if left <= 0:
            raise socket.timeout("the answer is not complete in time")
        self._socket.settimeout(left)

    def is_silent(self) -> bool:
        """Says whether an idle connection has nothing to read: neither its end, nor an unexpected answer."""
        with _Selector() as selector:
            selector.register(self._http.sock, selectors.EVENT_READ)
            return not selector.select(0)

    def close(self) -> None:
        self._http.close()

    def _respond(self, sock: socket.socket, *args: Any, **options: Any) -> http.client.HTTPResponse:
        answer = http.client.HTTPResponse(sock, *args, **options)
        answer.fp = io.BufferedReader(_Deadline(answer.fp.detach(), self))
        return answer


class _Deadline(io.RawIOBase):
    """Reads a socket, with one time limit for the whole answer. The time-out of a socket is for each read."""

    def __init__(self, source: io.RawIOBase, connection: _Connection) -> None:
        self._source = source
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        self._connection.set_timeout()
        return self._source.readinto(buffer)

    def close(self) -> None:
        self._source.close()
        super().close()


class _Pool:
    """The idle connections of a client. Threads share it."""

    # Shorter than the time after which the service, or a proxy before it, closes an idle connection.
    _idle_seconds = 30

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []

    def take(self) -> Optional[_Connection]:
        oldest = time.monotonic() - self._idle_seconds
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            # A forked process must not write on the connections of its parent.
            if connection.idle_since >= oldest and connection.process == os.getpid() and connection.is_silent():
                return connection
            connection.close()

    def give(self, connection: _Connection) -> None:
        connection.idle_since = time.monotonic()
        with self._lock:
            if len(self._idle) < self._size:
                self._idle.append(connection)
                return
        connection.close()

    def clear(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


# --- The clients ------------------------------------------------------------------------------------------------------


class _Client:
    """What both variants share. Threads may share a client."""

    def __init__(
        self,
        url: str,
        access_key: str,
        secret: str,
        *,
        ssl_context: Optional[ssl.SSLContext] = None,
        connect_timeout: float = 5,
        timeout: float = 10,
        total_timeout: float = 30,
        pool_size: int = 16,
    ) -> None:
        """Times are in seconds: for a connection, for one whole answer, and for a call with all its attempts.

        `ssl_context` is for a private CA: `ssl.create_default_context(cafile="ca.pem")`. `pool_size` is how many idle
        connections are kept.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise ValueError("the URL must be http://host:port or https://host:port")
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise ValueError("the URL must have no path: the service verifies the path that it receives")
        if ssl_context is not None and parts.scheme == "http":
            raise ValueError("an ssl_context needs an https:// URL")
        if re.fullmatch("[!-~]+", access_key) is None:
            raise ValueError("the access key must be printable ASCII characters")
        self._host, self._access_key, self._secret = parts.hostname, access_key, secret
        # http.client would take the end of an IPv6 address for the port.
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._context = (ssl_context or ssl.create_default_context()) if parts.scheme == "https" else None
        self._connect_timeout, self._timeout, self._total_timeout = connect_timeout, timeout, total_timeout
        self._pool = _Pool(pool_size)
        # How far the clock of the service is ahead of ours, as soon as the service has told its time.
        self._clock_offset = 0.0
        self._name = f"<{type(self).__name__} {parts.scheme}://{parts.netloc} {access_key}>"

    def __repr__(self) -> str:
        return self._name

    def __enter__(self: T) -> T:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the idle connections. A later call opens a new one."""
        self._pool.clear()

    # Operations

    def confirm(self, request: ConfirmRequest) -> Confirmed:
        """Completes the redemption of your lock."""
        return cast(Confirmed, self._write("/v1/coupons/confirm", request))

    def cancel(self, request: CancelRequest) -> Cancelled:
        """Gives up your lock."""
        return cast(Cancelled, self._write("/v1/coupons/cancel", request))

    def void(self, request: VoidRequest) -> Voided:
        """Makes an unused coupon invalid for good."""
        return cast(Voided, self._write("/v1/coupons/void", request))

    def reverse(self, request: ReverseRequest) -> Reversed:
        """Reverses a completed redemption in full."""
        return cast(Reversed, self._write("/v1/redemptions/reverse", request))

    def create_batch(self, request: CreateBatchRequest) -> BatchAnswer:
        """Orders coupons. The service mints them in the background."""
        return cast(BatchAnswer, self._write("/v1/batches", request))

    def get_batch(self, batch: str) -> BatchAnswer:
        return cast(BatchAnswer, self._get(f"/v1/batches/{_escape(batch)}"))

    def list_batches(
        self,
        status: Optional[Literal["PENDING", "COMPLETED", "ALLOCATED"]] = None,
        template: Optional[str] = None,
        cursor: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> BatchPage:
        """Returns one page of batches, newest first. `next_cursor` is None on the last page."""
        return cast(
            BatchPage, self._get("/v1/batches", status=status, template=template, cursor=cursor, limit=limit)
        )

    def batch_pages(
        self,
        status: Optional[Literal["PENDING", "COMPLETED", "ALLOCATED"]] = None,
        template: Optional[str] = None,
        cursor: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Iterator[BatchPage]:
        """Returns the pages of batches, newest first."""
        page = self.list_batches(status, template, cursor, limit)
        while page["batches"]:
            yield page
            if page["next_cursor"] is None:
                return
            page = self.list_batches(status, template, page["next_cursor"], limit)

    def get_redemption(self, redemption: str) -> RedemptionAnswer:
        """Shows a redemption."""
        return cast(RedemptionAnswer, self._get(f"/v1/redemptions/{_escape(redemption)}"))

    def list_redemptions(
        self,
        merchant: str,
        order_id: Optional[str] = None,
        from_: Optional[str] = None,
        to: Optional[str] = None,
        cursor: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> RedemptionPage:
        """Returns the redemptions of an order, or one page of all redemptions and reversals, oldest first."""
        given: dict[str, Union[str, int, None]] = {"merchant": merchant, "order_id": order_id, "from": from_}
        return cast(RedemptionPage, self._get("/v1/redemptions", **given, to=to, cursor=cursor, limit=limit))

    def redemption_pages(
        self,
        merchant: str,
        from_: Optional[str] = None,
        to: Optional[str] = None,
        cursor: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Iterator[RedemptionPage]:
        """Returns the pages after the cursor, up to the end. Store each `next_cursor` with its redemptions."""
        page = self.list_redemptions(merchant, None, from_, to, cursor, limit)
        while page["redemptions"]:
            yield page
            page = self.list_redemptions(merchant, None, from_, to, page["next_cursor"], limit)

    def allocate_batch(self, request: AllocateBatchRequest) -> BatchAnswer:
        """Releases a finished batch to its distributor."""
        return cast(BatchAnswer, self._write("/v1/batches/allocate", request))

    def suspend_batch(self, request: StopBatchRequest) -> BatchAnswer:
        """Stops a batch: its coupons can be neither locked nor redeemed until it is resumed."""
        return cast(BatchAnswer, self._write("/v1/batches/suspend", request))

    def resume_batch(self, request: StopBatchRequest) -> BatchAnswer:
        """Ends the suspension of a batch."""
        return cast(BatchAnswer, self._write("/v1/batches/resume", request))

    def close_day(self, request: CloseDayRequest) -> DayClosed:
        """Sandbox: closes the open business day of a distributor now."""
        return cast(DayClosed, self._write("/v1/sandbox/close_day", request))

    def open_portal(self, request: _Write) -> PortalOpened:
        """Makes a link that shows your pages in a browser, once, within ten minutes."""
        return cast(PortalOpened, self._write("/v1/portal", request))

    def recall_batch(self, request: StopBatchRequest) -> BatchAnswer:
        """Suspends a batch for good and voids its unused coupons in the background."""
        return cast(BatchAnswer, self._write("/v1/batches/recall", request))

    def get_request(self, request_id: str) -> RequestAnswer:
        """Shows the recorded outcome of a write. NotFound: the service has no record, so repeat the write."""
        return cast(RequestAnswer, self._get(f"/v1/requests/{_escape(request_id)}"))

    def pull_events(
        self, cursor: Optional[str] = None, limit: Optional[int] = None, expand: bool = False
    ) -> EventPage:
        """Returns one page of coupon events, oldest first."""
        return cast(EventPage, self._get("/v1/events", cursor=cursor, limit=limit, expand="true" if expand else None))

    def event_pages(
        self, cursor: Optional[str] = None, limit: Optional[int] = None, expand: bool = False
    ) -> Iterator[EventPage]:
        """Returns the pages after the cursor, up to the end. Store each `next_cursor` with the events of its page."""
        page = self.pull_events(cursor, limit, expand)
        while page["events"]:
            yield page
            page = self.pull_events(page["next_cursor"], limit, expand)

    def list_reconciliations(self, cursor: Optional[str] = None, limit: Optional[int] = None) -> ReconciliationPage:
        """Returns one page of closed business days, oldest first. `cursor` is a date: the page starts after it."""
        return cast(ReconciliationPage, self._get("/v1/reconciliations", cursor=cursor, limit=limit))

    def reconciliation_pages(
        self, cursor: Optional[str] = None, limit: Optional[int] = None
    ) -> Iterator[ReconciliationPage]:
        """Returns the pages after the cursor, up to the end. Store the last `next_cursor` to continue from it."""
        page = self.list_reconciliations(cursor, limit)
        while page["reconciliations"]:
            yield page
            page = self.list_reconciliations(page["next_cursor"], limit)

    def get_reconciliation(
        self, date: str, kind: FileKind, into: BinaryIO, distributor: Optional[str] = None
    ) -> Downloaded:
        """Writes a file of a business day into a binary file. `download` also checks it against the list."""
        path = f"/v1/reconciliations/{_escape(date)}/{_escape(kind)}"
        return self._download(_to_target(path, {"distributor": distributor}), into, None)

    def download(self, file: ReconciliationFile, into: BinaryIO) -> Downloaded:
        """Writes a file of the list into a binary file. Checks its length and sha256 against the list and the headers.

        A download that breaks off starts again, if `into` can seek.
        """
        return self._download(file["href"], into, file)

    # Requests

    def _write(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._post(path, {"request_id": new_request_id(), **body})

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._call(_Request("POST", path, _to_json(body), body.get("request_id")), _read_json)

    def _get(self, path: str, **parameters: Union[str, int, None]) -> Any:
        return self._call(_Request("GET", _to_target(path, parameters)), _read_json)

    def _download(self, target: str, into: BinaryIO, listed: Optional[ReconciliationFile]) -> Downloaded:
        start = into.tell() if into.seekable() else None
        written = 0

        def read(connection: _Connection) -> Downloaded:
            nonlocal written
            if connection.answer.status != 200:
                raise _read_error(connection)
            if start is not None:
                into.seek(start)
                into.truncate()
            written, digest = 0, hashlib.sha256()
            length, sha256 = connection.answer.length, connection.answer.headers.get("etag", "").strip('"')
            try:
                for piece in self._read_pieces(connection):
                    into.write(piece)
                    written += len(piece)
                    digest.update(piece)
                if length is not None and written < length:
                    raise NoAnswer(f"the download ended after {written} of {length} bytes")
            except NoAnswer as error:
                if written > 0 and start is None:
                    raise DownloadError("the download broke off, and the output cannot seek back") from error
                raise
            # A file of codes has no etag, because each one is encrypted anew.
            if sha256 and digest.hexdigest() != sha256:
                raise DownloadError("the sha256 of the file is not the one in its etag")
            if listed is not None and (written, sha256) != (listed["bytes"], listed["sha256"]):
                raise DownloadError("the file is not the one in the list")
            return Downloaded(written, digest.hexdigest())

        return self._call(_Request("GET", target), read)

    def _read_pieces(self, connection: _Connection) -> Iterator[bytes]:
        # A large file may take long, but its bytes must keep coming.
        while True:
            connection.until = time.monotonic() + self._timeout
            piece = connection.read(16_384)
            if not piece:
                return
            yield piece

    def _call(self, request: _Request, read: Callable[[_Connection], T]) -> T:
        """Repeats the request until it is answered, or until the time is over."""
        until = time.monotonic() + self._total_timeout
        attempt, is_open = 0, False
        while True:
            try:
                return self._attempt(request, read, until)
            except (NoAnswer, ServiceError) as error:
                is_open = _is_open_after(error, is_open)
                if isinstance(error, ServiceError):
                    error.may_have_taken_effect = is_open
                pause = _pause_after(error, attempt)
                if pause is None or time.monotonic() + pause >= until:
                    raise
            time.sleep(pause)
            attempt += 1

    def _attempt(self, request: _Request, read: Callable[[_Connection], T], until: float) -> T:
        connection = self._pool.take() or _Connection(self._host, self._port, self._context)
        is_answered = False
        try:
            if not connection.is_open:
                connection.connect(request, max(0.001, min(self._connect_timeout, until - time.monotonic())))
            # Signs when the connection is there: a timestamp must not age while the network is away.
            connection.send(request, self._sign(request), min(until, time.monotonic() + self._timeout))
            result = read(connection)
            is_answered = True
            return result
        except ServiceError as error:
            is_answered = True
            if isinstance(error, TimestampOutOfWindow):
                self._follow_clock(error)
            raise
        except NoAnswer:
            # The service or the network has probably closed the idle connections too.
            self._pool.clear()
            raise
        finally:
            if is_answered and connection.is_open and connection.answer.isclosed():
                self._pool.give(connection)
            else:
                connection.close()

    def _follow_clock(self, error: TimestampOutOfWindow) -> None:
        server_time = _read_server_time(error)
        if server_time is not None:
            self._clock_offset = server_time - time.time()

    def _sign(self, request: _Request) -> dict[str, str]:
        method, target, body, _ = request
        timestamp, nonce = str(int(time.time() + self._clock_offset)), new_request_id()
        headers = {
            "x-svc-access-key": self._access_key,
            "x-svc-timestamp": timestamp,
            "x-svc-nonce": nonce,
            "x-svc-signature": sign_request(self._secret, method, target, timestamp, nonce, body),
            "user-agent": f"coupon-client-python/{__version__}",
        }
        return {**headers, "content-type": "application/json"} if method == "POST" else headers


class ClientA(_Client):
    """A client of a tenant of Variant A."""

    def lock(self, request: RedemptionRequestA) -> Locked:
        """Reserves a coupon. Choose the `request_id` yourself: confirm and cancel name it as `lock_request_id`."""
        return cast(Locked, self._write("/v1/coupons/lock", request))

    def redeem(self, request: RedemptionRequestA) -> Redeemed:
        """Locks and confirms in one step."""
        return cast(Redeemed, self._write("/v1/coupons/redeem", request))

    def query(self, request: QueryRequestA) -> QueriedA:
        """Shows a coupon, and what a lock would answer for an order. Changes nothing."""
        return cast(QueriedA, self._post("/v1/coupons/query", request))

    def export_codes(self, batch: str, into: BinaryIO, party: Optional[str] = None) -> Downloaded:
        """Writes the codes of a batch into a binary file, encrypted to your public key: `age -d` reads it."""
        target = _to_target(f"/v1/batches/{_escape(batch)}/codes", {"party": party})
        return self._download(target, into, None)

    def get_webhook(self, party: Optional[str] = None) -> WebhookAnswer:
        """Shows the state of deliveries to your webhook."""
        return cast(WebhookAnswer, self._get("/v1/webhook", party=party))

    def replay_events(self, request: ReplayRequestA) -> Replayed:
        """Sends one event to your webhook again, or all events recorded in a period."""
        return cast(Replayed, self._write("/v1/webhook/replay", request))

    def test_webhook(self, request: TestWebhookRequestA) -> TestSent:
        """Sends a test event to your webhook. `is_test_webhook` recognizes it there."""
        return cast(TestSent, self._write("/v1/webhook/test", request))


class ClientB(_Client):
    """A client of a party of Variant B."""

    def lock(self, request: RedemptionRequestB) -> Locked:
        """Reserves a coupon. Choose the `request_id` yourself: confirm and cancel name it as `lock_request_id`."""
        return cast(Locked, self._write("/v1/coupons/lock", request))

    def redeem(self, request: RedemptionRequestB) -> Redeemed:
        """Locks and confirms in one step."""
        return cast(Redeemed, self._write("/v1/coupons/redeem", request))

    def query(self, request: QueryRequestB) -> QueriedB:
        """Shows a coupon, and what a lock would answer for an order. Changes nothing."""
        return cast(QueriedB, self._post("/v1/coupons/query", request))

    def export_codes(self, batch: str, into: BinaryIO) -> Downloaded:
        """Writes the codes of a batch into a binary file, encrypted to your public key: `age -d` reads it."""
        return self._download(f"/v1/batches/{_escape(batch)}/codes", into, None)

    def get_webhook(self) -> WebhookAnswer:
        """Shows the state of deliveries to your webhook."""
        return cast(WebhookAnswer, self._get("/v1/webhook"))

    def replay_events(self, request: ReplayRequestB) -> Replayed:
        """Sends one event to your webhook again, or all events recorded in a period."""
        return cast(Replayed, self._write("/v1/webhook/replay", request))

    def test_webhook(self, request: TestWebhookRequestB) -> TestSent:
        """Sends a test event to your webhook. `is_test_webhook` recognizes it there."""
        return cast(TestSent, self._write("/v1/webhook/test", request))


def _escape(text: str) -> str:
    return quote(text, safe="")


def _to_target(path: str, parameters: Mapping[str, Union[str, int, None]]) -> str:
    # What a client has stored as its cursor is empty at first.
    given = {name: value for name, value in parameters.items() if value is not None and (name, value) != ("cursor", "")}
    return f"{path}?{urlencode(given, quote_via=quote)}" if given else path


def _to_json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, default=_to_number, allow_nan=False).encode()


def _to_number(value: object) -> float:
    # A double holds every amount exactly: below 10^12, with at most three decimals.
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"a request cannot contain a value of type {type(value).__name__}")


def _read_json(connection: _Connection) -> Any:
    if connection.answer.status != 200:
        raise _read_error(connection)
    try:
        body = json.loads(connection.read(), parse_float=Decimal)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise NoAnswer("no answer of the service: status 200, but no object", connection.request.request_id, 200)
    return body


def _read_error(connection: _Connection) -> Union[ServiceError, NoAnswer]:
    status, text = connection.answer.status, connection.read()
    retry_after = _read_retry_after(connection.answer.headers)
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or not isinstance(body.get("code"), str):
        reason = f"no answer of the service: status {status} without a code"
        return NoAnswer(reason, connection.request.request_id, status, retry_after)
    error = ServiceError._by_code.get(body["code"], ServiceError)
    message, details = str(body.get("message")), body.get("details")
    # A service that could not read the request names another request_id.
    request_id = connection.request.request_id or body.get("request_id")
    return error(status, body["code"], message, request_id, details, retry_after)


def _read_retry_after(headers: Message) -> Optional[float]:
    """The header is seconds, or a date by the clock of the sender, which the header `date` shows."""
    text = headers.get("retry-after", "").strip()
    if re.fullmatch("[0-9]+", text):
        return float(text)
    at, now = _read_date(text), _read_date(headers.get("date", ""))
    return None if at is None else max(0.0, at - (time.time() if now is None else now))


def _read_date(text: str) -> Optional[float]:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def _read_server_time(error: TimestampOutOfWindow) -> Optional[float]:
    try:
        return datetime.fromisoformat(error.details["server_time"].replace("Z", "+00:00")).timestamp()
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


# Refusals that decide nothing about the request.
_undecided = (RequestInProgress, NonceReused, TimestampOutOfWindow)


# The service records refusals of these statuses, except those codes. Others are about one attempt, and say nothing
# about an earlier one.
_recorded_statuses = (404, 409, 422)
_unrecorded = (RouteNotFound, CouponCodeInvalid, IdempotencyKeyReused)
# Another copy of the attempt has arrived, and its outcome is not known.
_copies = (RequestInProgress, NonceReused)


def _is_open_after(error: Union[NoAnswer, ServiceError], was_open: bool) -> bool:
    """Says whether the call may have taken effect, or may still do so, after an attempt with this error."""
    if isinstance(error, (NoAnswer, *_copies)) or error.status >= 500:
        return True
    return was_open and (error.status not in _recorded_statuses or isinstance(error, _unrecorded))


def _pause_after(error: Union[NoAnswer, ServiceError], attempt: int) -> Optional[float]:
    """Returns how many seconds to wait before the request is repeated; None: do not repeat it."""
    if isinstance(error.__cause__, ssl.SSLCertVerificationError):
        return None
    # A status of 200 in an error: the answer is damaged. Below 200: the answer was still to come.
    # A wrong code stays wrong. The cashier, who can type it again, must not wait.
    details: object = error.details if isinstance(error, RateLimited) else None
    if isinstance(details, dict) and details.get("limit") == "wrong_codes":
        return None
    is_temporary = error.status in (None, 200, 408, 429) or error.status >= 500 or error.status < 200
    if not is_temporary and not isinstance(error, _undecided):
        return None
    backoff = random.uniform(0.5, 1) * min(5.0, 0.1 * 2.0 ** min(attempt, 10))
    return max(backoff, error.retry_after or 0.0)
