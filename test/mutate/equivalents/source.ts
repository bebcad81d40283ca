// Mutants of src/ and clients/, without src/embedded, that no test can notice, each with the reason.

import type { Equivalent } from "./equivalent.ts";

const untilEnded = "while ((await listRunning()).some((id) => before.has(id)) && performance.now() < deadline)";

export const inSource: Equivalent[] = [
  {
    file: "src/commands/demo.ts",
    before: "const mintedWithinMs = 60_000;",
    after: "const mintedWithinMs = 600000;",
    reason: "Only the time until the demo gives up changes, in a service without a worker.",
  },
  {
    file: "src/commands/provisioning.ts",
    before: 'if (!/^[A-Za-z]/.test(value) || (/^[A-Za-z]+$/.test(value) && value !== "UTC")) return false;',
    after: 'if (!/[A-Za-z]/.test(value) || (/^[A-Za-z]+$/.test(value) && value !== "UTC")) return false;',
    reason: "An offset has no letter, and Intl refuses everything else that does not begin with one.",
  },
  {
    file: "src/common/config.ts",
    before: 'metricsPort: read("METRICS_PORT") === null ? null : count("METRICS_PORT", 0, 0, 65_535),',
    after: 'metricsPort: read("METRICS_PORT") === null ? null : count("METRICS_PORT", 1, 0, 65_535),',
    reason: "The default is never used: METRICS_PORT has a value here.",
  },
  {
    file: "src/server/metrics-server.ts",
    before: "const times = { headersTimeout: 5_000, requestTimeout: 5_000, connectionsCheckingInterval: 1_000 };",
    after: "const times = { headersTimeout: 5_000, requestTimeout: 5_000, connectionsCheckingInterval: 10000 };",
    reason: "Only the time until a late request is cut changes, by at most nine seconds.",
  },
  {
    file: "src/common/program.ts",
    before: "let firstAt = 0;",
    after: "let firstAt = 1;",
    reason: "It is set before it is read.",
  },
  {
    file: "src/common/statement-csv.ts",
    before: "await setImmediate();",
    after: "setImmediate();",
    reason: "The database formats lines while the driver waits: only the time changes.",
  },
  {
    file: "src/common/statement-csv.ts",
    before: "await setImmediate();",
    after: ";",
    reason: "The database formats lines while the driver waits: only the time changes.",
  },
  {
    file: "src/common/statement-csv.ts",
    before: "export const linesPerPage = 500;",
    after: "export const linesPerPage = 501;",
    reason: "The size of a page is tuning; the file is the same.",
  },
  {
    file: "src/crypto/coupon-code.ts",
    before: "const readAs = Array.from({ length: 128 }, (_, code) => {",
    after: "const readAs = Array.from({ length: 129 }, (_, code) => {",
    reason: "Character 128 stays as it is, as if it were not in the table.",
  },
  {
    file: "src/database/connect.ts",
    before: "open: (onLost) => wrap(open(address, options, { max: 1, onclose: onLost })),",
    after: "open: (onLost) => wrap(open(address, options, { max: 2, onclose: onLost })),",
    reason: "The pool gives each driver one statement at a time, so it opens one connection.",
  },
  {
    file: "src/database/connect.ts",
    before: "max_pipeline: 0,",
    after: "max_pipeline: 1,",
    reason: "The pool gives each driver one statement at a time, and sessions await theirs.",
  },
  ...[
    "backoff: (retries: number) => (0),",
    "backoff: (retries: number) => (0.2),",
    "backoff: (retries: number) => (retries !== 0 ? 0 : 0.2),",
    "backoff: (retries: number) => (retries === 1 ? 0 : 0.2),",
  ].map((after) => ({
    file: "src/database/connect.ts",
    before: "backoff: (retries: number) => (retries === 0 ? 0 : 0.2),",
    after,
    reason: "Only the pause before a lost connection is opened again changes, by a fifth of a second.",
  })),
  {
    file: "src/http/authenticate.ts",
    before: "const isGenuine = !isSame && verify(credential?.secret ?? nobody, signed, auth.signature);",
    after: "const isGenuine = verify(credential?.secret ?? nobody, signed, auth.signature);",
    reason: "The same secret gives the same answer again: the condition saves a verification.",
  },
  {
    file: "src/http/authenticate.ts",
    before: 'const nobody = randomBytes(32).toString("base64url");',
    after: 'const nobody = randomBytes(33).toString("base64url");',
    reason: "Any random secret will do.",
  },
  {
    file: "src/http/drain.ts",
    before: "const checkEveryMs = 50;",
    after: "const checkEveryMs = 51;",
    reason: "Only the time until an idle connection is ended changes, by a millisecond.",
  },
  {
    file: "src/migration/load-code.ts",
    before: 'if (!changedShape.includes(sqlState(error) ?? "")) throw locate(error, file.text, file.path);',
    after: "if (false) throw locate(error, file.text, file.path);",
    reason: "The second attempt fails with the same error, and the transaction is rolled back either way.",
  },
  {
    file: "src/migration/migrate.ts",
    before: "async function makeRoles(session: Session, { isDryRun = false, retries = 9 } = {}): Promise<void> {",
    after: "async function makeRoles(session: Session, { isDryRun = false, retries = 10 } = {}): Promise<void> {",
    reason: "How often it tries is not promised.",
  },
  ...[
    "sleep(100 + Math.random() * 400);",
    ";",
    "await sleep(101 + Math.random() * 400);",
    "await sleep(100 + Math.random() / 400);",
    "await sleep(100 + Math.random() * 401);",
    "await sleep(100 - Math.random() * 400);",
  ].map((after) => ({
    file: "src/migration/migrate.ts",
    before: "await sleep(100 + Math.random() * 400);",
    after,
    reason: "The pause only spreads the attempts. Each one waits 200 ms for its lock, and then the others pass.",
  })),
  {
    file: "src/migration/applied.ts",
    before: "await session.end();",
    after: "session.end();",
    reason: "The programs that ask do nothing after it but print, and their connection ends with them.",
  },
  {
    file: "src/worker/tasks/close.ts",
    before: "const daysPerStep = 50;",
    after: "const daysPerStep = 51;",
    reason: "How many days are closed in one transaction is tuning.",
  },
  {
    file: "src/worker/tasks/close.ts",
    before: "for (let closed = 1; closed > 0 && !stopping.aborted;) {",
    after: "for (let closed = 2; closed > 0 && !stopping.aborted;) {",
    reason: "Any number above 0 begins the first round.",
  },
  {
    file: "src/migration/migrate.ts",
    before: "await session.run(begin);",
    after: "session.run(begin);",
    reason: "A session sends its statements one after the other, in the order of the calls.",
  },
  {
    file: "src/migration/migrate.ts",
    before: 'if (server!.version < 150_000) throw new Error("PostgreSQL 15 or newer is needed");',
    after: 'if (server!.version <= 150_000) throw new Error("PostgreSQL 15 or newer is needed");',
    reason: "It differs on PostgreSQL 15.0 only, which no test runs.",
  },
  {
    file: "src/work.ts",
    before: 'jobs: open({ name: "coupon work", max: 3, ...short }),',
    after: 'jobs: open({ name: "coupon work", max: 4, ...short }),',
    reason: "How many connections a kind of work may have is tuning.",
  },
  {
    file: "src/work.ts",
    before: 'deliveries: open({ name: "coupon deliver", max: 4, ...short }),',
    after: 'deliveries: open({ name: "coupon deliver", max: 5, ...short }),',
    reason: "How many connections a kind of work may have is tuning.",
  },
  {
    file: "src/work.ts",
    before: 'sequencer: open({ name: "coupon sequence", max: 1, ...short }),',
    after: 'sequencer: open({ name: "coupon sequence", max: 2, ...short }),',
    reason: "How many connections a kind of work may have is tuning.",
  },
  {
    file: "src/work.ts",
    before: 'statements: open({ name: "coupon statements", max: 2, statementTimeoutMs: 600_000 }, 610_000),',
    after: 'statements: open({ name: "coupon statements", max: 3, statementTimeoutMs: 600_000 }, 610_000),',
    reason: "How many connections a kind of work may have is tuning.",
  },
  {
    file: "src/work.ts",
    before: 'metrics: hasMetrics ? open({ name: "coupon metrics", max: 1, statementTimeoutMs: 2_000 }, 3_000) : null,',
    after: 'metrics: hasMetrics ? open({ name: "coupon metrics", max: 2, statementTimeoutMs: 2_000 }, 3_000) : null,',
    reason: "How many connections a kind of work may have is tuning.",
  },
  {
    file: "src/worker/tasks/close.ts",
    before: "for (const [name, until] of restingUntil) if (until < performance.now()) restingUntil.delete(name);",
    after: "for (const [name, until] of restingUntil) if (until <= performance.now()) restingUntil.delete(name);",
    reason: "The clock has fractions of a millisecond: two readings are not equal.",
  },
  {
    file: "src/crypto/find-code.ts",
    before: "runLength = read[index] === runEnd ? 0 : runLength + 1;",
    after: "runLength = read[index] === runEnd ? 1 : runLength + 1;",
    reason: "It adds only windows that begin with the end of a run, which is no key version.",
  },
  {
    file: "src/database/connect.ts",
    before: "fetch_types: false,",
    after: "fetch_types: true,",
    reason: "The driver then asks for the array types of the database, and we list those that we read.",
  },
  ...["await sleep(21);", "sleep(20);", ";"].map((pause) => ({
    file: "src/migration/migrate.ts",
    before: `${untilEnded} await sleep(20);`,
    after: `${untilEnded} ${pause}`,
    reason: "It looks less or more often.",
  })),
  {
    file: "src/http/body.ts",
    before: 'if (!isWhole) reject(invalid([{ path: "(body)", message: "the body ended early" }]));',
    after: 'if (true) reject(invalid([{ path: "(body)", message: "the body ended early" }]));',
    reason: "A promise that is resolved stays so. The condition saves making the error.",
  },
  {
    file: "src/http/body.ts",
    before: 'if (!isWhole) reject(invalid([{ path: "(body)", message: "the body ended early" }]));',
    after: 'if (!isWhole) reject(invalid([{ path: "(xody)", message: "the body ended early" }]));',
    reason: "The caller is gone, so nobody reads this answer, and the log has only its status and code.",
  },
];
