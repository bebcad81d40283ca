// The schema report of a router: the views of the cells as one, with a column cell. Each cell is a server of
// postgres_fdw with a login for reports. The views follow from the catalogs of the cells: what all of them have.
//
// A question with tenant = 'ten_…' reaches one cell only: a check constraint of each foreign table says which tenants
// live elsewhere, and the planner leaves out what it contradicts. A tenant that no constraint names is looked for in
// all cells. So a constraint may lack a new tenant, but must not name one that has moved to its cell since.
import { type Address, joinPlaces, readOptions } from "../config/database-address.ts";
import { openSession } from "../database/connect.ts";
import type { Session } from "../database/types.ts";
import type { Log } from "./migrate.ts";

type Column = { view: string; about: string | null; name: string; type: string; comment: string | null };
type Cell = { number: number; columns: Column[]; tenants: string[] };
type View = { name: string; columns: Column[] };

// The planner looks into arrays of at most a hundred elements.
const tenantsPerCheck = 100;

const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;
const quote = (text: string): string => `"${text.replaceAll('"', '""')}"`;
/** Says where the reports of a cell are read: in the cell, or in a standby of it. Without a password: a superuser. */
export async function setReportLogin(session: Session, cell: number, login: Address & { user: string }): Promise<void> {
  const { user, password, database = "", parameters } = login;
  const place = {
    ...joinPlaces(login),
    dbname: database,
    connect_timeout: "5",
    application_name: "coupon router",
    options: "-c role=coupon_report -c jit=off",
    fetch_size: "10000",
    ...parameters,
  };
  const credentials = { user, ...(password === undefined ? { password_required: "false" } : { password }) };
  await session.run(`begin; ${await writeDrops(session)}`);
  await session.rows("select router.set_report_login($1, $2::text::jsonb, $3::text::jsonb)", [
    cell,
    JSON.stringify(place),
    JSON.stringify(credentials),
  ]);
  await session.run("commit");
}

/** Of all cells, and what reads those of one that is removed. */
export async function dropReports(session: Session, cell: number): Promise<void> {
  await session.run(`begin; ${await writeDrops(session)} drop schema if exists cell_${cell}; commit`);
}

/**
 * Makes the views anew, or drops them while a cell has no login for reports: a sum never lacks a cell silently.
 * knowsHomes: with the constraints.
 */
export async function makeReports(session: Session, log: Log, { knowsHomes }: { knowsHomes: boolean }): Promise<void> {
  const logins = await readLogins(session);
  const lacking = logins.filter(({ address }) => address === null).map(({ cell }) => cell);
  if (logins.length === 0 || lacking.length > 0) {
    await session.run(`begin; ${await writeDrops(session)} commit`);
    if (lacking.length < logins.length) log(`no reports: cell ${lacking.join(", ")} was added without CELL_REPORT_URL`);
    return;
  }
  const cells: Cell[] = [];
  for (const { cell, address } of logins) cells.push(await readCell(cell, address!));
  const views = findCommonViews(cells);
  const schemas = cells.map((cell) => writeForeignTables(cell, views, knowsHomes ? cells : []));
  await session.run(
    [
      `begin; set local lock_timeout = '5s'; ${await writeDrops(session)}`,
      "set local role coupon_owner;",
      ...schemas,
      ...views.map((view) => writeView(view, cells)),
      "grant usage on schema report to coupon_report; grant select on all tables in schema report to coupon_report;",
      "commit",
    ].join("\n"),
  );
  log(`reports over ${cells.length} cells: ${views.length} views`);
}

async function readLogins(session: Session): Promise<{ cell: number; address: Address | null }[]> {
  const rows = await session.rows<{ cell: number; options: string | null }>(
    `select c.cell,
            (select json_object_agg(o.option_name, o.option_value)::text
             from pg_user_mappings m
             join pg_foreign_server s on s.oid = m.srvid
             cross join lateral pg_options_to_table(s.srvoptions || m.umoptions) o
             where m.srvname = 'report_' || c.cell and m.usename = 'coupon_owner') as options
     from router.list_cells() c (cell)
     order by c.cell`,
  );
  return rows.map(({ cell, options }) => {
    if (options === null) return { cell, address: null };
    return { cell, address: readOptions(JSON.parse(options) as Record<string, string>) };
  });
}

async function readCell(number: number, address: Address): Promise<Cell> {
  const session = openSession(address, { name: "coupon router", role: "coupon_report", statementTimeoutMs: 10_000 });
  try {
    // As core.read_cell, which a login for reports may not call by itself.
    const cell = "select coalesce(nullif(current_setting('coupon.cell', true), ''), '1')::int as cell";
    const [server] = await session.rows<{ cell: number }>(cell);
    // Before a split, its standby has the rows of the old cell too.
    if (server!.cell !== number) throw new Error(`the server of CELL_REPORT_URL is cell ${server!.cell}`);
    const columns = await session.rows<Column>(
      `select c.relname as view, obj_description(c.oid, 'pg_class') as about, a.attname as name,
              format_type(coalesce(nullif(t.typbasetype, 0), t.oid),
                          case when t.typbasetype = 0 then a.atttypmod else t.typtypmod end) as type,
              col_description(c.oid, a.attnum) as comment
       from pg_class c
       join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       join pg_type t on t.oid = a.atttypid
       where c.relnamespace = 'report'::regnamespace and c.relkind = 'v'
       order by c.relname, a.attnum`,
    );
    const tenants = await session.rows<{ tenant: string }>("select tenant from report.tenant order by tenant");
    return { number, columns, tenants: tenants.map(({ tenant }) => tenant) };
  } catch (error) {
    throw new Error(`cell ${number}: ${(error as Error).message}`, { cause: error });
  } finally {
    await session.end();
  }
}

/** While cells of two versions run, some lack a view or a column. */
function findCommonViews(cells: Cell[]): View[] {
  const [first, ...others] = cells as [Cell, ...Cell[]];
  const isCommon = ({ view, name }: Column) =>
    others.every(({ columns }) => columns.some((other) => other.view === view && other.name === name));
  const columns = first.columns.filter(isCommon);
  return [...new Set(columns.map(({ view }) => view))].map((name) => ({
    name,
    columns: columns.filter(({ view }) => view === name),
  }));
}

const hasTenant = ({ columns }: View): boolean => columns.some(({ name }) => name === "tenant");

function writeForeignTables({ number }: Cell, views: View[], cells: Cell[]): string {
  const elsewhere = cells.flatMap((other) => (other.number === number ? [] : other.tenants));
  const checks: string[] = [];
  for (let from = 0; from < elsewhere.length; from += tenantsPerCheck) {
    const some = elsewhere
      .slice(from, from + tenantsPerCheck)
      .map(literal)
      .join(", ");
    checks.push(`check (tenant <> all (array[${some}]))`);
  }
  const tables = views.map((view) => {
    const columns = view.columns.map(({ name, type }) => `${quote(name)} ${type}`);
    const all = [...columns, ...(hasTenant(view) ? checks : [])].join(", ");
    return `create foreign table cell_${number}.${quote(view.name)} (${all})
      server report_${number} options (schema_name 'report', table_name ${literal(view.name)});`;
  });
  return [`create schema if not exists cell_${number};`, ...tables].join("\n");
}

/** The rows of tenants that live in the cell: after a split, those of others stay until they are cleared. */
function writeView(view: View, cells: Cell[]): string {
  const names = view.columns.map(({ name }) => `v.${quote(name)}`).join(", ");
  const arms = cells.map(({ number }) => {
    const from = `select ${names}, ${number}::smallint as cell from cell_${number}.${quote(view.name)} v`;
    if (!hasTenant(view) || view.name === "tenant") return from;
    return `${from} left join cell_${number}.tenant t on t.tenant = v.tenant
      where t.tenant is not null or v.tenant is null`;
  });
  const place = `report.${quote(view.name)}`;
  const comment = (on: string, text: string | null) => (text === null ? "" : `comment on ${on} is ${literal(text)};`);
  return [
    `create view ${place} as ${arms.join("\nunion all\n")};`,
    comment(`view ${place}`, view.columns[0]!.about),
    ...view.columns.map((column) => comment(`column ${place}.${quote(column.name)}`, column.comment)),
    comment(`column ${place}.cell`, "The cell that has the row."),
  ].join("\n");
}

/** Without cascade: if someone's own view uses one of ours, this fails and changes nothing. */
async function writeDrops(session: Session): Promise<string> {
  const found = await session.rows<{ text: string }>(
    `select format(case c.relkind when 'v' then 'drop view %s;' else 'drop foreign table %s;' end,
                   c.oid::regclass) as text
     from pg_class c
     where c.relkind = 'v' and c.relnamespace = 'report'::regnamespace
        or c.relkind = 'f' and c.relnamespace::regnamespace::text ~ '^cell_[0-9]+$'
     order by c.relkind = 'f', 1`,
  );
  return found.map(({ text }) => text).join("\n");
}
