// A copy of the checkout in a folder of its own, to be changed there.
import { chmodSync, cpSync, mkdtempSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

export type Edit = { file: string; find: string; replace: string };

export const root = path.resolve(import.meta.dirname, "../..");

export function copyCheckout(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "coupon-copy-"));
  // The user of an embedded server walks through.
  chmodSync(folder, 0o711);
  const left = new Set([".git", ".data", ".tap", "node_modules"].map((name) => path.join(root, name)));
  cpSync(root, folder, { recursive: true, filter: (from) => !left.has(from) });
  symlinkSync(realpathSync(path.join(root, "node_modules")), path.join(folder, "node_modules"));
  return folder;
}

export function change(folder: string, edits: Edit[]): void {
  for (const one of edits) writeFileSync(path.join(folder, one.file), changed(folder, one));
}

// Throws where an edit would not do what it says.
export function check(folder: string, edits: Edit[]): void {
  for (const one of edits) changed(folder, one);
}

// A text that does not stand there exactly once: whoever wrote the edit meant another version of the file.
function changed(folder: string, { file, find, replace }: Edit): string {
  const text = readFileSync(path.join(folder, file), "utf8");
  const count = text.split(find).length - 1;
  if (count !== 1) throw new Error(`${file} has ${count} times, not once: ${find}`);
  return text.replace(find, () => replace);
}
