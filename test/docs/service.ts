// The service that the documents talk to: npm start in a folder that looks like the project's root.
import { readdirSync, mkdirSync, symlinkSync } from "node:fs";
import path from "node:path";
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { readDemoSecrets } from "../../src/commands/demo-tenants.ts";
import { readConfig } from "../../src/common/config.ts";
import { loadMasterKeys } from "../../src/embedded/load-keys.ts";
import { connect, openSession } from "../../src/database/connect.ts";
import { findAddress } from "../../src/embedded/find-address.ts";
import { noonOffset, zoneOf } from "../support/business-days.ts";
import { root } from "../support/copy.ts";
import { findFreePort } from "../support/listen.ts";
import { exitCodeOf, spawnProgram, untilPrinted } from "../support/program.ts";
import { makeTemporaryFolder, removeFolder } from "../support/temporary-folder.ts";
import {
  acmeSecret,
  applyExample,
  closeDay,
  makeExample,
  readEvent,
  type Docs,
  type Example,
  type ExampleFile,
} from "./examples.ts";

export type DocsService = {
  folder: string;
  scratch: string;
  url: string;
  receiverPort: number;
  openSql(role: string): ReturnType<typeof openSession>;
  applyExample(file: ExampleFile): Promise<void>;
  makeExample(tenant: string, isLocked: boolean): Promise<Example>;
  closeDay(): Promise<void>;
  readEvent(type: string): Promise<string>;
  stop(): Promise<void>;
};

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
  const secrets = { ...(await readDemoSecrets(dataDir)), ak_docs_maker: acmeSecret } as Record<string, string>;
  // No business day of the distributor closes by itself while a test runs.
  await superuser.rows("update core.party set time_zone = $1 where external_id = 'pty_dist'", [zoneOf(noonOffset())]);
  const docs: Docs = { url, keys, superuser, admin, secrets };

  return {
    folder,
    scratch,
    url,
    receiverPort,
    openSql: (role) => openSession(address, { name: "coupon docs", ...(role !== "superuser" && { role }) }),
    applyExample: (file) => applyExample(docs, file),
    makeExample: (tenant, isLocked) => makeExample(docs, tenant, isLocked),
    closeDay: () => closeDay(docs),
    readEvent: (type) => readEvent(docs, type),
    async stop() {
      await Promise.all([superuser.end(), admin.end()]);
      program.kill("SIGTERM");
      await exitCodeOf(program);
      removeFolder(scratch);
    },
  };
}

// The ports that the documents name, and those of this run: a receiver of webhooks listens on 3000.
export function setPorts(service: DocsService, text: string): string {
  return text
    .replaceAll("127.0.0.1:8080", new URL(service.url).host)
    .replaceAll(/\b3000\b/g, String(service.receiverPort));
}

export function environmentOf(service: DocsService): Record<string, string | undefined> {
  return {
    PATH: `${path.join(root, "node_modules/.bin")}:${process.env["PATH"]}`,
    HOME: process.env["HOME"],
    SERVICE: service.url,
    PORT: new URL(service.url).port,
    WEBHOOK_ALLOW: "127.0.0.0/8",
    PYTHONDONTWRITEBYTECODE: "1",
  };
}
