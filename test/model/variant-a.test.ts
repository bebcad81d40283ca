import t from "tap";
import { compareLives } from "./lives.ts";

t.test(
  "Variant A: whatever is called in whatever order, the answers, states, events and money are those of the model",
  (t) => compareLives(t, "A"),
);
