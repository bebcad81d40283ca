-- The delay after p_attempt_count failed attempts: the schedule of Standard Webhooks, varied by up
-- to 20 % so that deliveries that failed together are not retried together. Null after the tenth
-- attempt: the delivery is parked.
create or replace function rules.compute_retry_delay(p_attempt_count int) returns interval
language sql volatile
return (array[
  '5 seconds', '5 minutes', '30 minutes', '2 hours', '5 hours', '10 hours', '14 hours', '20 hours',
  '24 hours']::interval[])[p_attempt_count] * (0.8 + 0.4 * random());
