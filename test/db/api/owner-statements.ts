// The reads of statements in owners-read.test.ts.
import { createHash } from "node:crypto";
import type { Test } from "tap";
import { readCsv } from "../../support/csv.ts";
import { fits } from "../../support/fits.ts";
import type { Story } from "../../support/owners.ts";
import { othersIn, seenBy, type Owners } from "../../support/start-owners.ts";

const notFound = { status: 404, json: { code: "NOT_FOUND", details: { resource: "reconciliation" } } };

const linesOf = (date: string, { entries, ...story }: Story) =>
  entries.map(({ entry_type, redemption_id, coupon_id, batch_id }) => ({
    business_date: date,
    entry_type,
    redemption_id,
    coupon_id,
    batch_id,
    template_id: story.template,
    merchant_id: story.merchant,
    store: story.store,
    terminal: story.terminal,
    discount_amount: `${entry_type === "REVERSAL" ? "-" : ""}${story.amount}.00`,
    distributor_id: story.distributorParty,
  }));

const summaryOf = (date: string, { merchant, template, amount, distributorParty }: Story) => ({
  business_date: date,
  merchant_id: merchant,
  template_id: template,
  currency: "EUR",
  redemption_count: "3",
  redemption_amount: `${3 * amount}.00`,
  reversal_count: "1",
  reversal_amount: `${-amount}.00`,
  net_amount: `${2 * amount}.00`,
  distributor_id: distributorParty,
});

export const statementReads = (owners: () => Owners): Record<string, (t: Test, story: Story) => Promise<void>> => ({
  async list_reconciliations(t, story) {
    const by = owners().service.as(story.distributor);
    const { reconciliations } = (await by.get("/v1/reconciliations")).json;
    const expected = seenBy(owners(), story).toSorted((one, two) =>
      one.distributorParty < two.distributorParty ? -1 : 1,
    );
    t.strictSame(
      reconciliations.map(({ business_date, distributor_party_id, files }: any) => [
        business_date,
        distributor_party_id,
        files.map(({ kind, rows }: any) => [kind, rows]),
      ]),
      expected.map(({ distributorParty }) => [
        owners().date,
        distributorParty,
        [
          ["detail", 4],
          ["summary", 1],
        ],
      ]),
    );
    for (const { files } of reconciliations)
      for (const { href, bytes, sha256 } of files) {
        const { text } = await by.get(href);
        t.strictSame([Buffer.byteLength(text), createHash("sha256").update(text).digest("hex")], [bytes, sha256], href);
      }
  },
  async get_reconciliation(t, story) {
    const by = owners().service.as(story.distributor);
    const named = (one: Story, kind: string) =>
      `/v1/reconciliations/${owners().date}/${kind}?distributor=${one.distributorParty}`;
    for (const one of seenBy(owners(), story)) {
      const lines = readCsv((await by.get(named(one, "detail"))).text);
      fits(t, lines, linesOf(owners().date, one));
      t.equal(lines.length, one.entries.length);
      t.strictSame(readCsv((await by.get(named(one, "summary"))).text), [summaryOf(owners().date, one)]);
    }
    if (story.variant === "A") {
      fits(t, await by.get(`/v1/reconciliations/${owners().date}/detail`), {
        status: 422,
        json: { code: "AMBIGUOUS_DISTRIBUTOR" },
      });
      fits(t, await by.get(`/v1/reconciliations/${owners().date}/other`), notFound, "the first of two refusals");
      return;
    }
    const lines = readCsv((await by.get(`/v1/reconciliations/${owners().date}/detail`)).text);
    t.strictSame(
      lines.map(({ redemption_id }) => redemption_id),
      story.entries.map(({ redemption_id }) => redemption_id),
    );
    for (const other of othersIn(owners(), story)) fits(t, await by.get(named(other, "detail")), notFound);
    fits(t, await owners().service.as(story.shop).get(`/v1/reconciliations/${owners().date}/detail`), notFound);
  },
});
