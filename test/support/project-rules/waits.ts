// Every wait of a test has a bound. A loop that awaits must end by itself: it counts, works off a list, looks at the
// clock, or obeys a flag that its own test sets. Any other loop waits for somebody else and belongs into waitUntil,
// which has a bound and says what it waited for. An event that happens once belongs into waitFor.
import { lineAt, withoutComments, type Breach, type SourceFile } from "./source-file.ts";

const eventMessage = "this event may never come: use waitFor";
const loopMessage = "this loop may never end: count its rounds, or use waitUntil";

// One of these is in the head of a loop that ends.
const ends = [
  /^\((?:const|let) [^;]+ (?:of|in)\s/,
  /performance\.now\(\)/,
  /\b(?:is(?:Over|Stopping|Failed|Last)|aborted)\b/,
];
// Or one of these in the head, and the other one anywhere in the loop.
const progress: [head: RegExp, loop: RegExp][] = [
  [/[<>]/, /\+\+|[-+]= |\.push\(/],
  [/undefined/, /\.(?:pop|shift)\(/],
  [/[<>]/, /if \(performance\.now\(\) >/],
];

export function checkWaits(file: SourceFile): Breach[] {
  const text = withoutComments(file);
  const events = [...text.matchAll(/\bawait (?:once\(|new Promise\b.*\bonce\()/g)].map(({ index }) => ({
    path: file.path,
    line: lineAt(text, index),
    message: eventMessage,
  }));
  return [...events, ...checkLoops(file.path, text)];
}

function checkLoops(path: string, text: string): Breach[] {
  return [...text.matchAll(/\b(?:while|for)(?: await)? \(/g)].flatMap(({ index, 0: start }) => {
    const headStart = index + start.length - 1;
    const headEnd = findClosing(text, headStart);
    const head = text.slice(headStart, headEnd);
    const loop = text.slice(headStart, findEnd(text, headEnd));
    const isBounded =
      ends.some((pattern) => pattern.test(head)) ||
      progress.some(([inHead, inLoop]) => inHead.test(head) && inLoop.test(loop));
    return isBounded || !/\bawait\b/.test(loop) ? [] : [{ path, line: lineAt(text, index), message: loopMessage }];
  });
}

// The index behind the bracket that closes the one at `open`.
function findClosing(text: string, open: number): number {
  let depth = 0;
  for (let index = open; index < text.length; index += 1) {
    if ("({[".includes(text[index]!)) depth += 1;
    if (")}]".includes(text[index]!)) depth -= 1;
    if (depth === 0) return index + 1;
  }
  return text.length;
}

// The end of a loop's body: a block, or one statement.
function findEnd(text: string, headEnd: number): number {
  const start = headEnd + text.slice(headEnd).search(/\S/);
  if (text[start] === "{") return findClosing(text, start);
  const end = text.indexOf(";\n", start);
  return end === -1 ? text.length : end;
}
