/* ask/captured_layouts.c — a program in several layouts, each captured and replayed on a cluster. */
#include "ask/captured.h"

#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "base/list.h"
#include "base/order.h"
#include "data/text/write_file.h"
#include "job/job.h"

static void
clear_axis (gpointer data)
{
  g_free (((LsCaptureAxis *) data)->key);
  g_strfreev (((LsCaptureAxis *) data)->values);
}

GArray *
ls_capture_axes_new (void)
{
  return ls_list_new (sizeof (LsCaptureAxis), clear_axis);
}

static void
clear_layout (gpointer data)
{
  g_free (((LsCaptureLayout *) data)->values);
  g_free (((LsCaptureLayout *) data)->error);
}

/* The command with the values in the place of keys; newly allocated. */
static char **
command_of (const LsCaptureAsk *ask, const GArray *axes, char *const *values)
{
  char **command = g_strdupv ((char **) ask->command);
  for (guint w = 0; command[w]; w++)
    for (guint i = 0; i < axes->len; i++) {
      g_autofree char *key = g_strdup_printf ("{%s}", g_array_index (axes, LsCaptureAxis, i).key);
      g_auto (GStrv) parts = g_strsplit (command[w], key, -1);
      g_free (command[w]);
      command[w] = g_strjoinv (values[i], parts);
    }
  return command;
}

static gboolean
check_axes (const LsCaptureAsk *ask, const GArray *axes, GError **error)
{
  g_autofree char *all = g_strjoinv (" ", (char **) ask->command);
  guint n = 1;
  for (guint i = 0; i < axes->len; i++) {
    const LsCaptureAxis *axis = &g_array_index (axes, LsCaptureAxis, i);
    g_autofree char *key = g_strdup_printf ("{%s}", axis->key);
    n = MIN (n * g_strv_length (axis->values), LS_MOST_LAYOUTS + 1);
    if (!strstr (all, key))
      return ls_fail (error, LS_ERROR_USAGE, "--%s: expected %s in a word of the command", axis->key, key);
  }
  return (n > 0 && n <= LS_MOST_LAYOUTS)
      || ls_fail (error, LS_ERROR_USAGE, "expected 1 to %d layouts, each of which is captured",
                  LS_MOST_LAYOUTS);
}

/* NaN and an error. */
static double
replay (const LsCaptured *c, const char *cluster, GError **error)
{
  double step = NAN;
  g_autofree char *home = g_dir_make_tmp ("lockstep-layout-XXXXXX", error);
  g_autofree char *folder = home ? g_build_filename (home, "step", NULL) : NULL;
  if (!home)
    return NAN;
  LsJobSpec spec;
  if (ls_captured_write_trace (c, folder, error) && ls_job_spec_init_replay (&spec, folder, cluster, error)) {
    g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, error);
    step = r ? r->report.step_time_s : NAN;
    ls_job_spec_clear (&spec);
  }
  ls_remove_folder (home);
  return step;
}

static gboolean
try_layout (const LsCaptureAsk *ask, const char *cluster, const GArray *axes, LsCaptureLayout *l,
            GError **error)
{
  g_autoptr (GError) problem = NULL;
  g_auto (GStrv) command = command_of (ask, axes, l->values);
  LsCaptureAsk one = *ask;
  one.command = (const char *const *) command;
  one.with_trace = true;
  g_autoptr (LsCaptured) c = ls_capture_run (&one, &problem);
  l->step_time_s = NAN;
  if (c) {
    l->fits = ls_captured_fits (c);
    l->needed_bytes = ls_captured_needed (c);
    l->total_bytes = c->total_bytes;
    l->is_too_large = c->n_out_of_memory > 0;
    l->error = g_strdup (l->is_too_large ? "out of memory" : c->error);
    l->step_time_s = l->error ? NAN : replay (c, cluster, &problem);
  }
  if (g_error_matches (problem, LS_ERROR, LS_ERROR_STOPPED)) {
    g_propagate_error (error, g_steal_pointer (&problem));
    return FALSE;
  }
  if (problem && !l->error)
    l->error = g_strdelimit (g_strdup (problem->message), "\n", ' ');
  return TRUE;
}

/* Those that fit first, then those that ran, the faster one first; of equals as they were asked for. */
static gint
compare_layouts (gconstpointer x, gconstpointer y)
{
  const LsCaptureLayout *a = x, *b = y;
  LS_SMALLER_FIRST (a->error != NULL, b->error != NULL);
  LS_LARGER_FIRST (a->fits, b->fits);
  LS_LARGER_FIRST (a->is_too_large, b->is_too_large);
  return isnan (a->step_time_s) || isnan (b->step_time_s) ? 0 : LS_ORDER (a->step_time_s, b->step_time_s);
}

LsCaptureLayouts *
ls_capture_layouts (const LsCaptureAsk *ask, const char *cluster, GArray *axes, GError **error)
{
  LsCaptureLayouts *all = g_new (LsCaptureLayouts, 1);
  *all
      = (LsCaptureLayouts) { g_strdup (cluster), axes, ls_list_new (sizeof (LsCaptureLayout), clear_layout) };
  guint n = check_axes (ask, axes, error) ? 1 : 0;
  bool ok = n > 0;
  for (guint i = 0; i < axes->len; i++)
    n *= g_strv_length (g_array_index (axes, LsCaptureAxis, i).values);
  for (guint at = 0; ok && at < n; at++) {
    LsCaptureLayout l = { .values = g_new0 (char *, axes->len + 1) };
    guint rest = at;
    for (guint i = axes->len; i-- > 0;) { /* the last one is the fastest to change */
      char **values = g_array_index (axes, LsCaptureAxis, i).values;
      l.values[i] = values[rest % g_strv_length (values)];
      rest /= g_strv_length (values);
    }
    ok = try_layout (ask, cluster, axes, &l, error);
    g_array_append_val (all->layouts, l);
    ls_progress_tell (ask->progress, at + 1, n);
  }
  g_array_sort (all->layouts, compare_layouts);
  if (ok)
    return all;
  ls_capture_layouts_free (all);
  return NULL;
}

void
ls_capture_layouts_free (LsCaptureLayouts *layouts)
{
  if (!layouts)
    return;
  g_free (layouts->cluster);
  g_array_unref (layouts->axes);
  g_array_unref (layouts->layouts);
  g_free (layouts);
}
