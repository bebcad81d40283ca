// Searches for an order of concurrent steps that explains all of them, as Wing and Gong do. Orders of the same steps
// that lead to the same state have the same future, as Lowe noted, so only one of them is followed.

export type Step<State> = {
  // The step takes effect at one moment from `from` to `to`. Infinity: at any later time, or never.
  from: number;
  to: number;
  /**
   * The states to which the step may lead, with the answer that it got. None: it cannot come here. A step that changes
   * nothing here must change nothing later.
   */
  apply(state: State): State[];
};
// states: how many were looked at.
export type Verdict = { is: "explained" | "unexplained" | "undecided"; states: number };
// keyOf: equal for states with the same future. limit: of states; beyond it the verdict is undecided.
export type Search<State> = { initial: State; keyOf(state: State): string; limit: number };

export function linearize<State>(given: Step<State>[], { initial, keyOf, limit }: Search<State>): Verdict {
  // What must come first is tried first, and what may never come is tried last.
  const steps = given.toSorted((a, b) => a.to - b.to || a.from - b.from);
  const isDone = steps.map(() => false);
  const seen = new Set<string>();
  let states = 0;
  let isUndecided = false;

  // Whether some order of the other steps explains them.
  function explain(state: State): boolean {
    // Sorted, so the first one ends first. A step that begins after that end comes after that step.
    const due = steps.find((_, index) => !isDone[index])?.to ?? Infinity;
    if (due === Infinity) return true;
    const key = keyOf(state);
    const visit = isDone.map(Number).join("") + key;
    if (seen.has(visit)) return false;
    isUndecided ||= states === limit;
    if (isUndecided) return false;
    states += 1;
    seen.add(visit);
    for (const [index, step] of steps.entries()) {
      if (isDone[index] || step.from > due) continue;
      const nexts = step.apply(state);
      // Such a step can as well come at once; and one that may never come need not come now.
      const isIdle = nexts.length === 1 && keyOf(nexts[0]!) === key;
      if (isIdle && step.to === Infinity) continue;
      isDone[index] = true;
      if (nexts.some(explain)) return true;
      isDone[index] = false;
      if (isIdle) return false;
    }
    return false;
  }

  const isExplained = explain(initial);
  return { is: isExplained ? "explained" : isUndecided ? "undecided" : "unexplained", states };
}
