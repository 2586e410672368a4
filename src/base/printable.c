#include "base/printable.h"

#include <glib.h>

/* What stands for a code point, or 0: itself. */
static char
stand_in (gunichar c)
{
  switch (g_unichar_type (c)) {
  case G_UNICODE_CONTROL:
    return c == '\t' ? 0 : (c >= '\n' && c <= '\r') || c == 0x85 ? ' ' : '?';
  case G_UNICODE_LINE_SEPARATOR:
  case G_UNICODE_PARAGRAPH_SEPARATOR:
    return ' ';
  case G_UNICODE_FORMAT:
    return '?';
  default:
    return 0;
  }
}

void
ls_make_printable (char *text)
{
  char *to = text;
  for (char *at = text, *next; at && *at; at = next) {
    next = g_utf8_next_char (at);
    char c = g_ascii_isprint (*at) ? 0 : stand_in (g_utf8_get_char (at));
    if (c)
      *to++ = c;
    else
      while (at < next)
        *to++ = *at++;
  }
  if (to)
    *to = '\0';
}

char *
ls_printable (const char *text)
{
  char *shown = text ? g_utf8_make_valid (text, -1) : NULL;
  ls_make_printable (shown);
  return shown;
}

char *
ls_printable_lines (const char *text)
{
  g_auto (GStrv) lines = text ? g_strsplit (text, "\n", -1) : NULL;
  for (char **line = lines; line && *line; line++) {
    char *shown = ls_printable (*line);
    g_free (*line);
    *line = shown;
  }
  return lines ? g_strjoinv ("\n", lines) : NULL;
}
