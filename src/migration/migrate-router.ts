// Brings the database of a router to this version: schema, functions, rights. Safe to run at any time, and beside
// `serve`: everything happens in one transaction, and a router keeps the functions of one version back, as a cell does.
import type { Address } from "../config/database-address.ts";
import { ConfigError } from "../config/config.ts";
import { openSession, sqlState } from "../database/connect.ts";
import type { Session } from "../database/types.ts";
import { expectedVersion, listRouterCode, readScript, routerSchemas } from "./db-files.ts";
import { loadCode, runScript } from "./load-code.ts";
import { checkServer, makeRoles, takeLock, type Log } from "./migrate.ts";
import { makeReports } from "./router-reports.ts";

export async function migrateRouter(address: Address, log: Log): Promise<void> {
  const session = openSession(address, { name: "coupon router migrate" });
  try {
    await checkServer(session);
    await refuseCell(session);
    await takeLock(session, log);
    await makeRoles(session);
    await session.run("begin; set local search_path = ''; set local lock_timeout = '5s'");
    await runScript(session, readScript("router/schema.sql"), "db/router/schema.sql").catch(explainExtension);
    const loaded = await loadCode(session, { schemas: routerSchemas, files: listRouterCode() });
    await runScript(session, readScript("router/grants.sql"), "db/router/grants.sql");
    await recordVersion(session);
    await session.run("commit");
    log(`the router is up to date: ${loaded.count} functions`);
    await makeReports(session, log, { knowsHomes: true });
  } finally {
    await session.end();
  }
}

async function refuseCell(session: Session): Promise<void> {
  const cells = await session.rows("select where to_regclass('core.tenant') is not null");
  if (cells.length > 0) throw new ConfigError("DATABASE_URL is a cell: a router needs a database of its own");
}

// undefined_file, feature_not_supported: there is no such extension; insufficient_privilege.
function explainExtension(error: unknown): never {
  const state = sqlState((error as Error).cause) ?? "";
  if (["58P01", "0A000"].includes(state))
    throw new ConfigError("the server of the router lacks PL/Proxy: install postgresql-NN-plproxy, see docs/scale.md");
  if (state === "42501") throw new ConfigError("DATABASE_URL: to migrate a router takes a superuser of its server");
  throw error;
}

async function recordVersion(session: Session): Promise<void> {
  const { migration, code } = expectedVersion();
  await session.rows("delete from router.version where not is_current or code = $1", [code]);
  await session.rows("update router.version set is_current = false");
  await session.rows("insert into router.version (migration, code) values ($1, $2)", [migration, code]);
}
