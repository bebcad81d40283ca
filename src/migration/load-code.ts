// Loads db/code inside the transaction of a migrate, so that the functions in place are always those
// of one checkout, and takes away what the repository no longer has. Never with cascade: what
// somebody else built on a function of ours stops the load instead of vanishing.
import { sqlDetail, sqlPlace, sqlState } from "../database/connect.ts";
import type { Session } from "../database/types.ts";
import { type CodeFile, codeSchemas, listCode } from "./db-files.ts";

/** A script failed; the message begins with file and line, as editors understand it. */
export class ScriptError extends Error {
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
  /** Functions that nothing needs any more but calls that are under way: for dropRoutines, when those are over. */
  left: string[];
}

/** Loads every file. */
export async function loadCode(session: Session): Promise<Loaded> {
  const files = listCode();
  const before = await listObjects(session);
  // A file may use one that comes later in the alphabet: go round until nothing moves any more.
  for (let pending = files; pending.length > 0;) {
    const failed: { file: CodeFile; error: unknown }[] = [];
    for (const file of pending) {
      const error = await tryFile(session, file);
      if (error !== null) failed.push({ file, error });
    }
    if (failed.length === pending.length) throw failed[0]!.error;
    pending = failed.map(({ file }) => file);
  }
  return { count: files.length, left: await sweep(session, before) };
}

const missingObject = ["42883", "42P01", "42704", "42703", "3F000"];
const changedShape = ["42P13", "42P16"];

/** Null when loaded, the error when something that it uses is not there yet; throws any other error. */
async function tryFile(session: Session, file: CodeFile): Promise<unknown> {
  await session.run("savepoint file");
  try {
    await session.run(file.text);
  } catch (error) {
    await session.run("rollback to savepoint file");
    const state = sqlState(error) ?? "";
    const located = locate(error, file.text, file.path);
    if (missingObject.includes(state)) return located;
    // Another result type or other column names: `or replace` cannot do that, so make it anew.
    if (!changedShape.includes(state)) throw located;
    const changed = (await listObjects(session)).filter(
      ({ schema, name }) => schema === file.schema && name === file.name,
    );
    await dropObjects(session, changed);
    await runScript(session, file.text, file.path);
  }
  await session.run("release savepoint file");
  return null;
}

interface DatabaseObject {
  kind: "view" | "routine";
  schema: string;
  name: string;
  /** Quoted, with the types of a routine's arguments. */
  identity: string;
  /** Another after each `create or replace`. */
  version: string;
  /** Its comment. */
  note: string | null;
}

async function listObjects(session: Session): Promise<DatabaseObject[]> {
  return session.rows<DatabaseObject>(
    `select 'routine' as kind, n.nspname as schema, p.proname as name,
       format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)) as identity,
       p.oid::text || ':' || p.xmin::text as version, obj_description(p.oid, 'pg_proc') as note
     from pg_proc p join pg_namespace n on n.oid = p.pronamespace
     where n.nspname = any ($1::text[])
     union all
     select 'view', n.nspname, c.relname, format('%I.%I', n.nspname, c.relname),
       r.oid::text || ':' || r.xmin::text, null
     from pg_class c
     join pg_namespace n on n.oid = c.relnamespace
     join pg_rewrite r on r.ev_class = c.oid and r.rulename = '_RETURN'
     where c.relkind = 'v' and n.nspname = any ($1::text[])
     order by 1 desc, 4`,
    [codeSchemas],
  );
}

/**
 * What was there before and was not replaced by a file is no longer in the repository. What programs call
 * (and no file makes under that name any more) stays for one version: those of the version before still call it.
 * Other functions are for calls that are in the middle of a function of before, behind our locks perhaps, and look for
 * the next one by name. Whether they can be dropped is tried out here, so that all is undone if not.
 */
async function sweep(session: Session, before: DatabaseObject[]): Promise<string[]> {
  const now = new Set((await listObjects(session)).map(({ version }) => version));
  const left = before.filter(({ version }) => now.has(version));
  const names = new Set(listCode().map(({ schema, name }) => `${schema}.${name}`));
  const retiring = left.filter(
    ({ kind, schema, name, note }) =>
      kind === "routine" && calledByPrograms.includes(schema) && !names.has(`${schema}.${name}`) && note !== retired,
  );
  const dropping = left.filter((object) => !retiring.includes(object));
  await dropObjects(
    session,
    dropping.filter(({ kind }) => kind === "view"),
  );
  const routines = dropping.filter(({ kind }) => kind === "routine").map(({ identity }) => identity);
  await session.run("savepoint trial");
  await dropRoutines(session, routines);
  await session.run("rollback to savepoint trial");
  for (const { identity } of retiring) await session.run(`comment on routine ${identity} is '${retired}'`);
  return routines;
}

const calledByPrograms = ["gate", "jobs", "admin"];
const retired = "Retired: the next version takes it away.";

async function dropObjects(session: Session, objects: DatabaseObject[]): Promise<void> {
  for (const kind of ["view", "routine"] as const) {
    await drop(
      session,
      kind,
      objects.filter((object) => object.kind === kind).map(({ identity }) => identity),
    );
  }
}

export const dropRoutines = (session: Session, identities: string[]): Promise<void> =>
  drop(session, "routine", identities);

async function drop(session: Session, kind: "view" | "routine", names: string[]): Promise<void> {
  if (names.length === 0) return;
  try {
    // In one statement, so that they may depend on each other.
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
      : // Lines in a function's body count from the line of its opening quote.
        bodyLine !== undefined
        ? lineAt(text.search(/\$\w*\$/)) + bodyLine - 1
        : 1;
  return new ScriptError(`${file}:${line}: ${describe(error)}`, { cause: error });
}

function describe(error: unknown): string {
  const state = sqlState(error);
  // Of an error of syntax or dependency the detail names objects; of any other it may hold rows.
  const detail = /^(42|2B|0A|3F)/.test(state ?? "") ? sqlDetail(error) : null;
  return `${(error as Error).message} [${state}]${detail === null ? "" : `\n  ${detail.replaceAll("\n", "\n  ")}`}`;
}
