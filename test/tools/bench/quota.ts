// A share of one core for processes of this machine, by a control group: version 2, or the controller `cpu` of
// version 1. It takes root.
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import path from "node:path";

/** Moves the processes, and those that they start later, into a group. */
export type Quota = { add(pids: number[]): void; remove(): void };

// Short, so that a call waits little when the quota of a period is used up.
const periodMicros = 20_000;
const version1 = "/sys/fs/cgroup/cpu";
const version2 = "/sys/fs/cgroup";

/** null: this machine has no control groups that limit CPU, or only for someone else. */
export function openQuota(name: string, share: number): Quota | null {
  const isVersion2 = existsSync(path.join(version2, "cgroup.controllers"));
  const root = isVersion2 ? version2 : version1;
  const group = path.join(root, `coupon-bench-${process.pid}-${name}`);
  const micros = Math.round(share * periodMicros);
  try {
    mkdirSync(group);
    if (isVersion2) {
      writeFileSync(path.join(root, "cgroup.subtree_control"), "+cpu");
      writeFileSync(path.join(group, "cpu.max"), `${micros} ${periodMicros}`);
    } else {
      writeFileSync(path.join(group, "cpu.cfs_period_us"), String(periodMicros));
      writeFileSync(path.join(group, "cpu.cfs_quota_us"), String(micros));
    }
  } catch {
    if (existsSync(group)) rmdirSync(group);
    return null;
  }
  const move = (pids: number[], to: string) => pids.forEach((pid) => moveProcess(pid, path.join(to, "cgroup.procs")));
  return {
    add: (pids) => move(pids, group),
    // A group can be removed when it is empty. Its processes go where this one is.
    remove() {
      const home = path.join(root, readOwnGroup(isVersion2));
      move(readFileSync(path.join(group, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number), home);
      rmdirSync(group);
    },
  };
}

function moveProcess(pid: number, file: string): void {
  try {
    writeFileSync(file, String(pid));
  } catch (error) {
    // The process has ended.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** The lines are number:controllers:path. */
function readOwnGroup(isVersion2: boolean): string {
  const lines = readFileSync("/proc/self/cgroup", "utf8").split("\n");
  const pattern = isVersion2 ? /^0::(.*)$/ : /^\d+:(?:[^:]*,)?cpu(?:,[^:]*)?:(.*)$/;
  return lines.map((line) => pattern.exec(line)?.[1]).find((found) => found !== undefined) ?? "/";
}
