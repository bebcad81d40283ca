// A coupon service as a careful engineer writes it by hand with node:http and node:pg, without groups, functions in the
// database or anything of ours except the signature of a request. redemptions.ts compares the service with it.
//
// It does what a plain redeem of ours does: checks signature, time and nonce, replays the recorded answer of a repeated
// request_id, checks the offline signature of the code, locks the coupon's row, checks batch, merchant, scope, state,
// validity and order, computes the discount, and writes coupon, redemption, ledger entry and answer in one transaction.
// A refusal is recorded too. It lacks what ours does beside that: events, limits, metrics, rare fields, Variant B.
//
// Choices:
// - One transaction and one commit for each call, in four round trips: begin, read, write, commit. `read` spends the
//   nonce, looks for a recorded answer, and locks the coupon together with all that decides about it. Both statements
//   are prepared. With the nonce and the answer in a statement before the lock, there would be five round trips.
// - Two calls with one request_id at once: the primary key of the answers stops the later one, which runs again and
//   finds the answer of the first. So a new request_id costs no statement before its answer is written.
// - Ten connections: on few cores, more only wait for each other.
// - The driver does not pipeline, which is its default.
// - IDs are UUIDs in the order of time, made here, so that the answer can be written in the same statement.
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import pg from "pg";
import { sign } from "../../../clients/typescript/src/signature.ts";

/** A row of the database, or a body. */
type Values = Record<string, any>;
type Answer = { status: number; text: string };
type Call = { credential: Values; nonce: string; body: Values; hash: Buffer };
type Grant = { redemptionId: string; orderMinor: number | null; discountMinor: number };

class Refusal extends Error {
  readonly status: number;
  constructor(status: number, code: string) {
    super(code);
    this.status = status;
  }
}

const read = `
  with spent as (
    insert into hand.nonce (credential_id, nonce) values ($1, $2) on conflict do nothing returning nonce),
  held as (
    select c.coupon_id, c.status as coupon_status, c.valid_to <= now() as is_over, c.valid_from > now() as is_early,
           b.status as batch_status, b.distributor_id, t.*
    from hand.coupon c
    join hand.batch b on b.batch_id = c.batch_id
    join hand.template t on t.template_id = b.template_id
    where c.lookup_hash = $4 and b.tenant_id = $6
    for update of c)
  select exists (select from spent) as is_new, r.body_hash as recorded_hash, r.status as recorded_status,
         r.answer as recorded_answer, h.*, m.merchant_id,
         h.is_for_all_merchants or exists (
           select from hand.template_merchant s
           where s.template_id = h.template_id and s.merchant_id = m.merchant_id) as is_in_scope
  from (select) one
  left join hand.request r on r.request_id = $3 and r.credential_id = $1
  left join held h on true
  left join hand.merchant m on m.external_id = $5 and m.tenant_id = $6`;

const record = `
  insert into hand.request (credential_id, request_id, body_hash, status, answer) values ($1, $2, $3, $4, $5)`;

const write = `
  with used as (
    update hand.coupon set status = 'REDEEMED' where coupon_id = $6),
  redeemed as (
    insert into hand.redemption (redemption_id, coupon_id, merchant_id, request_id, order_minor, discount_minor,
      currency, store, terminal, order_id)
    values ($7, $6, $8, $2, $9, $10, $11, $12, $13, $14)),
  entered as (
    insert into hand.ledger_entry (redemption_id, distributor_id, amount_minor, currency) values ($7, $15, $10, $11))
  ${record}`;

for (const type of [pg.types.builtins.INT8, pg.types.builtins.NUMERIC]) pg.types.setTypeParser(type, Number);
const pool = new pg.Pool({
  connectionString: process.env["DATABASE_URL"],
  max: 10,
  statement_timeout: 3_000,
  options: "-c jit=off",
});
pool.on("error", (error) => console.error(error));
const [tagKey, lookupKey] = ["TAG_KEY", "LOOKUP_KEY"].map((name) => Buffer.from(process.env[name]!, "base64"));
const credentials = new Map<string, Values>();
const windowSeconds = 300;
const rememberMs = 3_000;
const mostBytes = 65_536;
const uniqueViolation = "23505";

async function answer(request: IncomingMessage): Promise<Answer> {
  if (request.method !== "POST" || request.url !== "/v1/coupons/redeem") throw new Refusal(404, "ROUTE_NOT_FOUND");
  const bytes = await readBytes(request);
  const call = {
    ...(await authenticate(request, bytes)),
    body: readBody(bytes),
    hash: createHash("sha256").update(bytes).digest(),
  };
  const perform = () => inTransaction((client) => redeem(client, call));
  return perform().catch((error: unknown) => {
    if ((error as Values)["code"] === uniqueViolation) return perform();
    throw error;
  });
}

function readBytes(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      if ((size += chunk.length) > mostBytes) reject(new Refusal(413, "PAYLOAD_TOO_LARGE"));
    });
    request.on("end", () => resolve(Buffer.concat(chunks)));
    request.on("error", reject);
  });
}

async function authenticate({ method, url, headers }: IncomingMessage, body: Buffer) {
  const [accessKey, timestamp, nonce, signature] = ["access-key", "timestamp", "nonce", "signature"].map((name) => {
    const value = headers[`x-svc-${name}`];
    if (typeof value !== "string" || value.length > 128) throw new Refusal(401, "UNAUTHENTICATED");
    return value;
  }) as [string, string, string, string];
  const credential = await findCredential(accessKey);
  const expected = Buffer.from(sign(credential["secret"], { method: method!, target: url!, timestamp, nonce, body }));
  const given = Buffer.from(signature);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) throw new Refusal(401, "UNAUTHENTICATED");
  if (!(Math.abs(Date.now() / 1_000 - Number(timestamp)) <= windowSeconds))
    throw new Refusal(401, "TIMESTAMP_OUT_OF_WINDOW");
  return { credential, nonce };
}

async function findCredential(accessKey: string): Promise<Values> {
  const known = credentials.get(accessKey);
  if (known !== undefined && known["until"] > Date.now()) return known;
  const { rows } = await pool.query("select * from hand.credential where access_key = $1", [accessKey]);
  if (rows.length === 0) throw new Refusal(401, "UNAUTHENTICATED");
  const credential = { ...rows[0], until: Date.now() + rememberMs };
  credentials.set(accessKey, credential);
  return credential;
}

function readBody(bytes: Buffer): Values {
  let body: Values;
  try {
    body = JSON.parse(bytes.toString());
  } catch {
    throw new Refusal(400, "INVALID_REQUEST");
  }
  const isRight =
    ["request_id", "coupon", "merchant"].every((name) => isText(body[name])) &&
    ["currency", "store", "terminal", "order_id"].every((name) => body[name] === undefined || isText(body[name])) &&
    (body["order_amount"] === undefined || body["order_amount"] >= 0);
  if (!isRight) throw new Refusal(400, "INVALID_REQUEST");
  body["coupon"] = body["coupon"].toUpperCase().replaceAll(/[\s-]/g, "");
  if (!isGenuine(body["coupon"])) throw new Refusal(422, "COUPON_CODE_INVALID");
  return body;
}

const isText = (value: unknown): boolean => typeof value === "string" && value.length <= 128;

/** The last four characters of a code are 20 bits of a keyed hash of the others. */
function isGenuine(code: string): boolean {
  if (code.length !== 16) return false;
  const bits = createHmac("sha256", tagKey!).update(code.slice(0, 12)).digest().readUInt32BE() >>> 12;
  const tag = [15, 10, 5, 0].map((shift) => "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[(bits >>> shift) & 31]).join("");
  return timingSafeEqual(Buffer.from(tag), Buffer.from(code.slice(12), "latin1"));
}

async function inTransaction(act: (client: pg.PoolClient) => Promise<Answer>): Promise<Answer> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const result = await act(client);
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}

async function redeem(client: pg.PoolClient, { credential, nonce, body, hash }: Call): Promise<Answer> {
  const { credential_id, tenant_id } = credential;
  const { request_id, coupon, merchant, store, terminal, order_id } = body;
  const lookup = createHmac("sha256", lookupKey!).update(coupon).digest("hex").slice(0, 32);
  const asked = [credential_id, nonce, request_id, lookup, merchant, tenant_id];
  const { rows } = await client.query({ name: "read", text: read, values: asked });
  const found: Values = rows[0];
  if (!found["is_new"]) throw new Refusal(401, "NONCE_REUSED");
  if (found["recorded_hash"] !== null) {
    if (!found["recorded_hash"].equals(hash)) throw new Refusal(422, "IDEMPOTENCY_KEY_REUSED");
    return { status: found["recorded_status"], text: found["recorded_answer"] };
  }
  const decision = decide(found, body);
  if (decision instanceof Refusal) {
    const refused = toAnswer(decision);
    const values = [credential_id, request_id, hash, refused.status, refused.text];
    await client.query({ name: "record", text: record, values });
    return refused;
  }
  const { coupon_id, merchant_id, distributor_id, currency, decimals } = found;
  const { redemptionId, orderMinor, discountMinor } = decision;
  const discount_amount = discountMinor / 10 ** decimals;
  const text = JSON.stringify({ ok: true, redemption: redemptionId, coupon_id, discount_amount, currency });
  const values = [credential_id, request_id, hash, 200, text, coupon_id, redemptionId, merchant_id, orderMinor];
  values.push(discountMinor, currency, store, terminal, order_id, distributor_id);
  await client.query({ name: "write", text: write, values });
  return { status: 200, text };
}

function decide(found: Values, { order_amount, currency }: Values): Refusal | Grant {
  if (found["merchant_id"] === null || found["coupon_id"] === null) return new Refusal(404, "NOT_FOUND");
  const { coupon_status, batch_status, discount_percent, min_order_minor, max_discount_minor } = found;
  const scale = 10 ** found["decimals"];
  const orderMinor = order_amount === undefined ? null : Math.round(order_amount * scale);
  if (orderMinor !== null && orderMinor / scale !== order_amount) throw new Refusal(400, "INVALID_REQUEST");
  const refuse = (code: string, status = 409) => new Refusal(status, code);
  if (!found["is_in_scope"]) return refuse("MERCHANT_NOT_IN_SCOPE", 422);
  if (batch_status === "SUSPENDED") return refuse("BATCH_SUSPENDED");
  if (coupon_status === "VOIDED") return refuse("COUPON_VOIDED");
  if (coupon_status === "REDEEMED") return refuse("COUPON_REDEEMED");
  if (found["is_over"]) return refuse("COUPON_EXPIRED");
  if (coupon_status === "LOCKED") return refuse("COUPON_LOCKED");
  if (batch_status !== "ALLOCATED") return refuse("COUPON_NOT_RELEASED");
  if (found["is_early"]) return refuse("COUPON_NOT_YET_VALID");
  if (currency !== undefined && currency !== found["currency"]) return refuse("CURRENCY_MISMATCH", 422);
  if (orderMinor === null && (discount_percent !== null || min_order_minor !== null))
    return refuse("DISCOUNT_NOT_COMPUTABLE", 422);
  if (min_order_minor !== null && orderMinor! < min_order_minor) return refuse("ORDER_BELOW_MINIMUM", 422);
  const full = found["discount_minor"] ?? Math.round((orderMinor! * discount_percent) / 100);
  const discountMinor = Math.min(full, max_discount_minor ?? Infinity, orderMinor ?? Infinity);
  return { redemptionId: newId(), orderMinor, discountMinor };
}

/** A UUIDv7. */
function newId(): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes[6] = 0x70 | (bytes[6]! & 0x0f);
  bytes[8] = 0x80 | (bytes[8]! & 0x3f);
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const toAnswer = ({ status, message }: Refusal): Answer => ({
  status,
  text: JSON.stringify({ ok: false, code: message }),
});

const server = createServer(async (request, response) => {
  const { status, text } = await answer(request).catch((error: unknown) => {
    if (error instanceof Refusal) return toAnswer(error);
    console.error(error);
    return toAnswer(new Refusal(503, "UNAVAILABLE"));
  });
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  response.end(text);
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
console.log(JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }));
