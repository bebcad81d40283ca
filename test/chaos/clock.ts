// Loaded with --import before a program: shifts the clock of that process by CHAOS_CLOCK_OFF_MS.
const offMs = Number(process.env["CHAOS_CLOCK_OFF_MS"] ?? 0);
const RealDate = Date;
const now = (): number => RealDate.now() + offMs;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args: unknown[], newTarget) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as Date,
  apply: () => new RealDate(now()).toString(),
  get: (target, name, receiver) => (name === "now" ? now : Reflect.get(target, name, receiver)),
});
