#!/usr/bin/env bash
# Sentences of the manual have at most 35 words. Only prose is looked at: no fenced or indented blocks, tables,
# headings, comments, and lists of keys and options that are written by tests. A span of code, as a link's text, counts as it reads: `--tp 8` is one word. A sentence ends
# with its paragraph or item of a list, or with a stop before a capital, code or emphasis; "et al.", "e.g." and
# initials have no stop.
# Usage: sentences.sh ROOT; prints page:line of the start of each sentence that is longer, its words and how it begins.
set -euo pipefail
cd -- "$1"
mapfile -t pages < <(find src/manual -name '*.md' | sort)
awk -v most=35 '
  function end_sentence() {
    n_sentences += n > 0
    if (n > most) {
      printf "%s:%d: %d words: %s ...\n", page, begin, n, start
      status = 1
    }
    n = 0
    start = ""
  }

  # Whether the text of the paragraph from word i on begins a sentence.
  function begins(i) {
    while (word[i] == "\n")
      i++
    return i > n_words || word[i] ~ /^["(_\[]*[A-Z*]/
  }

  # Code becomes one word, and a link its text; ends of lines are kept, so that lines can be counted.
  function end_paragraph(    rest, from, code, i, line) {
    rest = text
    text = ""
    while ((from = index(rest, "`")) && (code = index(substr(rest, from + 1), "`"))) {
      text = text substr(rest, 1, from - 1) "Code" (substr(rest, from + 1, code - 1) ~ /\n/ ? "\n" : "")
      rest = substr(rest, from + code + 1)
    }
    text = text rest
    gsub(/\]\([^)]*\)/, "]", text)
    gsub(/\n/, " \n ", text)
    n_words = split(text, word, / +/)
    line = first
    for (i = 1; i <= n_words; i++) {
      if (word[i] == "\n") {
        line++
        continue
      }
      if (word[i] !~ /[A-Za-z0-9]/)
        continue
      if (!n++)
        begin = line
      if (n <= 6)
        start = start (n > 1 ? " " : "") word[i]
      if (word[i] ~ /[.!?][])"*_]*$/ && word[i] !~ /^\(?([A-Z]|al|e\.g|i\.e|vs)\.$/ && begins(i + 1))
        end_sentence()
    }
    end_sentence()
    text = ""
  }

  FNR == 1 { end_paragraph(); page = FILENAME; in_fence = in_comment = in_list = 0; n_pages++ }
  in_comment { in_comment = !/-->/; next }
  /^```/ { end_paragraph(); in_fence = !in_fence; next }
  in_fence { next }
  /^<!--/ { end_paragraph(); in_comment = !/-->/; in_list = /^<!-- (fields|json|options|knobs)/; next }
  in_list { next }
  /^ *$|^    |^#|^ *\|/ { end_paragraph(); next }
  /^ *([-*]|[0-9]+\.) / { end_paragraph(); sub(/^ *([-*]|[0-9]+\.) /, "") }
  {
    sub(/^ *\*\*[0-9]+\.\*\* /, "")
    if (text == "")
      first = FNR
    text = text (text == "" ? "" : "\n") $0
  }
  END {
    end_paragraph()
    printf "%d pages, %d sentences\n", n_pages, n_sentences
    exit status || !n_sentences
  }' "${pages[@]}" /dev/null
