// The service that the documents talk to: npm start in a folder that looks like the project's root.
import { readdirSync, mkdirSync, symlinkSync } from "node:fs";
import path from "node:path";
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { apply } from "../../src/commands/apply.ts";
import { exportCodes } from "../../src/commands/codes.ts";
import { createClient, type Client } from "../../src/commands/client.ts";
import { readDemoSecrets } from "../../src/commands/demo-tenants.ts";
import { readConfig } from "../../src/common/config.ts";
import { loadMasterKeys } from "../../src/crypto/keys.ts";
import { connect, openSession } from "../../src/database/connect.ts";
import { findAddress } from "../../src/embedded/find-address.ts";
import { root } from "../support/copy.ts";
import { zoneOf } from "../support/business-days.ts";
import { findFreePort } from "../support/listen.ts";
import { exitCodeOf, spawnProgram, untilPrinted } from "../support/program.ts";
import { makeTemporaryFolder, removeFolder } from "../support/temporary-folder.ts";
import { waitUntil } from "../support/wait-until.ts";

export type Example = { batch: string; coupon: string; redemption: string; event: string };
export type DocsService = {
  folder: string;
  scratch: string;
  url: string;
  receiverPort: number;
  openSql(role: string): ReturnType<typeof openSession>;
  applyExample(file: { tenants: Record<string, unknown>[] }): Promise<void>;
  // A released batch and one of its coupons; `tenant` is ten_demoa or ten_acme.
  makeExample(tenant: string, isLocked: boolean): Promise<Example>;
  // Closes the open business day of the distributor of ten_demob, and waits for its statement.
  closeDay(): Promise<void>;
  // The body of an event of this type.
  readEvent(type: string): Promise<string>;
  stop(): Promise<void>;
};

const makers: Record<string, { accessKey: string; template: string; merchant: string }> = {
  ten_demoa: { accessKey: "ak_demo_a", template: "tpl_tenpercent", merchant: "mch_bakery" },
  ten_acme: { accessKey: "ak_docs_maker", template: "tpl_1", merchant: "mch_docs" },
};
const acmeSecret = "secret of the tests of the documents";

export async function startDocsService(): Promise<DocsService> {
  const scratch = makeTemporaryFolder("coupon-docs-");
  const folder = path.join(scratch, "checkout");
  mkdirSync(folder);
  for (const name of readdirSync(root))
    if (name !== ".data") symlinkSync(path.join(root, name), path.join(folder, name));
  const program = spawnProgram("start", {
    folder,
    env: { PORT: "0", WEBHOOK_ALLOW: "127.0.0.0/8", LOG_LEVEL: "warn", HOME: process.env["HOME"] ?? folder },
  }) as ChildProcessWithoutNullStreams;
  const [, url = ""] = await untilPrinted(program, /Listening on (\S+)\. /);
  const receiverPort = await findFreePort();
  const dataDir = path.join(folder, ".data");
  const config = readConfig({ DATA_DIR: dataDir });
  const address = findAddress(config);
  const keys = loadMasterKeys(config);
  const superuser = connect(address, { name: "coupon docs", max: 1 });
  const admin = connect(address, { name: "coupon docs", role: "coupon_admin", max: 1 });
  await superuser.rows("create role docs_dba in role coupon_admin, coupon_report");
  // The tenant of the example file, with a credential of our own beside those of the file.
  async function applyExample(file: { tenants: Record<string, unknown>[] }): Promise<void> {
    await apply(admin, keys, file);
    const [tenant] = file.tenants;
    const { id, name, variant, amount_unit } = tenant!;
    const credentials = [{ access_key: "ak_docs_maker", secret: acmeSecret, party: "pty_maker" }];
    const merchants = [{ id: "mch_docs", name: "Of the test", party: "pty_maker" }];
    await apply(admin, keys, { tenants: [{ id, name, variant, amount_unit, merchants, credentials }] });
  }

  const secrets = { ...(await readDemoSecrets(dataDir)), ak_docs_maker: acmeSecret } as Record<string, string>;

  async function call(client: Client, target: string, body: unknown): Promise<Record<string, any>> {
    const reply = await client.post(target, body);
    if (reply.status !== 200) throw new Error(`${target}: ${reply.text}`);
    return reply.json as Record<string, any>;
  }

  async function makeExample(tenant: string, isLocked: boolean): Promise<Example> {
    const { accessKey, template, merchant } = makers[tenant]!;
    const client = createClient({ url, accessKey, secret: secrets[accessKey]! });
    const request_id = () => `docs-${(counter += 1)}`;
    const created = await call(client, "/v1/batches", { request_id: request_id(), template, total_count: 3 });
    const batch = created["batch"].external_id as string;
    await waitUntil(
      "minted coupons",
      async () => (await client.get(`/v1/batches/${batch}`)).json.batch.status !== "PENDING",
    );
    await call(client, "/v1/batches/allocate", { request_id: request_id(), batch });
    const issued = (await Array.fromAsync(exportCodes(admin, keys, batch, false))).flat();
    const [coupon, used] = issued;
    const order = { merchant, order_amount: 25 };
    if (isLocked) await call(client, "/v1/coupons/lock", { request_id: request_id(), coupon: coupon!.code, ...order });
    const redeemed = await call(client, "/v1/coupons/redeem", {
      request_id: request_id(),
      coupon: used!.code,
      ...order,
    });
    const [event] = await waitUntil("an event", async () => {
      const rows = await superuser.rows<{ event: string }>("select event from report.event where tenant = $1 limit 1", [
        tenant,
      ]);
      return rows.length > 0 && rows;
    });
    return { batch, coupon: coupon!.coupon_id, redemption: redeemed["redemption"] as string, event: event!.event };
  }

  // There is no test clock: the distributor moves to a time zone where the day after its open one is at noon.
  async function closeDay(): Promise<void> {
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
         where not exists (select from core.posting p where p.tenant_id = l.tenant_id and p.entry_id = l.entry_id)`,
      );
      return rows.length === 0;
    });
    const zone = zoneOf(book.offset_seconds);
    await superuser.rows("update core.party set time_zone = $2 where party_id = $1", [book.party_id, zone]);
    await waitUntil("a statement", async () => {
      const rows = await superuser.rows(
        "select from core.statement where distributor_id = $1 and ready_at is not null",
        [book.party_id],
      );
      return rows.length > 0;
    });
  }

  return {
    folder,
    scratch,
    url,
    receiverPort,
    openSql: (role) => openSession(address, { name: "coupon docs", ...(role !== "superuser" && { role }) }),
    applyExample,
    makeExample,
    closeDay,
    async readEvent(type) {
      const [row] = await superuser.rows<{ body: string }>(
        "select rules.render_event(e) as body from core.event e where e.event_type = $1 limit 1",
        [type],
      );
      return row?.body ?? "{}";
    },
    async stop() {
      await Promise.all([superuser.end(), admin.end()]);
      program.kill("SIGTERM");
      await exitCodeOf(program);
      removeFolder(scratch);
    },
  };
}

let counter = 0;
