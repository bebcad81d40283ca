// npm run codes, as an operator runs it.
import t from "tap";
import { command, exportCodes } from "../../src/commands/codes.ts";
import { fits } from "../support/fits.ts";
import { environmentOf, exitCodeOf, runProgram, spawnProgram } from "../support/program.ts";
import { scenario } from "../support/scenario.ts";

const service = await scenario(t);
const env = environmentOf(service);
// For the commands that run in this process.
Object.assign(process.env, env);
const { till, maker, template } = service.a;

const run = (...args: string[]) => runProgram("codes", { args, env });
// What a command says that must fail.
const refusalOf = async (...args: string[]): Promise<string> => {
  const error = await command
    .read(args)()
    .catch((reason: unknown) => reason);
  return error instanceof Error ? error.message : "not refused";
};
const readAudit = () =>
  service.owner.rows<Record<string, unknown>>(
    `select action, target, reason, login <> '' as has_login, recorded_at > now() - interval '1 minute' as is_recent
     from core.audit order by audit_id desc limit 1`,
  );

t.test("a released batch is written as coupon_id,code, each code with its own coupon, and audited", async (t) => {
  const { id, coupons } = await service.makeBatch(maker, template, 3);
  const { code, stdout, stderr } = await run(id);
  t.strictSame([code, stderr], [0, ""]);
  const [header, ...lines] = stdout
    .trimEnd()
    .split("\n")
    .map((line) => line.split(","));
  t.strictSame(header, ["coupon_id", "code"]);
  t.strictSame(
    lines,
    coupons.map((coupon) => [coupon.id, coupon.code]),
  );
  for (const coupon of coupons) t.equal((await till.ok.query(coupon)).coupon.coupon_id, coupon.id);
  fits(t, await readAudit(), [{ action: "export_codes", target: id, has_login: true, is_recent: true }]);
  const pages: number[][] = [];
  await Array.fromAsync(exportCodes(service.admin, service.keys, id, false, (...page) => pages.push(page)));
  t.strictSame(pages, [[3, 3]], "for the progress");
});

t.test("an unreleased batch is exported only with --unreleased, and a pending or unknown one never", async (t) => {
  const { id } = await service.makeBatch(maker, template, 2, { isReleased: false });
  fits(t, await run(id), { code: 1, stdout: "", stderr: /^[^\n]*--unreleased[^\n]*\n$/ });
  const exported = { code: 0, stdout: /^coupon_id,code\n(cpn_\w{26},\w{16}\n){2}$/, stderr: "" };
  fits(t, await run(id, "--unreleased"), exported);
  const { batch } = await maker.ok.createBatch(template, 2);
  t.match(await refusalOf(batch.external_id, "--unreleased"), /being minted/);
  t.equal(await refusalOf("bat_none"), "no batch bat_none");
});

t.test("after --destroy no one can export the codes, and the codes still redeem", async (t) => {
  const { id, coupons } = await service.makeBatch(maker, template, 1);
  const { code } = coupons[0]!;
  for (const [args, message] of [
    [["--reason", "printed"], "--reason needs --destroy"],
    [["--destroy", "--reason"], "--reason needs a value: --reason=WHY"],
    [["--destroy"], "--destroy needs --reason"],
    [["--destroy", "--unreleased"], "--destroy and --unreleased exclude each other"],
  ] as const)
    t.throws(() => command.read([id, ...args]), { name: "UsageError", message });
  t.equal(await refusalOf(id, "--destroy", "--reason", " "), "a patch needs a reason");
  const aboutCode = "an argument contains a coupon code: name a coupon by its ID, cpn_…";
  t.equal(await refusalOf(code), aboutCode);
  t.equal(await refusalOf(id, "--destroy", "--reason", `sheet with ${code} is lost`), aboutCode);
  const readSalt = () =>
    service.owner.rows("select salt is null as is_gone from core.batch where external_id = $1", [id]);
  fits(t, await readSalt(), [{ is_gone: false }]);

  const destroyed = await run(id, "--destroy", "--reason", "codes are printed");
  fits(t, destroyed, { code: 0, stdout: "", stderr: `${id}: salt deleted; its codes cannot be derived again\n` });
  fits(t, await readSalt(), [{ is_gone: true }]);
  fits(t, await readAudit(), [{ action: "destroy_codes", target: id, reason: "codes are printed" }]);
  t.match(await refusalOf(id), /destroyed/);
  await till.ok.redeem(coupons[0]!);
  const other = await service.makeBatch(maker, template, 1);
  fits(t, await run(other.id, "--destroy", "--reason", "printed"), { code: 0 });
  fits(t, await readAudit(), [{ target: other.id, reason: "printed" }]);
});

t.test("a reader that stops early ends the export without a stack", async (t) => {
  // More than fits into a pipe.
  const { id } = await service.makeBatch(maker, template, 10_000);
  const program = spawnProgram("codes", { args: [id], env });
  let stderr = "";
  program.stderr!.on("data", (chunk) => (stderr += chunk));
  program.stdout!.once("data", () => program.stdout!.destroy());
  t.equal(await exitCodeOf(program), 1);
  t.equal(stderr, "standard output is incomplete: it was closed\n");
});
