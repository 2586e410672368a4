/* data/machines/nccl_env.c — NCCL's environment by its rows. */
#include "data/machines/nccl_env.h"

#include <string.h>

#include "base/list.h"
#include "base/suggest.h"
#include "data/datadir.h"
#include "data/text/override.h"

typedef struct {
  GArray *names, *values; /* char *; values in any case, NULL: any */
  char *cluster, *nccl, *why;
  bool unknown; /* it may matter, and is not simulated */
  bool integer; /* NCCL reads a whole number: number_of() */
} Row;

typedef struct {
  char *name, *source;
  GArray *variables; /* Row */
} Rows;

static const LsField text_element[] = { { "", LS_FIELD_STRING, 0, .required = true }, { NULL } };
static const LsField row_fields[] = {
  { "names", LS_FIELD_ARRAY, offsetof (Row, names), .required = true, .element_size = sizeof (char *),
    .fields = text_element },
  { "values", LS_FIELD_ARRAY, offsetof (Row, values), .element_size = sizeof (char *),
    .fields = text_element },
  { "cluster", LS_FIELD_STRING, offsetof (Row, cluster) },
  { "nccl", LS_FIELD_STRING, offsetof (Row, nccl) },
  { "unknown", LS_FIELD_BOOL, offsetof (Row, unknown) },
  { "integer", LS_FIELD_BOOL, offsetof (Row, integer) },
  { "why", LS_FIELD_STRING, offsetof (Row, why), .required = true },
  { .table = "nccl-environment.variable" },
};
const LsField ls_nccl_env_fields[] = {
  LS_FIELDS_HEADER (Rows),
  { "variables", LS_FIELD_ARRAY, offsetof (Rows, variables), .required = true, .element_size = sizeof (Row),
    .fields = row_fields },
  { .table = "nccl-environment" },
};

static bool
read_rows (const LsJsonDoc *doc, Rows *ret, LsDiagList *diags)
{
  *ret = (Rows) { 0 };
  if (doc && ls_fields_read_file (ls_nccl_env_fields, "nccl-environment", doc, ret, diags))
    return true;
  ls_fields_clear (ls_nccl_env_fields, ret);
  return false;
}

char *
ls_nccl_env_inspect (const LsJsonDoc *doc, LsDiagList *diags)
{
  Rows rows;
  if (!read_rows (doc, &rows, diags))
    return NULL;
  char *words = g_strdup_printf ("%u rows", rows.variables->len);
  ls_fields_clear (ls_nccl_env_fields, &rows);
  return words;
}

static bool
has (const GArray *texts, const char *text)
{
  for (guint i = 0; i < texts->len; i++)
    if (g_ascii_strcasecmp (g_array_index (texts, char *, i), text) == 0)
      return true;
  return false;
}

/* What NCCL's strtoll() makes of a value: of "0x10" 16, of "true" 0. Newly allocated. */
static char *
number_of (const char *value)
{
  return g_strdup_printf ("%" G_GINT64_FORMAT, g_ascii_strtoll (value, NULL, 0));
}

/* NULL: none; *ret_is_known: one of that name has other values. */
static const Row *
find_row (const Rows *rows, const char *name, const char *value, const char *number, bool *ret_is_known)
{
  *ret_is_known = false;
  for (guint i = 0; i < rows->variables->len; i++) {
    const Row *row = &g_array_index (rows->variables, Row, i);
    bool is_it = has (row->names, name);
    *ret_is_known = *ret_is_known || is_it;
    if (is_it && (!row->values || has (row->values, row->integer ? number : value)))
      return row;
  }
  return NULL;
}

/* "max_ctas={}" of 8 as "max_ctas=8", after those in *all, but for what was typed (*ret_is_typed). Returns
 * what is added, newly allocated; NULL: nothing. */
static char *
add_changes (char **all, const char *row, const char *value, const char *typed, bool *ret_is_typed)
{
  g_auto (GStrv) parts = g_strsplit (row, "{}", -1);
  g_autofree char *asked = g_strjoinv (value, parts), *before = g_strconcat ("x:", *all, NULL);
  g_autoptr (GPtrArray) changes = ls_override_split (asked);
  for (guint i = changes->len; i-- > 0;)
    if (ls_override_meets (typed, changes->pdata[i])) {
      *ret_is_typed = true;
      g_ptr_array_remove_index (changes, i);
    }
  if (changes->len == 0)
    return NULL;
  g_ptr_array_add (changes, NULL);
  char *own = g_strjoinv (",", (char **) changes->pdata);
  g_autofree char *together = ls_override_add (*all ? before : "x", own);
  g_free (*all);
  *all = g_strdup (together + strlen ("x:"));
  return own;
}

/* Says what the variable may be, or which variables there are of nearly that name. */
static bool
fail_unknown (const Rows *rows, const char *name, const char *value, bool is_known, LsDiagList *diags)
{
  g_autoptr (GPtrArray) words = g_ptr_array_new (); /* borrowed */
  for (guint i = 0; i < rows->variables->len; i++) {
    const Row *row = &g_array_index (rows->variables, Row, i);
    const GArray *from = !is_known ? row->names : has (row->names, name) ? row->values : NULL;
    for (guint k = 0; from && k < from->len; k++)
      g_ptr_array_add (words, g_array_index (from, char *, k));
  }
  g_ptr_array_add (words, NULL);
  g_autofree char *near = is_known ? g_strjoinv (", ", (char **) words->pdata)
                                   : ls_did_you_mean (name, (const char *const *) words->pdata);
  return ls_diag_fail (diags, LS_ERROR_USAGE,
                       is_known ? "nccl_env: %s=%s: expected one of %s"
                                : "nccl_env: %s=%s: no variable of NCCL, RCCL or EFA that is known here%s",
                       name, value, near);
}

static bool
take (const Rows *rows, const char *name, const char *value, const char *const typed[2], LsNcclEnv *env,
      LsDiagList *diags)
{
  bool is_known, is_typed = false;
  g_autofree char *number = number_of (value);
  const Row *row = find_row (rows, name, value, number, &is_known);
  if (!row)
    return fail_unknown (rows, name, value, is_known, diags);
  g_autofree char *read = row->integer && !g_str_equal (value, number)
      ? g_strdup_printf (" (NCCL reads %s)", number)
      : g_strdup ("");
  const char *as = row->integer ? number : value;
  g_autofree char *change = row->cluster ? add_changes (&env->cluster, row->cluster, as, typed[0], &is_typed)
      : row->nccl                        ? add_changes (&env->nccl, row->nccl, as, typed[1], &is_typed)
                                         : NULL;
  g_ptr_array_add (env->lines,
                   change ? g_strdup_printf ("%s=%s%s is %s of the %s%s: %s", name, value, read, change,
                                             row->cluster ? "cluster" : "file of --nccl",
                                             is_typed ? " (the rest was typed)" : "", row->why)
                       : is_typed
                       ? g_strdup_printf ("%s=%s is overridden by what was typed", name, value)
                       : g_strdup_printf ("%s=%s%s %s: %s", name, value, read,
                                          row->unknown ? "is not simulated" : "changes nothing", row->why));
  return true;
}

/* The next word of the same variable; NULL: there is none. */
static const char *
given_again (char *const *words, guint i)
{
  gsize n = strcspn (words[i], "=") + 1;
  for (guint k = i + 1; words[k]; k++)
    if (strncmp (words[k], words[i], n) == 0)
      return words[k];
  return NULL;
}

bool
ls_nccl_env_read (const char *text, const char *typed_cluster, const char *typed_nccl, LsNcclEnv *ret_env,
                  LsDiagList *diags)
{
  const char *const typed[] = { typed_cluster, typed_nccl };
  *ret_env = (LsNcclEnv) { .lines = g_ptr_array_new_with_free_func (g_free) };
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_ENVIRONMENTS, "nccl", diags);
  Rows rows;
  if (!read_rows (doc, &rows, diags))
    return false;
  g_auto (GStrv) words = g_strsplit_set (text, " \t\n", -1);
  bool ok = true;
  for (guint i = 0; words[i]; i++) {
    g_auto (GStrv) pair = g_strsplit (words[i], "=", 2);
    const char *again = *words[i] ? given_again (words, i) : NULL;
    if (again && !g_str_equal (again, words[i]))
      g_ptr_array_add (ret_env->lines,
                       g_strdup_printf ("%s is not used: %s comes after it", words[i], again));
    if (!*words[i] || again)
      continue;
    if (!pair[1] || !*pair[1])
      ok = ls_diag_fail (diags, LS_ERROR_USAGE, "nccl_env: expected VARIABLE=VALUE; got \"%s\"", words[i]);
    else if (g_regex_match_simple (",[A-Z][A-Z0-9_]*=", pair[1], 0, 0))
      ok = ls_diag_fail (diags, LS_ERROR_USAGE, "nccl_env: expected blanks between variables; got \"%s\"",
                         words[i]);
    else
      ok = take (&rows, pair[0], pair[1], typed, ret_env, diags) && ok;
  }
  ls_fields_clear (ls_nccl_env_fields, &rows);
  return ok;
}

void
ls_nccl_env_clear (LsNcclEnv *env)
{
  g_free (env->cluster);
  g_free (env->nccl);
  g_clear_pointer (&env->lines, g_ptr_array_unref);
  *env = (LsNcclEnv) { 0 };
}
