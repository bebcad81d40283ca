// Events as JSON, the same in feed pages and webhooks.
import { externalId } from "./id.ts";

/**
 * The fields of an event as rules.describe_event in the database lists them: IDs are UUIDs, times are microseconds
 * since 1970. They are formatted here, because formatting would take the database longer than everything else.
 */
export type EventFields =
  | [type: "coupon.redeemed" | "coupon.expired" | "coupon.voided", event: string, coupon: string, ...Times, ...Data]
  | [type: "coupon.reversed", event: string, coupon: string, ...Times, redemption: string, ...Data]
  | [type: "batch.generated" | "allocation.completed", event: string, batch: string, occurred: number]
  | [type: "reconciliation.ready", event: string, businessDate: string, distributor: string, occurred: number];
type Times = [occurred: number, recorded: number];
/** Only for those who ask for it. It needs no formatting. */
type Data = [data?: object];

/** Writes the same bytes each time, because the fields never change. */
export function renderEvent(fields: EventFields): string {
  const [type, event] = fields;
  const id = externalId("evt", event);
  const head = `{"event_id":"${id}","event_type":"${type}"`;
  switch (type) {
    case "batch.generated":
    case "allocation.completed":
      return `${head},"batch_id":"${fields[2]}","occurred_at":"${formatTime(fields[3])}"}`;
    case "reconciliation.ready": {
      const [, , businessDate, distributor, occurred] = fields;
      const day = `"business_date":"${businessDate}","distributor_party_id":"${distributor}"`;
      return `${head},${day},"occurred_at":"${formatTime(occurred)}"}`;
    }
    default: {
      const [, , coupon, occurred, recorded] = fields;
      const times = `"occurred_at":"${formatTime(occurred)}","recorded_at":"${formatTime(recorded)}"`;
      const redemption = renderRedemption(fields, id);
      const data = renderData(fields);
      return `${head},"coupon_id":"${externalId("cpn", coupon)}","redemption_id":${redemption},${times}${data}}`;
    }
  }
}

// The event of a redemption has the redemption's ID.
function renderRedemption(fields: EventFields, id: string): string {
  if (fields[0] === "coupon.redeemed") return `"red${id.slice(3)}"`;
  return fields[0] === "coupon.reversed" ? `"${externalId("red", fields[5])}"` : "null";
}

function renderData(fields: EventFields): string {
  const last: unknown = fields.at(-1);
  return typeof last === "object" ? `,"data":${JSON.stringify(last)}` : "";
}

// Keeps the last second that was formatted: events of a page are close together, and a Date takes longer than
// everything else.
let [lastSecond, lastText] = [Number.NaN, ""];

function formatTime(microseconds: number): string {
  const milliseconds = Math.floor(microseconds / 1_000);
  const second = Math.floor(milliseconds / 1_000);
  if (second !== lastSecond) {
    lastSecond = second;
    lastText = new Date(second * 1_000).toISOString().slice(0, -4);
  }
  return `${lastText}${String(milliseconds - second * 1_000).padStart(3, "0")}Z`;
}
