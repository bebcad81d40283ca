// A folder in the system's temporary directory. Its name carries our pid, so that a later run can remove it if we are
// killed.
import { chmodSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Test } from "tap";
import { inspectProcess } from "../../src/embedded/postmaster.ts";

/** `tidy` runs before an abandoned folder is removed. */
type Options = { parent?: string | undefined; tidy?: (folder: string) => void };

export function makeTemporaryFolder(prefix: string, { parent = tmpdir(), tidy = () => {} }: Options = {}): string {
  removeAbandoned(parent, prefix, tidy);
  const folder = mkdtempSync(path.join(parent, `${prefix}${process.pid}-`));
  // A database server that runs as another user must be able to pass through.
  chmodSync(folder, 0o711);
  return folder;
}

/** A folder that is removed at the end of the test. */
export function useTemporaryFolder(t: Test, prefix: string): string {
  const folder = realpathSync(makeTemporaryFolder(prefix));
  t.teardown(() => removeFolder(folder));
  return folder;
}

export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}

// The database server of a killed run ends with it; its folder stays.
function removeAbandoned(parent: string, prefix: string, tidy: (folder: string) => void): void {
  for (const name of readdirSync(parent)) {
    const pid = name.startsWith(prefix) ? parseInt(name.slice(prefix.length), 10) : NaN;
    if (!(pid > 0) || inspectProcess(pid) !== null) continue;
    try {
      tidy(path.join(parent, name));
      removeFolder(path.join(parent, name));
    } catch {
      // The folder belongs to another user.
    }
  }
}
