# One coupon's life, with curl. In the root of the project: bash docs/examples/coupon.sh
set -e -o pipefail
. docs/client.sh
RUN=$(openssl rand -hex 4)

# step OPERATION FIELD METHOD TARGET [BODY]: calls the service and prints that field of the answer.
step() {
  local value
  ANSWER=$(call "${@:3}")
  value=$(field "$2" <<< "$ANSWER")
  echo "$1 ${value:-$ANSWER}"
  [ -n "$value" ]
}

# The maker orders a coupon, waits until it is minted, and releases it to the distributor.
act_as ak_demo_maker
step create_batch status POST /v1/batches \
  '{"request_id": "create-'$RUN'", "template": "tpl_fiveoff", "total_count": 1}'
BATCH=$(field external_id <<< "$ANSWER")
for attempt in {1..60}; do
  call GET "/v1/batches/$BATCH" | grep -q COMPLETED && break
  sleep 0.5
done
step get_batch status GET "/v1/batches/$BATCH"
step allocate_batch status POST /v1/batches/allocate '{"request_id": "allocate-'$RUN'", "batch": "'$BATCH'"}'

step list_batches status GET '/v1/batches?template=tpl_fiveoff&limit=1'

# The operator's command hands over the code. A maker with a public key can also fetch it, encrypted: export_codes.
CODE=$(npm run -s codes -- "$BATCH" | sed -n '2s/.*,//p')

# A list of codes is missing: the maker suspends the batch, and the till sees it. Then the list is found.
step suspend_batch status POST /v1/batches/suspend '{"request_id": "suspend-'$RUN'", "batch": "'$BATCH'"}'
act_as ak_demo_pos
QUESTION='{"coupon": "'$CODE'", "merchant": "mch_corner", "order_amount": 45.50}'
step query code POST /v1/coupons/query "$QUESTION"
act_as ak_demo_maker
step resume_batch status POST /v1/batches/resume '{"request_id": "resume-'$RUN'", "batch": "'$BATCH'"}'

# The till shows the discount while goods are scanned.
act_as ak_demo_pos
step query discount_amount POST /v1/coupons/query "$QUESTION"

# It locks the coupon, takes the discount off the order, and confirms when the customer has paid.
step lock discount_amount POST /v1/coupons/lock '{
  "request_id": "lock-'$RUN'", "coupon": "'$CODE'", "merchant": "mch_corner",
  "store": "S1", "terminal": "T1", "order_id": "4711", "order_amount": 45.50
}'
step confirm status POST /v1/coupons/confirm '{
  "request_id": "confirm-'$RUN'", "lock_request_id": "lock-'$RUN'", "coupon": "'$CODE'", "merchant": "mch_corner"
}'

# The customer returns the goods. The returns desk knows the number of the order. The newest redemption comes first.
step list_redemptions status GET '/v1/redemptions?merchant=mch_corner&order_id=4711'
REDEMPTION=$(field redemption <<< "$ANSWER")

# The template says "reissued": the coupon can be used again.
step reverse status POST /v1/redemptions/reverse '{
  "request_id": "reverse-'$RUN'", "redemption": "'$REDEMPTION'", "reason": "goods returned"
}'
step get_redemption status GET "/v1/redemptions/$REDEMPTION"

# The next order redeems it in one step, and is returned too.
step redeem discount_amount POST /v1/coupons/redeem '{
  "request_id": "redeem-'$RUN'", "coupon": "'$CODE'", "merchant": "mch_corner",
  "store": "S1", "terminal": "T1", "order_id": "4712", "order_amount": 24.90
}'
REDEMPTION=$(field redemption <<< "$ANSWER")
step reverse status POST /v1/redemptions/reverse '{
  "request_id": "reverse-again-'$RUN'", "redemption": "'$REDEMPTION'", "reason": "goods returned"
}'

# The customer of the third order leaves without paying: the till gives up its lock.
step lock discount_amount POST /v1/coupons/lock '{
  "request_id": "last-lock-'$RUN'", "coupon": "'$CODE'", "merchant": "mch_corner",
  "store": "S1", "terminal": "T1", "order_id": "4713", "order_amount": 60
}'
step cancel status POST /v1/coupons/cancel '{
  "request_id": "cancel-'$RUN'", "lock_request_id": "last-lock-'$RUN'", "coupon": "'$CODE'"
}'

# The till voids the unused coupon, and looks at it.
step void status POST /v1/coupons/void '{
  "request_id": "void-'$RUN'", "coupon": "'$CODE'", "merchant": "mch_corner", "reason": "printed twice"
}'
step query status POST /v1/coupons/query '{"coupon": "'$CODE'", "merchant": "mch_corner"}'
COUPON=$(field coupon_id <<< "$ANSWER")

# The distributor pulls the events of this coupon; they arrive within seconds. next_cursor leads to the next page.
act_as ak_demo_dist
for attempt in {1..60}; do
  EVENTS=$(call GET '/v1/events?limit=1000' | grep -o "{[^{]*$COUPON[^}]*}" | field event_type) || true
  [[ $EVENTS == *coupon.voided ]] && break
  sleep 0.5
done
echo pull_events $EVENTS

# It downloads the newest statement. The first one comes after midnight.
DATE=$(call GET '/v1/reconciliations?limit=1000' | field business_date)
echo "list_reconciliations ${DATE:-none}"
[ -z "$DATE" ] ||
  call GET "/v1/reconciliations/$DATE/summary" | tr -d '\r' | sed -n '1d; s/^2/get_reconciliation &/p'

# It asks how the deliveries to its webhook go.
step get_webhook status GET /v1/webhook
