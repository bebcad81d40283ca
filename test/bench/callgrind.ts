// Runs SQL in a PostgreSQL without other processes (postgres --single) under valgrind's callgrind, and reads what it
// counted. The counts do not depend on the load of the machine.
import { spawn, spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import { dataFolder, findBinaries, findHome, serverEnv } from "../../src/embedded/data-directory.ts";

// Instructions. Functions of another call level have the level in their name, as in name'2.
export type Profile = {
  total: number;
  // By function and the object file that it is in.
  own: Map<string, { object: string; count: number }>;
  // Including all that the called function calls.
  calls: { from: string; to: string; fromObject: string; toObject: string; count: number }[];
};

// Without these levels a trigger inside a trigger would count twice.
const leveled = ["ExecCallTriggerFunc"];
// The callers of these tell whether an expression of PL/pgSQL called them or a statement.
const separated = ["plpgsql_call_handler", "fmgr_sql"];
const callerDepth = 5;

const settings = {
  // As the connections of `serve` and `work` set them.
  jit: "off",
  max_parallel_workers_per_gather: "0",
  TimeZone: "UTC",
  search_path: "pg_catalog,pg_temp",
  shared_buffers: "256MB",
  max_wal_size: "4GB",
  log_checkpoints: "off",
};
const env = { ...serverEnv, PATH: process.env["PATH"] };

export function requireValgrind(): void {
  if (spawnSync("valgrind", ["--version"], { env }).status === 0) return;
  throw new Error(
    "valgrind is missing: it counts the instructions. Install the package valgrind, " +
      "for example with `apt-get install valgrind`, `dnf install valgrind` or `pacman -S valgrind`.",
  );
}

// Returns what the server printed and what it counted. Each line is one statement. `dataDir` has a stopped server.
export async function countInstructions(
  dataDir: string,
  database: string,
  lines: readonly string[],
): Promise<{ output: string; profile: Profile }> {
  const home = findHome(dataDir)!;
  const file = path.join(home.folder, "callgrind.out");
  rmSync(file, { force: true });
  const child = spawn(
    "valgrind",
    [
      "--tool=callgrind",
      `--callgrind-out-file=${file}`,
      "--dump-line=no",
      "--vgdb=no",
      "--quiet",
      ...leveled.map((name) => `--separate-recs2=${name}`),
      ...separated.map((name) => `--separate-callers${callerDepth}=${name}`),
      path.join(findBinaries(home), "bin/postgres"),
      "--single",
      "-D",
      dataFolder(home),
      ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
      database,
    ],
    { ...home.user, cwd: home.folder, env, stdio: "pipe" },
  );
  child.stdin.on("error", () => {});
  child.stdin.end(lines.map((line) => `${line}\n`).join(""));
  const ended = new Promise<number | null>((resolve, reject) => child.once("close", resolve).once("error", reject));
  const [output, complaint, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  if (code !== 0 || /\b(ERROR|FATAL|PANIC):/.test(complaint)) throw new Error(`callgrind: ${code} ${complaint.trim()}`);
  const profile = readProfile(readFileSync(file, "utf8"));
  rmSync(file);
  return { output, profile };
}

// The format is described in valgrind's manual, under "Callgrind Format Specification". A name is written out where it
// first occurs, with a number in brackets, and later by its number.
export function readProfile(content: string): Profile {
  const profile: Profile = { total: 0, own: new Map(), calls: [] };
  const names = { fn: new Map<string, string>(), ob: new Map<string, string>() };
  const nameOf = (kind: "fn" | "ob", written: string): string => {
    const [, number, name] = /^\((\d+)\)(?: (.*))?$/.exec(written)!;
    if (name !== undefined) names[kind].set(number!, name);
    return names[kind].get(number!)!;
  };
  const calls = new Map<string, Profile["calls"][number]>();
  let [object, from, toObject, to] = ["", "", "", ""];
  let isCall = false;
  for (const line of content.split("\n")) {
    const [, key, value] = /^(\w+)[=:] ?(.*)$/.exec(line) ?? [];
    if (key === "ob") object = nameOf("ob", value!);
    else if (key === "fn") [from, toObject] = [nameOf("fn", value!), object];
    else if (key === "cob") toObject = nameOf("ob", value!);
    else if (key === "cfn") to = nameOf("fn", value!);
    else if (key === "calls") isCall = true;
    else if (key === "totals") profile.total = Number(value);
    else if (key === undefined && /^[+*\d-]/.test(line)) {
      const count = Number(line.slice(line.indexOf(" ") + 1));
      if (isCall) {
        const key = `${from} ${to}`;
        const call = calls.get(key) ?? { from, to, fromObject: object, toObject, count: 0 };
        calls.set(key, addTo(call, count));
        toObject = object;
      } else profile.own.set(from, addTo(profile.own.get(from) ?? { object, count: 0 }, count));
      isCall = false;
    }
  }
  profile.calls = [...calls.values()];
  return profile;
}

function addTo<Counted extends { count: number }>(counted: Counted, count: number): Counted {
  counted.count += count;
  return counted;
}
