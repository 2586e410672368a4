#include "calibrate/fitted_file.h"

#include <math.h>

#include "data/machines/machines.h"
#include "data/text/json_out.h"

static void
append_percent (GString *out, const char *what, double x)
{
  if (!isnan (x))
    g_string_append_printf (out, "%s %.2f %%", what, 100 * x);
}

void
ls_fitted_error_print (const LsFittedError *error, GString *out)
{
  append_percent (out, "mean absolute error: before", error->before);
  append_percent (out, ", fitted", error->after);
  append_percent (out, ", each run left out in turn", error->left_out);
}

static void
write_values (LsJsonOut *w, const LsFittedReport *r)
{
  for (guint i = 0; i < r->lines->len; i++) {
    const LsFittedLine *l = &g_array_index (r->lines, LsFittedLine, i);
    g_autofree char *text = g_strdup_printf ("%.4g%s", l->value, l->unit);
    if (l->is_fitted && *l->unit)
      ls_json_out_string (w, l->name, text);
    else if (l->is_fitted)
      ls_json_out_double (w, l->name, g_ascii_strtod (text, NULL));
  }
}

static void
write_figure (LsJsonOut *w, const char *key, double value)
{
  if (value > 0)
    ls_json_out_double (w, key, value);
}

/* Digits of a ratio that a step time has: a range does not need more. */
static double
rounded (double ratio)
{
  return round (1e6 * ratio) / 1e6;
}

/* What of the next job on the cluster is made an interval of. */
static void
write_left_out (LsJsonOut *w, const LsFittedRuns *runs)
{
  ls_json_out_begin_object (w, "left_out");
  ls_json_out_uint (w, "runs", runs->n);
  ls_json_out_string (w, "file", runs->file);
  write_figure (w, "low", rounded (runs->low));
  write_figure (w, "high", rounded (runs->high));
  ls_json_out_string (w, "architecture", runs->architecture);
  write_figure (w, "lowest_mfu", floor (1e3 * runs->lowest_mfu) / 1e3); /* down: the runs are not below it */
  write_figure (w, "gpus", runs->gpus);
  write_figure (w, "tp", runs->tp);
  write_figure (w, "params", runs->params);
  write_figure (w, "fabric", runs->fabric);
  ls_json_out_begin_array (w, "traits");
  for (guint i = 0; runs->traits && i < runs->traits->len; i++)
    ls_json_out_string (w, NULL, g_array_index (runs->traits, char *, i));
  ls_json_out_end_array (w);
  ls_json_out_end_object (w);
}

static void
write_provenance (LsJsonOut *w, const LsFittedReport *r)
{
  g_autofree char *base = g_path_get_basename (r->file);
  g_autofree char *command = g_strdup_printf ("lockstep calibrate --runs %s --cluster %s", base, r->cluster);
  g_autofree char *data = g_strdup_printf ("%s, %u runs, sha256 %s", base, r->rows->len, r->sha256);
  g_autoptr (GString) error = g_string_new (NULL);
  ls_fitted_error_print (&r->error, error);
  ls_json_out_begin_object (w, "provenance");
  ls_json_out_string (w, "command", command);
  ls_json_out_string (w, "version", r->version);
  ls_json_out_string (w, "data", data);
  ls_json_out_string (w, "error", error->str);
  for (guint i = 0; i < r->lines->len; i++) {
    const LsFittedLine *l = &g_array_index (r->lines, LsFittedLine, i);
    g_autofree char *text = l->is_fitted ? g_strdup_printf ("standard error %.1f %%%s", 100 * l->error,
                                                            l->at_bound ? ", at the end of its range" : "")
                                         : g_strdup_printf ("kept: %s", l->why);
    ls_json_out_string (w, l->name, text);
  }
  ls_json_out_end_object (w);
}

char *
ls_fitted_to_json (const LsJsonDoc *base, const LsFittedReport *r, const char *name)
{
  g_autoptr (GString) fitted = g_string_new (NULL);
  g_autofree char *file = g_path_get_basename (r->file);
  g_autofree char *source
      = g_strdup_printf ("%s, fitted to steps measured on it (%s); see fitted", r->cluster, file);
  LsJsonOut w;
  ls_json_out_init (&w, fitted, 2);
  ls_json_out_begin_object (&w, NULL);
  write_values (&w, r);
  write_left_out (&w, &r->left_out);
  write_provenance (&w, r);
  ls_json_out_end_object (&w);
  cJSON *root = cJSON_Duplicate (ls_json_doc_root (base), true);
  cJSON_ReplaceItemInObjectCaseSensitive (root, "name", cJSON_CreateString (name));
  cJSON_ReplaceItemInObjectCaseSensitive (root, "source", cJSON_CreateString (source));
  cJSON_AddItemToObject (root, "fitted", cJSON_Parse (fitted->str));
  char *text = ls_cluster_print (root);
  cJSON_Delete (root);
  return text;
}
