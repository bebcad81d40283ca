// Copies the checkout to a temporary folder, and changes the copy.
import { cpSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { makeTemporaryFolder } from "./temporary-folder.ts";

export type Edit = { file: string; find: string; replace: string };

export const root = path.resolve(import.meta.dirname, "../..");

export function copyCheckout(): string {
  const folder = makeTemporaryFolder("coupon-copy-");
  const omitted = new Set([".git", ".data", ".tap", "node_modules"].map((name) => path.join(root, name)));
  cpSync(root, folder, { recursive: true, filter: (from) => !omitted.has(from) });
  symlinkSync(realpathSync(path.join(root, "node_modules")), path.join(folder, "node_modules"));
  return folder;
}

export function change(folder: string, edits: Edit[]): void {
  for (const [file, text] of applyEdits(folder, edits)) writeFileSync(path.join(folder, file), text);
}

/** The new text of each file. Throws if a text to replace does not occur exactly once: the file has changed since. */
export function applyEdits(folder: string, edits: Edit[]): Map<string, string> {
  const texts = new Map<string, string>();
  for (const { file, find, replace } of edits) {
    const text = texts.get(file) ?? readFileSync(path.join(folder, file), "utf8");
    const count = text.split(find).length - 1;
    if (count !== 1) throw new Error(`${file} must contain this text once, not ${count} times: ${find}`);
    texts.set(
      file,
      text.replace(find, () => replace),
    );
  }
  return texts;
}
