/* show/write_lab.c — labs and grades, as text and JSON. */
#include "show/answers.h"

#include <math.h>
#include <string.h>

#define WIDTH 100

/* Words in lines of at most WIDTH, further ones as far in as the first. */
static void
append_wrapped (GString *out, const char *lead, const char *text)
{
  g_auto (GStrv) words = g_strsplit (text, " ", -1);
  const gsize indent = (gsize) g_utf8_strlen (lead, -1);
  gsize used = indent;
  g_string_append (out, lead);
  for (char **word = words; *word; word++) {
    gsize length = (gsize) g_utf8_strlen (*word, -1);
    if (used > indent && used + 1 + length > WIDTH) {
      g_string_append_printf (out, "\n%*s", (int) indent, "");
      used = indent;
    }
    g_string_append_printf (out, "%s%s", used > indent ? " " : "", *word);
    used += length + (used > indent);
  }
  g_string_append_c (out, '\n');
}

#include "show/lab_text.h"

#include "show/grades_keys.h"
