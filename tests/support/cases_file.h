/* tests/support/cases_file.h — a file of wrong documents and what is said of each:
 *
 *     === KIND/NAME.EXT
 *     the document, line by line
 *     =>
 *     @:2:5: error: ...          @ stands for the path of the document
 *     exit 2
 *
 * KIND says which reader reads it, NAME.EXT is the name that it sees. "=== KIND/NAME.EXT escaped": the
 * document has escapes of C, such as \377 for a byte that no editor shows. "=== KIND/NAME.EXT without
 * newline": the last line of the document has none; both may stand, in this order. Above a case there may be
 * blank lines and lines that begin with '#'. A line "=>" of a document, or one that begins with "=== ", is
 * written with an escape. */
#ifndef LS_TESTS_CASES_FILE_H
#define LS_TESTS_CASES_FILE_H

#include <glib.h>
#include <stdbool.h>
#include <string.h>

typedef struct {
  char *above; /* comments and blank lines */
  char *header, *kind, *name;
  bool is_escaped, lacks_newline;
  char *document; /* as it is written */
  char *expected; /* "" if it has never been written */
} LsDocCase;

static inline void
ls_doc_case_free (gpointer data)
{
  LsDocCase *c = data;
  g_free (c->above);
  g_free (c->header);
  g_free (c->kind);
  g_free (c->name);
  g_free (c->document);
  g_free (c->expected);
  g_free (c);
}

#define LS_CASE_HEADER     "=== "
#define LS_CASE_ESCAPED    " escaped"
#define LS_CASE_NO_NEWLINE " without newline"

static inline bool
ls_at_header (const char *line)
{
  return g_str_has_prefix (line, LS_CASE_HEADER);
}

static inline bool
ls_at_arrow (const char *line)
{
  return g_str_has_prefix (line, "=>\n");
}

static inline bool
ls_at_exit (const char *line)
{
  return g_str_has_prefix (line, "exit ") && g_ascii_isdigit (line[5]);
}

static inline bool
ls_at_text (const char *line)
{
  return *line != '#' && *line != '\n';
}

static inline bool
ls_after_document (const char *line)
{
  return ls_at_arrow (line) || ls_at_header (line);
}

static inline bool
ls_after_diagnostics (const char *line)
{
  return ls_at_exit (line) || ls_after_document (line);
}

static inline const char *
ls_next_line (const char *line)
{
  const char *newline = strchr (line, '\n');
  return newline ? newline + 1 : line + strlen (line);
}

/* The lines up to the first that is_end() accepts, or to the end of the text; moves *at there. */
static inline char *
ls_lines_until (const char **at, bool (*is_end) (const char *line))
{
  const char *start = *at;
  while (**at && !is_end (*at))
    *at = ls_next_line (*at);
  return g_strndup (start, (gsize) (*at - start));
}

/* The diagnostics with their "exit N"; "" if nothing but comments comes before the next case. */
static inline char *
ls_take_expected (const char **at)
{
  const char *start = *at;
  g_autofree char *diagnostics = ls_lines_until (at, ls_after_diagnostics);
  if (ls_at_exit (*at)) {
    *at = ls_next_line (*at);
    return g_strndup (start, (gsize) (*at - start));
  }
  *at = start;
  return g_strdup ("");
}

/* Cuts the word off the end of the name, if it is there. */
static inline bool
ls_take_suffix (char *name, const char *suffix)
{
  bool has = g_str_has_suffix (name, suffix);
  if (has)
    name[strlen (name) - strlen (suffix)] = '\0';
  return has;
}

/* The line of a header, taken apart; name is "" if it is not KIND/NAME. */
static inline LsDocCase *
ls_take_header (const char **at)
{
  LsDocCase *c = g_new0 (LsDocCase, 1);
  const char *line = *at;
  *at = ls_next_line (line);
  c->header = g_strchomp (g_strndup (line, (gsize) (*at - line)));
  g_auto (GStrv) parts = g_strsplit (c->header + strlen (LS_CASE_HEADER), "/", 2);
  c->kind = g_strdup (parts[0] ? parts[0] : "");
  c->name = g_strdup (*c->kind && parts[1] ? parts[1] : "");
  c->lacks_newline = ls_take_suffix (c->name, LS_CASE_NO_NEWLINE);
  c->is_escaped = ls_take_suffix (c->name, LS_CASE_ESCAPED);
  return c;
}

/* The bytes that the document stands for; g_string_free() them. A NUL is written \000. */
static inline GString *
ls_doc_case_bytes (const LsDocCase *c)
{
  g_autofree char *written = g_strndup (c->document, strlen (c->document) - c->lacks_newline);
  if (!c->is_escaped)
    return g_string_new (written);
  GString *bytes = g_string_new (NULL);
  g_auto (GStrv) parts = g_strsplit (written, "\\000", -1);
  for (guint i = 0; parts[i]; i++) {
    g_autofree char *part = g_strcompress (parts[i]);
    if (i > 0)
      g_string_append_c (bytes, '\0');
    g_string_append (bytes, part);
  }
  return bytes;
}

/* NULL if the text at *at, the line of a header, is no case; *why says what is wrong with it. */
static inline LsDocCase *
ls_take_case (const char **at, const char **why)
{
  LsDocCase *c = ls_take_header (at);
  c->document = ls_lines_until (at, ls_after_document);
  bool has_arrow = ls_at_arrow (*at);
  if (has_arrow) {
    *at = ls_next_line (*at);
    c->expected = ls_take_expected (at);
  }
  *why = !*c->name || strpbrk (c->name, " /") || strchr (c->kind, ' ')
      ? "expected KIND/NAME.EXT after \"=== \""
      : !has_arrow                        ? "no \"=>\" after the document"
      : c->lacks_newline && !*c->document ? "no document that could lack a newline"
                                          : NULL;
  if (!*why)
    return c;
  ls_doc_case_free (c);
  return NULL;
}

/* Cases of the text in their order, and in *tail what comes after the last; NULL, with the line in *line and
 * the reason in *why, if the text has another form. */
static inline GPtrArray *
ls_cases_parse (const char *text, char **tail, guint *line, const char **why)
{
  g_autoptr (GPtrArray) cases = g_ptr_array_new_with_free_func (ls_doc_case_free);
  const char *at = text;
  *why = NULL;
  while (!*why) {
    char *above = ls_lines_until (&at, ls_at_text);
    const char *start = at;
    LsDocCase *c = NULL;
    if (!*at) {
      *tail = above;
      return g_steal_pointer (&cases);
    }
    if (ls_at_header (at))
      c = ls_take_case (&at, why);
    else
      *why = "expected \"=== KIND/NAME\", a comment, or \"exit N\" after the diagnostics";
    if (c) {
      c->above = above;
      g_ptr_array_add (cases, c);
    } else {
      g_free (above);
      at = start;
    }
  }
  *line = 1;
  for (const char *p = text; p < at; p = ls_next_line (p))
    ++*line;
  return NULL;
}

/* The text that ls_cases_parse() reads as these cases. */
static inline char *
ls_cases_format (const GPtrArray *cases, const char *tail)
{
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < cases->len; i++) {
    const LsDocCase *c = cases->pdata[i];
    g_string_append_printf (text, "%s%s\n%s=>\n%s", c->above, c->header, c->document, c->expected);
  }
  g_string_append (text, tail);
  return g_string_free (text, FALSE);
}

#endif
