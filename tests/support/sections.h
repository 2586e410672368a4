/* tests/support/sections.h — expected texts of several tests in one file:
 *
 *     === NAME
 *     the text, line by line; it has no line that begins with "=== "
 *
 * LS_UPDATE_GOLDEN=1 writes a text anew, in its place. */
#ifndef LS_TESTS_SECTIONS_H
#define LS_TESTS_SECTIONS_H

#include <string.h>

#include "ls_test.h"

#define LS_SECTION "=== "

/* Where the text of a section begins, and its bytes in *length; NULL: the file has none of that name. */
static inline const char *
ls_section_find (const char *file, const char *name, gsize *length)
{
  g_autofree char *header = g_strconcat (LS_SECTION, name, "\n", NULL);
  const char *at = file;
  while (at && !g_str_has_prefix (at, header)) {
    at = strstr (at, "\n" LS_SECTION);
    at = at ? at + 1 : NULL;
  }
  if (!at)
    return NULL;
  at += strlen (header);
  const char *next = g_str_has_prefix (at, LS_SECTION) ? at : strstr (at, "\n" LS_SECTION);
  *length = !next ? strlen (at) : next == at ? 0 : (gsize) (next + 1 - at);
  return at;
}

/* The file with this text as its section; a new one goes to the end. */
static inline char *
ls_section_replace (const char *file, const char *name, const char *text)
{
  gsize length = 0;
  const char *at = ls_section_find (file, name, &length);
  if (!at)
    return g_strconcat (file, LS_SECTION, name, "\n", text, NULL);
  g_autofree char *before = g_strndup (file, (gsize) (at - file));
  return g_strconcat (before, text, at + length, NULL);
}

/* Holds a text against section NAME of tests/FILE. */
static inline void
ls_check_section (const char *file, const char *name, const char *is)
{
  g_autofree char *path = g_build_filename (g_getenv ("LS_DATA_DIR"), "tests", file, NULL), *was = NULL;
  if (!g_file_get_contents (path, &was, NULL, NULL))
    was = g_strdup ("");
  if (g_strcmp0 (g_getenv ("LS_UPDATE_GOLDEN"), "1") == 0) {
    g_autofree char *now = ls_section_replace (was, name, is);
    LS_CHECK (g_file_set_contents (path, now, -1, NULL));
    return;
  }
  gsize length = 0;
  const char *at = ls_section_find (was, name, &length);
  bool is_same = at && strlen (is) == length && strncmp (is, at, length) == 0;
  ls_check_impl (is_same, __FILE__, __LINE__,
                 "%s: section %s (LS_UPDATE_GOLDEN=1 writes it anew) should be:\n%s", path, name, is);
}

#endif
