// coupon cells: the PostgreSQL servers behind a router (docs/scale.md). DATABASE_URL is the router.
import { defineCommand, groupCommands } from "../command-line/command.ts";
import { readCellReportUrl, readCellUrl } from "../config/config.ts";
import type { Address } from "../config/database-address.ts";
import { addCell, addReports, listCells, provideAddress, removeCell, withRouter } from "./router-database.ts";
import { goBack, split } from "./split.ts";
import { formatRows, json } from "./table.ts";

const settings = {
  DATABASE_URL: "the router",
  PGPASSWORD: "its password, unless the URL has one",
} as const;
const cellUrl = {
  CELL_URL: "the cell as the router reaches it, with a login that is a member of coupon_api",
  CELL_REPORT_URL: "the cell or a standby of it, with a login that is a member of coupon_report, for reports",
} as const;

const add = defineCommand({
  name: "add",
  about: "Adds a cell to the router, or changes how the router reaches it, at once and without a pause.",
  words: { number: { about: "the number of the cell, coupon.cell of its server: 1 to 999" } },
  settings: { ...settings, ...cellUrl },
  examples: ["2"],
  refuse: ({ words: { number } }) => (/^[1-9]\d{0,2}$/.test(number) ? null : "NUMBER must be 1 to 999"),
  async run({ words }, address: Address) {
    const number = Number(words.number);
    const cell = readCellUrl();
    const report = readCellReportUrl();
    await addCell(address, number, cell);
    await addReports(address, number, report);
    return withRouter(address, async (database) => {
      const added = (await listCells(database)).find((each) => each.cell === number)!;
      return added.problem === null ? `cell ${number} is added` : `cell ${number} is added, but ${added.problem}`;
    });
  },
});

const remove = defineCommand({
  name: "remove",
  about: "Forgets a cell in which no tenant lives. Its number must not be used again.",
  words: { number: { about: "the number of the cell" } },
  flags: { lost: { type: "switch", about: "removes a cell that does not answer, with the tenants that it may have" } },
  settings,
  examples: ["2"],
  refuse: ({ words: { number } }) => (/^[1-9]\d{0,2}$/.test(number) ? null : "NUMBER must be 1 to 999"),
  async run({ words, flags }, address: Address) {
    await removeCell(address, Number(words.number), { isLost: flags.lost });
    return `cell ${words.number} is removed`;
  },
});

const splitCommand = defineCommand({
  name: "split",
  about:
    "Moves tenants to a new cell, which is the promoted standby of the cell that they leave. They are closed for a " +
    "few seconds. If it is interrupted, run it again, or with --back; once they live in the new cell, only forward.",
  words: { tenants: { about: "the tenants that leave, ten_…", isRepeated: true } },
  flags: {
    to: { type: "count", value: "N", about: "the number of the new cell" },
    reason: { type: "text", value: "WHY", about: "for the audit log", isRequired: true },
    back: { type: "switch", about: "gives the split up: the tenants stay" },
  },
  settings: {
    DATABASE_URL: "the cell that they leave, with the login of a superuser",
    CELL_URL: "its standby, with the login of a superuser",
  },
  examples: ['ten_acme ten_bakery --to 2 --reason "cell 1 is full"'],
  refuse: ({ flags: { to = 0 } }) => (to >= 1 && to <= 999 ? null : "--to must be 1 to 999"),
  async run({ words: { tenants }, flags: { to = 0, reason, back } }, old: Address) {
    const parts = { old, copy: readCellUrl(), tenants: [...new Set(tenants)], to, reason, log: console.log };
    await (back ? goBack(parts) : split(parts));
    return "";
  },
});

const list = defineCommand({
  name: "list",
  about: "Lists the cells of the router, where they are, and why one does not serve.",
  flags: { json },
  settings,
  examples: ["", "--json"],
  run: ({ flags }, address: Address) =>
    withRouter(address, async (database) => {
      const cells = await listCells(database);
      return formatRows(
        cells.map(({ code: _, ...cell }) => cell),
        flags,
      );
    }),
});

export const command = provideAddress(
  groupCommands<Address, string>({
    name: "cells",
    about: "Adds and lists the servers behind a router, and splits one.",
    settings,
    commands: [add, remove, list, splitCommand],
  }),
);
