// Mutants of src/embedded that no test can notice, each with the reason.

import type { Equivalent } from "./equivalent.ts";

export const inEmbedded: Equivalent[] = [
  {
    file: "src/embedded/data-directory.ts",
    before: 'const user = isRoot ? (findUser("postgres") ?? findUser("nobody")) : undefined;',
    after: 'const user = isRoot ? (findUser("postgres")) : undefined;',
    reason: "Nobody is used only on a system without a user postgres.",
  },
  {
    file: "src/embedded/data-directory.ts",
    before: 'const user = isRoot ? (findUser("postgres") ?? findUser("nobody")) : undefined;',
    after: 'const user = isRoot ? (findUser("postgres") ?? findUser("xobody")) : undefined;',
    reason: "Nobody is used only on a system without a user postgres.",
  },
  {
    file: "src/embedded/data-directory.ts",
    before: "if (isRoot && user === undefined) {",
    after: "if (false) {",
    reason: "Only on a system that has neither postgres nor nobody.",
  },
  {
    file: "src/embedded/data-directory.ts",
    before:
      'throw new EmbeddedError("PostgreSQL does not run as root, and there is no user postgres or nobody to run it");',
    after: ";",
    reason: "Only on a system that has neither postgres nor nobody.",
  },
  {
    file: "src/embedded/initdb.ts",
    before: "if (isAbandoned) rmSync(path.join(home.folder, name), { recursive: true, force: true });",
    after: "if (isAbandoned) rmSync(path.join(home.folder, name), { recursive: true, force: false });",
    reason: "The folder exists, unless another start removes it in the same moment.",
  },
  {
    file: "src/embedded/initdb.ts",
    before: "rmSync(unfinished, { recursive: true, force: true });",
    after: "rmSync(unfinished, { recursive: true, force: false });",
    reason: "The folder exists, unless another start removes it in the same moment.",
  },
  {
    file: "src/embedded/initdb.ts",
    before: 'stdio: ["pipe", "ignore", "pipe"],',
    after: 'stdio: ["pipe", "pipe"],',
    reason: "A pipe is the default, and the output that nobody reads fits into one.",
  },
  {
    file: "src/embedded/initdb.ts",
    before: 'stdio: ["pipe", "ignore", "pipe"],',
    after: 'stdio: ["pipe", "ignore"],',
    reason: "A pipe is the default, and the output that nobody reads fits into one.",
  },
  {
    file: "src/embedded/load-keys.ts",
    before:
      'writeFileSync(draft, `${randomBytes(32).toString("base64")}\\n`, { flag: "wx", mode: 0o600, flush: true });',
    after:
      'writeFileSync(draft, `${randomBytes(32).toString("base64")}\\n`, { flag: "wx", mode: 0o600, flush: false });',
    reason: "Only a power failure shows it.",
  },
  {
    file: "src/embedded/load-keys.ts",
    before: "fsyncSync(folder);",
    after: ";",
    reason: "Only a power failure shows it.",
  },
  {
    file: "src/embedded/postmaster.ts",
    before: 'const text = execFileSync("ps", ["-o", "ppid=,command=", "-p", String(pid)], { encoding: "utf8" });',
    after: 'const text = execFileSync("ps", ["-o", "ppid=,command=", String(pid)], { encoding: "utf8" });',
    reason: "On Linux, ps takes a number without -p for a process ID too. POSIX wants -p.",
  },
  {
    file: "src/embedded/server.ts",
    before: "await sleep(20);",
    after: ";",
    reason: "It looks more often than it needs to.",
  },
  {
    file: "src/embedded/server.ts",
    before: "if (isStopping) return await stopShell(shell);",
    after: "if (isStopping) return stopShell(shell);",
    reason: "stopShell does not fail, and nobody waits for keepRunning.",
  },
  {
    file: "src/embedded/server.ts",
    before:
      "if (isStaleLock(lock, data) && (await sleep(100), isStaleLock(lock, data))) rmSync(lock, { force: true });",
    after:
      "if (isStaleLock(lock, data) && (await sleep(100), isStaleLock(lock, data))) rmSync(lock, { force: false });",
    reason: "The file exists, unless another program removes it in the same moment.",
  },
];
