# A page of the manual as Markdown for a man page: the title and the line below it become the
# section NAME, a table a list of definitions, a link its text; comments and pictures are left
# out. A row's first cell is its term, the second its text; further ones follow with their
# headings. Further pages follow as sections.
# Usage: awk -v name=lockstep-run -f man.awk PAGE...

function text_of_links(line,   out, label) {
  while (match(line, /\[[^][]*\]\([^)]*\)/)) {
    label = substr(line, RSTART, RLENGTH)
    sub(/^\[/, "", label)
    sub(/\]\(.*/, "", label)
    out = out substr(line, 1, RSTART - 1) label
    line = substr(line, RSTART + RLENGTH)
  }
  return out line
}

# The cells of a row; "\|" does not end one.
function split_row(line, cells,   n, i) {
  gsub(/\\\|/, "\001", line)
  gsub(/^\| *| *\|$/, "", line)
  n = split(line, cells, / *\| */)
  for (i = 1; i <= n; i++)
    gsub("\001", "|", cells[i])
  return n
}

function print_row(line,   n, i) {
  n = split_row(text_of_links(line), cells)
  printf "%s\n: %s", cells[1], cells[2]
  for (i = 3; i <= n; i++)
    if (cells[i] != "")
      printf "%s%s: %s", cells[i - 1] == "" ? "" : ". ", headings[i], cells[i]
  print "\n"
}

FNR == 1 { is_first_page = NR == 1; in_table = in_fence = 0 }
/^```/ { in_fence = !in_fence }
in_fence { print; next }
/^<!--.*-->$/ || /^!\[/ { next }
is_first_page && FNR == 1 { print "# NAME\n"; wants_summary = 1; next }
wants_summary && /[^ ]/ { print name " - " $0; wants_summary = 0; next }
/^\|--/ { next }
/^\|/ {
  if (in_table)
    print_row($0)
  else
    split_row($0, headings)
  in_table = 1
  next
}
{ in_table = 0 }
held != "" { $0 = held " " $0; held = "" }
/\[[^][]*$/ && !/^    / { held = $0; next } # a link that the next line ends
/^##+ / { sub(/^#/, "") }
/^# / { $0 = toupper($0) }
/^    / { print; next }
{ print text_of_links($0) }
