// Limits on the size of files and lines. oxlint limits the lines of a TypeScript file and function.
import type { Breach, SourceFile } from "./source-file.ts";

const mostLines = 250;

export function checkColumns(file: SourceFile): Breach[] {
  const most = file.path.endsWith(".sql") ? 100 : 120;
  const isMarkdown = file.path.endsWith(".md");
  let isCode = false;
  return file.text.split("\n").flatMap((line, index) => {
    if (/^\s*(```|~~~)/.test(line)) isCode = !isCode;
    // Tables, code and URLs cannot be wrapped.
    if (isMarkdown && (isCode || /^\s*\|/.test(line))) return [];
    const columns = [...line.replace(/https?:\/\/\S+/g, "")].length;
    const message = `has ${columns} columns; the limit is ${most}`;
    return columns <= most ? [] : [{ path: file.path, line: index + 1, message }];
  });
}

export function checkFileLength(file: SourceFile): Breach[] {
  const lines = file.text.split("\n").length - 1;
  return lines <= mostLines
    ? []
    : [{ path: file.path, line: 1, message: `has ${lines} lines; the limit is ${mostLines}` }];
}
