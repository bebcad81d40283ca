// The settings that commands name in their help. config.ts reads them, docs/operate.md explains them.

export const databaseSettings = ["DATABASE_URL", "PGPASSWORD", "DATA_DIR"] as const;
export const keySettings = [...databaseSettings, "COUPON_MASTER_KEY"] as const;
export const programSettings = [...keySettings, "METRICS_PORT", "METRICS_HOST", "LOG_LEVEL"] as const;
export const serveSettings = [
  "PORT",
  "HOST",
  "DOCS",
  "RATE_LIMIT",
  "WRONG_CODE_LIMIT",
  "KEEP_ALIVE_TIMEOUT_SECONDS",
  "MAX_CONNECTIONS",
  "CONSOLE_URL",
] as const;
export const consoleSettings = ["CONSOLE_PORT", "CONSOLE_HOST", "CONSOLE_TOKENS", "CONSOLE_USER_HEADER"] as const;
export const workSettings = [
  "WEBHOOK_ALLOW",
  "REQUEST_RETENTION_DAYS",
  "DELIVERY_LOG_RETENTION_DAYS",
  "FEED_RETENTION_DAYS",
] as const;
