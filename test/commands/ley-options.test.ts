// How the command line of ley is read: an option's value is never taken for the command.
import t from "tap";
import { readCommand } from "../../src/commands/ley.ts";

const options = { cwd: "C", dir: "d", config: "c", driver: "D", require: "r", length: "l" };
const forms = Object.entries(options).flatMap(([name, letter]) => [
  { name, args: [`--${name}`, "value"] },
  { name, args: [`--${name}=value`] },
  { name, args: [`-${letter}`, "value"] },
  { name, args: [`-${letter}value`] },
]);
const refusalOf = (name: string) => ({ message: `leave out --${name}: ley.config.js sets what ley needs here` });

t.test("the command and its subject are the words that belong to no option", async (t) => {
  t.strictSame(readCommand([]), { command: "", subject: "" });
  t.strictSame(readCommand(["status"]), { command: "status", subject: "" });
  t.strictSame(readCommand(["new", "coupon", "notes"]), { command: "new", subject: "coupon-notes" });
});

t.test("up and down are refused wherever their options are", async (t) => {
  for (const { args } of forms) {
    for (const line of [
      [...args, "up"],
      ["up", ...args],
    ])
      t.throws(() => readCommand(line), { message: /^ley up is not used here: `npm run migrate` / }, line.join(" "));
    t.throws(() => readCommand([...args, "down"]), { message: /^migrations only go forward: / }, args.join(" "));
  }
  t.throws(() => readCommand(["up", "--single"]), { message: /^ley up is not used here/ });
});

t.test("status and new refuse every option but --config", async (t) => {
  for (const { name, args } of forms) {
    if (name === "config") t.strictSame(readCommand(["new", ...args, "x"]), { command: "new", subject: "x" });
    else t.throws(() => readCommand(["status", ...args]), refusalOf(name), args.join(" "));
  }
  t.throws(() => readCommand(["new", "x", "--esm"]), refusalOf("esm"));
});
