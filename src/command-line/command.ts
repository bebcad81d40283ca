// Commands as data. A command declares its words, flags and texts; from them this file reads the command line and
// help.ts writes the help. Nothing runs unless the whole command line is understood.
import { parseArgs } from "node:util";

type Word = { about: string; isOptional?: boolean; isRepeated?: boolean; choices?: readonly string[] };
type Flag =
  | { type: "switch"; about: string }
  | { type: "text"; about: string; value: string; isRequired?: boolean; choices?: readonly string[] }
  | { type: "count"; about: string; value: string; default?: number };
type Words = Record<string, Word>;
type Flags = Record<string, Flag>;

type WordValue<W extends Word> = W extends { isRepeated: true }
  ? string[]
  : W extends { isOptional: true }
    ? string | undefined
    : string;
type FlagValue<F extends Flag> = F extends { type: "switch" }
  ? boolean
  : F extends { type: "count" }
    ? F extends { default: number }
      ? number
      : number | undefined
    : F extends { isRequired: true }
      ? string
      : string | undefined;
export type Input<W extends Words = Words, F extends Flags = Flags> = {
  words: { [K in keyof W]: WordValue<W[K]> };
  flags: { [K in keyof F]: FlagValue<F[K]> };
};

type Texts = {
  /** The last word of the call, for example `codes`. */
  name: string;
  /** What it does. A list of commands shows only the first sentence. */
  about: string;
  /** The combinations that are allowed, if words and flags do not combine freely. */
  forms?: readonly string[];
  /** The environment variables that it reads: names that docs/operate.md explains, or names with their meaning. */
  settings?: readonly string[] | Record<string, string>;
  /** Each example is what follows the call, after any settings: `PORT=9000 --fast`. */
  examples?: readonly string[];
  exitCodes?: string;
  /** Only a group of commands has this. It returns what --version prints. */
  formatVersion?: () => string;
};
type Declared<W extends Words, F extends Flags, C, R> = Texts & {
  words?: W;
  flags?: F;
  /** Returns what is wrong with words and flags that are each valid alone. */
  refuse?: (input: Input<W, F>) => string | null;
  run: (input: Input<W, F>, context: C) => Promise<R>;
};

/** `commands` belong to a command that only groups others. */
type Shape<Inner> = Texts & { words: Words; flags: Flags; commands: readonly Inner[] };
/** What the help is made from. */
export interface Described extends Shape<Described> {}
/** C: what a command needs besides its input. R: what it returns. */
export interface Command<C = void, R = unknown> extends Shape<Command<C, R>> {
  /** Throws a UsageError if the arguments are not understood, before anything runs. */
  read: (args: readonly string[]) => Run<C, R>;
}
/** A call that is understood. `words`: those that were given once. */
export type Run<C = void, R = unknown> = ((context: C) => Promise<R>) & { words?: Record<string, string> };

/** The command line is not understood. */
export class UsageError extends Error {
  override name = "UsageError";
}

export function defineCommand<const W extends Words = {}, const F extends Flags = {}, C = void, R = void>(
  declared: Declared<W, F, C, R>,
): Command<C, R> {
  const { words = {} as W, flags = {} as F, refuse, run, ...texts } = declared;
  return {
    ...texts,
    words,
    flags,
    commands: [],
    read(args) {
      const input = readInput(words, flags, args) as Input<W, F>;
      const reason = refuse?.(input) ?? null;
      if (reason !== null) throw new UsageError(reason);
      const once = Object.entries(input.words).filter(([, word]) => typeof word === "string");
      return Object.assign((context: C) => run(input, context), { words: Object.fromEntries(once) });
    },
  };
}

export function groupCommands<C, R>(group: Texts & { commands: readonly Command<C, R>[] }): Command<C, R> {
  const { formatVersion } = group;
  const read = (args: readonly string[]) => {
    const [first] = args;
    if (first === "--version" && formatVersion !== undefined) {
      if (args.length > 1) throw new UsageError(`unexpected argument ${quote(args[1]!)}`);
      return async () => console.log(formatVersion()) as R;
    }
    if (first === undefined) throw new UsageError("COMMAND is missing");
    throw new UsageError(`unknown ${first.startsWith("-") ? "option" : "command"} ${quote(first)}`);
  };
  return { forms: ["COMMAND"], ...group, words: {}, flags: {}, read };
}

/** `around` makes the context that the commands need, and runs the chosen one with it. It gets the arguments too. */
export function provideContext<C, R>(
  command: Command<C, R>,
  around: (run: Run<C, R>, args: readonly string[], words: Record<string, string>) => Promise<unknown>,
): Command {
  return {
    ...command,
    commands: command.commands.map((each) => provideContext(each, around)),
    read(args) {
      const run = command.read(args);
      return () => around(run, args, run.words ?? {});
    },
  };
}

/** Follows the words that name commands. `args` are the arguments of the command that was found. */
export function chooseCommand<C, R>(root: Command<C, R>, args: readonly string[]) {
  let command = root;
  const names: string[] = [];
  for (;;) {
    const next = command.commands.find(({ name }) => name === args[names.length]);
    if (next === undefined) return { command, names, args: args.slice(names.length) };
    command = next;
    names.push(next.name);
  }
}

export const asksForHelp = (args: readonly string[]): boolean =>
  tokenize({}, args).some((token) => token.kind === "option" && (token.name === "help" || token.name === "h"));

function tokenize(flags: Flags, args: readonly string[]) {
  const options = Object.entries(flags).map(([name, { type }]) => {
    return [name, { type: type === "switch" ? "boolean" : "string" }] as const;
  });
  const config = { args: [...args], options: Object.fromEntries(options), strict: false, tokens: true } as const;
  return parseArgs(config).tokens;
}

function readInput(words: Words, flags: Flags, args: readonly string[]): { words: object; flags: object } {
  const given: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, flag] of Object.entries(flags))
    values[name] = flag.type === "switch" ? false : flag.type === "count" ? flag.default : undefined;
  for (const token of tokenize(flags, args)) {
    if (token.kind === "positional") given.push(token.value);
    if (token.kind !== "option") continue;
    const flag = Object.hasOwn(flags, token.name) ? flags[token.name] : undefined;
    if (flag === undefined || !token.rawName.startsWith("--")) throw new UsageError(`unknown option ${token.rawName}`);
    values[token.name] = readFlag(flag, token.rawName, token.value, token.inlineValue === true);
  }
  const assigned = assignWords(words, given);
  for (const [name, flag] of Object.entries(flags))
    if (flag.type === "text" && flag.isRequired && values[name] === undefined)
      throw new UsageError(`--${name} ${flag.value} is missing`);
  return { words: assigned, flags: values };
}

function readFlag(flag: Flag, rawName: string, value: string | undefined, isInline: boolean): unknown {
  if (flag.type === "switch") {
    if (value !== undefined) throw new UsageError(`${rawName} takes no value`);
    return true;
  }
  if (value === undefined || (!isInline && value.startsWith("-")))
    throw new UsageError(`${rawName} needs a value: ${rawName}=${flag.value}`);
  if (flag.type === "text") return checkChoice(rawName, flag.choices, value);
  if (!/^[1-9]\d{0,8}$/.test(value))
    throw new UsageError(`${rawName} must be a positive whole number, not ${quote(value)}`);
  return Number(value);
}

function assignWords(words: Words, given: string[]): object {
  const left = [...given];
  const values: Record<string, unknown> = {};
  for (const [name, { isOptional, isRepeated, choices }] of Object.entries(words)) {
    if (left.length === 0 && !isOptional) throw new UsageError(`${name.toUpperCase()} is missing`);
    const taken = left.splice(0, isRepeated ? left.length : 1);
    for (const value of taken) checkChoice(name.toUpperCase(), choices, value);
    values[name] = isRepeated ? taken : taken[0];
  }
  if (left.length > 0) throw new UsageError(`unexpected argument ${quote(left[0]!)}`);
  return values;
}

function checkChoice(name: string, choices: readonly string[] | undefined, value: string): string {
  if (choices === undefined || choices.includes(value)) return value;
  throw new UsageError(`${name} must be one of ${choices.join(", ")}, not ${quote(value)}`);
}

const quote = (text: string): string => JSON.stringify(text);
