// A folder in the system's temporary directory. Its name carries our pid, so that a later run can remove it if we are
// killed.
import { chmodSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Test } from "tap";
import { inspectProcess } from "../../src/embedded/postmaster.ts";

// `tidy` runs before an abandoned folder is removed.
export function makeTemporaryFolder(prefix: string, tidy: (folder: string) => void = () => {}): string {
  removeAbandoned(prefix, tidy);
  const folder = mkdtempSync(path.join(tmpdir(), `${prefix}${process.pid}-`));
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
function removeAbandoned(prefix: string, tidy: (folder: string) => void): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = name.startsWith(prefix) ? parseInt(name.slice(prefix.length), 10) : NaN;
    if (!(pid > 0) || inspectProcess(pid) !== null) continue;
    try {
      tidy(path.join(tmpdir(), name));
      removeFolder(path.join(tmpdir(), name));
    } catch {
      // The folder belongs to another user.
    }
  }
}
