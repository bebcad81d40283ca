// coupon router: the database in front of several cells, for serve (docs/scale.md).
import { defineCommand, groupCommands } from "../command-line/command.ts";
import type { Address } from "../config/database-address.ts";
import { migrateRouter } from "../migration/migrate-router.ts";
import { expectedVersion } from "../migration/db-files.ts";
import { listCells, provideAddress, readRouterVersion, withRouter } from "./router-database.ts";
import { formatJson, json } from "./table.ts";

const settings = ["DATABASE_URL", "PGPASSWORD"] as const;

const migrate = defineCommand({
  name: "migrate",
  about:
    "Makes a database the router of cells, or brings it to this version. It takes a superuser and PL/Proxy. Bring " +
    "the router to a version before its cells.",
  settings,
  examples: [""],
  async run(_, address: Address) {
    await migrateRouter(address, console.log);
    return "";
  },
});

const status = defineCommand({
  name: "status",
  about: "Shows whether the router and its cells are at this version and can be reached.",
  flags: { json },
  settings,
  examples: ["", "--json"],
  exitCodes: "0 all are, 1 one is not",
  run: ({ flags }, address: Address) =>
    withRouter(address, async (database) => {
      const expected = expectedVersion();
      const { migration, code } = await readRouterVersion(database);
      const cells = (await listCells(database)).map(({ cell, problem, ...found }) => {
        const isCurrent = found.migration === expected.migration && found.code?.split(" ")[0] === expected.code;
        return { cell, problem: problem ?? (isCurrent ? null : `it has migration ${found.migration}: migrate it`) };
      });
      const isCurrent = migration === expected.migration && code.split(" ")[0] === expected.code;
      if (!isCurrent || cells.some(({ problem }) => problem !== null)) process.exitCode = 1;
      if (flags.json) return formatJson({ is_current: isCurrent, cells });
      return [
        `router  ${isCurrent ? "current" : "another version: run `coupon router migrate`"}`,
        ...cells.map(({ cell, problem }) => `cell ${cell}  ${problem ?? "serves"}`),
      ].join("\n");
    }),
});

export const command = provideAddress(
  groupCommands<Address, string>({
    name: "router",
    about: "Makes and inspects the database that stands in front of several cells.",
    settings,
    commands: [migrate, status],
  }),
);
