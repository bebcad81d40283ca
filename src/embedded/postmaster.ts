// Finds a running PostgreSQL server: reads its postmaster.pid and checks that the process is still that server. The pid
// alone proves nothing: after a crash or a reboot another program may have it; in a container that is almost certain.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";

/** The name of the shell that supervises the server, in the process list. Its arguments include those of the server. */
export const supervisorName = "coupon-postgres";

export interface Postmaster {
  pid: number;
  port: number;
  socketFolder: string;
  /** `stopping` as soon as a shutdown begins. */
  status: "starting" | "ready" | "stopping";
}

/** Returns the arguments of a process and its parent, or null if no process has this pid. */
export function inspectProcess(pid: number): { args: string[]; parent: number } | null {
  try {
    if (process.platform !== "linux") {
      // equivalent mutant (element): ps of Linux needs no -p, but POSIX does
      const text = execFileSync("ps", ["-o", "ppid=,command=", "-p", String(pid)], { encoding: "utf8" });
      const [parent = "", ...args] = text.trim().split(/\s+/);
      return { args, parent: Number(parent) };
    }
    const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    // The format is "pid (name) state parent …". The name may contain any character, even a bracket.
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // A zombie is dead, but no process has waited for it. In a container without an init it stays forever.
    return state === "Z" ? null : { args, parent: Number(parent) };
  } catch {
    return null;
  }
}

/** Returns the running server of a data folder, or null if there is none. Throws if it may not read the folder. */
export function findPostmaster(dataFolder: string): Postmaster | null {
  let text: string;
  try {
    text = readFileSync(path.join(dataFolder, "postmaster.pid"), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  const [pid, , , port, socketFolder = "", , , padded = ""] = text.split("\n");
  if (!isServerOf(Number(pid), dataFolder)) return null;
  const word = padded.trim();
  const status = word === "ready" || word === "stopping" ? word : "starting";
  return { pid: Number(pid), port: Number(port), socketFolder, status };
}

/**
 * Whether a lock file belongs to no server. PostgreSQL refuses to start if the pid in the file is alive, whatever
 * program has it now, or if the file is empty, as a full disk leaves it.
 */
export function isStaleLock(lockFile: string, dataFolder: string): boolean {
  let pid: number;
  try {
    pid = Math.abs(parseInt(readFileSync(lockFile, "utf8"), 10));
  } catch {
    return false;
  }
  return Number.isNaN(pid) || (isTaken(pid) && !isServerOf(pid, dataFolder));
}

/** Checks as PostgreSQL does: a zombie counts as alive. */
function isTaken(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function isServerOf(pid: number, dataFolder: string): boolean {
  const args = inspectProcess(pid)?.args;
  if (args === undefined) return false;
  // ps joins the arguments with spaces, so search the whole line: the program and the folder may contain a space.
  const line = args.join(" ");
  const isPostgres =
    process.platform === "linux"
      ? path.basename(args[0] ?? "") === "postgres"
      : /(^|\/)postgres -/.test(line) && !line.includes(` ${supervisorName} `);
  return isPostgres && line.includes(` -D ${dataFolder} `);
}
