/* Pins what a picture of memory is made of: areas on top of each other, steps and not
 * slopes, narrow peaks kept, no area for what is never there; and that gnuplot draws it.
 * Files of a picture in general: plot_timeline. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <string.h>

#include "show/plot/plots.h"

#define GIB (UINT64_C (1) << 30)

typedef struct {
  char *picture, *data, *script;
} Drawn;

static void
drawn_clear (Drawn *d)
{
  g_free (d->picture);
  g_free (d->data);
  g_free (d->script);
}

/* FALSE, having said why, if nothing was drawn. */
static gboolean
draw (GArray *samples, Drawn *ret)
{
  *ret = (Drawn) { 0 };
  g_autofree char *gnuplot = g_find_program_in_path ("gnuplot");
  if (!gnuplot) {
    printf ("skipped: no gnuplot here\n");
    return FALSE;
  }
  g_autofree char *folder = g_dir_make_tmp ("ls-plot-XXXXXX", NULL),
                  *path = g_build_filename (folder, "m.svg", NULL);
  g_autofree char *data = g_build_filename (folder, "m.dat", NULL),
                  *script = g_build_filename (folder, "m.gp", NULL);
  g_autoptr (GError) error = NULL;
  const LsMemoryPlot plot = { .title = "it's {a} job",
                              .note = "rank 0",
                              .samples = samples,
                              .window = 100 * LS_MS,
                              .capacity_bytes = 8 * GIB };
  LS_CHECK (ls_plot_memory (&plot, path, &error) && ls_plot_memory (&plot, script, &error));
  LS_CHECK_NO_ERROR (error);
  gboolean ok = g_file_get_contents (path, &ret->picture, NULL, NULL)
      && g_file_get_contents (data, &ret->data, NULL, NULL)
      && g_file_get_contents (script, &ret->script, NULL, NULL);
  LS_CHECK (ok);
  g_unlink (path);
  g_unlink (data);
  g_unlink (script);
  g_rmdir (folder);
  return ok;
}

static void
add_sample (GArray *samples, LsTime at, uint64_t parameters, uint64_t activations)
{
  LsMemorySample s = { .at = at };
  s.alive[LS_MEM_PARAMETERS] = parameters;
  s.alive[LS_MEM_ACTIVATIONS] = activations;
  g_array_append_val (samples, s);
}

static GArray *
two_levels (void)
{
  GArray *samples = g_array_new (FALSE, FALSE, sizeof (LsMemorySample));
  add_sample (samples, 0, 2 * GIB, 0);
  add_sample (samples, 40 * LS_MS, 2 * GIB, 3 * GIB);
  return samples;
}

static void
areas_lie_on_top_of_each_other (void)
{
  g_autoptr (GArray) samples = two_levels ();
  Drawn d;
  if (draw (samples, &d)) {
    LS_CHECK (strstr (d.data, "\n 40.000000 2.00000 2.00000 2.00000 2.00000")
              != NULL); /* a step: before it, */
    LS_CHECK (strstr (d.data, "\n 40.000000 2.00000 2.00000 2.00000 5.00000")
              != NULL); /* and behind         */
    LS_CHECK (strstr (d.data, "\n 100.000000 2.00000 2.00000 2.00000 5.00000") != NULL);
    LS_CHECK (strstr (d.script, "using 1:(0):2 ") && strstr (d.script, "using 1:4:5 "));
    LS_CHECK (strstr (d.script, "title 'activations'") && !strstr (d.script, "title 'gradients'"));
    LS_CHECK (strstr (d.script, "capacity = 8.0000") && strstr (d.script, "'it''s {a} job'"));
    LS_CHECK (strstr (d.picture, "<svg") != NULL);
  }
  drawn_clear (&d);
}

/* What is freed right after the start of the step has an area, too. */
static void
what_is_there_at_first_only_is_drawn (void)
{
  g_autoptr (GArray) samples = g_array_new (FALSE, FALSE, sizeof (LsMemorySample));
  add_sample (samples, 0, 2 * GIB, 3 * GIB);
  add_sample (samples, 40 * LS_MS, 2 * GIB, 0);
  Drawn d;
  if (draw (samples, &d))
    LS_CHECK (strstr (d.script, "title 'parameters'") && strstr (d.script, "title 'activations'"));
  drawn_clear (&d);
}

/* A peak of a nanosecond among thousands of samples. */
static void
narrow_peaks_are_kept (void)
{
  g_autoptr (GArray) samples = g_array_new (FALSE, FALSE, sizeof (LsMemorySample));
  for (int i = 0; i < 20000; i++)
    add_sample (samples, i * 5 * LS_US, GIB, i == 7777 ? 6 * GIB : (uint64_t) (i % 2) * GIB);
  Drawn d;
  if (draw (samples, &d)) {
    LS_CHECK (strstr (d.data, " 7.00000") != NULL);
    LS_CHECK_INT (strlen (d.data), <, 1 << 20); /* as many rows as pixels, not as samples */
  }
  drawn_clear (&d);
}

LS_TEST_MAIN ("plot_memory", LS_TEST (areas_lie_on_top_of_each_other),
              LS_TEST (what_is_there_at_first_only_is_drawn), LS_TEST (narrow_peaks_are_kept))
