#!/usr/bin/env bash
# No script with pipefail has a pipe into what stops before its input ends (head, grep -q, grep -m): what writes into it then dies
# of SIGPIPE, or does not, as the machine happens to be busy, and the script fails now and then. grep >/dev/null reads all.
# Usage: pipes.sh ROOT
set -euo pipefail
cd -- "$1"
status=0 n=0
while read -r script; do
  n=$((n + 1))
  if grep -nHE '(^|[^|])\|[[:space:]]*(head\b|grep ([^|]* )?-[a-zA-Z]*[qm])' "$script" | grep -vE '^[^:]*:[0-9]+:[[:space:]]*#'; then
    status=1
  fi
done < <(grep -rlE '^set -[a-z]*o pipefail' .ci tools tests | grep -vE '/pipes\.sh$|catches\.sh$' | sort)
if ((status)); then
  echo 'a pipe into what stops before its input ends: read all of it, then look'
fi
((n > 0)) || { echo 'no script was looked at'; status=1; }
exit "$status"
