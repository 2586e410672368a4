#include "data/text/text_place.h"

#include <string.h>

void
ls_text_advance (const char *text, size_t n, int *line, int *col)
{
  for (size_t i = 0; i < n; i++) {
    if (text[i] == '\n') {
      ++*line;
      *col = 1;
    } else if (((unsigned char) text[i] & 0xc0) != 0x80) { /* first byte of a code point */
      ++*col;
    }
  }
}

static char *
line_around (const char *text, size_t offset)
{
  const char *start = text + offset;
  while (start > text && start[-1] != '\n')
    start--;
  return g_strndup (start, strcspn (start, "\r\n"));
}

void
ls_text_diag (LsErrorCode code, const char *name, const char *text, size_t offset, LsDiagList *diags,
              const char *pointer, const char *hint, const char *message)
{
  int line = 1, col = 1;
  ls_text_advance (text, offset, &line, &col);
  g_autofree char *source_line = line_around (text, offset);
  ls_diag_add (diags, code, name, line, col, pointer, source_line, hint, "%s", message);
}

bool
ls_file_diag (LsDiagList *diags, LsErrorCode code, const char *path, const char *hint, const char *format,
              ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  ls_diag_add (diags, code, path, 0, 0, NULL, NULL, hint, "%s", message);
  return false;
}

bool
ls_text_check (const char *text, size_t n, const char *name, const char *what, LsDiagList *diags)
{
  const char *nul = memchr (text, '\0', n), *end = nul;
  if (!nul && g_utf8_validate (text, (gssize) n, &end))
    return true;
  g_autofree char *message = g_strdup_printf ("%s; expected %s", nul ? "a NUL byte" : "invalid UTF-8", what);
  ls_text_diag (LS_ERROR_INPUT, name, text, (size_t) (end - text), diags, NULL, NULL, message);
  return false;
}
