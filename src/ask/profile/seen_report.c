#include "ask/profile/seen_report.h"

#include <string.h>

#include "data/jobs/read_strategy.h"
#include "data/text/field.h"

void
ls_seen_report_free (LsSeenReport *r)
{
  if (!r)
    return;
  for (guint i = 0; i < r->keys->len; i++) {
    g_free (g_array_index (r->keys, LsSeenKey, i).value);
    g_free (g_array_index (r->keys, LsSeenKey, i).why);
  }
  g_array_unref (r->keys);
  g_free (r->based_on);
  g_free (r->program);
  g_free (r);
}

/* ---- keys ---- */

/* Takes value and why. */
static void
add_key (LsSeenReport *r, const char *key, char *value, char *why)
{
  const LsSeenKey k = { key, value, why };
  g_array_append_val (r->keys, k);
}

/* As the strategy that has it would be written. */
static char *
text_of (const char *key, const LsStrategy *s)
{
  return ls_field_text (ls_field_find (ls_strategy_fields, key), s, NULL);
}

static void
add_host_launch (LsSeenReport *r, const LsSeenSoftware *seen)
{
  if (seen->host_launch < 0) {
    add_key (
        r, "host_launch", NULL,
        g_strdup_printf ("%u launches of kernels found nothing running, too few to tell", seen->n_launches));
    return;
  }
  char *value = g_strdup_printf ("%.3fus", ls_time_to_s (seen->host_launch) * 1e6);
  add_key (
      r, "host_launch", value,
      g_strdup_printf (
          "median time between launches, of %u at which nothing ran; with what the profiler costs the host",
          seen->n_launches));
}

static void
add_kernels (LsSeenReport *r, const LsLayerReport *layer)
{
  if (!ls_layer_report_is_there (layer)) {
    add_key (r, "kernels", NULL, g_strdup ("layers are not told apart"));
    return;
  }
  const LsLayerList *near = ls_layer_report_nearest (layer);
  add_key (r, "kernels", g_strdup (near->name),
           g_strdup_printf ("the nearest list, %u kernels of a layer apart", near->off));
}

static void
add_graphs (LsSeenReport *r, const LsSeenSoftware *seen, LsStrategy *s)
{
  if (seen->cuda_graphs < 0) {
    add_key (r, "cuda_graphs", NULL,
             seen->n_graphs == 0
                 ? g_strdup ("no graph is launched in this step")
                 : g_strdup_printf ("%u graphs, neither of a layer nor of a step", seen->n_graphs));
    return;
  }
  s->cuda_graphs = seen->cuda_graphs;
  add_key (r, "cuda_graphs", text_of ("cuda_graphs", s),
           g_strdup_printf ("%u graphs are launched", seen->n_graphs));
}

static void
add_attention (LsSeenReport *r, const LsSeenSoftware *seen, const LsCalibration *c, LsStrategy *s)
{
  g_autofree char *name = seen->attention_name
      ? g_utf8_make_valid (seen->attention_name, MIN (strlen (seen->attention_name), 60))
      : NULL;
  if (seen->attention < 0) {
    add_key (r, "attention_kernel", NULL,
             name ? g_strdup_printf ("none of those that a strategy names is called \"%s\"", name)
                  : g_strdup ("no flash attention runs"));
    return;
  }
  s->attention_kernel = seen->attention;
  g_autofree char *value = text_of ("attention_kernel", s);
  bool is_known = c->attention[seen->attention][0].is_fitted;
  char *why = is_known ? g_strdup_printf ("its kernel is called \"%s\"", name)
                       : g_strdup_printf ("it is %s, which was not measured on the job's accelerator", value);
  add_key (r, "attention_kernel", is_known ? g_steal_pointer (&value) : NULL, why);
}

LsSeenReport *
ls_seen_report_new (const LsSeenSoftware *seen, const LsLayerReport *layer, const LsCalibration *calibration)
{
  LsSeenReport *r = g_new0 (LsSeenReport, 1);
  LsStrategy s;
  r->keys = g_array_new (FALSE, FALSE, sizeof (LsSeenKey));
  ls_strategy_init (&s);
  add_host_launch (r, seen);
  add_kernels (r, layer);
  add_graphs (r, seen, &s);
  add_attention (r, seen, calibration, &s);
  add_key (r, "host_comm", NULL, g_strdup ("a launch does not show what of it is the collective's"));
  add_key (r, "host_sync", NULL, g_strdup ("a blocking call lasts as long as what it waits for"));
  ls_strategy_clear (&s);
  return r;
}
