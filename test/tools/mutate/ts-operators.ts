// The slips in TypeScript. Node strips the types as it does when it loads the file, and leaves blanks in their place,
// so the syntax tree of the JavaScript has the offsets of the source.
//
// The order and the text of the edits make the IDs of the mutants: an operator that changes gives other mutants.
import { stripTypeScriptTypes } from "node:module";
import { type AnyNode, type Literal, type MemberExpression, parse, type Program } from "acorn";
import { calls, type Edit, operators } from "./edit.ts";

/** Every edit of the file that is still JavaScript. */
export function mutateTypeScript(text: string): Edit[] {
  return readTree(text).body.flatMap((statement) => {
    const edits: Edit[] = [];
    visit(statement, null, (node, parent) => edits.push(...mutateNode(text, node, parent)));
    // To read the whole file again for each edit would take minutes.
    return edits.filter(({ start, end, replacement }) =>
      isParsed(text.slice(statement.start, start) + replacement + text.slice(end, statement.end)),
    );
  });
}

const readTree = (text: string): Program =>
  parse(stripTypeScriptTypes(text), { ecmaVersion: "latest", sourceType: "module" });

function isParsed(text: string): boolean {
  try {
    readTree(text);
    return true;
  } catch {
    return false;
  }
}

function visit(node: AnyNode, parent: AnyNode | null, act: (node: AnyNode, parent: AnyNode | null) => void): void {
  act(node, parent);
  for (const value of Object.values(node) as unknown[])
    for (const child of Array.isArray(value) ? value : [value])
      if (typeof (child as AnyNode | null)?.type === "string") visit(child as AnyNode, node, act);
}

const droppedMethods = "filter sort toSorted reverse trim slice normalize replace refine max".split(" ");

function mutateNode(text: string, node: AnyNode, parent: AnyNode | null): Edit[] {
  const textOf = ({ start, end }: AnyNode): string => text.slice(start, end);
  const edit = ({ start, end }: AnyNode, replacement: string, operator: string): Edit => ({
    start,
    end,
    replacement,
    operator,
  });
  // Then `if (false)` says the same as the removed statement.
  const isOnlyBranch = parent?.type === "IfStatement" && parent.alternate === null;
  switch (node.type) {
    case "BinaryExpression":
    case "AssignmentExpression": {
      const [replacement, operator] = operators[node.operator] ?? [];
      // Text is joined, not added.
      const joins = node.operator.startsWith("+") && (isText(node.left) || isText(node.right));
      if (replacement === undefined || joins) return [];
      const start = text.indexOf(node.operator, node.left.end);
      return [{ start, end: start + node.operator.length, replacement, operator: operator! }];
    }
    case "LogicalExpression":
      return [edit(node, textOf(node.left), "operand"), edit(node, textOf(node.right), "operand")];
    case "UnaryExpression":
      return ["!", "-"].includes(node.operator) ? [edit(node, textOf(node.argument), "negation")] : [];
    case "IfStatement":
      return [edit(node.test, "false", "condition"), edit(node.test, "true", "condition")];
    case "ConditionalExpression":
      return [node.consequent, node.alternate].map((branch) => edit(node, textOf(branch), "condition"));
    case "AwaitExpression":
      return [edit(node, textOf(node.argument), "await")];
    case "Literal":
      return mutateLiteral(node, parent).map((replacement) => ({
        ...edit(node, replacement, "literal"),
        // How many connections a pool of several has is tuning.
        isEquivalent: parent?.type === "Property" && textOf(parent.key) === "max" && node.value !== 1,
      }));
    case "ExpressionStatement":
      return !isOnlyBranch && /^(Call|Await|Assignment|Update)Expression$/.test(node.expression.type)
        ? [edit(node, ";", "statement")]
        : [];
    case "ThrowStatement":
    case "ContinueStatement":
    case "BreakStatement":
      return isOnlyBranch ? [] : [edit(node, ";", "statement")];
    case "MemberExpression":
      return mutateMember(text, node, parent);
    case "CallExpression":
      return mutateArguments(text, node.arguments);
    case "ObjectExpression":
      return dropItems(node.properties, node.start, "property");
    case "ArrayExpression":
      return node.elements.length < 2 ? [] : dropItems(node.elements, node.start, "element");
    default:
      return [];
  }
}

const isText = (node: AnyNode): boolean =>
  node.type === "TemplateLiteral" ||
  (node.type === "Literal" && typeof node.value === "string") ||
  (node.type === "BinaryExpression" && (isText(node.left) || isText(node.right)));

function mutateLiteral({ value, raw = "", regex }: Literal, parent: AnyNode | null): string[] {
  if (parent === null || /^(Import|Export)/.test(parent.type)) return [];
  if (typeof value === "boolean") return [String(!value)];
  // The slip with a long time is its unit. 0 and 1 only grow, because nothing has less than none.
  if (typeof value === "number")
    return value < 1000 ? [value + 1, ...(value > 1 ? [value - 1] : [])].map(String) : [String(value * 10)];
  if (regex) {
    const moved = [1, -1].map((step) => raw.replace(/(?<=\{(\d+,)?)\d+(?=\})/, (most) => String(Number(most) + step)));
    return [raw.replace(/^\/\^/, "/"), raw.replace(/\$(?=\/\w*$)/, ""), ...moved];
  }
  // A text with blanks is a message, or a statement that would fail.
  if (typeof value !== "string" || !/^\S*[A-Za-z]\S*$/.test(value)) return [];
  return [raw.replace(/[A-Za-z]/, (letter) => (letter === "x" ? "y" : "x"))];
}

function mutateMember(text: string, node: MemberExpression, parent: AnyNode | null): Edit[] {
  const { object, property } = node;
  if (node.computed) return [];
  const edits: Edit[] = [];
  if (node.optional) edits.push({ start: object.end, end: property.start, replacement: ".", operator: "optional" });
  if (parent?.type !== "CallExpression" || parent.callee !== node) return edits;
  const { start, end } = property;
  const name = text.slice(start, end);
  if (Object.hasOwn(calls, name)) edits.push({ start, end, replacement: calls[name]!, operator: "method" });
  if (droppedMethods.includes(name)) {
    const replacement = text.slice(object.start, object.end);
    edits.push({ start: parent.start, end: parent.end, replacement, operator: "method" });
  }
  return edits;
}

function dropItems(items: (AnyNode | null)[], start: number, operator: string): Edit[] {
  return items.flatMap((item, index) => {
    if (item === null) return [];
    const next = items[index + 1];
    const from = index === 0 ? start + 1 : (items[index - 1]?.end ?? item.start);
    const to = index === 0 && next ? next.start : item.end;
    return [{ start: from, end: to, replacement: "", operator }];
  });
}

/** Forgets the last of several arguments, and swaps two neighbours that are names. */
function mutateArguments(text: string, list: AnyNode[]): Edit[] {
  const operator = "argument";
  return list.slice(1).flatMap((second, index) => {
    const first = list[index]!;
    const isLast = index === list.length - 2;
    const dropped = isLast ? [{ start: first.end, end: second.end, replacement: "", operator }] : [];
    if ([first, second].some(({ type }) => type !== "Identifier" && type !== "MemberExpression")) return dropped;
    const replacement = `${text.slice(second.start, second.end)}, ${text.slice(first.start, first.end)}`;
    return [...dropped, { start: first.start, end: second.end, replacement, operator }];
  });
}
