// Each project rule finds an example of what it forbids. `npm run check` shows that they allow the rest.
import t from "tap";
import { findBreaches } from "./project-rules.ts";

const half = `-- Half, and no execute of anything.
create or replace function rules.find_half(p_x int) returns int
language plpgsql stable as $$
begin
  return p_x / 2;  -- never when others
end
$$;
`;
const ofReports = `${half.replaceAll("rules.", "report.")}comment on function report.find_half(int) is 'Half.';\n`;
const definer = half.replace("stable", "stable security definer");
const lines = (count: number): string => half.replace("begin\n", `begin\n${"  -- more\n".repeat(count)}`);
const migration = (text: string): Record<string, string> => ({
  "db/migrations/9-x.sql": text,
  "db/migrations/9-x.ts": "",
});
const code = (text: string, name = "rules/find_half"): Record<string, string> => ({ [`db/code/${name}.sql`]: text });
const imports = (file: string, target: string): Record<string, string> => ({
  [file]: `import { x } from "${target}";`,
});
const wide = "ü".repeat(121);
const client = "../../clients/typescript/src/index.ts";
const route = { "src/http/routes/get-half.ts": '  operation: "get_half",\n' };

/** What the rules find in some files. */
const cases: [name: string, files: Record<string, string>, ...found: RegExp[]][] = [
  ["a correct function", code(half)],
  ["a swallowed error", migration("\nexception when others then"), /^db\/migrations\/9-x\.sql:2: never when others/],
  ["dynamic SQL", migration("execute 'select 1';"), /no dynamic SQL/],
  ["a cascade", migration("drop table core.x cascade;"), /cascade/],
  ["an enum", migration("create type core.x as enum ('A');"), /enum/],
  ["replaceable code in a migration", migration("alter table core.x add check (rules.half(a) > 1);"), /replaceable/],
  ["a new column of a domain", migration("alter table core.x add column y core.minor_units;"), /rewrites its table/],
  ["a lone script", { "db/migrations/9-x.sql": "" }, /has no db\/migrations\/9-x\.ts/],
  ["a lone stub", { "db/migrations/9-x.ts": "" }, /has no db\/migrations\/9-x\.sql/],
  ["no volatility", code(half.replace(" stable", "")), /rules\.find_half does not state its volatility/],
  [
    "a report without search_path",
    code(ofReports, "report/find_half"),
    /:2: report\.find_half does not fix its search/,
  ],
  ["a definer without search_path", code(definer), /does not fix its search_path/],
  ["no verb", code(half.replaceAll("find_half", "half_of"), "rules/half_of"), /begin with a verb, not "half"/],
  ["a function of 70 lines", code(lines(64))],
  ["a function of 71 lines", code(lines(65)), /rules\.find_half has more than 70 lines/],
  ["a file of 250 lines", code(half + "-- more\n".repeat(243))],
  ["a file of 251 lines", code(half + "-- more\n".repeat(244)), /has more than 250 lines/],
  ["another name than the file's", code(half, "rules/other"), /makes rules\.find_half, not just/],
  ["two functions", code(half + half), /makes rules\.find_half, rules\.find_half/],
  ["a function that cannot be replaced", code(half.replace("or replace ", "")), /not "create or replace"/],
  ["no comment", code(half.replace(/^--.*\n/, "")), /does not begin with a comment/],
  ["a comment twice", code(`${half}comment on function rules.find_half(int) is 'x';\n`), /on what only code uses/],
  [
    "no comment on a report",
    code(ofReports.replace(/comment on[^]*/, ""), "report/find_half"),
    /search/,
    /no comment on report/,
  ],
  ["a transaction", { "src/start.ts": "await sql.begin(f)\nrows('begin')" }, /:1: only src\/migration/, /:2: only src/],
  ["a lone route", route, /:1: get_half has no function: add db\/code\/api\/get_half/, /no case in db\/code\/rules/],
  ["a higher floor", imports("src/common/x.ts", "../gate/lane.ts"), /:1: imports src\/gate\/lane\.ts: common may not/],
  ["the same floor", imports("src/worker/x.ts", "../gate/lane.ts"), /worker may not import from gate/],
  ["a higher subfolder", imports("src/http/x.ts", "./routes/lock.ts"), /http may not import from http\/routes/],
  ["a higher file", imports("src/work.ts", "./serve.ts"), /work\.ts may not import from serve\.ts/],
  ["tests in src", imports("src/http/x.ts", "../../test/support/x.ts"), /src imports only from src/],
  ["an unknown folder", { "src/tools/x.ts": "" }, /is in no folder of the floors/],
  ["a re-export", { "src/common/x.ts": 'export { x } from "../gate/lane.ts";' }, /may not import/],
  ["a dynamic import", { "src/common/x.ts": 'await import("../gate/lane.ts");' }, /may not import/],
  ["the client in http", imports("src/http/x.ts", client), /src imports only from src/],
  [
    "a name with an s",
    { "src/http/route.ts": "", "src/commands/routes.ts": "" },
    /src\/commands\/routes\.ts only by an s/,
  ],
  ["columns", { "docs/x.sql": "ü".repeat(100), "src/start.ts": "ü".repeat(120) }],
  ["columns of SQL", { "docs/x.sql": `\n${"ü".repeat(101)}` }, /:2: has 101 columns; the limit is 100/],
  ["columns of TypeScript", { "src/start.ts": wide }, /:1: has 121 columns; the limit is 120/],
  ["columns of prose", { "docs/x.md": `\`\`\`\n\`\`\`\n${wide}` }, /:3: has 121 columns/],
  ["a loop over its wait", { "test/x.ts": "\nwhile ((await list()).length < 3);\n" }, /:2: this loop may never end/],
  ["a loop without count", { "test/x.ts": "while (list.length < 3) await sleep(20);\n" }, /loop may never end/],
  ["an endless block", { "test/x.ts": "for (;;) {\n  if (await isOver()) return;\n}\n" }, /loop may never end/],
  [
    "work until none is due",
    { "test/x.ts": "for (let due = 1; due > 0; due = await work()) {}" },
    /loop may never end/,
  ],
  ["an event", { "test/x.ts": 'await once(socket, "data");' }, /event may never come/],
  [
    "an event in a promise",
    { "test/x.ts": "await new Promise((f) => socket.once('end', f));" },
    /event may never come/,
  ],
];

for (const [name, files, ...found] of cases) {
  t.test(`The rules read ${name}`, async (t) => {
    const breaches = findBreaches(Object.entries(files).map(([file, text]) => ({ path: file, text })));
    t.equal(breaches.length, found.length, breaches.join("\n"));
    for (const [index, pattern] of found.entries()) t.match(breaches[index], pattern);
  });
}
