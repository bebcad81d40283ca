// The Python client: repeats, connections, downloads, webhooks.
import { edit, type Sabotage } from "./sabotage.ts";

const guards: [name: string, find: string, replace: string][] = [
  [
    "the Python client's new nonce for each attempt",
    "str(int(time.time() + self._clock_offset)), new_request_id()",
    'str(int(time.time() + self._clock_offset)), "u" * 36',
  ],
  [
    "the Python client's own request_id for each call",
    '{"request_id": new_request_id(), **body}',
    '{"request_id": "the same", **body}',
  ],
  [
    "the Python client's repeat of a lost connection",
    "    if not is_temporary and not",
    "    if error.status is None or not is_temporary and not",
  ],
  ["the Python client's repeat of 5xx", " or error.status >= 500 or error.status < 200", " or error.status < 200"],
  ["an open write in Python stays open", "return was_open and (", "return False and ("],
  ["the request_id of an error in Python", "connection.request.request_id or body.get", "body.get"],
  [
    "the Python client's repeat of refusals that decide nothing",
    "    if not is_temporary and not isinstance(error, _undecided):",
    "    if not is_temporary:",
  ],
  ["the Python client's wait for Retry-After", "max(backoff, error.retry_after or 0.0)", "backoff"],
  ["the Python client's correction of its clock", "self._clock_offset = server_time - time.time()", "pass"],
  [
    "the time limit for the whole of an answer in Python",
    "        self._connection.set_timeout()\n        return self._source",
    "        return self._source",
  ],
  ["the usual time limit for one answer in Python", "        timeout: float = 10,", "        timeout: float = 60,"],
  ["the usual time limit for a connection in Python", "connect_timeout: float = 5,", "connect_timeout: float = 50,"],
  ["the seconds after which a connection in Python is old", "_idle_seconds = 30", "_idle_seconds = 3000"],
  ["a forked process opens new connections", " and connection.process == os.getpid()", ""],
  ["the Python client leaves connections that were idle for long", "connection.idle_since >= oldest and ", ""],
  [
    "the end of the Python client's idle connections after a lost one",
    "idle connections too.\n            self._pool.clear()",
    "idle connections too.\n            pass",
  ],
  ["a stray answer on a connection in Python", " and connection.is_silent():", ":"],
  [
    "a Retry-After in Python by the clock of its sender",
    "at - (time.time() if now is None else now)",
    "at - time.time()",
  ],
  [
    "no time limit in Python for the output of a download",
    "            connection.until = time.monotonic() + self._timeout\n",
    "",
  ],
  [
    "the Python client signs the target as it is sent",
    "self._http.request(request.method, request.target,",
    'self._http.request(request.method, request.target.replace("%2F", "/"),',
  ],
  ["the length of a download in Python", "if length is not None and written < length:", "if False:"],
  ["the sha256 of a download in Python", "if digest.hexdigest() != sha256:", "if False:"],
  ["the list that a download belongs to in Python", "if listed is not None and (", "if False and ("],
  ["a download in Python starts again in an empty file", "                into.truncate()", "                pass"],
  ["no second copy of a download in a pipe", "if written > 0 and start is None:", "if False:"],
  ["the time limit for one answer in Python", "min(until, time.monotonic() + self._timeout)", "until"],
  [
    "the time limit for the whole call in an answer in Python",
    "min(until, time.monotonic() + self._timeout)",
    "time.monotonic() + self._timeout",
  ],
  ["the distributor of a download in Python", '{"distributor": distributor}', "{}"],
  ["the party of a webhook in Python", 'self._get("/v1/webhook", party=party)', 'self._get("/v1/webhook")'],
  [
    "the limit of later pages of events in Python",
    'self.pull_events(page["next_cursor"], limit)',
    'self.pull_events(page["next_cursor"])',
  ],
  [
    "the limit of later pages of statements in Python",
    'self.list_reconciliations(page["next_cursor"], limit)',
    'self.list_reconciliations(page["next_cursor"])',
  ],
  [
    "the limit of a page of statements in Python",
    'self._get("/v1/reconciliations", cursor=cursor, limit=limit)',
    'self._get("/v1/reconciliations", cursor=cursor)',
  ],
  ["the tolerance of webhooks in Python", "<= tolerance_seconds:", "<= 1e12:"],
  ["the signature of webhooks in Python", "    if not is_genuine:", "    if False:"],
  [
    "both secrets of webhooks in Python",
    "[secrets] if isinstance(secrets, str) else secrets:",
    "[secrets] if isinstance(secrets, str) else secrets[:1]:",
  ],
];

export const pythonClientGuards: Sabotage[] = guards.map(([name, find, replace]) => ({
  name,
  edits: [edit("clients/python/coupon_client.py", find, replace)],
  tests: ["test/clients/python.test.ts"],
}));
