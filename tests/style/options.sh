#!/usr/bin/env bash
# The manual says of each command what --help says: in src/manual/commands/COMMAND.md the
# synopsis between "<!-- usage: COMMAND -->" and "<!-- /usage -->" and the list between
# "<!-- options: COMMAND -->" and "<!-- /options -->", and in knobs.md the options of a job
# between "<!-- knobs -->" and "<!-- /knobs -->", of which those that are keys of a strategy (formats/strategy.md) are only
# named. Options with the same words in five commands or more stand in commands/index.md between "<!-- options: several -->"
# and "<!-- /options -->", and are only named in the others. README.md and commands/index.md list the
# commands between "<!-- commands -->" and "<!-- /commands -->".
# Usage: options.sh ROOT LOCKSTEP. LS_UPDATE_GOLDEN=1 writes these blocks.
set -euo pipefail
root=$(realpath -- "$1")
lockstep=$(realpath -- "$2")
export LC_ALL=C.UTF-8
out=$(mktemp -d)
trap 'rm -rf -- "$out"' EXIT
status=0 n=0

# The block of marker $2 ("options: run") of page $1 is the file $3.
hold() {
  local page=$root/$1 name=$2 end="<!-- /${2%%:*} -->"
  n=$((n + 1))
  if [[ ! -e $page ]] || [[ $(grep -cxF -- "<!-- $name -->" "$page") != 1 ]] || ! grep -qxF -- "$end" "$page"; then
    printf '%s: expected "<!-- %s -->" once, and "%s" after it\n' "$1" "$name" "$end"
    status=1
    return
  fi
  awk -v begin="<!-- $name -->" -v end="$end" -v file="$3" '
    $0 == begin { print; while ((getline line < file) > 0) print line; skip = 1; next }
    skip && $0 == end { skip = 0 }
    !skip' "$page" > "$out/new"
  if [[ ${LS_UPDATE_GOLDEN:-} == 1 ]]; then
    cmp -s -- "$out/new" "$page" || cat -- "$out/new" > "$page"
  else
    diff -u --label "$1" --label program "$page" "$out/new" || status=1
  fi
}

# The options of a command's --help, on standard input, as lists in Markdown, with the order and the words of --help. Of
# section $1 "options": those of the command itself; of "knobs": a list for each topic of a job, under a heading,
# and after it the names of those whose keys are words of $2.
lists() {
  awk -v section="$1" -v explained=" ${2-} " '
    function flush(   key) {
      if (tag == "")
        return
      key = tag
      sub(/^(-[a-z], )?(--set |--)/, "", key)
      sub(/[ =].*/, "", key)
      gsub(/-/, "_", key)
      if (on && section == "knobs" && index(explained, " " key " "))
        names = names (names == "" ? "" : ", ") "`" tag "`"
      else if (on) {
        if (tag ~ /^-h, --help/)
          sub(/: .*/, "", text) # the topics are in knobs.md
        printf "- `%s`: %s\n", tag, text
      }
      tag = text = ""
    }

    function end_topic() {
      flush()
      if (names != "")
        printf "- %s\n", names
      names = ""
    }

    /^[A-Z].*\(--help [a-z]+\):$/ {
      end_topic()
      on = section == "knobs"
      if (on) {
        topic = $0
        sub(/.*\(--help /, "", topic)
        sub(/\):$/, "", topic)
        sub(/ \(--help.*/, "")
        printf "\n### %s: `--help %s`\n\n", $0, topic
      }
      next
    }
    /^(Results|Options):$/ {
      end_topic()
      on = section != "knobs"
      next
    }
    /^$/ { end_topic(); if (on && section != "knobs") exit; next }
    !on { next }
    /^  -/ {
      flush()
      tag = substr($0, 3)
      text = ""
      if (length($0) > 30 && substr($0, 30, 1) == " ") {
        tag = substr($0, 3, 27)
        text = substr($0, 31)
      }
      gsub(/ +$/, "", tag)
      if (tag !~ /^--set [a-z]/) # --set tp_async=0|1 is typed so
        sub(/=/, " ", tag)
      next
    }
    /^ +[^ ]/ {
      sub(/^ +/, "")
      text = text (text == "" ? "" : " ") $0
    }
    END { end_topic() }
  '
}

# A row for each command, whose page is in folder $1.
commands_table() {
  printf '| Command | What it does |\n|---|---|\n'
  "$lockstep" --help | sed -nE '/^Commands:/,/^$/ s/^  ([a-z]+) +(.*)/\1\t\2/p' \
    | while IFS=$'\t' read -r name text; do printf '| [`lockstep %s`](%s%s.md) | %s |\n' "$name" "$1" "$name" "$text"; done
}

for command in $("$lockstep" --help | sed -nE '/^Commands:/,/^$/ s/^  ([a-z]+) .*/\1/p'); do
  page=src/manual/commands/$command.md
  "$lockstep" "$command" --help all > "$out/help"
  { printf '```\n'; sed -nE '1s/^Usage: //p; 2,/^$/ s/^  (lockstep)/\1/p' "$out/help"; printf '```\n'; } > "$out/usage"
  hold "$page" "usage: $command" "$out/usage"
  lists options < "$out/help" > "$out/$command.options"
  [[ -s $out/$command.options ]] || { printf 'no options in lockstep %s --help\n' "$command"; status=1; }
done
cat -- "$out"/*.options | sort | uniq -c | awk '$1 >= 5 { sub(/^ *[0-9]+ /, ""); print }' > "$out/several"
for command in $("$lockstep" --help | sed -nE '/^Commands:/,/^$/ s/^  ([a-z]+) .*/\1/p'); do
  { grep -vxFf "$out/several" "$out/$command.options" || true; } > "$out/options"
  named=$({ grep -xFf "$out/several" "$out/$command.options" || true; } | sed -E 's/^- (`[^`]*`): .*/\1/' | paste -sd, | sed 's/,`/, `/g')
  [[ -z $named ]] || printf -- '- %s: [as everywhere](index.md#options-of-several-commands)\n' "$named" >> "$out/options"
  hold "src/manual/commands/$command.md" "options: $command" "$out/options"
done
[[ ! -s $out/several ]] || hold src/manual/commands/index.md 'options: several' "$out/several"
strategy=$root/src/manual/formats/strategy.md
explained=$([[ ! -e $strategy ]] || sed -nE '/<!-- fields: strategy/,/<!-- \/fields/ s/^- `([a-z0-9_]+)`[ :].*/\1/p' "$strategy" | tr '\n' ' ')
"$lockstep" run --help all | lists knobs "$explained" > "$out/knobs"
hold src/manual/commands/knobs.md knobs "$out/knobs"
commands_table '' > "$out/commands"
hold src/manual/commands/index.md commands "$out/commands"
commands_table src/manual/commands/ > "$out/commands"
hold README.md commands "$out/commands"
printf '%d blocks\n' "$n"
((n > 3)) || status=1
exit "$status"
