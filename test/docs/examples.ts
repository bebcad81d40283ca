// What the documents speak of, made in the service that they talk to: a tenant, a batch, a closed day, an event.
import { apply } from "../../src/commands/apply.ts";
import { createClient, type Client } from "../support/signing-client.ts";
import { exportCodes } from "../../src/commands/codes.ts";
import type { MasterKeys } from "../../src/crypto/keys.ts";
import type { Database } from "../../src/database/types.ts";
import { zoneOf } from "../support/business-days.ts";
import { readEventBodies } from "../support/event-bodies.ts";
import { waitUntil } from "../support/wait-until.ts";
import { noteCredentials } from "../support/described-answers.ts";

export type Example = { batch: string; coupon: string; redemption: string; event: string };
export type ExampleFile = { tenants: Record<string, unknown>[] };
export type Docs = {
  url: string;
  keys: MasterKeys;
  superuser: Database;
  admin: Database;
  secrets: Record<string, string>;
};

const makers: Record<string, { accessKey: string; template: string; merchant: string }> = {
  ten_demoa: { accessKey: "ak_demo_a", template: "tpl_tenpercent", merchant: "mch_bakery" },
  ten_acme: { accessKey: "ak_docs_maker", template: "tpl_1", merchant: "mch_docs" },
};
export const acmeSecret = "secret of the tests of the documents";

let counter = 0;
const newRequestId = () => `docs-${(counter += 1)}`;

async function call(client: Client, target: string, body: object): Promise<Record<string, any>> {
  const reply = await client.post(target, { request_id: newRequestId(), ...body });
  if (reply.status !== 200) throw new Error(`${target}: ${reply.text}`);
  return reply.json as Record<string, any>;
}

// The tenant of the example file, with a credential of our own beside those of the file.
export async function applyExample({ admin, keys }: Docs, file: ExampleFile): Promise<void> {
  const [tenant] = file.tenants;
  const { id, name, variant, amount_unit } = tenant!;
  const credentials = [{ access_key: "ak_docs_maker", secret: acmeSecret, party: "pty_maker" }];
  const merchants = [{ id: "mch_docs", name: "Of the test", party: "pty_maker" }];
  for (const each of [file, { tenants: [{ id, name, variant, amount_unit, merchants, credentials }] }]) {
    noteCredentials(each);
    await apply(admin, keys, each);
  }
}

// A released batch and one of its coupons; `tenant` is ten_demoa or ten_acme.
export async function makeExample(docs: Docs, tenant: string, isLocked: boolean): Promise<Example> {
  const { url, keys, admin, superuser, secrets } = docs;
  const { accessKey, template, merchant } = makers[tenant]!;
  const client = createClient({ url, accessKey, secret: secrets[accessKey]! });
  const created = await call(client, "/v1/batches", { template, total_count: 3 });
  const batch = created["batch"].external_id as string;
  const readStatus = async () => (await client.get(`/v1/batches/${batch}`)).json.batch.status;
  await waitUntil("minted coupons", async () => (await readStatus()) !== "PENDING");
  await call(client, "/v1/batches/allocate", { batch });
  const [coupon, used] = (await Array.fromAsync(exportCodes(admin, keys, batch, false))).flat();
  const order = { merchant, order_amount: 25 };
  if (isLocked) await call(client, "/v1/coupons/lock", { coupon: coupon!.code, ...order });
  const redeemed = await call(client, "/v1/coupons/redeem", { coupon: used!.code, ...order });
  const [event] = await waitUntil("an event", async () => {
    const text = "select event from report.event where tenant = $1 limit 1";
    const rows = await superuser.rows<{ event: string }>(text, [tenant]);
    return rows.length > 0 && rows;
  });
  return { batch, coupon: coupon!.coupon_id, redemption: redeemed["redemption"] as string, event: event!.event };
}

// Closes the open business day of the distributor of ten_demob, and waits for its statement. There is no test clock:
// the distributor moves to a time zone where the day after its open one is at noon.
export async function closeDay({ superuser }: Docs): Promise<void> {
  const book = await waitUntil("the books of pty_dist", async () => {
    const [row] = await superuser.rows<{ party_id: number; offset_seconds: number }>(
      `select p.party_id,
              extract(epoch from (b.open_on + 1)::timestamp + interval '12 hours' - (now() at time zone 'UTC'))::int
                as offset_seconds
       from core.ledger_book b join core.party p using (tenant_id, party_id) where p.external_id = 'pty_dist'`,
    );
    return row ?? null;
  });
  // An entry that is not posted yet would be posted to the next day.
  await waitUntil("all entries posted", async () => {
    const rows = await superuser.rows(
      `select from core.ledger_entry l
       where not exists (select from rules.posting p where p.tenant_id = l.tenant_id and p.entry_id = l.entry_id)`,
    );
    return rows.length === 0;
  });
  const zone = zoneOf(book.offset_seconds);
  await superuser.rows("update core.party set time_zone = $2 where party_id = $1", [book.party_id, zone]);
  await waitUntil("a statement", async () => {
    const rows = await superuser.rows("select from core.statement where distributor_id = $1 and ready_at is not null", [
      book.party_id,
    ]);
    return rows.length > 0;
  });
}

// The body of an event of this type.
export async function readEvent({ superuser }: Docs, type: string): Promise<string> {
  const [body] = await readEventBodies(superuser, "e.event_type = $1", [type]);
  return body ?? "{}";
}
