# Prints the places of one C file that can be mutated, a line each:
#
#     file  line  column  length  new text  kind  function
#
# Columns count bytes from 1; function is "-" outside of one. Comments, strings, preprocessor lines and
# assertions have no places: a weaker assertion changes nothing in a program that is right.
# Usage: LC_ALL=C awk -f sites.awk FILE

BEGIN {
  FS = "\n"
  n_swaps = split ("< <= > >= <= < >= > + - - + * / / * % / && || || && == != != == += -= -= +=",
                   swaps, " ")
  n_words = split ("MIN MAX MAX MIN fmin fmax fmax fmin true false false true TRUE FALSE FALSE TRUE", words, " ")
}

function blank(n) { return sprintf ("%" n "s", "") }

# The line with comments, strings and characters as spaces; in_comment lasts over lines.
function code_of(line,    i, c, two, quote, out) {
  out = ""
  quote = ""
  for (i = 1; i <= length (line); i++) {
    c = substr (line, i, 1)
    two = substr (line, i, 2)
    if (in_comment) {
      if (two == "*/") { in_comment = 0; i++; out = out " " }
      out = out " "
    } else if (quote != "") {
      if (c == "\\") { i++; out = out " " }
      else if (c == quote) quote = ""
      out = out " "
    } else if (two == "/*") { in_comment = 1; i++; out = out "  " }
    else if (two == "//") { out = out blank(length (line) - i + 1); break }
    else if (c == "\"" || c == "'") { quote = c; out = out " " }
    else out = out c
  }
  return out
}

function site(column, len, text, kind) {
  printf "%s\t%d\t%d\t%d\t%s\t%s\t%s\n", FILENAME, FNR, column, len, text, kind, in_function ? name : "-"
}

# Binary operators, which have spaces on both sides here.
function operators(code,    i, from, at, token) {
  for (i = 1; i < n_swaps; i += 2) {
    token = " " swaps[i] " "
    for (from = 1; (at = index (substr (code, from), token)); from += at) {
      if (substr (code, from + at - 2, 1) ~ /[A-Za-z0-9_\])]/)
        site(from + at, length (swaps[i]), swaps[i + 1], swaps[i] " to " swaps[i + 1])
    }
  }
}

function known_words(code,    i, from, at, before, after) {
  for (i = 1; i < n_words; i += 2)
    for (from = 1; (at = index (substr (code, from), words[i])); from += at) {
      before = from + at - 2 < 1 ? " " : substr (code, from + at - 2, 1)
      after = substr (code, from + at - 1 + length (words[i]), 1)
      if (before !~ /[A-Za-z0-9_]/ && after !~ /[A-Za-z0-9_]/)
        site(from + at - 1, length (words[i]), words[i + 1], words[i] " to " words[i + 1])
    }
}

# An integer grows by one, a fraction doubles. The length of a local buffer is no number of the model.
function numbers(code,    from, rest, start, len, text, before) {
  if (code ~ /^ +(static )?(char|gchar|uint8_t) .*\[[0-9]+\]/)
    return
  from = 1
  while (match (rest = substr (code, from), /[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?/)) {
    start = from + RSTART - 1
    len = RLENGTH
    text = substr (code, start, len)
    before = start == 1 ? " " : substr (code, start - 1, 1)
    from = start + len
    if (before ~ /[A-Za-z0-9_.]/ || substr (code, from, 1) ~ /[xX_]/)
      continue
    if (text ~ /[.eE]/)
      site(start, len, "2 * " text, "constant")
    else
      site(start, len, sprintf ("%d", text + 1), "constant")
  }
}

# What stands on a line of its own behind another statement. Frees are left out: the sanitizers count leaks.
function statements(code,    indent, text) {
  match (code, /^ */)
  indent = RLENGTH
  text = substr (code, indent + 1)
  sub (/ +$/, "", text)
  if (match (text, /^return .+;$/) && text !~ /^return (0|NULL|true|false|-1);$/)
    site(indent + 1, length (text), "return 0;", "return 0")
  if (previous !~ /[;{})]$/ || text ~ /free|unref|destroy|clear|^return|^else|^case/)
    return
  if (text ~ /^[a-z_0-9]+ \(.*\);$/ && text !~ /^(if|for|while|switch|sizeof) /)
    site(indent + 1, length (text), ";", "call removed")
  else if (text ~ /^[*a-zA-Z_][^ ]*(\+\+|--);$/ || text ~ /^[*a-zA-Z_][^ ]* [-+*\/|&]?= .*;$/)
    site(indent + 1, length (text), ";", "assignment removed")
}

FNR == 1 { in_comment = in_function = in_assert = in_macro = 0; previous = "" }

{
  code = code_of($0)
  is_macro = in_macro || code ~ /^ *#/
  in_macro = is_macro && code ~ /\\$/
  if (is_macro || code ~ /^ *$/)
    next
  if (match (code, /^[A-Za-z_0-9]+ \(/))
    name = substr (code, 1, RLENGTH - 2)
  if (code ~ /^\{/)
    in_function = 1
  if (code ~ /g_assert|g_return|G_STATIC_ASSERT|_Static_assert/)
    in_assert = 1
  if (!in_assert) {
    if (in_function) {
      operators(code)
      known_words(code)
      statements(code)
    }
    numbers(code)
  }
  if (code ~ /; *$/)
    in_assert = 0
  if (code ~ /^\}/)
    in_function = 0
  previous = code
  sub (/ +$/, "", previous)
}
