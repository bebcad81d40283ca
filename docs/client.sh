# Bash functions for the examples in this folder. Load them in the root of the project: . docs/client.sh
SERVICE=${SERVICE:-http://127.0.0.1:${PORT:-8080}}

# act_as ACCESS_KEY: chooses the demo credential that signs the next calls.
act_as() { KEY=$1 SECRET=$(sed -n 's/.*"'"$1"'": "\([^"]*\)".*/\1/p' "${DATA_DIR:-.data}/demo.json"); }

# call METHOD TARGET [BODY]: signs a request, sends it and prints the answer. CURL_OPTIONS can hold options for curl.
call() {
  local timestamp nonce hash signature
  timestamp=$(date +%s) nonce=$(openssl rand -hex 16)
  hash=$(printf %s "${3-}" | openssl dgst -sha256 -r | cut -d' ' -f1)
  signature=$(printf '%s\n%s\n%s\n%s\n%s\n' "$1" "$2" "$timestamp" "$nonce" "$hash" |
    openssl dgst -sha256 -hmac "$SECRET" -r | cut -d' ' -f1)
  curl -sS -X "$1" "$SERVICE$2" ${3:+-H 'content-type: application/json' -d "$3"} -H "x-svc-access-key: $KEY" \
    -H "x-svc-timestamp: $timestamp" -H "x-svc-nonce: $nonce" -H "x-svc-signature: $signature" $CURL_OPTIONS
  echo
}

# field NAME: prints the first field of that name in each line of the JSON answer on standard input.
field() {
  local rest
  while read -r rest || [ -n "$rest" ]; do
    [[ $rest == *"\"$1\":"* ]] || continue
    rest=${rest#*"\"$1\":"}
    case $rest in
      '"'*) rest=${rest#'"'} && echo "${rest%%'"'*}" ;;
      *) echo "${rest%%[,\}]*}" ;;
    esac
  done
}

# new_codes TEMPLATE COUNT: orders a batch, releases it and prints the codes.
new_codes() {
  local batch attempt
  batch=$(call POST /v1/batches '{"request_id":"'$(openssl rand -hex 8)'","template":"'$1'","total_count":'$2'}' |
    field external_id)
  for attempt in {1..60}; do call GET "/v1/batches/$batch" | grep -q COMPLETED && break; sleep 0.5; done
  call POST /v1/batches/allocate '{"request_id":"'$(openssl rand -hex 8)'","batch":"'$batch'"}' > /dev/null
  npm run -s codes -- "$batch" | tail -n +2 | cut -d, -f2
}
