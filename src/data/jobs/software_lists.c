/* Keys of a program's file that are lists of names, with commas. */
#include <string.h>

#include "base/suggest.h"
#include "data/datadir.h"
#include "data/jobs/read_software.h"
#include "strategy/strategy.h"

/* "a|b" lists what it may be, ">=8" is the least that it may. */
bool
ls_software_condition_holds (const char *wanted, const char *value)
{
  if (g_str_has_prefix (wanted, ">="))
    return *value && g_ascii_strtod (value, NULL) >= g_ascii_strtod (wanted + 2, NULL);
  g_auto (GStrv) choices = g_strsplit (wanted, "|", -1);
  return g_strv_contains ((const char *const *) choices, value);
}

static bool
check_lacks (const LsJsonDoc *doc, const LsSoftwareSpec *s, LsDiagList *diags)
{
  g_auto (GStrv) known = g_strsplit (LS_SOFTWARE_WAYS, ", ", -1);
  bool ok = true;
  for (guint i = 0; s->lacks && i < s->lacks->len; i++) {
    const char *said = g_array_index (s->lacks, LsLacking, i).ways; /* NULL: a complaint has told it */
    g_auto (GStrv) ways = g_strsplit (said ? said : "", ",", -1);
    for (char **way = ways; *way; way++)
      if (!g_strv_contains ((const char *const *) known, *way)) {
        ls_json_doc_diag (doc, cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "lacks"),
                          LS_JSON_AT_VALUE, diags, NULL,
                          "expected ways with commas, of " LS_SOFTWARE_WAYS "; got \"%s\"", *way);
        ok = false;
      }
  }
  return ok;
}

static bool
check_dp_kinds (const LsJsonDoc *doc, const LsSoftwareSpec *s, LsDiagList *diags)
{
  g_auto (GStrv) names = g_strsplit (s->dp_kinds ? s->dp_kinds : "", ",", -1);
  bool ok = true;
  for (char **name = names; *name; name++) {
    bool is_known = false;
    for (int kind = LS_DP_NONE; kind < LS_N_DP_KINDS; kind++)
      is_known |= strcmp (*name, ls_dp_kind_name (kind)) == 0;
    if (!is_known)
      ls_json_doc_diag (doc, cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "dp_kinds"),
                        LS_JSON_AT_VALUE, diags, NULL, "expected values of dp_kind with commas; got \"%s\"",
                        *name);
    ok &= is_known;
  }
  return ok;
}

/* Of all names, each of which is borrowed, and another that is said before them or NULL. */
static GPtrArray *
architectures_of (const GPtrArray *generations, const char *besides)
{
  GPtrArray *names = g_ptr_array_new ();
  if (besides)
    g_ptr_array_add (names, (gpointer) besides);
  for (guint i = 0; i < generations->len; i++)
    g_ptr_array_add (names, ((const LsDataEntry *) generations->pdata[i])->name);
  g_ptr_array_add (names, (gpointer) LS_ARCHITECTURE_TPU);
  g_ptr_array_add (names, NULL);
  return names;
}

/* node: a list with commas, which also takes the word `besides` (NULL: no other); NULL: none. */
static bool
check_architectures (const LsJsonDoc *doc, const cJSON *node, const char *besides, LsDiagList *diags)
{
  if (!cJSON_IsString (node))
    return true;
  g_auto (GStrv) names = g_strsplit (node->valuestring, ",", -1);
  g_autoptr (GPtrArray) generations = ls_data_list (LS_DATA_NCCL_TABLES),
                        known = architectures_of (generations, besides);
  const char *const *all = (const char *const *) known->pdata;
  char **name = names;
  while (*name && g_strv_contains (all, *name))
    name++;
  if (!*name)
    return true;
  const char *near = ls_suggest (*name, all);
  ls_json_doc_diag (doc, node, LS_JSON_AT_VALUE, diags, NULL,
                    "expected names of files in %s, %s%sor " LS_ARCHITECTURE_TPU ", with commas; got "
                    "\"%s\"%s%s%s",
                    ls_data_folder (LS_DATA_NCCL_TABLES), besides ? besides : "", besides ? " " : "", *name,
                    near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
  return false;
}

static bool
check_all_architectures (const LsJsonDoc *doc, LsDiagList *diags)
{
  const cJSON *root = ls_json_doc_root (doc), *one;
  bool ok = check_architectures (doc, cJSON_GetObjectItemCaseSensitive (root, "architectures"), NULL, diags);
  ok = check_architectures (doc, cJSON_GetObjectItemCaseSensitive (root, "runs_on"), LS_ARCHITECTURES_OF_GPUS,
                            diags)
      && ok;
  cJSON_ArrayForEach (one, cJSON_GetObjectItemCaseSensitive (root, "by_architecture")) ok
      = check_architectures (doc, cJSON_GetObjectItemCaseSensitive (one, "architectures"), NULL, diags) && ok;
  return ok;
}

bool
ls_software_check_lists (const LsJsonDoc *doc, const LsSoftwareSpec *s, LsDiagList *diags)
{
  bool ok = check_lacks (doc, s, diags);
  ok = check_dp_kinds (doc, s, diags) && ok;
  return check_all_architectures (doc, diags) && ok;
}
