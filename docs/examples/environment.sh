# Writes the variables of coupon.http: the secrets of the demo tenants and, with BATCH, the code of its first coupon.
# In the root of the project: bash docs/examples/environment.sh [BATCH]
set -e -o pipefail
CODE=
[ $# = 0 ] || CODE=$(npm run -s codes -- "$1" | sed -n '2s/.*,//p')
umask 077
{
  echo '{ "demo": {'
  sed '1d; $d; s/$/,/; s/,,$/,/' "${DATA_DIR:-.data}/demo.json"
  echo '  "service": "'"${SERVICE:-http://127.0.0.1:${PORT:-8080}}"'",'
  echo '  "run": "'"$(openssl rand -hex 4)"'",'
  echo '  "code": "'"$CODE"'"'
  echo '} }'
} > docs/examples/http-client.private.env.json
