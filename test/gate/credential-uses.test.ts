// The last use of a credential is known to the hour, for one write an hour and none on the way of a call.
import t from "tap";
import { createCredentialUses, type Used } from "../../src/gate/credential-uses.ts";
import { Unavailable } from "../../src/common/unavailable.ts";
import { fits } from "../support/fits.ts";
import { scenario } from "../support/scenario.ts";
import { createStubLog } from "../support/stub.ts";

const hour = 3_600_000;

t.test("a credential is sent once an hour; what fails is sent again, also at the end", async (t) => {
  const sent: number[][] = [];
  let [clock, isDown] = [0, false];
  const gate = {
    async noteUses(used: Used[]) {
      sent.push(used.map(({ credentialId }) => credentialId));
      if (isDown) throw new Unavailable("down");
      return hour - (clock % hour);
    },
  };
  const { logger, log } = createStubLog();
  const uses = createCredentialUses({ gate, log: logger, everyMs: hour, uptime: () => clock });
  const use = (...ids: number[]) => ids.forEach((credentialId) => uses.mark({ tenantId: 1, credentialId }));
  use(1, 2, 1);
  await uses.write();
  use(1, 3);
  await uses.write();
  use(1, 2, 3);
  await uses.write();
  t.strictSame(sent.splice(0), [[1, 2], [3]]);
  clock = hour;
  use(2);
  isDown = true;
  await uses.write();
  use(1);
  isDown = false;
  clock += 1;
  await Promise.all([uses.write(), uses.write()]);
  t.strictSame(sent.splice(0), [[2], [2, 1]], "two at once are one");
  fits(t, log, [{ level: 40, msg: "the last use of credentials was not noted; it is tried again" }]);
  clock = 2 * hour;
  use(...Array.from({ length: 1_001 }, (_, id) => id));
  await uses.write();
  await uses.stop();
  t.strictSame(
    sent.map(({ length }) => length),
    [1_000, 1],
  );
});

t.test("the database writes a row once an hour, whoever asks, and only of that tenant", async (t) => {
  const world = await scenario(t, { http: true });
  const list = () =>
    world.owner.rows<Record<string, unknown>>(
      `select c.access_key, c.last_used_at, x.xmin::text,
              date_trunc('hour', now(), 'UTC') = c.last_used_at as is_now, x.tenant_id, x.credential_id
       from report.credential c join core.credential x using (access_key) order by 1`,
    );
  const before = await list();
  const [first, second, ...others] = before as [any, any, ...any[]];
  const note = async (tenants: number[], ids: number[]) => {
    const [row] = await world.owner.rows<{ left: number }>(
      "select gate.note_uses($1::text[]::int[], $2::text[]::int[]) as left",
      [tenants.map(String), ids.map(String)],
    );
    return row!.left;
  };
  const left = await note([first.tenant_id, first.tenant_id + 1], [first.credential_id, second.credential_id]);
  t.ok(left > 0 && left <= hour);
  const noted = await list();
  t.equal(noted[0]!.is_now, true);
  t.strictSame(noted.slice(1), before.slice(1), "credential and tenant belong together");
  await note([first.tenant_id], [first.credential_id]);
  t.strictSame(await list(), noted, "a second time writes nothing");
  await world.owner.rows(
    "update core.credential set last_used_at = last_used_at - interval '1 hour' where last_used_at is not null",
  );
  await note([first.tenant_id], [first.credential_id]);
  fits(t, (await list())[0], { is_now: true });
  t.ok(others.length > 0);
});
