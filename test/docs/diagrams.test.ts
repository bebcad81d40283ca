// Each diagram is drawn from its source and shown in a document. Its states and arrows are those of the database.
import { globSync } from "node:fs";
import path from "node:path";
import t from "tap";
import type { Session } from "../../src/database/types.ts";
import { root } from "../support/copy.ts";
import { hashSource } from "../support/diagrams.ts";
import { scenario } from "../support/scenario.ts";
import { allMarkdown, read } from "./markdown.ts";

const sources = globSync("docs/diagrams/*.dot", { cwd: root }).sort();

t.test(
  "Each diagram is drawn from its source, and a document shows it with a text for who cannot see it",
  async (t) => {
    t.strictSame(
      sources.map((name) => path.basename(name)),
      ["lock.dot", "request-path.dot", "states.dot"],
    );
    t.strictSame(globSync("docs/diagrams/*.svg", { cwd: root }).length, sources.length, "no other picture");
    const images = allMarkdown.flatMap((name) =>
      [...read(name).matchAll(/!\[([^\]]*)\]\(([^)\s]+\.svg)\)/g)].map(([, text = "", target = ""]) => ({
        text,
        file: path.join(path.dirname(name), target),
      })),
    );
    for (const source of sources) {
      const file = source.replace(".dot", ".svg");
      t.ok(read(file).startsWith(`<!-- ${path.basename(source)} ${hashSource(read(source))} -->`), `${file} is stale`);
      t.ok(
        images.some((image) => image.file === file && image.text.length > 50),
        `${file} is shown`,
      );
    }
  },
);

type Machine = { diagram: string; table: string; constraint: string; arrange?: string };

const ofStates = (cluster: string): string =>
  new RegExp(`cluster_${cluster} \\{[^]*?\\n {2}\\}`).exec(read("docs/diagrams/states.dot"))![0];

const machines: Record<string, Machine> = {
  batch: { diagram: ofStates("batch"), table: "core.batch", constraint: "batch_transition_is_legal" },
  coupon: {
    diagram: ofStates("coupon"),
    table: "core.coupon",
    constraint: "coupon_transition_is_legal",
    // Then a reversal may void the coupon, too.
    arrange: "update core.batch set suspended_at = now(), recalled_at = now(), recall_caller_id = maker_id",
  },
  redemption: {
    diagram: read("docs/diagrams/lock.dot"),
    table: "core.redemption",
    constraint: "redemption_transition_is_legal",
  },
};

t.test("The diagrams have the states that the database knows, and the arrows that it allows", async (t) => {
  const world = await scenario(t);
  const template = await world.b.addTemplate({ after_reversal: "reissued" });
  await world.b.makeCoupons(1, "LOCKED by this lock", template);
  const psql = await world.openPsql();
  for (const [name, { diagram, table, constraint, arrange = "" }] of Object.entries(machines)) {
    await psql.run("begin");
    const statuses = await listStatuses(psql, table);
    const drawn = [...diagram.matchAll(/^ +([A-Z]+) \[/gm)].map(([, state]) => state!);
    t.strictSame(drawn.sort(), statuses.sort(), `states of a ${name}`);
    await dropChecks(psql, table);
    await psql.run(`set local session_replication_role = replica; ${arrange}`);
    const allowed: string[] = [];
    for (const from of statuses)
      for (const to of statuses)
        if (from !== to && (await mayChange(psql, { table, constraint, from, to }))) allowed.push(`${from} -> ${to}`);
    await psql.run("rollback");
    const arrows = [...diagram.matchAll(/^ +([A-Z]+) -> ([A-Z]+)/gm)]
      .filter(([, from, to]) => from !== to)
      .map(([, from, to]) => `${from} -> ${to}`);
    t.strictSame(arrows.sort(), allowed.sort(), `arrows of a ${name}`);
  }
});

/** The words in the check of the status: that of the table, of its domain, or the function that the check calls. */
async function listStatuses(psql: Session, table: string): Promise<string[]> {
  const rows = await psql.rows<{ status: string }>(
    `select distinct m[1] as status
     from (
       select pg_get_constraintdef(c.oid) as text
       from pg_constraint c
       join pg_attribute a on a.attrelid = $1::text::regclass and a.attname = 'status'
       where c.conname like '%status_is_known' and (c.conrelid = a.attrelid or c.contypid = a.atttypid)
       union all
       select pg_get_functiondef(p.oid)
       from pg_proc p
       join pg_constraint c on c.conrelid = $1::text::regclass and c.conname = 'status_agrees_with_times'
       where p.pronamespace = 'core'::regnamespace and p.proname = c.conname) x
     cross join lateral regexp_matches(x.text, $2, 'g') m`,
    [table, "'([A-Z]+)'"],
  );
  return rows.map(({ status }) => status);
}

// They compare the status with other columns, which stay as they are. The rules of transitions are triggers.
async function dropChecks(psql: Session, table: string): Promise<void> {
  const checks = await psql.rows<{ name: string }>(
    "select conname as name from pg_constraint where contype = 'c' and conrelid = $1::text::regclass",
    [table],
  );
  await psql.run(checks.map(({ name }) => `alter table ${table} drop constraint ${name}`).join("; "));
}

type Change = { table: string; constraint: string; from: string; to: string };

/** Whether no rule of transitions refuses the change. Another rule may, because the rest of the row does not follow. */
async function mayChange(psql: Session, { table, constraint, from, to }: Change): Promise<boolean> {
  const become = (status: string) => `update ${table} set status = '${status}'`;
  await psql.run(`savepoint change; set local session_replication_role = replica; ${become(from)}`);
  const refusal = await psql.run(`set local session_replication_role = origin; ${become(to)}`).then(
    () => null,
    (error: { constraint_name?: string }) => error.constraint_name,
  );
  await psql.run("rollback to savepoint change");
  return refusal !== constraint;
}
