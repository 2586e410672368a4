# The manual page from README.md: what stands there between "<!-- man" and
# "<!-- /man -->", so that both say the same; at "<!-- knobs" the options by topic of
# `lockstep run --help all`, which KNOBS holds.
# Usage: awk -v version=0.1.0 -v knobs=KNOBS -f man.awk README.md
#
# Knows as much of Markdown as is used there: headings, paragraphs, indented blocks,
# `code`, *emphasis*, and tables. A row becomes an entry: the first cell is its tag,
# further cells follow; those after the second with their heading ("Default: 1").

BEGIN {
  printf ".TH LOCKSTEP 1 \"\" \"lockstep %s\" \"User Commands\"\n", version
  print ".SH NAME\nlockstep \\- predict one training step of a large model on a cluster"
  print ".SH SYNOPSIS\n.B lockstep\n.I COMMAND\n[\\fIOPTION\\fR...]"
  print ".SH DESCRIPTION\nSimulates a training job event by event: which rank does what and when, what waits for what,"
  print "which link is full, whether it fits into memory, how long a step takes and why."
}

# As it stands: backslashes, and hyphens that are minus signs.
function escape(text) {
  gsub(/\\/, "\\e", text)
  gsub(/-/, "\\-", text)
  return text
}

# Prose: *emphasis*, and hyphens that are hyphens.
function prose(text,   n, parts, i, out) {
  gsub(/\\/, "\\e", text)
  n = split(text, parts, "*")
  if (n % 2 == 0)
    return text
  for (i = 1; i <= n; i++)
    out = out (i % 2 ? parts[i] : "\\fI" parts[i] "\\fR")
  return out
}

function inline(text,   n, parts, i, out) {
  gsub(/\\\|/, "|", text)
  n = split(text, parts, "`")
  for (i = 1; i <= n; i++)
    out = out (i % 2 ? prose(parts[i]) : "\\fB" escape(parts[i]) "\\fR")
  sub(/^[.']/, "\\\\\\&&", out)
  return out
}

function trim(text) {
  gsub(/^ +| +$/, "", text)
  return text
}

# The cells of a row; "\|" does not end one.
function split_row(line, cells,   n) {
  gsub(/\\\|/, "\001", line)
  sub(/^\|/, "", line)
  sub(/\|$/, "", line)
  n = split(line, cells, "|")
  for (i = 1; i <= n; i++) {
    cells[i] = trim(cells[i])
    gsub("\001", "|", cells[i])
  }
  return n
}

# The options of a topic: a tag of the first columns, or of the whole line where it is long.
function print_knobs(   line, text, tag) {
  while ((getline line < knobs) > 0 && line !~ /^Results:/) {
    if (line ~ /^[A-Z].*\(--help [a-z]+\):$/) {
      sub(/ \(--help.*/, "", line)
      print ".PP\n" prose(line) ":"
    } else if (line ~ /^  --/) {
      tag = trim(substr(line, 1, 29))
      text = trim(substr(line, 31))
      if (substr(line, 30, 1) != " ") {
        tag = trim(line)
        text = ""
      }
      if (tag !~ /^--set /)
        sub(/=/, " ", tag)
      print ".TP\n" bold(tag)
      if (text != "")
        print inline(text)
    } else if (line ~ /^ +[^ ]/)
      print inline(trim(line))
  }
  close(knobs)
}

function bold(text) {
  return "\\fB" escape(text) "\\fR"
}

function end_block() {
  if (in_code)
    print ".EE\n.RE"
  in_code = 0
}

/^<!-- man/ { is_manual = 1; next }
/^<!-- \/man/ { end_block(); is_manual = 0 }
is_manual && /^<!-- knobs/ { end_block(); print_knobs() }
!is_manual || /^<!--/ { next }

/^\|--/ { next }
/^\|/ {
  n = split_row($0, cells)
  if (!in_table) {
    in_table = 1
    split_row($0, headings)
    next
  }
  printf ".TP\n%s\n%s", inline(cells[1]), inline(cells[2])
  for (i = 3; i <= n; i++)
    if (cells[i] != "")
      printf "%s%s: %s", cells[i - 1] == "" ? "" : ". ", headings[i], inline(cells[i])
  print ""
  next
}
{ in_table = 0 }

/^    / {
  if (!in_code)
    print ".PP\n.RS 4\n.EX"
  in_code = 1
  text = escape(substr($0, 5))
  sub(/^[.']/, "\\\\\\&&", text)
  print text
  next
}
{ end_block() }

/^## / { print ".SH " toupper(substr($0, 4)); next }
/^### / { print ".SS " escape(substr($0, 5)); next }
/^$/ { starts_paragraph = 1; next }
{
  if (starts_paragraph)
    print ".PP"
  starts_paragraph = 0
  print inline($0)
}
