/* tests/support/reject.h — runs the files of cases of tests/reject (support/cases_file.h): each document must
 * be refused, with the diagnostics and the exit code that stand below it. LS_CASE=NAME runs one case;
 * LS_UPDATE_GOLDEN=1 writes what is said into the files. */
#ifndef LS_TESTS_REJECT_H
#define LS_TESTS_REJECT_H

#include <glib/gstdio.h>
#include <stdio.h>

#include "base/diag.h"
#include "cases_file.h"
#include "ls_test.h"

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
