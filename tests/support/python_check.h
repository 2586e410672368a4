/* support/python_check.h — what Python means as a configuration, against what is expected. */
#ifndef PYTHON_CHECK_H
#define PYTHON_CHECK_H

#include <string.h>

#include "data/python/python.h"
#include "ls_test.h"

/* A is set to 4, B to nothing; what is asked for is counted in data. */
static inline const char *
variable (const char *name, gpointer data)
{
  (*(guint *) data)++;
  return strcmp (name, "A") == 0 ? "4" : strcmp (name, "B") == 0 ? "" : NULL;
}

/* What f returns, or what the file sets a name to, as JSON, with '<' and '>' around holes, and "+n" for n
 * statements that are not followed; or "LINE: what". */
static inline char *
python_of (const char *text, const char *name)
{
  guint n_asked = 0;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsPython) p = ls_python_new (text, strlen (text), "t", diags);
  g_autoptr (GPtrArray) passed = g_ptr_array_new_with_free_func (g_free);
  if (p && name)
    ls_python_set_environment (p, variable, &n_asked);
  cJSON *root = !p ? NULL
      : name       ? ls_python_name (p, name, passed, diags)
                   : ls_python_value (p, "f", passed, diags);
  if (p && ls_python_program (p) && !root)
    return g_strdup_printf (" program: %s", ls_python_program (p));
  if (!root) {
    g_autofree char *what = ls_diag_list_format (diags);
    return g_strndup (what + strlen ("t:"), strcspn (what, "\n") - strlen ("t:"));
  }
  char *printed = cJSON_PrintUnformatted (root);
  GString *json = g_string_new (printed);
  cJSON_free (printed);
  cJSON_Delete (root);
  g_string_replace (json, "\\u0001", "<", 0);
  g_string_replace (json, "\\u0002", ">", 0);
  if (passed->len > 0)
    g_string_append_printf (json, "+%u", passed->len);
  return g_string_free (json, FALSE);
}

static inline void
check_of (const char *text, const char *name, const char *expected)
{
  g_autofree char *got = python_of (text, name);
  ls_check_impl (strcmp (got, expected) == 0, __FILE__, __LINE__, "%s\n=> %s\nbut: %s", text, expected, got);
}

static inline void
check_python (const char *text, const char *expected)
{
  check_of (text, NULL, expected);
}

#endif
