# The options of a command's --help as tables in Markdown, with the rows, the order and the
# words of --help. With section "options": those of the command itself; with "knobs": a
# table for each topic of a job, under a heading.
# Usage: lockstep COMMAND --help all | awk -v section=options|knobs -f options.awk

function flush() {
  if (tag == "")
    return
  gsub(/\|/, "\\|", tag)
  gsub(/\|/, "\\|", text)
  printf "| `%s` | %s |\n", tag, text
  tag = text = ""
}

function head() { print "| Option | Meaning |\n|---|---|" }

/^[A-Z].*\(--help [a-z]+\):$/ {
  flush()
  on = section == "knobs"
  if (on) {
    topic = $0
    sub(/.*\(--help /, "", topic)
    sub(/\):$/, "", topic)
    sub(/ \(--help.*/, "")
    printf "\n### %s: `--help %s`\n\n", $0, topic
    head()
  }
  next
}
/^(Results|Options):$/ {
  flush()
  on = section != "knobs"
  if (on)
    head()
  next
}
/^$/ { flush(); if (on && section != "knobs") exit; next }
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
END { flush() }
