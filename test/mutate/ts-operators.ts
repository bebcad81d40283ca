// The slips in TypeScript. Node strips the types as it does when it loads the file, and leaves blanks in their place,
// so the syntax tree of the JavaScript has the offsets of the source.
import { stripTypeScriptTypes } from "node:module";
import { type Node, parse } from "acorn";
import type { Edit } from "./mutant.ts";

/** The fields of a node that the operators read. */
type Tree = Node & {
  operator: string;
  left: Tree;
  right: Tree;
  argument: Tree;
  test: Tree;
  consequent: Tree;
  alternate: Tree | null;
  expression: Tree;
  object: Tree;
  property: Tree;
  callee: Tree;
  elements: (Tree | null)[];
  optional: boolean;
  computed: boolean;
  name: string;
  raw: string;
  value: unknown;
  key: Tree;
  regex?: { pattern: string; flags: string };
};

/** Every edit of the file that is still JavaScript. */
export function mutateTypeScript(text: string): Edit[] {
  const tree = readTree(text);
  const edits: Edit[] = [];
  visit(tree, null, (node, parent) => edits.push(...mutateNode(text, node, parent)));
  return edits.filter(({ start, end, replacement }) => isParsed(text.slice(0, start) + replacement + text.slice(end)));
}

function readTree(text: string): Tree {
  const javascript = stripTypeScriptTypes(text);
  return parse(javascript, { ecmaVersion: "latest", sourceType: "module" }) as Node as Tree;
}

function isParsed(text: string): boolean {
  try {
    readTree(text);
    return true;
  } catch {
    return false;
  }
}

function visit(node: Tree, parent: Tree | null, act: (node: Tree, parent: Tree | null) => void): void {
  act(node, parent);
  for (const value of Object.values(node) as unknown[])
    for (const child of Array.isArray(value) ? value : [value])
      if (typeof (child as Tree | null)?.type === "string") visit(child as Tree, node, act);
}

const operators: Record<string, [string, string]> = {
  "<": ["<=", "boundary"],
  "<=": ["<", "boundary"],
  ">": [">=", "boundary"],
  ">=": [">", "boundary"],
  "===": ["!==", "comparison"],
  "!==": ["===", "comparison"],
  "+": ["-", "sign"],
  "-": ["+", "sign"],
  "*": ["/", "arithmetic"],
  "/": ["*", "arithmetic"],
  "%": ["*", "arithmetic"],
  "+=": ["-=", "sign"],
  "-=": ["+=", "sign"],
};

const methods: Record<string, string> = {
  min: "max",
  max: "min",
  floor: "ceil",
  ceil: "floor",
  some: "every",
  every: "some",
  startsWith: "endsWith",
  endsWith: "startsWith",
  find: "findLast",
  shift: "pop",
  push: "unshift",
  toLowerCase: "toUpperCase",
  toUpperCase: "toLowerCase",
  once: "on",
};

function mutateNode(text: string, node: Tree, parent: Tree | null): Edit[] {
  const textOf = (one: Node): string => text.slice(one.start, one.end);
  const edit = (one: { start: number; end: number }, replacement: string, operator: string): Edit => ({
    start: one.start,
    end: one.end,
    replacement,
    operator,
  });
  switch (node.type) {
    case "BinaryExpression":
    case "AssignmentExpression":
      return swapOperator(text, node);
    case "LogicalExpression":
      return [edit(node, textOf(node.left), "operand"), edit(node, textOf(node.right), "operand")];
    case "UnaryExpression":
      return ["!", "-"].includes(node.operator) ? [edit(node, textOf(node.argument), "negation")] : [];
    case "IfStatement":
      return [edit(node.test, "false", "condition"), edit(node.test, "true", "condition")];
    case "ConditionalExpression":
      return [node.consequent, node.alternate!].map((branch) => edit(node, textOf(branch), "condition"));
    case "AwaitExpression":
      return [edit(node, textOf(node.argument), "await")];
    case "Literal":
      return mutateLiteral(node, parent).map((replacement) => edit(node, replacement, "literal"));
    case "ExpressionStatement":
      return !isOnlyBranch(parent) &&
        ["CallExpression", "AwaitExpression", "AssignmentExpression", "UpdateExpression"].includes(node.expression.type)
        ? [edit(node, ";", "statement")]
        : [];
    case "ThrowStatement":
    case "ContinueStatement":
    case "BreakStatement":
      return isOnlyBranch(parent) ? [] : [edit(node, ";", "statement")];
    case "MemberExpression":
      return mutateMember(text, node, parent);
    case "ArrayExpression":
      return node.elements.length < 2 ? [] : dropElements(node);
    default:
      return [];
  }
}

/** Then `if (false)` says the same as the removed statement. */
const isOnlyBranch = (parent: Tree | null): boolean => parent?.type === "IfStatement" && parent.alternate === null;

function swapOperator(text: string, { operator, left, right }: Tree): Edit[] {
  const [replacement, kind] = operators[operator] ?? [];
  if (replacement === undefined) return [];
  // Text is joined, not added.
  if (operator.startsWith("+") && [left, right].some((one) => isText(one))) return [];
  const start = text.indexOf(operator, left.end);
  return [{ start, end: start + operator.length, replacement, operator: kind! }];
}

const isText = (node: Tree): boolean =>
  node.type === "TemplateLiteral" ||
  (node.type === "Literal" && typeof node.value === "string") ||
  (node.type === "BinaryExpression" && (isText(node.left) || isText(node.right)));

function mutateLiteral({ value, raw, regex }: Tree, parent: Tree | null): string[] {
  if (parent === null || /^(Import|Export)/.test(parent.type)) return [];
  if (typeof value === "boolean") return [String(!value)];
  // The slip with a long time is its unit.
  if (typeof value === "number") return [String(value < 1000 ? value + 1 : value * 10)];
  if (regex !== undefined) {
    return [
      ...(raw.startsWith("/^") ? [raw.replace("/^", "/")] : []),
      ...(/\$\/\w*$/.test(raw) ? [raw.replace(/\$(?=\/\w*$)/, "")] : []),
    ];
  }
  // A text with blanks is a message, or a statement that would fail.
  if (typeof value !== "string" || !/^\S*[A-Za-z]\S*$/.test(value)) return [];
  return [raw.replace(/[A-Za-z]/, (letter) => (letter === "x" ? "y" : "x"))];
}

function mutateMember(text: string, node: Tree, parent: Tree | null): Edit[] {
  const { object, property } = node;
  const edits: Edit[] = [];
  if (node.optional && !node.computed)
    edits.push({ start: object.end, end: property.start, replacement: ".", operator: "optional" });
  const isCalled = parent?.type === "CallExpression" && parent.callee === node;
  const other = methods[property.name];
  if (!isCalled || node.computed) return edits;
  if (other !== undefined && Object.hasOwn(methods, property.name))
    edits.push({ start: property.start, end: property.end, replacement: other, operator: "method" });
  if (["filter", "sort", "reverse", "trim", "slice"].includes(property.name))
    edits.push({ ...position(parent), replacement: text.slice(object.start, object.end), operator: "method" });
  return edits;
}

const position = ({ start, end }: Node): { start: number; end: number } => ({ start, end });

function dropElements({ elements, start }: Tree): Edit[] {
  return elements.flatMap((element, index) => {
    if (element === null) return [];
    const next = elements[index + 1];
    const from = index === 0 ? start + 1 : (elements[index - 1]?.end ?? element.start);
    const to = index === 0 && next ? next.start : element.end;
    return [{ start: from, end: to, replacement: "", operator: "element" }];
  });
}
