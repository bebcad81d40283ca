// Completion scripts for bash and zsh, made from the declarations of a program and its commands. Both scripts read the
// line in the same way: they follow the words that name commands, skip flags with their values, and count the other
// words. So they know the place of the word under the cursor, which is one of
//   " webhooks test --type"   the value of that flag
//   " webhooks test#2"        the third word after that command
import type { Described } from "./command.ts";
import { firstSentence } from "./help.ts";

export const shells = ["bash", "zsh"] as const;

type Candidate = { name: string; about: string };
interface Tables {
  /** " webhooks", " webhooks test" */
  commands: string[];
  /** The flags that take a value: " webhooks log --limit". */
  valueFlags: string[];
  /** The candidates by place; places that may hold anything are absent. */
  words: Map<string, Candidate[]>;
  /** The flags by command. */
  flags: Map<string, Candidate[]>;
}

export function formatCompletion(shell: string, program: Described): string {
  const tables: Tables = { commands: [], valueFlags: [], words: new Map(), flags: new Map() };
  fill(tables, "", program);
  return shell === "zsh" ? formatZsh(program.name, tables) : formatBash(program.name, tables);
}

function fill(tables: Tables, path: string, { words, flags, commands, formatVersion }: Described): void {
  const toCandidates = (names: readonly string[] = [], about: string): Candidate[] =>
    names.map((name) => ({ name, about }));
  const setWords = (place: string, candidates: Candidate[]): void => {
    if (candidates.length > 0) tables.words.set(place, candidates);
  };
  setWords(
    `${path}#0`,
    commands.map(({ name, about }) => ({ name, about: firstSentence(about) })),
  );
  for (const [index, { choices, about }] of Object.values(words).entries())
    setWords(`${path}#${index}`, toCandidates(choices, about));
  for (const [name, flag] of Object.entries(flags)) {
    if (flag.type === "switch") continue;
    tables.valueFlags.push(`${path} --${name}`);
    if (flag.type === "text") setWords(`${path} --${name}`, toCandidates(flag.choices, flag.about));
  }
  tables.flags.set(path, [
    ...Object.entries(flags).map(([name, { about }]) => ({ name: `--${name}`, about })),
    { name: "--help", about: "prints help" },
    ...(formatVersion === undefined ? [] : [{ name: "--version", about: "prints the version" }]),
  ]);
  for (const command of commands) {
    tables.commands.push(`${path} ${command.name}`);
    fill(tables, `${path} ${command.name}`, command);
  }
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const formatPattern = (texts: string[]): string => `(${texts.map(quote).join("|") || "''"})`;
const formatCases = (candidates: Map<string, Candidate[]>, format: (found: Candidate[]) => string): string =>
  [...candidates].map(([place, found]) => `    (${quote(place)}) ${format(found)} ;;`).join("\n");

/** Sets `chosen`, `flag` and `count` from `word`. */
const formatStep = ({ commands, valueFlags }: Tables): string => `
    if [[ -n $flag ]]; then flag=; continue; fi
    case "$chosen $word" in
      ${formatPattern(commands)} chosen="$chosen $word" count=0 ;;
      ${formatPattern(valueFlags)} flag="$chosen $word" ;;
      (*' -'*) ;;
      (*) count=$((count + 1)) ;;
    esac`;

function formatBash(name: string, tables: Tables): string {
  const format = (found: Candidate[]): string => `candidates=${quote(found.map((each) => each.name).join("\n"))}`;
  return `# Completion of ${name} for bash. To try it: source <(${name} completion bash)
_${name}() {
  local IFS=$'\\n' current=\${COMP_WORDS[COMP_CWORD]} chosen= flag= count=0 candidates= index word
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=\${COMP_WORDS[index]}
    # bash splits --flag=value at the equals sign.
    [[ $word == = ]] && continue${formatStep(tables)}
  done
  [[ $current == = ]] && current=
  case "\${flag:-$chosen#$count}" in
${formatCases(tables.words, format)}
  esac
  if [[ -z $flag && $current == -* ]]; then
    case "$chosen" in
${formatCases(tables.flags, format)}
    esac
  fi
  COMPREPLY=($(compgen -W "$candidates" -- "$current"))
}
# Where nothing is known, bash completes file names.
complete -o default -F _${name} ${name}`;
}

function formatZsh(name: string, tables: Tables): string {
  const format = (found: Candidate[]): string =>
    `candidates=(${found.map((each) => quote(`${each.name}:${each.about}`)).join(" ")})`;
  return `#compdef ${name}
# Completion of ${name} for zsh. To try it: source <(${name} completion zsh)
_${name}() {
  local chosen= flag= count=0 word
  local -a candidates
  for word in "\${(@)words[2,CURRENT-1]}"; do${formatStep(tables)}
  done
  case "\${flag:-$chosen#$count}" in
${formatCases(tables.words, format)}
  esac
  if [[ -z $flag && \${words[CURRENT]} == -* ]]; then
    case "$chosen" in
${formatCases(tables.flags, format)}
    esac
  fi
  if (( \${#candidates} )); then _describe ${name} candidates; else _files; fi
}
# The file may be sourced, or be in a folder of fpath, where zsh runs it as the function itself.
if [[ \${funcstack[1]} == _${name} ]]; then _${name} "$@"; else compdef _${name} ${name}; fi`;
}
