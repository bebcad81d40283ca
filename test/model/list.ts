// A list that shrinks well. fast-check's own array removes elements only from its front. This one removes any block,
// large blocks first, and then simplifies each element.
import { Arbitrary, Stream, Value, type Random } from "fast-check";

class ListArbitrary<T> extends Arbitrary<T[]> {
  readonly element: Arbitrary<T>;
  readonly most: number;
  constructor(element: Arbitrary<T>, most: number) {
    super();
    this.element = element;
    this.most = most;
  }

  override generate(random: Random, bias: number | undefined): Value<T[]> {
    const length = random.nextInt(0, this.most);
    return toValue(Array.from({ length }, () => this.element.generate(random, bias)));
  }

  override canShrinkWithoutContext(value: unknown): value is T[] {
    return Array.isArray(value) && value.length === 0;
  }

  override shrink(_: T[], context: unknown): Stream<Value<T[]>> {
    return context === undefined ? Stream.nil() : new Stream(shorter(this.element, context as Value<T>[]));
  }
}

// The context of a list holds its elements with their contexts.
function toValue<T>(elements: Value<T>[]): Value<T[]> {
  return new Value(
    elements.map(({ value }) => value),
    elements,
  );
}

function* shorter<T>(element: Arbitrary<T>, elements: Value<T>[]): IterableIterator<Value<T[]>> {
  for (let size = elements.length; size >= 1; size = Math.floor(size / 2)) {
    // From the end, so that what follows a failure goes first.
    for (let end = elements.length; end > 0; end -= size)
      yield toValue(elements.toSpliced(Math.max(0, end - size), Math.min(size, end)));
  }
  for (const [index, { value, context }] of elements.entries()) {
    for (const simpler of element.shrink(value, context)) yield toValue(elements.with(index, simpler));
  }
}

export function listOf<T>(element: Arbitrary<T>, most: number): Arbitrary<T[]> {
  return new ListArbitrary(element, most);
}
