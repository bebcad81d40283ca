// The TypeScript client: repeats, errors, downloads, webhooks.
import { edit, type Sabotage } from "./sabotage.ts";

const retries = "test/clients/retries.test.ts";
const webhook = "test/clients/webhook.test.ts";
const downloads = "test/clients/downloads.test.ts";
const connections = "test/clients/connections.test.ts";
const download = "clients/typescript/src/download.ts";
const sender = "clients/typescript/src/sender.ts";
const verifier = "clients/typescript/src/webhook.ts";

export const clientGuards: Sabotage[] = [
  {
    name: "the client's new nonce for each attempt",
    edits: [
      edit(sender, "const clock = { offsetMs: 0 };", "const clock = { offsetMs: 0 };\n  const nonce = newNonce();"),
      edit(sender, "{ ...call, body, attempt, clock }", "{ ...call, body, attempt, clock, nonce }"),
      edit(sender, "attempt: number; clock:", "attempt: number; nonce: string; clock:"),
      edit(sender, "timestamp, nonce: newNonce(), body", "timestamp, nonce: sent.nonce, body"),
    ],
    tests: [retries],
  },
  {
    name: "the same request_id in each attempt of the client",
    edits: [
      edit(
        sender,
        "{ ...call, body, attempt, clock }",
        '{ ...call, body: Buffer.from(String(body).replace("r-1", `r-${attempt}`)), attempt, clock }',
      ),
    ],
    tests: [retries],
  },
  {
    name: "the types of the client's package",
    edits: [edit("clients/typescript/tsconfig.json", '    "declaration": true,\n', "")],
    tests: ["test/clients/package.test.ts"],
  },
  {
    name: "imports of the client's package that Node 20 can follow",
    edits: [edit("clients/typescript/tsconfig.json", '    "rewriteRelativeImportExtensions": true,\n', "")],
    mayThrow: true,
    tests: ["test/clients/package.test.ts"],
  },
  {
    name: "the client's repeat of a lost connection",
    edits: [edit(sender, "cause), isRepeatable: true", "cause), isRepeatable: false")],
    tests: [retries],
  },
  {
    name: "the client's repeat of a 5xx",
    edits: [edit("clients/typescript/src/retry.ts", "status >= 500 || status === 429", "status === 429")],
    tests: [retries],
  },
  {
    name: "an open write stays open in the client",
    edits: [edit("clients/typescript/src/retry.ts", "return wasOpen && (", "return false && (")],
    tests: ["test/clients/outcomes.test.ts"],
  },
  {
    name: "the client's wait for Retry-After",
    edits: [edit("clients/typescript/src/retry.ts", "Math.min((retryAfterMs ?? 0) + backoffMs", "Math.min(backoffMs")],
    tests: [retries],
  },
  {
    name: "a Retry-After by the clock of its sender",
    edits: [edit("clients/typescript/src/retry.ts", 'Date.parse(date ?? "") || Date.now()', "Date.now()")],
    tests: [retries],
  },
  {
    name: "the end of a call without an answer and without an error",
    edits: [edit("clients/typescript/src/transport.ts", "setImmediate(() => reject(", "setImmediate(() => void (")],
    mayThrow: true,
    tests: [retries],
  },
  {
    name: "the client's wait for a time that no timer of Node can hold",
    edits: [edit("clients/typescript/src/retry.ts", "sleep(waitMs", "sleep((retryAfterMs ?? 0) + backoffMs")],
    mayThrow: true,
    tests: [retries],
  },
  {
    name: "the longest wait that a caller allows",
    edits: [edit(sender, " || (retryAfterMs ?? 0) > options.longestWaitMs", "")],
    mayThrow: true,
    tests: [retries],
  },
  {
    name: "the client's time-out",
    edits: [edit("clients/typescript/src/transport.ts", "setTimeout(giveUp, timeoutMs)", "undefined")],
    tests: [retries],
  },
  {
    name: "the client's refusal of a base URL with a path",
    edits: [edit("clients/typescript/src/client.ts", " || href !== `${origin}/`", "")],
    tests: [retries],
  },
  {
    name: "an error of the client without the text that it could not read",
    edits: [
      edit(
        "clients/typescript/src/errors.ts",
        "} catch {\n    return undefined;",
        "} catch (error) {\n    throw error;",
      ),
    ],
    tests: [retries],
  },
  {
    name: "the client's comparison of webhook signatures",
    edits: [edit(verifier, "!matches.includes(true)", "matches.length === 0")],
    tests: [webhook],
  },
  {
    name: "the client's comparison of webhook signatures as text",
    edits: [
      edit(
        verifier,
        "const [left, right] = [Buffer.from(a), Buffer.from(b)];",
        'const [left, right] = [Buffer.from(a.slice(3), "base64"), Buffer.from(b.slice(3), "base64")];',
      ),
    ],
    tests: [webhook],
  },
  {
    name: "the client's tolerance for the time of a webhook",
    edits: [edit(verifier, "!(Math.abs(now / 1000 - Number(timestamp)) <= toleranceSeconds)", "false")],
    tests: [webhook],
  },
  {
    name: "the client's check of a download's sha256",
    edits: [edit(download, 'hash.digest("hex") !== sha256', "false")],
    tests: [downloads],
  },
  {
    name: "the end of a download that nobody reads",
    edits: [edit(download, '  body.once("close", () => response.destroy());\n', "")],
    tests: [downloads],
  },
  {
    name: "the client's time-out within a download",
    edits: [edit(download, "setTimeout(giveUp, timeoutMs)", "undefined")],
    tests: [downloads],
  },
  {
    name: "no time-out of a download while its reader pauses",
    edits: [edit(download, ".finally(() => clearTimeout(timer))", "")],
    mayThrow: true,
    tests: [downloads],
  },
  {
    name: "the end of the client's idle connections after a lost one",
    edits: [edit(sender, "    for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy();\n", "")],
    mayThrow: true,
    tests: [connections],
  },
  {
    name: "the end of the client's timer with its call",
    edits: [
      edit("clients/typescript/src/transport.ts", "      clearTimeout(timer);\n      // After", "      // After"),
    ],
    tests: [connections],
  },
  {
    name: "connections that the client keeps open",
    edits: [edit("clients/typescript/src/client.ts", "{ keepAlive: true }) : null", "{ keepAlive: false }) : null")],
    tests: [connections],
  },
  {
    name: "the end of a list of pages",
    edits: [edit("clients/typescript/src/pages.ts", "countEntries(page) === 0", "countEntries(page) < 2")],
    tests: [downloads],
  },
  {
    name: "a method of the client",
    edits: [
      edit(
        "clients/typescript/src/generated/operations.ts",
        '  query: { method: "POST", path: "/v1/coupons/query", query: [] },\n',
        "",
      ),
    ],
    tests: ["test/openapi/client-types.test.ts"],
  },
  {
    name: "an idempotency-key in UTF-8",
    edits: [
      edit("clients/typescript/src/sender.ts", 'Buffer.from(idempotencyKey).toString("latin1")', "idempotencyKey"),
    ],
    mayThrow: true,
    tests: ["test/clients/retries.test.ts"],
  },
  {
    name: "a time-out longer than the longest timer",
    edits: [
      edit(
        "clients/typescript/src/client.ts",
        "Math.min(options.timeoutMs ?? 10_000, longestTimerMs)",
        "options.timeoutMs ?? 10_000",
      ),
    ],
    mayThrow: true,
    tests: ["test/clients/retries.test.ts"],
  },
];
