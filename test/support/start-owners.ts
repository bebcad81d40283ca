// Two tenants of each variant, with two sides each, that all own rows of every kind and whose keys are the same.
import { daySeconds, keepBusinessDays, noonOffset, setZone, zoneOf, type Books } from "./business-days.ts";
import { ownersDocument, sides } from "./owners-document.ts";
import { orderPending, tellStory, type Story } from "./owners.ts";
import { startService, type Running, type Teardown } from "./service.ts";
import { makeTwin, toTwin } from "./twin.ts";

export type Owners = {
  service: Running;
  books: Books;
  stories: Story[];
  // The business day of all stories.
  date: string;
  // Ends that day.
  close(): Promise<void>;
};

/** `beforeTwins` sees the tenants while they are alone. */
export async function startOwners(t: Teardown, { beforeTwins = async (_: Running) => {} } = {}): Promise<Owners> {
  const variants = ["A", "B"] as const;
  const service = await startService(t, { tenants: variants.map((one) => ownersDocument(one, "http://127.0.0.1:9")) });
  const offset = noonOffset();
  const moveTo = async (seconds: number) => {
    for (const side of sides) await setZone(service, `pty_d${side}`, zoneOf(seconds));
  };
  await moveTo(offset);
  const books = await keepBusinessDays(t, service);
  const told: Story[] = [];
  for (const variant of variants) for (const side of sides) told.push(await tellStory(service, variant, side));
  for (const story of told) await orderPending(service, story);
  await books.sequence();
  await beforeTwins(service);
  for (const tenant of ["ten_a1", "ten_b1"]) await makeTwin(service, tenant);
  async function close(): Promise<void> {
    await moveTo(offset + daySeconds);
    await books.close();
    if (books.errors.length > 0) throw new Error(JSON.stringify(books.errors));
  }
  const date = new Date(Date.now() + offset * 1000).toISOString().slice(0, 10);
  return { service, books, stories: [...told, ...told.map(toTwin)], date, close };
}

/** The stories that a caller of this story sees: in Variant A both sides of its tenant. */
export const seenBy = ({ stories }: Owners, story: Story) =>
  stories.filter(({ tenant, side }) => tenant === story.tenant && (story.variant === "A" || side === story.side));

/** The other side of the tenant. */
export const othersIn = ({ stories }: Owners, story: Story) =>
  stories.filter(({ tenant, side }) => tenant === story.tenant && side !== story.side);
