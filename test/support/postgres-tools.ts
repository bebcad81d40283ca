// Finds PostgreSQL's own tools (pgbench, pg_dump …), which the embedded server lacks.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";

const debian = "/usr/lib/postgresql";

// In order of preference. Debian keeps the tools in a folder per version, newest first here, and puts wrappers into
// PATH.
function listFolders(): string[] {
  const configured = spawnSync("pg_config", ["--bindir"], { encoding: "utf8" }).stdout?.trim();
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  return [
    ...(configured ? [configured] : []),
    ...versions.map((version) => path.join(debian, version, "bin")),
    ...(process.env["PATH"] ?? "").split(":"),
  ];
}

// Folders that have all of the tools.
export function findToolFolders(...names: string[]): string[] {
  return listFolders().filter((folder) => names.every((name) => existsSync(path.join(folder, name))));
}
