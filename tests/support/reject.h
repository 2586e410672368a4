/* tests/support/reject.h — files of wrong documents, and what is said of each:
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
 * written with an escape.
 *
 * The files of tests/reject are run: each document must be refused, with the diagnostics and the exit code that
 * stand below it. LS_CASE=NAME runs one case; LS_UPDATE_GOLDEN=1 writes what is said into the files. */
#ifndef LS_TESTS_REJECT_H
#define LS_TESTS_REJECT_H

#include <glib.h>
#include <glib/gstdio.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "ls_test.h"

/* ---- a file of cases ---- */

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

/* ---- documents that must be refused ---- */

typedef struct {
  const char *kind;                                   /* of the cases "=== KIND/NAME.EXT" */
  bool (*read) (const char *path, LsDiagList *diags); /* true: accepted, which is a failure */
} LsRejectKind;

typedef struct {
  const LsRejectKind *kinds;
  gsize n_kinds;
  const char *scratch; /* where documents are written to be read */
  GHashTable *met;     /* KIND, and KIND/NAME.EXT, of each case */
} LsRejects;

static inline char *
ls_reject_path (const char *name)
{
  return g_build_filename (g_getenv ("LS_DATA_DIR"), "tests", "reject", name, NULL);
}

/* Does LS_CASE ask for this case: by NAME.EXT, NAME, or either with KIND/ before it? */
static inline bool
ls_reject_wanted (const char *kind, const char *name)
{
  const char *wanted = g_getenv ("LS_CASE");
  if (!wanted || !*wanted)
    return true;
  g_autofree char *prefix = g_strconcat (kind, "/", NULL);
  wanted += g_str_has_prefix (wanted, prefix) ? strlen (prefix) : 0;
  const char *dot = strrchr (name, '.');
  return strcmp (wanted, name) == 0
      || (dot && strlen (wanted) == (gsize) (dot - name) && g_str_has_prefix (name, wanted));
}

static inline char *
ls_path_as_at (const char *text, const char *path)
{
  g_auto (GStrv) parts = g_strsplit (text, path, -1);
  return g_strjoinv ("@", parts);
}

/* NULL: the table has none. */
static inline const LsRejectKind *
ls_reject_kind_of (const LsRejects *r, const LsDocCase *c)
{
  for (gsize i = 0; i < r->n_kinds; i++)
    if (strcmp (r->kinds[i].kind, c->kind) == 0)
      return &r->kinds[i];
  return NULL;
}

/* What is said of the document, and the exit code that it stands for. */
static inline char *
ls_reject_read (const LsRejectKind *kind, const LsDocCase *c, const char *path)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  ls_check_impl (!kind->read (path, diags), __FILE__, __LINE__, "%s/%s: was accepted", c->kind, c->name);
  ls_diag_list_to_error (diags, &error);
  g_autofree char *raw = ls_diag_list_format (diags), *said = ls_path_as_at (raw, path);
  return g_strdup_printf ("%sexit %d\n", said, ls_error_exit_code (error));
}

static inline char *
ls_reject_got (const LsRejects *r, const LsRejectKind *kind, const LsDocCase *c)
{
  g_autofree char *path = g_build_filename (r->scratch, c->name, NULL);
  GString *bytes = ls_doc_case_bytes (c);
  LS_CHECK (g_file_set_contents (path, bytes->str, (gssize) bytes->len, NULL));
  char *got = ls_reject_read (kind, c, path);
  g_remove (path);
  g_string_free (bytes, TRUE);
  return got;
}

static inline bool
ls_updates_golden (void)
{
  return g_strcmp0 (g_getenv ("LS_UPDATE_GOLDEN"), "1") == 0;
}

static inline void
ls_reject_check (const LsRejects *r, LsDocCase *c)
{
  const LsRejectKind *kind = ls_reject_kind_of (r, c);
  if (!ls_check_impl (kind != NULL, __FILE__, __LINE__, "%s/%s: no such kind", c->kind, c->name))
    return;
  g_autofree char *got = ls_reject_got (r, kind, c);
  if (ls_updates_golden ()) {
    g_free (c->expected);
    c->expected = g_steal_pointer (&got);
    return;
  }
  ls_check_impl (strcmp (got, c->expected) == 0, __FILE__, __LINE__, "%s/%s: expected:\n%s--- got:\n%s",
                 c->kind, c->name, c->expected, got);
}

/* No name of a kind comes twice. */
static inline void
ls_reject_check_names (const LsRejects *r, const GPtrArray *cases)
{
  for (guint i = 0; i < cases->len; i++) {
    const LsDocCase *c = cases->pdata[i];
    char *name = g_strdup_printf ("%s/%s", c->kind, c->name);
    g_hash_table_add (r->met, g_strdup (c->kind));
    ls_check_impl (g_hash_table_add (r->met, name), __FILE__, __LINE__, "%s/%s: comes twice", c->kind,
                   c->name);
  }
}

/* The number of cases that ran. */
static inline guint
ls_reject_run_cases (const LsRejects *r, GPtrArray *cases)
{
  guint n = 0;
  ls_reject_check_names (r, cases);
  for (guint i = 0; i < cases->len; i++) {
    LsDocCase *c = cases->pdata[i];
    if (ls_reject_wanted (c->kind, c->name)) {
      ls_reject_check (r, c);
      n++;
    }
  }
  return n;
}

static inline guint
ls_reject_run_file (const LsRejects *r, const char *path, const char *text)
{
  g_autofree char *tail = NULL;
  const char *why = NULL;
  guint line = 0;
  g_autoptr (GPtrArray) cases = ls_cases_parse (text, &tail, &line, &why);
  if (!ls_check_impl (cases && cases->len > 0, __FILE__, __LINE__, "%s:%u: %s", path, line,
                      why ? why : "no cases"))
    return 0;
  guint n = ls_reject_run_cases (r, cases);
  g_autofree char *now = ls_cases_format (cases, tail);
  if (ls_updates_golden () && strcmp (now, text) != 0)
    LS_CHECK (g_file_set_contents (path, now, -1, NULL));
  return n;
}

static inline guint
ls_reject_run_named (const LsRejects *r, const char *name)
{
  g_autofree char *file = g_strconcat (name, ".txt", NULL), *path = ls_reject_path (file), *text = NULL;
  gsize length = 0;
  if (!ls_check_impl (g_file_get_contents (path, &text, &length, NULL), __FILE__, __LINE__, "%s: not there",
                      path)
      || !ls_check_impl (strlen (text) == length, __FILE__, __LINE__, "%s: a NUL", path))
    return 0;
  return ls_reject_run_file (r, path, text);
}

/* Runs all cases of these files (tests/reject/FILE.txt), at least so many unless LS_CASE chooses. files ends
 * with NULL. Each kind must have a case. */
static inline void
ls_reject_run (const char *const *files, const LsRejectKind *kinds, gsize n_kinds, guint at_least)
{
  g_autofree char *scratch = g_dir_make_tmp ("lockstep-reject-XXXXXX", NULL);
  g_autoptr (GHashTable) met = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  LsRejects r = { .kinds = kinds, .n_kinds = n_kinds, .scratch = scratch, .met = met };
  guint n = 0;
  if (!LS_CHECK (scratch != NULL))
    return;
  for (gsize i = 0; files[i]; i++)
    n += ls_reject_run_named (&r, files[i]);
  g_rmdir (scratch);
  for (gsize i = 0; i < n_kinds; i++)
    ls_check_impl (g_hash_table_contains (met, kinds[i].kind), __FILE__, __LINE__, "%s: no cases",
                   kinds[i].kind);
  printf ("%u cases\n", n);
  const char *wanted = g_getenv ("LS_CASE");
  if (wanted && *wanted)
    ls_check_impl (n > 0, __FILE__, __LINE__, "no case is called %s", wanted);
  else
    LS_CHECK_INT (n, >=, at_least);
}

#endif
