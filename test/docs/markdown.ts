// Reads from Markdown files what the tests of this folder need: fenced blocks with their markers, links and anchors.
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { root } from "../support/copy.ts";

export type Block = { language: string; text: string; line: number; markers: Record<string, string> };

/** The documents whose commands run. README.md comes first, as for a newcomer. */
export const documents = [
  "README.md",
  ...find("docs/*.md"),
  ...find("clients/*/README.md"),
  "db/README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
].filter((name) => find(name).length > 0);

export const allMarkdown = find("{*,docs/**/*,db/**/*,test/**/*,clients/**/*}.md");

function find(pattern: string): string[] {
  return globSync(pattern, { cwd: root, exclude: (name) => name === "node_modules" }).sort();
}

export function read(name: string): string {
  return readFileSync(path.join(root, name), "utf8");
}

const fence = /^( *)```(\w*)[^\n]*\n([^]*?)^ *```$/gm;
const marker = /^<!-- ([a-z ]+)(?:: (.*))? -->$/;

export function readBlocks(text: string): Block[] {
  return [...text.matchAll(fence)].map(({ 1: indent = "", 2: language = "", 3: body = "", index }) => {
    const before = text.slice(0, index).trimEnd().split("\n");
    const markers: Record<string, string> = {};
    for (let match = readMarker(before); match !== null; match = readMarker(before)) {
      markers[match[1]!] = match[2] ?? "";
      before.pop();
    }
    const unindented = body.replaceAll(new RegExp(`^ {${indent.length}}`, "gm"), "");
    return { language, text: unindented, line: text.slice(0, index).split("\n").length, markers };
  });
}

const readMarker = (lines: string[]) => marker.exec(lines.at(-1)?.trim() ?? "");

const withoutCode = (text: string): string =>
  text.replace(fence, (block) => block.replace(/[^\n]/g, "")).replace(/`[^`\n]*`/g, "");

/** Targets of links and images: [text](target), and [name]: target. */
export function readLinks(text: string): string[] {
  const links = withoutCode(text).matchAll(/\]\(([^)\s]+)[^)]*\)|^\[[^\]]+\]:\s*(\S+)/gm);
  return [...links].map(([, target, named]) => target ?? named!);
}

/** The anchors that GitHub makes of headings. */
export function readAnchors(text: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ""] of text.replace(fence, "").matchAll(/^#{1,6} +(.+?) *$/gm)) {
    const words = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const anchor = words.replace(/[^\p{L}\p{N}\p{M}_ -]/gu, "").replaceAll(" ", "-");
    let unique = anchor;
    for (let count = 1; anchors.has(unique); count += 1) unique = `${anchor}-${count}`;
    anchors.add(unique);
  }
  return anchors;
}
