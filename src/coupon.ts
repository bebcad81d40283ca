// The program of the service: `coupon COMMAND`, and the npm scripts start, serve, work, migrate and so on. It loads
// only the chosen command. The overall help loads all of them, which takes longer.
import { asksForHelp, groupCommands, type Command } from "./command-line/command.ts";
import { readNpmScript } from "./config/config.ts";
import { isProgram } from "./common/program.ts";
import { runCommand } from "./command-line/run-command.ts";
import { readBuild } from "./migration/version.ts";

type Program = { npmCall: string; load: () => Promise<{ command: Command }> };

// -s keeps npm's own lines out of output that a program may read.
const programs: Record<string, Program> = {
  start: { npmCall: "npm start", load: () => import("./start.ts") },
  serve: { npmCall: "npm run serve", load: () => import("./serve.ts") },
  work: { npmCall: "npm run work", load: () => import("./work.ts") },
  console: { npmCall: "npm run console", load: () => import("./console.ts") },
  migrate: { npmCall: "npm run migrate", load: () => import("./commands/migrate.ts") },
  router: { npmCall: "bin/coupon router", load: () => import("./commands/router.ts") },
  cells: { npmCall: "bin/coupon cells", load: () => import("./commands/cells.ts") },
  apply: { npmCall: "npm run -s apply", load: () => import("./commands/apply.ts") },
  codes: { npmCall: "npm run -s codes", load: () => import("./commands/codes.ts") },
  webhooks: { npmCall: "npm run -s webhooks", load: () => import("./commands/webhooks.ts") },
  credentials: { npmCall: "npm run -s credentials", load: () => import("./commands/credentials.ts") },
  statements: { npmCall: "npm run -s statements", load: () => import("./commands/statements.ts") },
  sandbox: { npmCall: "npm run -s sandbox", load: () => import("./commands/sandbox.ts") },
  sign: { npmCall: "npm run -s sign", load: () => import("./commands/sign.ts") },
  check: { npmCall: "bin/coupon check", load: () => import("./commands/check.ts") },
  demo: { npmCall: "npm run demo", load: () => import("./commands/demo.ts") },
};

/** Loads the commands of these names. */
export async function loadCoupon(names = Object.keys(programs)): Promise<Command> {
  const loaded = await Promise.all(names.map(async (each) => (await programs[each]!.load()).command));
  return groupCommands({
    name: "coupon",
    about: "Runs the coupon service and operates it. Commands that use a database take it from DATABASE_URL.",
    commands: loaded,
    formatVersion,
  });
}

function formatVersion(): string {
  const { version, migration } = readBuild();
  return `coupon ${version}, migration ${migration}`;
}

if (isProgram(import.meta)) {
  const given = process.argv.slice(2);
  const [name = ""] = given;
  const program = Object.hasOwn(programs, name) ? programs[name]! : null;
  const coupon = await loadCoupon(program !== null ? [name] : asksForHelp(given) ? undefined : []);
  // npm sets the variable for every program that a script starts, so this also compares the name.
  if (program !== null && readNpmScript() === name)
    await runCommand(program.npmCall, coupon.commands[0]!, given.slice(1));
  else await runCommand("coupon", coupon);
}
