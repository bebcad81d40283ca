// The kinds of fields in the answers of the routes and in events. Nothing checks answers at run time: the API
// description publishes these schemas, and the tests check every answer against it.
import { z } from "zod";

/** An ID that the service made. */
export const madeId = (prefix: string) => z.string().regex(new RegExp(`^${prefix}_[0-9a-z]{26}$`));
/** An ID that the operator may have chosen. */
export const chosenId = (prefix: string) => z.string().regex(new RegExp(`^${prefix}_[0-9a-z]{1,40}$`));

export const timeOfAnswer = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  .meta({ format: "date-time", description: "UTC, with milliseconds." });
export const date = z.string().meta({ format: "date" });
export const amountOfAnswer = z.number().min(0).meta({ description: "In the tenant's amount unit." });
export const currencyOfAnswer = z.string().regex(/^[A-Z]{3}$/);
export const feedCursor = z.string().regex(/^cur_[A-Za-z0-9_-]{11}$/);
export const ok = z.literal(true);
