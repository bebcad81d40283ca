// Canary codes: codes to which everything happens that can happen to a code, over the real programs at their most
// verbose log level. canary.test.ts then searches for them. A marker, which is no secret, takes the same ways and shows
// that the search works.
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { createInterface } from "node:readline";
import t from "tap";
import { connect, openSession } from "../../src/database/connect.ts";
import type { Database } from "../../src/database/types.ts";
import { sendPlain } from "../support/client.ts";
import { createClient, type Client, type Reply } from "../support/signing-client.ts";
import { environmentOf, exitCodeOf, runProgram, spawnProgram } from "../support/program.ts";
import { searchFor, type Search } from "../support/search.ts";
import { newRequestId, startService, type Running } from "../support/service.ts";
import { holdCoupon } from "../support/sessions.ts";
import { fieldsOf } from "../support/fields-of.ts";
import { inGroups, spellings } from "../support/spellings.ts";
import { bodies } from "../support/stub.ts";
import { secretOf } from "../support/tenants.ts";
import { waitUntil } from "../support/wait-until.ts";

export type Canaries = {
  service: Running;
  // The login itself, a superuser.
  login: Database;
  codes: string[];
  search: Search;
  // The WAL file that was current at the start.
  firstWalFile: string;
  answers: Reply[];
  // The output of each program, and the metrics.
  output: Map<string, () => Buffer>;
};
type Row = { couponId: string; code: string };
type Send = (by: Client, path: string, body: unknown, status: number, more?: object) => Promise<any>;

const merchant = "mch_a";
// As long as a code and of the same alphabet, so that the search finds it in the same forms.
export const marker =
  "MARKERMARKER" +
  process.pid
    .toString(32)
    .toUpperCase()
    .replace(/[ILOU]/g, "0")
    .padStart(4, "0")
    .slice(-4);

export async function releaseCanaries(): Promise<Canaries> {
  const service = await startService(t);
  const login = connect(service.address, { name: "coupon test", max: 1 });
  t.teardown(() => login.end());
  // A replication slot keeps the log until it is searched. It is gone with its session.
  const keeper = openSession(service.address, { name: "coupon test" });
  t.teardown(() => keeper.end());
  await keeper.rows("select pg_create_physical_replication_slot($1, true, true)", [`canary_${process.pid}`]);
  const [wal] = await login.rows<{ file: string }>("select pg_walfile_name(pg_current_wal_lsn()) as file");
  const answers: Reply[] = [];
  const output: Canaries["output"] = new Map();
  const programs = { serve: startVerbose(service, "serve"), work: startVerbose(service, "work") };
  for (const [name, { read }] of Object.entries(programs)) output.set(name, read);
  const [served, worked] = await Promise.all([
    untilLogged(programs.serve.program, "serving"),
    untilLogged(programs.work.program, "working"),
  ]);
  const { url, metrics_url: serveMetrics } = served;
  const as = (accessKey: string) => createClient({ url, accessKey, secret: secretOf(accessKey) });
  const codes = await useCodes(service, as("ak_a"), as("ak_a_stranger"), answers, output);
  for (const metricsUrl of [serveMetrics, worked.metrics_url]) {
    const { text } = await sendPlain(metricsUrl, "GET", "/metrics");
    output.set(`metrics at ${metricsUrl}`, () => Buffer.from(text));
  }
  for (const { program } of Object.values(programs)) {
    program.kill("SIGTERM");
    t.equal(await exitCodeOf(program), 0);
  }
  return { service, login, codes, search: searchFor([...codes, marker]), firstWalFile: wal!.file, answers, output };
}

function startVerbose(service: Running, name: string): { program: ChildProcessWithoutNullStreams; read: () => Buffer } {
  const env = { ...environmentOf(service), LOG_LEVEL: "trace", METRICS_PORT: "0" };
  const program = spawnProgram(name, { env }) as ChildProcessWithoutNullStreams;
  t.teardown(() => program.kill("SIGKILL"));
  const chunks: Buffer[] = [];
  for (const stream of [program.stdout, program.stderr]) stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  return { program, read: () => Buffer.concat(chunks) };
}

type StartLine = { msg: string; url: string; metrics_url: string };

function untilLogged(program: ChildProcessWithoutNullStreams, message: string): Promise<StartLine> {
  return new Promise((resolve) =>
    createInterface(program.stdout).on("line", (line) => {
      const found = JSON.parse(line) as StartLine;
      if (found.msg === message) resolve(found);
    }),
  );
}

async function useCodes(
  service: Running,
  a: Client,
  stranger: Client,
  answers: Reply[],
  output: Canaries["output"],
): Promise<string[]> {
  const send: Send = async (by, path, body, status, more = {}) => {
    const reply = await by.post(path, typeof body === "object" ? { request_id: newRequestId(), ...body } : body, more);
    if (reply.status !== status) throw new Error(`${path}: ${reply.status} ${reply.text}`);
    answers.push(reply);
    return reply.json;
  };
  const rows = await exportBatch(service, a, send, output);
  const [locked, redeemed, voided, foreign, held, broken, wrongPlace] = rows.map(({ code }) => code) as [
    string,
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  await callOnce(send, a, { locked, redeemed, voided });
  await send(stranger, "/v1/coupons/redeem", { coupon: foreign, merchant: "mch_a2s" }, 404);
  const mistyped = await mistype(send, a, foreign);
  await misplace(send, a, wrongPlace, foreign);
  answers.push(await a.get(`/v1/batches/${wrongPlace}`), await a.get(`/v1/requests/${wrongPlace}`));

  // Failures: a psql session holds the row, or a table is missing.
  const release = await holdCoupon(service, rows[4]!.couponId);
  await send(a, "/v1/coupons/redeem", { coupon: held, merchant }, 503);
  await release();
  await service.owner.rows("alter table core.redemption rename to redemption_away");
  await send(a, "/v1/coupons/redeem", { coupon: broken, merchant }, 500);
  await service.owner.rows("alter table core.redemption_away rename to redemption");
  await send(a, "/v1/coupons/redeem", { coupon: broken, merchant }, 200);
  return [...rows.map(({ code }) => code), ...mistyped];
}

async function exportBatch(service: Running, a: Client, send: Send, output: Canaries["output"]): Promise<Row[]> {
  const created = await send(a, "/v1/batches", { template: "tpl_fixed", total_count: 12 }, 200);
  const batch = created.batch.external_id as string;
  const isMinted = async () => (await a.get(`/v1/batches/${batch}`)).json.batch.status === "COMPLETED";
  await waitUntil("the coupons", isMinted);
  await send(a, "/v1/batches/allocate", { batch }, 200);
  const exported = await runProgram(service, "codes", [batch]);
  output.set("the export's standard error", () => Buffer.from(exported.stderr));
  const rows = exported.stdout
    .trimEnd()
    .split("\n")
    .slice(1)
    .map((line) => line.split(",") as [string, string])
    .map(([couponId, code]) => ({ couponId, code }));
  const codes = rows.map(({ code }) => code);
  t.strictSame(
    searchFor(codes).inBytes(Buffer.from(exported.stdout)).sort(),
    codes.toSorted(),
    "the search finds every code in its export",
  );
  return rows;
}

async function callOnce(
  send: Send,
  a: Client,
  { locked, redeemed, voided }: Record<"locked" | "redeemed" | "voided", string>,
): Promise<void> {
  const lock = { request_id: newRequestId(), coupon: locked, merchant, order_id: marker, store: marker };
  await send(a, "/v1/coupons/lock", lock, 200, { idempotencyKey: newRequestId() });
  await send(a, "/v1/coupons/lock", { coupon: inGroups(locked).toLowerCase(), merchant }, 409);
  await send(a, "/v1/coupons/confirm", { coupon: locked, merchant, lock_request_id: lock.request_id }, 200);
  const { redemption } = await send(
    a,
    "/v1/coupons/redeem",
    { coupon: inGroups(redeemed).toLowerCase(), merchant },
    200,
  );
  await send(a, "/v1/coupons/redeem", { coupon: redeemed, merchant }, 409);
  await send(a, "/v1/redemptions/reverse", { redemption, reason: marker }, 200);
  await send(a, "/v1/coupons/cancel", { coupon: redeemed, lock_request_id: "none" }, 409);
  await send(a, "/v1/coupons/void", { coupon: voided, merchant, reason: marker }, 200);
  await send(a, "/v1/coupons/query", { coupon: voided, merchant }, 200);
}

// Sends a code with another body, a code with another tag, and something that is no code. Returns the first two.
async function mistype(send: Send, a: Client, code: string): Promise<string[]> {
  const other = (character: string) => (character === "7" ? "8" : "7");
  const mistyped = [code.slice(0, 5) + other(code[5]!) + code.slice(6), code.slice(0, 15) + other(code[15]!)];
  for (const coupon of mistyped) await send(a, "/v1/coupons/redeem", { coupon, merchant }, 422);
  await send(a, "/v1/coupons/redeem", { coupon: `${code}X`, merchant }, 400);
  return mistyped;
}

// Sends a code in wrong places, so that an error message that repeats its input would leak the code.
async function misplace(send: Send, a: Client, code: string, coupon: string): Promise<void> {
  const redeem = "/v1/coupons/redeem";
  for (const [path, body] of Object.entries(bodies))
    for (const field of fieldsOf(path, "A"))
      // The code of the same body, and another coupon's.
      for (const text of [code, coupon].flatMap(spellings))
        await send(a, path, { ...body, ...("coupon" in body && { coupon: code }), [field]: text }, 400);
  for (const text of [code, coupon].flatMap(spellings)) {
    const body = { coupon: code, merchant };
    await send(a, redeem, { ...body, redemption_context: { items: [{ sku: text }] } }, 400);
    await send(a, redeem, { ...body, redemption_context: { note: [text] } }, 400);
    const idempotencyKey = Buffer.from(text).toString("latin1");
    await send(a, redeem, body, 400, { idempotencyKey });
  }
  await send(a, redeem, { coupon, merchant }, 400, { nonce: code });
  await send(a, redeem, { [code]: 1, coupon, merchant }, 400);
  await send(a, redeem, `{"coupon":"${code}"`, 400);
  await send(a, `/v1/coupons/${code}`, {}, 404);
  await send(a, `${redeem}?coupon=${code}`, { coupon, merchant }, 400);
}
