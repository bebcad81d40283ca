// What is known from outside about a PostgreSQL server: its postmaster.pid, and whether the process
// named there is still that server. A pid alone proves nothing: after a crash or a reboot another
// program may have it, in a container almost certainly so.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";

export interface Postmaster {
  pid: number;
  port: number;
  socketFolder: string;
  /** `stopping` is said from the first moment of a shutdown. */
  status: "starting" | "ready" | "stopping";
}

/** The arguments of a process and its parent, or null when none runs under this pid. */
export function inspectProcess(pid: number): { args: string[]; parent: number } | null {
  try {
    if (process.platform !== "linux") {
      const text = execFileSync("ps", ["-o", "ppid=,command=", "-p", String(pid)], { encoding: "utf8" });
      const [parent = "", ...args] = text.trim().split(/\s+/);
      return { args, parent: Number(parent) };
    }
    const args = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    // pid (name) state parent …: the name may hold anything, also a bracket.
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // Dead, only not yet collected: in a container without an init for ever.
    return state === "Z" ? null : { args, parent: Number(parent) };
  } catch {
    return null;
  }
}

/** The running server of a data folder, or null when none runs. Throws when it may not look. */
export function findPostmaster(dataFolder: string): Postmaster | null {
  let text: string;
  try {
    text = readFileSync(path.join(dataFolder, "postmaster.pid"), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  const [pid, , , port, socketFolder = "", , , status = ""] = text.split("\n");
  if (!isServerOf(Number(pid), dataFolder)) return null;
  return {
    pid: Number(pid),
    port: Number(port),
    socketFolder,
    status: status.trim() === "ready" || status.trim() === "stopping" ? (status.trim() as "ready") : "starting",
  };
}

/**
 * Does this lock file stand for nothing? PostgreSQL believes one whose pid lives, whatever program
 * that is by now, and stops at one that a full disk left empty.
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

/** As PostgreSQL asks it: a dead process that was not collected yet counts too. */
function isTaken(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function isServerOf(pid: number, dataFolder: string): boolean {
  const args = pid > 0 ? inspectProcess(pid)?.args : undefined;
  if (args === undefined) return false;
  // ps glues the arguments together, so a folder with a space is looked for in the whole line.
  return path.basename(args[0] ?? "") === "postgres" && args.join(" ").includes(` -D ${dataFolder} `);
}
