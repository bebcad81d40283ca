// Parts of the documents that `npm run apply` takes, for tests, benchmarks and chaos runs.

// A secret follows from its access key, so clients need no list of secrets.
export const secretOf = (accessKey: string): string => `secret of ${accessKey} `.padEnd(40, "x");

export const alwaysValid = { valid_from: "2020-01-01T00:00:00Z", valid_to: "2099-01-01T00:00:00Z" };

export const party = <More extends object>(id: string, more?: More) => ({ id, name: id, ...more });

export const merchant = <More extends object>(id: string, owner: string, more?: More) => ({
  id,
  name: id,
  party: owner,
  ...more,
});

// Takes 5.00 EUR off and is always valid, unless `more` says otherwise.
export const template = <More extends object>(id: string, maker: string, more?: More) => ({
  id,
  name: id,
  maker,
  currency: "EUR",
  discount: { type: "fixed", amount: 5 },
  ...alwaysValid,
  ...more,
});

// In Variant B a credential belongs to a party.
export const credential = (accessKey: string, owner?: string) => ({
  access_key: accessKey,
  secret: secretOf(accessKey),
  ...(owner !== undefined && { party: owner }),
});
