// The service that the documents talk to: `npm start` in a folder that looks like the root of the project. And what the
// documents speak of, made in that service: a tenant, a batch, a closed day, an event.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { readConfig } from "../../src/config/config.ts";
import { openSession } from "../../src/database/connect.ts";
import type { Session } from "../../src/database/types.ts";
import { findEmbedded } from "../../src/embedded/find-address.ts";
import { moveToNoon, zoneOf } from "../support/business-days.ts";
import type { Coupon } from "../support/caller.ts";
import { root } from "../support/copy.ts";
import { readEventBodies } from "../support/event-bodies.ts";
import { findFreePort } from "../support/listen.ts";
import { launch } from "../support/program.ts";
import { scenario, type Scenario, type Teardown } from "../support/scenario.ts";
import { makeTemporaryFolder, removeFolder } from "../support/temporary-folder.ts";
import { credential, merchant } from "../support/tenants.ts";
import { waitUntil } from "../support/wait-until.ts";

export type DocsService = Awaited<ReturnType<typeof startDocsService>>;

const python = spawnSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" });
export const isWithoutPython = python.error !== undefined;
// A version manager's python3 is a script that starts a hundred shells.
const pythonFolder = isWithoutPython ? "" : `${path.dirname(python.stdout.trim())}:`;

const makers: Record<string, { accessKey: string; template: string; merchant: string }> = {
  ten_demoa: { accessKey: "ak_demo_a", template: "tpl_tenpercent", merchant: "mch_bakery" },
  ten_acme: { accessKey: "ak_docs_maker", template: "tpl_1", merchant: "mch_docs" },
};

export async function startDocsService(t: Teardown) {
  const scratch = makeTemporaryFolder("coupon-docs-");
  t.teardown(() => removeFolder(scratch));
  const folder = path.join(scratch, "checkout");
  mkdirSync(folder);
  for (const name of readdirSync(root))
    if (name !== ".data") symlinkSync(path.join(root, name), path.join(folder, name));
  const program = launch(t, "start", {
    folder,
    env: {
      PORT: "0",
      CONSOLE_PORT: "0",
      WEBHOOK_ALLOW: "127.0.0.0/8",
      LOG_LEVEL: "warn",
      HOME: process.env["HOME"] ?? folder,
    },
  });
  t.teardown(() => program.stop());
  const [, url = ""] = await program.untilPrinted(/Listening on (\S+)\. /);
  const receiverPort = await findFreePort();
  const { dataDir } = readConfig({ DATA_DIR: path.join(folder, ".data") });
  const address = findEmbedded(dataDir)!;
  const masterKeyText = readFileSync(path.join(dataDir, "master.key"), "utf8").trim();
  const world = await scenario(t, { file: null, on: { address, masterKeyText } });
  const superuser = await world.openPsql();
  await superuser.rows("create role docs_dba in role coupon_admin, coupon_report");
  // No business day of the distributor closes by itself while a test runs.
  await moveToNoon(world, "pty_dist");

  return {
    folder,
    scratch,
    receiverPort,
    superuser,
    environment: {
      PATH: `${path.join(root, "node_modules/.bin")}:${pythonFolder}${process.env["PATH"]}`,
      HOME: process.env["HOME"],
      SERVICE: url,
      PORT: new URL(url).port,
      WEBHOOK_ALLOW: "127.0.0.0/8",
      PYTHONDONTWRITEBYTECODE: "1",
    },

    /** Replaces the ports that the documents name: a receiver of webhooks listens on 3000. */
    setPorts: (text: string) =>
      text.replaceAll("127.0.0.1:8080", new URL(url).host).replaceAll(/\b3000\b/g, String(receiverPort)),

    openSql: (role: string) => openSession(address, { name: "coupon docs", ...(role !== "superuser" && { role }) }),

    ...createArrangements(world, superuser),
  };
}

function createArrangements(world: Scenario, superuser: Session) {
  return {
    /** Applies the tenant of the example file, with a credential of our own beside those of the file. */
    async applyExample(file: { tenants: Record<string, unknown>[] }): Promise<void> {
      const { id, name, variant, amount_unit } = file.tenants[0]!;
      const merchants = [merchant("mch_docs", "pty_maker")];
      const credentials = [credential("ak_docs_maker", "pty_maker")];
      await world.apply(file);
      await world.apply({ tenants: [{ id, name, variant, amount_unit, merchants, credentials }] });
    },

    /** A released batch, one of its coupons, a redemption of another one, and an event, by the prefix of the ID. */
    async makeExample(tenant: string, isLocked: boolean): Promise<Record<string, string>> {
      const { accessKey, template, merchant } = makers[tenant]!;
      const by = world.as(accessKey, merchant);
      const { id: batch, coupons } = await world.makeBatch(by, template, 3);
      const [coupon, used] = coupons as [Coupon, Coupon];
      const order = { order_amount: 25 };
      if (isLocked) await by.ok.lock(coupon, order);
      const { redemption } = await by.ok.redeem(used, order);
      const text = "select event from report.event where tenant = $1 limit 1";
      const [event] = await untilRows<{ event: string }>(superuser, text, [tenant]);
      return { bat: batch, cpn: coupon.id, red: redemption, evt: event!.event };
    },

    closeDay: () => closeDay(superuser),

    /** The body of an event of this type. */
    readEvent: async (type: string) => (await readEventBodies(superuser, "e.event_type = $1", [type]))[0] ?? "{}",
  };
}

// Closes the open business day of the distributor of ten_demob, and waits for its statement. There is no test clock:
// the distributor moves to a time zone where the day after its open one is at noon.
async function closeDay(superuser: Session): Promise<void> {
  const [book] = await untilRows<{ party_id: number; offset_seconds: number }>(
    superuser,
    `select p.party_id,
            extract(epoch from (b.open_on + 1)::timestamp + interval '12 hours' - (now() at time zone 'UTC'))::int
              as offset_seconds
     from core.ledger_book b join core.party p using (tenant_id, party_id) where p.external_id = 'pty_dist'`,
  );
  // An entry that is not posted yet would be posted to the next day.
  await untilRows(
    superuser,
    `select where not exists (
       select from core.ledger_entry l where not exists (
         select from rules.posting p where p.tenant_id = l.tenant_id and p.entry_id = l.entry_id))`,
  );
  const zone = zoneOf(book!.offset_seconds);
  await superuser.rows("update core.party set time_zone = $2 where party_id = $1", [book!.party_id, zone]);
  const text = "select from core.statement where distributor_id = $1 and ready_at is not null";
  await untilRows(superuser, text, [book!.party_id]);
}

function untilRows<T>(database: Session, text: string, params: unknown[] = []): Promise<T[]> {
  return waitUntil(`rows of ${text}`, async () => {
    const rows = await database.rows<T>(text, params);
    return rows.length > 0 && rows;
  });
}

type Ran = { code: number; stdout: string; stderr: string };
export type Shell = { run(text: string): Promise<Ran>; close(): void };

// A block that takes longer is marked "not run".
const blockMs = 120_000;

/** One bash for the blocks of one document, as a reader who pastes them one after the other has. */
export function openShell({ folder, environment }: DocsService, scratch: string): Shell {
  // A process group, so that what runs in the background ends with it.
  const bash = spawn("bash", ["--noprofile", "--norc"], {
    cwd: folder,
    env: environment,
    stdio: ["pipe", "pipe", "inherit"],
    detached: true,
  });
  bash.stdin.on("error", () => {});
  const closed = once(bash, "close");
  const lines = createInterface({ input: bash.stdout });
  const file = (name: string): string => path.join(scratch, name);
  const read = (code: number): Ran => ({
    code,
    stdout: readFileSync(file("stdout"), "utf8"),
    stderr: readFileSync(file("stderr"), "utf8"),
  });

  return {
    async run(text) {
      writeFileSync(file("script"), text);
      const command = `. '${file("script")}' </dev/null >'${file("stdout")}' 2>'${file("stderr")}'`;
      // set -e ends the shell: then the line with the status never comes.
      bash.stdin.write(`set -e -o pipefail; ${command}; echo done\n`);
      return Promise.race([
        sleep(blockMs, null, { ref: false }).then(() => ({ ...read(124), stderr: `not done in ${blockMs / 1_000} s` })),
        once(lines, "line").then(() => read(0)),
        closed.then(([code]) => read(Number(code ?? 1))),
      ]);
    },
    close() {
      try {
        process.kill(-bash.pid!, "SIGKILL");
      } catch {
        // It ended before.
      }
    },
  };
}
