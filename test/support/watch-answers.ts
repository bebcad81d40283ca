// Every answer of the service in a test is checked against the API description, whoever asked: see watch-servers.ts
// and described-answers.ts. Services in this process are watched as soon as this file is loaded. The programs that
// program.ts starts write down what they answer, and it is checked when this process exits. An answer that the
// description lacks makes the exit code 1.
import { existsSync, readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import path from "node:path";
import { pathToFileURL } from "node:url";
import demoTenants from "../../src/commands/demo-tenants.json" with { type: "json" };
import type { Variant } from "../../src/gate/gate.ts";
import { findUndescribed, readDocuments, type Documents } from "./described-answers.ts";
import { makeTemporaryFolder, removeFolder } from "./temporary-folder.ts";
import { watchServers, type Answered } from "./watch-servers.ts";

type Provisioned = { tenants?: { variant: Variant; credentials?: { access_key: string }[] }[] };
type Program = { name: string; file: string; documents: Documents };

const preload = pathToFileURL(path.join(import.meta.dirname, "watch-program.ts")).href;
const shown = 5;
const variants = new Map<string, Variant>();
const madeUp = new WeakMap<ServerResponse, number>();
const programs: Program[] = [];
const found: string[] = [];
let folder: string | null = null;
let areProgramsWatched = true;

watchServers((answered, response) => {
  if (response === null || madeUp.get(response) !== answered.status) check(answered);
});

process.on("exit", () => {
  for (const { name, file, documents } of programs) {
    const text = existsSync(file) ? readFileSync(file, "utf8") : "";
    // A program that was killed may leave half a line behind, of an answer that it did not send.
    for (const line of text.split("\n").slice(0, -1)) check(JSON.parse(line) as Answered, documents, `${name}: `);
  }
  if (folder !== null) removeFolder(folder);
  if (found.length === 0) return;
  // As TAP, which run.ts and judge.ts read. tap's own report is complete by now.
  for (const wrong of found.slice(0, shown)) console.log(`not ok 0 - not in docs/openapi: ${wrong}`);
  process.exitCode = 1;
});

function check(answered: Answered, documents?: Documents, prefix = ""): void {
  // Either variant describes the answer to a caller that we do not know.
  const variant = variants.get(answered.accessKey ?? "") ?? null;
  const wrong = findUndescribed(variant, answered, documents);
  if (wrong !== null) found.push(prefix + wrong);
}

noteCredentials(demoTenants);

/** Remembers the variant of each credential of a provisioning file. */
export function noteCredentials(file: unknown): void {
  for (const { variant, credentials = [] } of (file as Provisioned | null)?.tenants ?? [])
    for (const { access_key } of credentials) variants.set(access_key, variant);
}

/** For a handler that the test has made up: its answers of this status are not the service's. */
export function allowMadeUp(response: ServerResponse, status: number): void {
  madeUp.set(response, status);
}

/** For a benchmark, which measures programs as they are in production. */
export function leaveProgramsAlone(): void {
  areProgramsWatched = false;
}

/** What a program of this checkout is started with: flags of Node and variables. */
export function watchProgram(name: string, checkout: string): { flags: string[]; env: Record<string, string> } {
  if (!areProgramsWatched) return { flags: [], env: {} };
  folder ??= makeTemporaryFolder("coupon-answers-");
  const file = path.join(folder, `${programs.length}.jsonl`);
  // Read now: a copy of the checkout may be gone when we exit.
  programs.push({ name, file, documents: readDocuments(checkout) });
  return { flags: [`--import=${preload}`], env: { COUPON_TEST_ANSWERS: file } };
}
