// Rules about SQL functions and the files that hold them.
import { type Breach, type SourceFile, lineAt, withoutComments } from "./source-file.ts";

const mostLines = 70;

/** The first words of function names. is_, has_ and may_ begin the name of a predicate. Add a verb when you need it. */
const verbs = new Set(
  `add allocate analyze append apply build cancel check claim close compute confirm count create decide delete
  derive describe destroy disable enable end expire extend find finish forget format free get hand has hold
  identify insert is join keep lapse list lock make mark may mint move note open parse perform post prune pull
  query read record redeem refuse register release remove render replay require restore reverse revoke run
  sequence set spend split succeed summarize test try update use validate void write`
    .trim()
    .split(/\s+/),
);

/**
 * A function states its volatility. One that is security definer fixes its search_path, because all that it calls has
 * its owner's rights. So does one that roles or triggers call, unless its body was parsed when it was created. Those of
 * `api` and `rules` run inside such functions.
 */
export function checkFunctions(file: SourceFile): Breach[] {
  const text = withoutComments(file);
  const heads = text.matchAll(
    /create (?:or replace )?function\s+([\w.]+)\s*\([^]*?(\$\w*\$|\breturn\b(?!s)|\bbegin atomic\b)/gi,
  );
  return [...heads].flatMap(({ 0: head, 1: name, 2: body = "", index }) => {
    const line = lineAt(text, index);
    const breach = (message: string): Breach => ({ path: file.path, line, message: `${name} ${message}` });
    const hasVolatility = /\b(volatile|stable|immutable)\b/i.test(head);
    const isInner = /^(api|rules)\./.test(name!);
    const isDefiner = /\bsecurity definer\b/i.test(head);
    const hasSearchPath = /\bset search_path = pg_catalog, pg_temp\b/i.test(head);
    return [
      ...(hasVolatility ? [] : [breach("does not state its volatility")]),
      ...(hasSearchPath || (!isDefiner && (isInner || !body.startsWith("$")))
        ? []
        : [breach("does not fix its search_path")]),
    ];
  });
}

/** A function in db/code has a name that begins with a verb. */
export function checkVerbs(file: SourceFile): Breach[] {
  const text = withoutComments(file);
  const names = text.matchAll(/^create (?:or replace )?function\s+\w+\.([a-z]+)\w*/gim);
  return [...names]
    .filter(([, verb]) => !verbs.has(verb!))
    .map(({ 0: head, 1: word, index }) => ({
      path: file.path,
      line: lineAt(text, index),
      message: `${head.split(/\s+/).at(-1)} must begin with a verb; "${word}" is not in the list in sql-shape.ts`,
    }));
}

/** A function has at most 70 lines, from its first line to the end of its body. */
export function checkFunctionLengths(file: SourceFile): Breach[] {
  const text = withoutComments(file);
  const functions = text.matchAll(
    /create (?:or replace )?function\s+([\w.]+)\s*\([^]*?(?:(\$\w*\$)[^]*?\2|\bend\b)?;$/gim,
  );
  return [...functions].flatMap(({ 0: body, 1: name, index }) => {
    const lines = body.split("\n").length;
    const message = `${name} has ${lines} lines; the limit is ${mostLines}`;
    return lines <= mostLines ? [] : [{ path: file.path, line: lineAt(text, index), message }];
  });
}

/** A file in db/code creates one function or view: the one that its folder and name say, with a comment. */
export function checkCodeFile(file: SourceFile): Breach[] {
  const [schema, ...folders] = file.path.slice("db/code/".length, -".sql".length).split("/");
  const name = `${schema}.${folders.at(-1)}`;
  const breach = (message: string): Breach => ({ path: file.path, line: 1, message });
  const made = [...withoutComments(file).matchAll(/^create\s+(?:or replace\s+)?(\w+)\s+([\w.]+)/gim)];
  const isAlone = made.length === 1 && made[0]![2] === name && /^(function|view)$/i.test(made[0]![1]!);
  const others = made.map((match) => match[2]).join(", ") || "nothing";
  return [
    ...(isAlone ? [] : [breach(`makes ${others}, not just ${name}`)]),
    ...(/^create or replace /m.test(file.text) ? [] : [breach('is not "create or replace"')]),
    ...(new RegExp(`^comment on (function|view) ${name.replace(".", "\\.")}\\b`, "m").test(file.text)
      ? []
      : [breach(`has no comment on ${name}`)]),
  ];
}

/** Every migration is a pair of a .sql and a .ts file: ley runs only .ts files and would skip a lone script. */
export function checkMigrationPairs(paths: string[]): Breach[] {
  const names = (extension: string): string[] =>
    paths.filter((name) => name.endsWith(extension)).map((name) => name.slice(0, -extension.length));
  const [scripts, stubs] = [names(".sql"), names(".ts")];
  const breach = (name: string, message: string): Breach => ({ path: name, line: 1, message });
  return [
    ...scripts.filter((name) => !stubs.includes(name)).map((name) => breach(`${name}.sql`, "has no .ts beside it")),
    ...stubs.filter((name) => !scripts.includes(name)).map((name) => breach(`${name}.ts`, "has no .sql beside it")),
  ];
}
