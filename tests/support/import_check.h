/* support/import_check.h — what a text means as a launch file, against what is expected. */
#ifndef IMPORT_CHECK_H
#define IMPORT_CHECK_H

#include <string.h>

#include "data/jobs/imported.h"
#include "data/jobs/job_files.h"
#include "ls_test.h"

/* Fails the test if it is refused. The caller clears *import. */
static inline bool
read_text (const char *text, LsImported *import)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  bool ok = ls_import_read (text, strlen (text), "job.sh", NULL, import, diags);
  g_autofree char *said = ls_diag_list_format (diags);
  ls_check_impl (ok, __FILE__, __LINE__, "%s\n%s", text, said);
  return ok;
}

static inline char *
value_of (const LsImported *import, const char *key)
{
  char *value = ls_import_value (import->strategy, ls_strategy_fields, key);
  return value ? value : ls_import_value (import->model, ls_model_fields, key);
}

static inline bool
has_line (const LsImported *import, LsRemarkKind kind, const char *part)
{
  for (guint i = 0; i < import->remarks->len; i++) {
    const LsRemark *r = &g_array_index (import->remarks, LsRemark, i);
    if (r->kind == kind && strstr (r->text, part))
      return true;
  }
  return false;
}

/* expected: "key=value", "key" that is not set, "?part" of what is not known, "!part" of a contradiction,
 * "~part" of what is inferred, "-part" of what is ignored. */
static inline void
check_one (const LsImported *import, const char *expected, const char *text)
{
  const char *equals = strchr (expected, '=');
  static const LsRemarkKind kinds[]
      = { LS_REMARK_UNKNOWN, LS_REMARK_CONFLICT, LS_REMARK_INFERRED, LS_REMARK_IGNORED };
  const char *mark = strchr ("?!~-", *expected);
  if (mark) {
    ls_check_impl (has_line (import, kinds[mark - strchr ("?!~-", '?')], expected + 1), __FILE__, __LINE__,
                   "\"%s\": no line \"%s\"", text, expected);
    return;
  }
  g_autofree char *key = equals ? g_strndup (expected, (gsize) (equals - expected)) : g_strdup (expected);
  g_autofree char *found = value_of (import, key);
  ls_check_impl (g_strcmp0 (found, equals ? equals + 1 : NULL) == 0, __FILE__, __LINE__,
                 "\"%s\": %s; found %s", text, expected, found ? found : "nothing");
}

/* The same of all, "; " between them. */
static inline void
check (const char *text, const char *expected)
{
  LsImported import;
  g_auto (GStrv) all = g_strsplit (expected, "; ", -1);
  if (!read_text (text, &import))
    return;
  for (char **one = all; *one; one++)
    check_one (&import, *one, text);
  ls_import_clear (&import);
}

/* A file of this program; NULL: it is refused, and expected is a part of the reason. */
static inline void
check_read (const char *program, const char *text, const char *expected)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsImported import;
  bool ok = ls_import_read (text, strlen (text), "job.yaml", NULL, &import, diags);
  g_autofree char *said = ls_diag_list_format (diags);
  if (!program) {
    ls_check_impl (!ok && strstr (said, expected), __FILE__, __LINE__, "%s\nexpected: %s", said, expected);
    if (ok)
      ls_import_clear (&import);
    return;
  }
  ls_check_impl (ok, __FILE__, __LINE__, "%s\n%s", text, said);
  if (!ok)
    return;
  g_auto (GStrv) all = g_strsplit (expected, "; ", -1);
  LS_CHECK_STR (import.program, program);
  for (char **one = all; *one; one++)
    check_one (&import, *one, program);
  ls_import_clear (&import);
}

#endif
