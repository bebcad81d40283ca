// Turns zod schemas into JSON Schema. Schemas with an ID (`.meta({ id })`) become components of the document.
import { z } from "zod";

export type Json = Record<string, unknown>;
export type SchemaWriter = {
  components: Json;
  write(schema: z.ZodType): Json;
  /** Writes a schema as the component `name`, and returns a reference to it. */
  define(name: string, schema: z.ZodType): Json;
};

export function createSchemaWriter(): SchemaWriter {
  const components: Json = {};
  const write = (schema: z.ZodType): Json => {
    // The input side describes what the caller sends, before transforms. Answers have no transforms; on this side
    // their objects are open, because clients must ignore fields that they do not know.
    const { $schema: _, $defs = {}, ...rest } = relocate(z.toJSONSchema(schema, { io: "input" }) as Json);
    Object.assign(components, $defs);
    return rest;
  };
  return {
    components,
    write,
    define(name, schema) {
      components[name] = write(schema);
      return { $ref: `#/components/schemas/${name}` };
    },
  };
}

function relocate(schema: Json): Json {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/')) as Json;
}

/** `create_batch` is CreateBatch. */
export function toTypeName(name: string): string {
  return name.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
