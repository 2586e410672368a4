/* tests/support/expected_cases.h — runs files of cases: files of users, and what is expected of each:
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
 * empty one are a base, for what is below. LS_CASE=NAME runs one case. */
#ifndef LS_TESTS_EXPECTED_CASES_H
#define LS_TESTS_EXPECTED_CASES_H

#include <stdio.h>
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
} LsExpectedCase;

/* What reads the files of a case, with an option in place of each @; NULL: the case has no rows. */
typedef struct {
  gpointer (*read) (const LsExpectedCase *c, const char *option,
                    char **said);                                  /* NULL: refused, *said has why */
  char *(*contradiction) (gconstpointer result, const char *what); /* NULL: it holds; else what is so */
  void (*clear) (gpointer result);
  bool is_whole; /* what is expected of a row are lines, which contradiction() is asked for together */
} LsCaseKind;

/* A file of cases, line by line: lines[at] comes next, and is line at + 1. */
typedef struct {
  const char *path;
  const LsCaseKind *kind;
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
ls_case_add_file (LsCaseReader *r, LsExpectedCase *c, const char *name, bool is_given)
{
  LsCaseFile file = { g_string_chunk_insert (r->words, name), g_string_new (NULL), is_given };
  g_array_append_val (c->files, file);
}

/* Up to "=>": the first file has the name of the case. "--- NAME" begins one beside it, "+++ NAME" one that is
 * given too, and right below the header either names the first. */
static inline bool
ls_case_read_files (LsCaseReader *r, LsExpectedCase *c)
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
ls_case_add_expected (LsCaseReader *r, LsExpectedCase *c, const char *line)
{
  g_auto (GStrv) all = g_strsplit (line, r->kind->is_whole ? "\n" : "; ", -1);
  for (char **one = all; *one; one++) {
    LsCaseExpected e = { r->at, c->rows->len, g_string_chunk_insert (r->words, *one) };
    g_array_append_val (c->expected, e);
  }
}

/* Up to an empty line: "with OPTION" begins a row, "> " a further line of its option. All else is what is
 * expected, with "; " between, also behind " => " on the last line of an option. */
static inline void
ls_case_read_expected (LsCaseReader *r, LsExpectedCase *c)
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
ls_case_read (LsCaseReader *r, LsExpectedCase *c)
{
  g_auto (GStrv) header = g_strsplit (r->lines[r->at] + strlen ("=== "), " ", 2);
  const char *name = header[0] ? header[0] : "", *how = *name ? header[1] : NULL;
  *c = (LsExpectedCase) { .line = r->at++,
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
ls_case_clear (LsExpectedCase *c)
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
  if (!option)
    return g_strdup (file->text->str);
  g_auto (GStrv) parts = g_strsplit (file->text->str, "@", -1);
  for (guint i = 1; !*option && parts[i]; i++)
    if ((!*parts[i - 1] || g_str_has_suffix (parts[i - 1], "\n")) && *parts[i] == '\n')
      memmove (parts[i], parts[i] + 1, strlen (parts[i]));
  return g_strjoinv (option, parts);
}

#define LS_CASE_REFUSED "refused "

/* How much is expected of a row, or how many refusals. */
static inline guint
ls_case_count (const LsExpectedCase *c, guint row, bool are_refusals)
{
  guint n = 0;
  for (guint i = 0; i < c->expected->len; i++) {
    const LsCaseExpected *e = &g_array_index (c->expected, LsCaseExpected, i);
    n += (e->row == 0 || e->row == row) && (!are_refusals || g_str_has_prefix (e->what, LS_CASE_REFUSED));
  }
  return n;
}

/* result NULL: it is refused. */
static inline void
ls_case_check (const LsCaseReader *r, const LsExpectedCase *c, const LsCaseExpected *e, const char *option,
               gconstpointer result, const char *said)
{
  g_autofree char *is = result                            ? r->kind->contradiction (result, e->what)
      : strstr (said, e->what + strlen (LS_CASE_REFUSED)) ? NULL
                                                          : g_strdup (said);
  ls_check_impl (!is, r->path, (int) e->line + 1, "%s, with \"%s\": expected \"%s\"; %s", c->name,
                 option ? option : "", e->what, is ? is : "");
}

/* Each of what is expected, or all at once. */
static inline void
ls_case_check_row (const LsCaseReader *r, const LsExpectedCase *c, guint row, const char *option,
                   gconstpointer result, const char *said)
{
  GString *lines = g_string_new (NULL);
  LsCaseExpected whole = { 0 };
  for (guint i = 0; i < c->expected->len; i++) {
    const LsCaseExpected *e = &g_array_index (c->expected, LsCaseExpected, i);
    if (e->row != 0 && e->row != row)
      continue;
    whole.line = lines->len == 0 ? e->line : whole.line;
    g_string_append_printf (lines, "%s\n", e->what);
    if (!r->kind->is_whole || !result)
      ls_case_check (r, c, e, option, result, said);
  }
  whole.what = lines->str;
  if (r->kind->is_whole && result)
    ls_case_check (r, c, &whole, option, result, said);
  g_string_free (lines, TRUE);
}

static inline void
ls_case_run_row (const LsCaseReader *r, const LsExpectedCase *c, guint row)
{
  g_autofree char *said = NULL;
  const LsCaseRow *of = row > 0 ? &g_array_index (c->rows, LsCaseRow, row - 1) : NULL;
  const char *option = of ? of->option->str : NULL;
  guint line = of ? of->line : c->line, n = ls_case_count (c, row, false),
        n_refusals = ls_case_count (c, row, true);
  gpointer result = r->kind->read (c, option, &said);
  if (n == 0 || (n_refusals > 0 && n_refusals < n))
    ls_case_fail (r, line, "nothing is expected, or a refusal and more, of ", c->name);
  else if (ls_check_impl ((result != NULL) == (n_refusals == 0), r->path, (int) line + 1,
                          "%s, with \"%s\": %s", c->name, option ? option : "", result ? "it is read" : said))
    ls_case_check_row (r, c, row, option, result, said);
  if (result)
    r->kind->clear (result);
}

static inline bool
ls_case_run (LsCaseReader *r)
{
  LsExpectedCase c;
  const char *wanted = g_getenv ("LS_CASE");
  bool ok = ls_case_read (r, &c);
  if (ok && (!wanted || !*wanted || strcmp (wanted, c.name) == 0)) {
    r->n_run++;
    for (guint row = c.rows->len > 0; row <= c.rows->len; row++)
      ls_case_run_row (r, &c, row);
  }
  ls_case_clear (&c);
  return ok;
}

/* Where it is no file of cases any more it is left. */
static inline void
ls_case_run_file (LsCaseReader *r, const char *path)
{
  g_autofree char *text = NULL;
  if (!LS_CHECK (g_file_get_contents (path, &text, NULL, NULL)))
    return;
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  bool ok = true;
  r->path = path;
  r->lines = lines;
  for (r->at = 0; ok && lines[r->at];) {
    const char *line = lines[r->at];
    g_autofree char *base = g_str_has_prefix (line, "=== ") && g_str_has_suffix (line, " base")
        ? g_strndup (line + 4, strlen (line) - strlen ("=== ") - strlen (" base"))
        : NULL;
    if (base)
      ls_case_read_base (r, base);
    else if (g_str_has_prefix (line, "=== "))
      ok = ls_case_run (r);
    else if (!*line || *line == '#')
      r->at++;
    else
      ok = ls_case_fail (r, r->at, "expected \"=== NAME\", a comment or an empty line; got ", line);
  }
  g_hash_table_remove_all (r->bases);
}

/* All files of tests/FOLDER, which have at least so many cases. */
static inline void
ls_cases_run (const char *folder, const LsCaseKind *kind, guint at_least)
{
  g_autofree char *root = g_build_filename (g_getenv ("LS_DATA_DIR"), "tests", folder, NULL);
  g_autoptr (GDir) dir = g_dir_open (root, 0, NULL);
  LsCaseReader r = { .kind = kind,
                     .words = g_string_chunk_new (4096),
                     .names = g_hash_table_new (g_str_hash, g_str_equal),
                     .bases = g_hash_table_new (g_str_hash, g_str_equal) };
  const char *wanted = g_getenv ("LS_CASE");
  for (const char *name; dir && (name = g_dir_read_name (dir));) {
    g_autofree char *path = g_build_filename (root, name, NULL);
    ls_case_run_file (&r, path);
  }
  printf ("%u cases\n", r.n_run);
  LS_CHECK_INT (r.n_run, >=, wanted && *wanted ? 1 : at_least);
  g_hash_table_unref (r.names);
  g_hash_table_unref (r.bases);
  g_string_chunk_free (r.words);
}

#endif
