#include "calibrate/fit_report.h"

#include <math.h>

#include "data/machines/machines.h"

/* Digits of a ratio that a step time has: a range does not need more. */
static double
rounded (double ratio)
{
  return round (1e6 * ratio) / 1e6;
}

#include "calibrate/fitted_text.h"

char *
ls_fitted_to_json (const LsJsonDoc *base, const LsFittedReport *r, const char *name)
{
  g_autofree char *file = g_path_get_basename (r->file), *fitted = fitted_text (r);
  g_autofree char *source
      = g_strdup_printf ("%s, fitted to steps measured on it (%s); see fitted", r->cluster, file);
  cJSON *root = cJSON_Duplicate (ls_json_doc_root (base), true);
  cJSON_ReplaceItemInObjectCaseSensitive (root, "name", cJSON_CreateString (name));
  cJSON_ReplaceItemInObjectCaseSensitive (root, "source", cJSON_CreateString (source));
  cJSON_AddItemToObject (root, "fitted", cJSON_Parse (fitted));
  char *text = ls_cluster_print (root);
  cJSON_Delete (root);
  return text;
}
