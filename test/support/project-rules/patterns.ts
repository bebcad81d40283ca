// Rules that forbid a pattern of text. Comments are not searched.
import { codeSchemas } from "../../../src/migration/db-files.ts";
import { type Breach, type SourceFile, withoutComments } from "./source-file.ts";

interface PatternRule {
  rule: string;
  /** Breaks the rule. Searched line by line. */
  pattern: RegExp;
  /** Files that may contain the pattern. */
  except?: string[];
}

export const typescriptRules: PatternRule[] = [
  { rule: "only config.ts reads the environment", pattern: /\bprocess\.env\b/, except: ["src/common/config.ts"] },
  { rule: "only connect.ts knows the driver", pattern: /from ['"]postgres['"]/, except: ["src/database/connect.ts"] },
  { rule: "only graphile-worker uses pg", pattern: /from ['"]pg['"]/, except: ["src/worker/graphile-runner.ts"] },
  // The driver may send the BEGIN to another connection than the statements after it.
  {
    rule: "only migrate, alone on one connection, opens transactions",
    pattern: /\bsql\w*\.begin\(|['"`]\s*begin\b/i,
    except: ["src/migration/migrate.ts", "src/migration/run-migrations.ts"],
  },
  { rule: "imports name the .ts file", pattern: /from ['"]\.{1,2}\/[^'"]*(?<!\.ts|\.json)['"]/ },
  { rule: "no barrel: import from the file that declares the thing", pattern: /^export \* from/ },
];

export const sqlRules: PatternRule[] = [
  { rule: "never when others", pattern: /\bwhen\s+others\b/i },
  { rule: "no drop … cascade", pattern: /\bdrop\b.*\bcascade\b/i },
  { rule: "no dynamic SQL", pattern: /\bexecute\s+(?!function\b|procedure\b|on\b)/i, except: ["db/roles.sql"] },
  { rule: "no enum types", pattern: /\bas\s+enum\b/i },
  { rule: "no tabs", pattern: /\t/ },
];

export const migrationRules: PatternRule[] = [
  { rule: "tables never depend on replaceable code", pattern: new RegExp(`\\b(${codeSchemas.join("|")})\\.\\w`) },
  {
    rule: "an added column has a base type: for a domain, PostgreSQL rewrites the table",
    pattern: /\badd\s+(column\s+)?\w+\s+core\.\w/i,
  },
];

export function findPatterns(file: SourceFile, rules: PatternRule[]): Breach[] {
  return withoutComments(file)
    .split("\n")
    .flatMap((line, index) =>
      rules
        .filter(({ pattern, except = [] }) => !except.includes(file.path) && pattern.test(line))
        .map(({ rule }) => ({ path: file.path, line: index + 1, message: rule })),
    );
}
