/* show/write_derived.c — a software profile that follows from captured steps: as text, as JSON, as a file. */
#include "show/answers.h"

#include <string.h>

#include "base/list.h"
#include "data/jobs/job_files.h"
#include "data/text/json_out.h"

#include "show/capture_profile_keys.h"

#include "show/derived_text.h"

static void
write_default (const LsDerivedKey *k, LsJsonOut *w)
{
  const LsField *f = ls_field_find (ls_strategy_fields, k->key);
  if (f->kind == LS_FIELD_BOOL)
    ls_json_out_bool (w, k->key, strcmp (k->value, "true") == 0);
  else
    ls_json_out_string (w, k->key, k->value);
}

/* What is reported of a job that is outside of what was captured. */
static void
write_miss (const char *way, LsJsonOut *w)
{
  g_autofree char *what
      = g_strdup_printf ("%s above 1 is in none of the steps that this profile is derived from", way);
  ls_json_out_begin_object (w, NULL);
  ls_json_out_string (w, "what", what);
  ls_json_out_begin_object (w, "when");
  ls_json_out_string (w, way, ">=2");
  ls_json_out_end_object (w);
  ls_json_out_string (w, "source", "the steps of `source` above");
  ls_json_out_end_object (w);
}

static char *
source_of (const LsDerived *d)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "derived from %u captured step%s (%s): ", d->jobs->len,
                          d->jobs->len == 1 ? "" : "s", d->made_with);
  for (guint i = 0; i < d->jobs->len; i++) {
    const LsDerivedJob *j = &g_array_index (d->jobs, LsDerivedJob, i);
    g_string_append_printf (out, "%s%s on %u ranks, %s", i > 0 ? "; " : "", j->model, j->n_ranks, j->job);
  }
  g_string_append (out, ". Keys that no step shows are as in what it is based on");
  return g_string_free (out, FALSE);
}

char *
ls_derived_file (const LsDerived *d, const char *name)
{
  g_autofree char *source = source_of (d), *program = g_strdup_printf ("the program of %s", name);
  LsJsonOut w;
  ls_json_out_open_as (&w, "software");
  ls_json_out_string (&w, "name", name);
  ls_json_out_string (&w, "source", source);
  if (d->based_on)
    ls_json_out_string (&w, "based_on", d->based_on);
  ls_json_out_string (&w, "program", program);
  ls_json_out_begin_object (&w, "defaults");
  for (guint i = 0; i < d->keys->len; i++)
    write_default (&g_array_index (d->keys, LsDerivedKey, i), &w);
  ls_json_out_end_object (&w);
  if (d->ways->len > 0) {
    ls_json_out_begin_array (&w, "misses");
    for (guint i = 0; i < d->ways->len; i++)
      write_miss (d->ways->pdata[i], &w);
    ls_json_out_end_array (&w);
  }
  return ls_json_out_close (&w);
}
