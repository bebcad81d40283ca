import t from "tap";
import { runShort } from "./short-run.ts";

t.test("Variant A: any calls in any order get the answers, states, events and amounts of the model", (t) =>
  runShort(t, "A"),
);
