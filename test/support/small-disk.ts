// Disks of a few megabytes, which tests fill up: file systems in memory. Only root may mount them.
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Test } from "tap";
import { makeTemporaryFolder, removeFolder } from "./temporary-folder.ts";

/** A disk until the end of the test. `beforeEnd` lets go of its files. */
export function useSmallDisk(t: Test, bytes: number, beforeEnd = async () => {}): string {
  const diskIn = (folder: string) => path.join(folder, "disk");
  const folder = makeTemporaryFolder("coupon-small-", { tidy: (abandoned) => unmount(diskIn(abandoned)) });
  mount(diskIn(folder), bytes);
  t.teardown(async () => {
    await beforeEnd().finally(() => unmount(diskIn(folder)));
    removeFolder(folder);
  });
  return diskIn(folder);
}

// Other users may pass through, as in a folder of makeTemporaryFolder. Returns whether the system allows it.
function mount(folder: string, bytes: number): boolean {
  mkdirSync(folder, { recursive: true });
  const options = `size=${bytes},mode=711`;
  return spawnSync("mount", ["-t", "tmpfs", "-o", options, "coupon-test", folder]).status === 0;
}

// Lazily, because a process that is about to end may still have a file open.
function unmount(folder: string): void {
  spawnSync("umount", ["-l", folder]);
}

// Tries it, because root in a container often may not mount.
export function canMount(): boolean {
  if (process.getuid?.() !== 0) return false;
  const folder = mkdtempSync(path.join(tmpdir(), "coupon-mount-"));
  const isMounted = mount(folder, 2 ** 20);
  if (isMounted) unmount(folder);
  removeFolder(folder);
  return isMounted;
}

// Appends to the file until the disk has no room for another page.
export function fillDisk(file: string): void {
  const descriptor = openSync(file, "a");
  for (const size of [2 ** 20, 2 ** 12]) while (tryWrite(descriptor, size));
  closeSync(descriptor);
}

function tryWrite(descriptor: number, size: number): boolean {
  try {
    return writeSync(descriptor, Buffer.alloc(size)) === size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") return false;
    throw error;
  }
}
