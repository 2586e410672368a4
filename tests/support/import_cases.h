/* tests/support/import_cases.h — reads a file of launch files and of what each means:
 *
 *     === NAME.EXT
 *     the file, line by line; @GPT stands for the text of a base, @ for what a row says
 *     =>
 *     tp 2; not ep; unknown a part of a remark
 *     with --an-option => tp 4
 *     with --another
 *     > on a second line
 *     refused a part of the reason
 *
 * tests/README.md says more. An empty line ends what is expected. Above a case there may be blank lines and lines
 * that begin with '#'. "=== NAME.EXT escaped": the file has escapes of C. "=== GPT base": the lines up to an
 * empty one are a base, for what is below. */
#ifndef LS_TESTS_IMPORT_CASES_H
#define LS_TESTS_IMPORT_CASES_H

#include <string.h>

#include "ls_test.h"

/* A file of a case; it is given, or lies beside those that are. A name ":WORDS" are words that are given. */
typedef struct {
  const char *name;
  GString *text;
  bool is_given;
} LsCaseFile;

/* "with": what stands in place of each @. */
typedef struct {
  guint line;
  GString *option;
} LsCaseRow;

typedef struct {
  guint line, row; /* row: 1 for the first; 0: each row must give it */
  const char *what;
} LsCaseExpected;

typedef struct {
  guint line;
  const char *name;
  bool is_escaped;
  GArray *files, *rows, *expected;
} LsImportCase;

/* A file of cases, line by line: lines[at] comes next, and is line at + 1. */
typedef struct {
  const char *path;
  char **lines;
  guint at, n_run;
  GStringChunk *words;       /* texts that live as long as the reader */
  GHashTable *names, *bases; /* bases: their texts by their names */
} LsCaseReader;

/* false */
static inline bool
ls_case_fail (const LsCaseReader *r, guint line, const char *what, const char *of)
{
  return ls_check_impl (false, r->path, (int) line + 1, "%s%s", what, of);
}

/* The line with the text of each base that it names; newly allocated. */
static inline char *
ls_case_line (const LsCaseReader *r, const char *line)
{
  GString *text = g_string_new (NULL);
  for (const char *at = line; *at; at++) {
    gsize n = *at == '@' && g_ascii_isupper (at[1]) ? strspn (at + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")
                                                    : 0;
    g_autofree char *name = g_strndup (at + 1, n);
    const char *base = n > 0 ? g_hash_table_lookup (r->bases, name) : NULL;
    if (n > 0 && !base)
      ls_case_fail (r, r->at, "no base of the name ", name);
    if (base)
      g_string_append (text, base);
    else
      g_string_append_c (text, *at);
    at += n;
  }
  return g_string_free (text, FALSE);
}

static inline void
ls_case_read_base (LsCaseReader *r, const char *name)
{
  GString *text = g_string_new (NULL);
  for (r->at++; r->lines[r->at] && *r->lines[r->at]; r->at++) {
    g_autofree char *line = ls_case_line (r, r->lines[r->at]);
    g_string_append_printf (text, "%s%s", text->len > 0 ? "\n" : "", line);
  }
  g_hash_table_replace (r->bases, g_string_chunk_insert (r->words, name),
                        g_string_chunk_insert (r->words, text->str));
  g_string_free (text, TRUE);
}

static inline void
ls_case_add_file (LsCaseReader *r, LsImportCase *c, const char *name, bool is_given)
{
  LsCaseFile file = { g_string_chunk_insert (r->words, name), g_string_new (NULL), is_given };
  g_array_append_val (c->files, file);
}

/* Up to "=>": the first file has the name of the case. "--- NAME" begins one beside it, "+++ NAME" one that is
 * given too, and right below the header either names the first. */
static inline bool
ls_case_read_files (LsCaseReader *r, LsImportCase *c)
{
  for (; r->lines[r->at] && strcmp (r->lines[r->at], "=>") != 0; r->at++) {
    const char *line = r->lines[r->at];
    bool is_given = g_str_has_prefix (line, "+++ ");
    if (g_str_has_prefix (line, "=== "))
      return ls_case_fail (r, r->at, "no \"=>\" before ", line);
    if ((is_given || g_str_has_prefix (line, "--- ")) && !strchr (line + 4, ' ')) {
      ls_case_add_file (r, c, line + 4, is_given || c->files->len == 0);
      continue;
    }
    if (c->files->len == 0)
      ls_case_add_file (r, c, c->name, true);
    g_autofree char *written = ls_case_line (r, line), *text = c->is_escaped ? g_strcompress (written) : NULL;
    g_string_append_printf (g_array_index (c->files, LsCaseFile, c->files->len - 1).text, "%s\n",
                            text ? text : written);
  }
  return (r->lines[r->at] && r->lines[r->at++] && c->files->len > 0)
      || ls_case_fail (r, c->line, "no file and \"=>\" below ", c->name);
}

static inline void
ls_case_add_expected (LsCaseReader *r, LsImportCase *c, const char *line)
{
  g_auto (GStrv) all = g_strsplit (line, "; ", -1);
  for (char **one = all; *one; one++) {
    LsCaseExpected e = { r->at, c->rows->len, g_string_chunk_insert (r->words, *one) };
    g_array_append_val (c->expected, e);
  }
}

/* Up to an empty line: "with OPTION" begins a row, "> " a further line of its option. All else is what is
 * expected, with "; " between, also behind " => " on the last line of an option. */
static inline void
ls_case_read_expected (LsCaseReader *r, LsImportCase *c)
{
  for (; r->lines[r->at] && *r->lines[r->at]; r->at++) {
    const char *line = r->lines[r->at], *arrow = strstr (line, " => ");
    bool is_row = strcmp (line, "with") == 0 || g_str_has_prefix (line, "with ");
    if (!is_row && (*line != '>' || c->rows->len == 0)) {
      ls_case_add_expected (r, c, line);
      continue;
    }
    if (is_row) {
      LsCaseRow fresh = { r->at, g_string_new (NULL) };
      g_array_append_val (c->rows, fresh);
    }
    gsize end = arrow ? (gsize) (arrow - line) : strlen (line),
          skip = MIN (is_row ? strlen ("with ") : 2, end);
    g_autofree char *written = g_strndup (line + skip, end - skip), *option = ls_case_line (r, written);
    g_string_append_printf (g_array_index (c->rows, LsCaseRow, c->rows->len - 1).option, "%s%s",
                            is_row ? "" : "\n", option);
    if (arrow)
      ls_case_add_expected (r, c, arrow + strlen (" => "));
  }
}

/* The case whose header is next. false: it is none; the caller clears it all the same. */
static inline bool
ls_case_read (LsCaseReader *r, LsImportCase *c)
{
  g_auto (GStrv) header = g_strsplit (r->lines[r->at] + strlen ("=== "), " ", 2);
  const char *name = header[0] ? header[0] : "", *how = *name ? header[1] : NULL;
  *c = (LsImportCase) { .line = r->at++,
                        .name = g_string_chunk_insert (r->words, name),
                        .is_escaped = g_strcmp0 (how, "escaped") == 0,
                        .files = g_array_new (FALSE, FALSE, sizeof (LsCaseFile)),
                        .rows = g_array_new (FALSE, FALSE, sizeof (LsCaseRow)),
                        .expected = g_array_new (FALSE, FALSE, sizeof (LsCaseExpected)) };
  if (how && !c->is_escaped)
    return ls_case_fail (r, c->line, "expected \"escaped\" or \"base\" after the name; got ", how);
  if (!*name || !g_hash_table_add (r->names, (char *) c->name))
    return ls_case_fail (r, c->line, "no name, or one that comes twice: ", c->name);
  if (!ls_case_read_files (r, c))
    return false;
  ls_case_read_expected (r, c);
  return true;
}

static inline void
ls_case_clear (LsImportCase *c)
{
  for (guint i = 0; i < c->files->len; i++)
    g_string_free (g_array_index (c->files, LsCaseFile, i).text, TRUE);
  for (guint i = 0; i < c->rows->len; i++)
    g_string_free (g_array_index (c->rows, LsCaseRow, i).option, TRUE);
  g_array_unref (c->files);
  g_array_unref (c->rows);
  g_array_unref (c->expected);
}

/* The text of a file with an option in place of each @; without one that stands alone on its line there is no empty
 * line. Newly allocated. */
static inline char *
ls_case_text (const LsCaseFile *file, const char *option)
{
  g_auto (GStrv) parts = g_strsplit (file->text->str, "@", -1);
  for (guint i = 1; !*option && parts[i]; i++)
    if ((!*parts[i - 1] || g_str_has_suffix (parts[i - 1], "\n")) && *parts[i] == '\n')
      memmove (parts[i], parts[i] + 1, strlen (parts[i]));
  return g_strjoinv (option, parts);
}

#endif
