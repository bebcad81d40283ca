// Every setting of the service. Nothing else reads the environment, so this file is the list of
// what an operator can set, and a wrong value is refused here, before anything has started.

import net from 'node:net'
import path from 'node:path'

export interface Config {
  port: number
  host: string
  /** null: the embedded server of `dataDir`. */
  databaseUrl: string | null
  dataDir: string
  /** Not parsed here: only programs that use keys load them. */
  masterKeyText: string | null
  /** CIDRs that webhooks may reach although they are private. */
  webhookAllow: string[]
  requestRetentionDays: number
  deliveryLogRetentionDays: number
  feedRetentionDays: number
  logLevel: string
}

/** A setting is wrong. The message is one line for the operator and never holds a secret value. */
export class ConfigError extends Error {
  override name = 'ConfigError'
}

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

export function readConfig(env: Record<string, string | undefined> = process.env): Config {
  // An empty value counts as absent: that is what compose files make of a variable that is not set.
  const read = (name: string): string | null => env[name]?.trim() || null

  return {
    port: readPort(read('PORT') ?? '8080'),
    host: read('HOST') ?? '127.0.0.1',
    databaseUrl: readDatabaseUrl(read('DATABASE_URL')),
    dataDir: path.resolve(read('DATA_DIR') ?? '.data'),
    masterKeyText: read('COUPON_MASTER_KEY'),
    webhookAllow: readCidrs(read('WEBHOOK_ALLOW') ?? ''),
    requestRetentionDays: readDays('REQUEST_RETENTION_DAYS', read('REQUEST_RETENTION_DAYS') ?? '90'),
    deliveryLogRetentionDays: readDays('DELIVERY_LOG_RETENTION_DAYS', read('DELIVERY_LOG_RETENTION_DAYS') ?? '30'),
    feedRetentionDays: readDays('FEED_RETENTION_DAYS', read('FEED_RETENTION_DAYS') ?? '400'),
    logLevel: readLogLevel(read('LOG_LEVEL') ?? 'info'),
  }
}

function readPort(text: string): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535) {
    throw new ConfigError(`PORT must be a number from 0 to 65535, not "${text}"`)
  }
  return port
}

function readDays(name: string, text: string): number {
  const days = Number(text)
  if (!/^\d{1,5}$/.test(text) || days < 1 || days > 36_500) {
    throw new ConfigError(`${name} must be a number of days from 1 to 36500, not "${text}"`)
  }
  return days
}

function readDatabaseUrl(text: string | null): string | null {
  // A URL with a unix socket has no host (postgres://user@/db?host=/run/postgresql).
  const isUrl = text === null || URL.canParse(text.replace(/^(\w+:\/\/(?:[^/@]*@)?)\//, '$1host/'))
  if (text !== null && (!isUrl || !/^postgres(ql)?:\/\//.test(text))) {
    // The value is not repeated: it may hold a password.
    throw new ConfigError('DATABASE_URL must be a URL that begins with postgres://')
  }
  return text
}

function readCidrs(text: string): string[] {
  const cidrs = text.split(/[\s,]+/).filter((part) => part !== '')
  for (const cidr of cidrs) {
    const [address = '', bits = '', ...rest] = cidr.split('/')
    const version = net.isIP(address)
    const isValid =
      version !== 0 && rest.length === 0 && /^\d{1,3}$/.test(bits) &&
      Number(bits) <= (version === 4 ? 32 : 128)
    if (!isValid) {
      throw new ConfigError(`WEBHOOK_ALLOW must list CIDRs such as 10.0.0.0/8, not "${cidr}"`)
    }
  }
  return cidrs
}

function readLogLevel(text: string): string {
  if (!logLevels.includes(text)) {
    throw new ConfigError(`LOG_LEVEL must be one of ${logLevels.join(', ')}, not "${text}"`)
  }
  return text
}
