// The help of a command, made from its declaration.
import type { Described } from "./command.ts";

type Row = readonly [left: string, about: string];

const columns = 90;

/** `call` is what the user types before the words and flags, for example `npm run -s codes`. */
export function formatHelp(call: string, command: Described): string {
  const { about, words, flags, commands, examples = [] } = command;
  const wordRows = Object.entries(words).map(([name, word]): Row => [name.toUpperCase(), word.about]);
  const flagRows = Object.entries(flags).map(([name, flag]): Row => {
    const more = flag.type === "count" && flag.default !== undefined ? ` (${flag.default})` : "";
    return [formatFlag(name, flag), flag.about + more];
  });
  const rows: Row[] = [...wordRows, ...flagRows, ["-h, --help", "prints this text"]];
  if (command.formatVersion !== undefined) rows.push(["--version", "prints the version"]);
  const commandRows = commands.flatMap((each) =>
    formsOf(each).map((form, index): Row => [
      `${each.name} ${form}`.trimEnd(),
      index === 0 ? firstSentence(each.about) : "",
    ]),
  );
  const sections = [
    formatUsage(call, command),
    wrap(about),
    commandRows.length === 0 ? "" : `Commands, each with its own --help:\n${table(commandRows)}`,
    table(rows),
    formatSettings(command),
    examples.length === 0
      ? ""
      : `Examples:\n${examples.map((example) => `  ${formatExample(call, example)}`).join("\n")}`,
    `Exit codes: ${command.exitCodes ?? "0 done, 1 failed"}, 2 wrong arguments`,
  ];
  return sections.filter((section) => section !== "").join("\n\n");
}

function formatSettings({ settings = [] }: Described): string {
  if (!Array.isArray(settings)) return `Settings:\n${table(Object.entries(settings))}`;
  return settings.length === 0 ? "" : wrap(`Settings, which docs/operate.md explains: ${settings.join(", ")}`);
}

export function formatUsage(call: string, command: Described): string {
  const [first, ...more] = formsOf(command).map((form) => join(call, form));
  return [`usage: ${first}`, ...more.map((line) => `       ${line}`)].join("\n");
}

function formatExample(call: string, example: string): string {
  const [, settings = "", rest = ""] = /((?:[A-Z_]+=\S+(?: |$))*)(.*)/.exec(example)!;
  return [settings.trimEnd(), join(call, rest)].filter((text) => text !== "").join(" ");
}

/** npm takes the arguments of a script after `--`. */
export function join(call: string, rest: string): string {
  if (rest === "") return call;
  return call.startsWith("npm ") && !call.includes(" -- ") ? `${call} -- ${rest}` : `${call} ${rest}`;
}

function formsOf({ words, flags, forms }: Described) {
  if (forms !== undefined) return forms;
  const flagTexts = Object.entries(flags).map(([name, flag]) => {
    const text = formatFlag(name, flag);
    return flag.type === "text" && flag.isRequired ? text : `[${text}]`;
  });
  return [[formatWords(Object.entries(words)), ...flagTexts].filter((text) => text !== "").join(" ")];
}

/** Optional words nest: [TENANT [PARTY]]. */
function formatWords([first, ...rest]: [string, Described["words"][string]][]): string {
  if (first === undefined) return "";
  const [name, { isOptional, isRepeated }] = first;
  const all = `${name.toUpperCase()}${isRepeated ? "..." : ""} ${formatWords(rest)}`.trimEnd();
  return isOptional ? `[${all}]` : all;
}

const formatFlag = (name: string, flag: Described["flags"][string]): string =>
  flag.type === "switch" ? `--${name}` : `--${name} ${flag.value}`;

function table(rows: readonly Row[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  const indent = `\n${" ".repeat(width + 4)}`;
  return rows
    .map(([left, about]) =>
      `  ${left.padEnd(width)}  ${wrap(about, columns - width - 4).replaceAll("\n", indent)}`.trimEnd(),
    )
    .join("\n");
}

const firstSentence = (text: string): string => text.replace(/\.( .*|\n.*|$)/s, "");

function wrap(text: string, width = columns): string {
  return text.replace(new RegExp(`(.{1,${Math.max(width, 40)}})(?: +|$)`, "gm"), "$1\n").trimEnd();
}
