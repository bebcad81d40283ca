// Runs the command that a command line names. Help goes to standard output with exit code 0. A command line that is not
// understood gets a sentence and the usage on standard error, with exit code 2. Both happen before any setting is read.
// A misspelt setting is named on standard error, and the command runs.
import { asksForHelp, chooseCommand, UsageError, type Command } from "./command.ts";
import { formatHelp, formatUsage, join } from "./help.ts";
import { runProgram } from "../common/program.ts";
import { listMisspelt } from "../config/config.ts";

/** `call` is what the user types before the arguments, for example `npm run -s codes`. */
export async function runCommand(call: string, root: Command, given = process.argv.slice(2)): Promise<void> {
  const { command, names, args } = chooseCommand(root, given);
  const wholeCall = names.reduce(join, call);
  if (asksForHelp(args)) return console.log(formatHelp(wholeCall, command));
  let run: () => Promise<unknown>;
  try {
    run = command.read(args);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(`${error.message}\n${formatUsage(wholeCall, command)}\nhelp:  ${join(wholeCall, "--help")}`);
    process.exitCode = 2;
    return;
  }
  for (const sentence of listMisspelt()) console.error(sentence);
  await runProgram(async () => void (await run()));
}
