let counter = 0;

/** A request_id that is unique in this process. */
export const newRequestId = (): string => `test-${process.pid}-${(counter += 1)}`;
