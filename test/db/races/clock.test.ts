// Calls and patches that wait for a coupon while a moment passes. Each decides by the clock after the wait: what was
// still true when it began does not count.
import t, { type Test } from "tap";
import type { Reply } from "../../support/client.ts";
import { readCouponHistory } from "../../support/inspect.ts";
import { passWhileWaiting, type Holder } from "../../support/race.ts";
import { allAgree, startRaceFixture, type RaceFixture } from "../../support/race-fixture.ts";
import { newRequestId } from "../../support/service.ts";

let fixture: RaceFixture;
t.before(async () => {
  fixture = await startRaceFixture(t);
  await fixture.provision("tpl_again", { after_reversal: "reissued" });
  await fixture.provision("tpl_later", { valid_from: "2098-01-01T00:00:00Z" });
  // Not the default, so that a constant would be seen.
  await fixture.provision("tpl_hour", { lock_ttl_seconds: 3_600 });
});

const ofCoupon = "where coupon_id = rules.parse_id('cpn', $1)";
const holdCoupon = `select from core.coupon ${ofCoupon} for update`;
const moments = {
  "its validity begins": {
    hold: holdCoupon,
    change: `update core.coupon set valid_from = clock_timestamp() ${ofCoupon}`,
    isFixed: true,
  },
  "its validity ends": { hold: holdCoupon, change: `update core.coupon set valid_to = clock_timestamp() ${ofCoupon}` },
  "its lock expires": {
    hold: holdCoupon,
    change: `update core.redemption set lock_expires_at = clock_timestamp() ${ofCoupon} and status = 'LOCKED'`,
    isFixed: true,
  },
} satisfies Record<string, Holder>;

type Case = {
  title: string;
  moment: keyof typeof moments;
  template?: string;
  isLocked?: boolean;
  isRedeemed?: boolean;
  act(coupon: { code: string; id: string; lockId: string; redemption: string }): Promise<Reply | string>;
  // The error code of the refusal, or nothing.
  refusal?: string;
  // As readCouponHistory shows it afterwards.
  status: string;
  redemptions?: string[];
  events?: string[];
};

const patch = async (call: string, id: string): Promise<string> => {
  const error = await fixture.service.admin.rows(`select admin.${call}`, [id]).then(
    () => null,
    (reason: unknown) => reason,
  );
  return error === null ? "done" : (error as { code: string }).code;
};

const cases: Case[] = [
  {
    title: "A redeem is refused after the end of the validity",
    moment: "its validity ends",
    act: ({ code }) => fixture.redeem(code),
    refusal: "COUPON_EXPIRED",
    status: "ISSUED",
  },
  {
    title: "A lock is refused after the end of the validity",
    moment: "its validity ends",
    act: ({ code }) => fixture.lock(code),
    refusal: "COUPON_EXPIRED",
    status: "ISSUED",
  },
  {
    title: "A redeem succeeds after the beginning of the validity",
    moment: "its validity begins",
    template: "tpl_later",
    act: ({ code }) => fixture.redeem(code),
    status: "REDEEMED",
    redemptions: ["REDEEMED"],
    events: ["coupon.redeemed"],
  },
  {
    title: "A lock succeeds after the end of another lock",
    moment: "its lock expires",
    isLocked: true,
    act: ({ code }) => fixture.lock(code),
    status: "LOCKED",
    redemptions: ["LAPSED", "LOCKED"],
  },
  {
    title: "A redeem succeeds after the end of another lock",
    moment: "its lock expires",
    isLocked: true,
    act: ({ code }) => fixture.redeem(code),
    status: "REDEEMED",
    redemptions: ["LAPSED", "REDEEMED"],
    events: ["coupon.redeemed"],
  },
  {
    title: "A confirm is refused after the end of its lock",
    moment: "its lock expires",
    isLocked: true,
    act: ({ code, lockId }) => fixture.confirm(code, lockId),
    refusal: "LOCK_EXPIRED",
    status: "LOCKED",
    redemptions: ["LOCKED"],
  },
  {
    title: "A confirm succeeds after the end of the validity, because its lock was taken in time",
    moment: "its validity ends",
    isLocked: true,
    act: ({ code, lockId }) => fixture.confirm(code, lockId),
    status: "REDEEMED",
    redemptions: ["REDEEMED"],
    events: ["coupon.redeemed"],
  },
  {
    title: "A cancel is refused after the end of its lock",
    moment: "its lock expires",
    isLocked: true,
    act: ({ code, lockId }) => fixture.cancel(code, lockId),
    refusal: "LOCK_EXPIRED",
    status: "LOCKED",
    redemptions: ["LOCKED"],
  },
  {
    title: "A cancel gives back an EXPIRED coupon after the end of the validity",
    moment: "its validity ends",
    isLocked: true,
    act: ({ code, lockId }) => fixture.cancel(code, lockId),
    status: "EXPIRED",
    redemptions: ["CANCELLED"],
    events: ["coupon.expired"],
  },
  {
    title: "A reverse gives back an EXPIRED coupon after the end of the validity",
    moment: "its validity ends",
    template: "tpl_again",
    isRedeemed: true,
    act: ({ redemption }) => fixture.reverse(redemption),
    status: "EXPIRED",
    redemptions: ["REVERSED"],
    events: ["coupon.redeemed", "coupon.reversed", "coupon.expired"],
  },
  {
    title: "A void succeeds after the end of a lock",
    moment: "its lock expires",
    isLocked: true,
    act: ({ code }) => fixture.voidCoupon(code),
    status: "VOIDED",
    redemptions: ["LAPSED"],
    events: ["coupon.voided"],
  },
  {
    title: "A void is refused after the end of the validity",
    moment: "its validity ends",
    act: ({ code }) => fixture.voidCoupon(code),
    refusal: "COUPON_NOT_VOIDABLE",
    status: "ISSUED",
  },
  {
    title: "admin.void_coupon succeeds after the end of a lock",
    moment: "its lock expires",
    isLocked: true,
    act: ({ id }) => patch("void_coupon('ten_a', $1, 'lost')", id),
    status: "VOIDED",
    redemptions: ["LAPSED"],
    events: ["coupon.voided"],
  },
  {
    title: "admin.void_coupon is refused after the end of the validity",
    moment: "its validity ends",
    act: ({ id }) => patch("void_coupon('ten_a', $1, 'lost')", id),
    refusal: "CP409",
    status: "ISSUED",
  },
  {
    title: "admin.release_lock is refused after the end of the lock",
    moment: "its lock expires",
    isLocked: true,
    act: ({ id }) => patch("release_lock('ten_a', $1, 'till broke down')", id),
    refusal: "CP409",
    status: "LOCKED",
    redemptions: ["LOCKED"],
  },
  {
    title: "admin.release_lock gives back an EXPIRED coupon after the end of the validity",
    moment: "its validity ends",
    isLocked: true,
    act: ({ id }) => patch("release_lock('ten_a', $1, 'till broke down')", id),
    status: "EXPIRED",
    redemptions: ["CANCELLED"],
    events: ["coupon.expired"],
  },
];

const outcomeOf = (answer: Reply | string): string => {
  if (typeof answer === "string") return answer === "done" ? "accepted" : answer;
  return answer.status === 200 ? "accepted" : (answer.json.code as string);
};

async function arrange({ template, isLocked, isRedeemed }: Case) {
  const { code, id } = await fixture.makeCoupon(template);
  const lockId = newRequestId();
  const reply = isLocked ? await fixture.lock(code, lockId) : isRedeemed ? await fixture.redeem(code) : null;
  return { code, id, lockId, redemption: reply?.json.redemption as string };
}

for (const one of cases) {
  t.test(`${one.title}, although it began before`, async (t: Test) => {
    const coupon = await arrange(one);
    const { answer } = await passWhileWaiting(fixture.service, moments[one.moment], coupon.id, () => one.act(coupon));
    t.equal(outcomeOf(answer), one.refusal ?? "accepted");
    const { status, redemptions, events } = await readCouponHistory(fixture.service.owner, coupon.id);
    t.strictSame(
      { status, redemptions, events: events.map(({ type }) => type) },
      { status: one.status, redemptions: one.redemptions ?? [], events: one.events ?? [] },
    );
    await allAgree(t, fixture);
  });
}
