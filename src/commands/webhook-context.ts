// What the commands of webhooks.ts and webhook-test.ts share.
export const tenant = { about: "the tenant, ten_…" };
export const party = { about: "the party, pty_…" };
