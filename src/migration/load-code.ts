// Loads db/code inside the transaction of a migrate, so that all functions are always from one checkout. Drops the
// functions and views that the repository no longer has, never with cascade: if someone else's object depends on one,
// the load fails and nothing is dropped.
import { sqlDetail, sqlPlace, sqlState } from "../database/connect.ts";
import type { Session } from "../database/types.ts";
import type { Code, CodeFile } from "./db-files.ts";

/** A script failed. The message begins with file and line, in the form that editors understand. */
class ScriptError extends Error {
  override name = "ScriptError";
}

export async function runScript(session: Session, text: string, file: string): Promise<void> {
  try {
    await session.run(text);
  } catch (error) {
    throw locate(error, text, file);
  }
}

export interface Loaded {
  count: number;
  /** Views and functions that the repository no longer has. */
  dropped: string[];
  /** The functions among them. Running calls may still need these, so drop them later with dropRoutines. */
  unusedRoutines: string[];
  /** Functions that stay for one more version, because the programs of the previous version call them. */
  retired: string[];
}

/** Loads every file after the files that it uses, because a failed attempt would be an ERROR in the server's log. */
export async function loadCode(
  session: Session,
  code: Code,
  onStep: (step: string) => void = () => {},
): Promise<Loaded> {
  const files = orderByUse(code.files);
  const before = await listObjects(session, code);
  for (const [index, file] of files.entries()) {
    onStep(`loading functions and views: ${index + 1} of ${files.length}`);
    await loadFile(session, code, file);
  }
  return { count: files.length, ...(await sweep(session, code, before)) };
}

/** Puts each file after the files whose names it contains. */
function orderByUse(files: CodeFile[]): CodeFile[] {
  const byName = new Map(files.map((file) => [`${file.schema}.${file.name}`, file]));
  const ordered = new Set<CodeFile>();
  const visited = new Set<CodeFile>();
  const visit = (file: CodeFile): void => {
    if (visited.has(file)) return;
    visited.add(file);
    const withoutComments = file.text.replace(/--.*$/gm, "").replace(/^comment on [^]*?';$/gm, "");
    for (const [name] of withoutComments.matchAll(/\b\w+\.\w+\b/g)) {
      const used = byName.get(name);
      if (used !== undefined) visit(used);
    }
    ordered.add(file);
  };
  files.forEach(visit);
  return [...ordered];
}

const changedShape = ["42P13", "42P16"];

async function loadFile(session: Session, code: Code, file: CodeFile): Promise<void> {
  await session.run("savepoint file");
  try {
    await session.run(file.text);
  } catch (error) {
    await session.run("rollback to savepoint file");
    // `or replace` cannot change a result type or column names: drop it and create it again.
    // equivalent mutant (condition false): the second attempt fails with the same error
    if (!changedShape.includes(sqlState(error) ?? "")) throw locate(error, file.text, file.path);
    for (const { kind, identity } of await listUsers(session, code, file)) await drop(session, kind, [identity]);
    await runScript(session, file.text, file.path);
  }
  await session.run("release savepoint file");
}

interface DatabaseObject {
  kind: "view" | "routine";
  oid: string;
  schema: string;
  name: string;
  /** Quoted, with the types of a routine's arguments. */
  identity: string;
  /** Changes with each `create or replace`. */
  version: string;
  /** Its comment. */
  note: string | null;
}

async function listObjects(session: Session, { schemas }: Code): Promise<DatabaseObject[]> {
  return session.rows<DatabaseObject>(
    `select 'routine' as kind, p.oid::text, n.nspname as schema, p.proname as name,
       format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)) as identity,
       p.oid::text || ':' || p.xmin::text as version, obj_description(p.oid, 'pg_proc') as note
     from pg_proc p join pg_namespace n on n.oid = p.pronamespace
     where n.nspname = any ($1::text[])
     union all
     select 'view', c.oid::text, n.nspname, c.relname, format('%I.%I', n.nspname, c.relname),
       r.oid::text || ':' || r.xmin::text, null
     from pg_class c
     join pg_namespace n on n.oid = c.relnamespace
     join pg_rewrite r on r.ev_class = c.oid and r.rulename = '_RETURN'
     where c.relkind = 'v' and n.nspname = any ($1::text[])
     order by kind desc, identity`,
    [schemas],
  );
}

/**
 * Lists what a file has made, preceded by our views and functions that use it directly or indirectly. Their files are
 * loaded after this one.
 */
async function listUsers(session: Session, code: Code, file: CodeFile): Promise<DatabaseObject[]> {
  const objects = await listObjects(session, code);
  const made = objects.filter(({ schema, name }) => schema === file.schema && name === file.name);
  const used = await session.rows<{ oid: string }>(
    `with recursive used (oid, depth) as (
       select made::oid, 0 from unnest($1::text[]) made
       union
       select coalesce(r.ev_class, d.objid), u.depth + 1
       from used u
       join pg_depend d on d.refclassid in ('pg_class'::regclass, 'pg_proc'::regclass) and d.refobjid = u.oid
       left join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
       where (r.oid is not null or d.classid = 'pg_proc'::regclass) and coalesce(r.ev_class, d.objid) <> u.oid
     )
     select oid::text from used group by oid order by max(depth) desc`,
    [made.map(({ oid }) => oid)],
  );
  return used.flatMap(({ oid }) => objects.filter((object) => object.oid === oid));
}

/**
 * Drops views and functions without a file. Functions that programs call (gate, jobs, admin) stay for one version,
 * unless a file makes another function of that name. Other functions are dropped after the calls now running have
 * ended, because those still look them up by name. A trial drop in a savepoint shows now whether that will work; if
 * not, the migrate is undone.
 */
async function sweep(session: Session, code: Code, before: DatabaseObject[]): Promise<Omit<Loaded, "count">> {
  const now = new Set((await listObjects(session, code)).map(({ version }) => version));
  const obsolete = before.filter(({ version }) => now.has(version));
  const names = new Set(code.files.map(({ schema, name }) => `${schema}.${name}`));
  const retiring = obsolete.filter(
    ({ kind, schema, name, note }) =>
      kind === "routine" && calledByPrograms.includes(schema) && !names.has(`${schema}.${name}`) && note !== retired,
  );
  const dropping = obsolete.filter((object) => !retiring.includes(object));
  await dropObjects(
    session,
    dropping.filter(({ kind }) => kind === "view"),
  );
  const unusedRoutines = identitiesOf(dropping.filter(({ kind }) => kind === "routine"));
  await session.run("savepoint trial");
  await dropRoutines(session, unusedRoutines);
  await session.run("rollback to savepoint trial");
  for (const { identity } of retiring) await session.run(`comment on routine ${identity} is '${retired}'`);
  return { dropped: identitiesOf(dropping), unusedRoutines, retired: identitiesOf(retiring) };
}

const identitiesOf = (objects: DatabaseObject[]): string[] => objects.map(({ identity }) => identity);

const calledByPrograms = ["gate", "jobs", "admin", "console"];
const retired = "Retired: the next version drops this function.";

async function dropObjects(session: Session, objects: DatabaseObject[]): Promise<void> {
  for (const kind of ["view", "routine"] as const) {
    await drop(session, kind, identitiesOf(objects.filter((object) => object.kind === kind)));
  }
}

export const dropRoutines = (session: Session, identities: string[]): Promise<void> =>
  drop(session, "routine", identities);

async function drop(session: Session, kind: "view" | "routine", names: string[]): Promise<void> {
  if (names.length === 0) return;
  try {
    // One statement, because they may depend on each other.
    await session.run(`drop ${kind} ${names.join(", ")}`);
  } catch (error) {
    throw new ScriptError(`cannot drop what db/code no longer has: ${describe(error)}`, { cause: error });
  }
}

function locate(error: unknown, text: string, file: string): Error {
  if (sqlState(error) === null) return error as Error;
  const { position, bodyLine } = sqlPlace(error);
  const lineAt = (index: number): number => text.slice(0, index).split("\n").length;
  const line =
    position !== undefined
      ? lineAt(position - 1)
      : // Line numbers in a function body start at the line of its opening quote.
        bodyLine !== undefined
        ? lineAt(text.search(/\$\w*\$/)) + bodyLine - 1
        : 1;
  return new ScriptError(`${file}:${line}: ${describe(error)}`, { cause: error });
}

function describe(error: unknown): string {
  const state = sqlState(error);
  // The detail of a syntax or dependency error names objects. Any other detail may hold values of rows.
  const detail = /^(42|2B|0A|3F)/.test(state ?? "") ? sqlDetail(error) : null;
  return `${(error as Error).message} [${state}]${detail === null ? "" : `\n  ${detail.replaceAll("\n", "\n  ")}`}`;
}
