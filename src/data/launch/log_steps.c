#include "data/launch/log_steps.h"

#include <math.h>
#include <string.h>

#include "base/order.h"

#define N_WARM_UP_LINES 1 /* the first line has what is done once: allocation, compilation, connections */
#define MAX_DIGITS      32

double
log_number_behind (const char *line, gsize n, const char *words)
{
  const char *p = g_strstr_len (line, (gssize) n, words);
  char digits[MAX_DIGITS + 1], *end = NULL;
  gsize k = 0;
  if (!p)
    return NAN;
  p += strlen (words);
  while (p < line + n && *p == ' ')
    p++;
  for (; p < line + n && k < MAX_DIGITS && (g_ascii_isalnum (*p) || strchr ("+-.,", *p)) && *p; p++)
    if (*p != ',' || !g_ascii_isdigit (p[1]))
      digits[k++] = *p;
  digits[k] = '\0';
  double value = g_ascii_strtod (digits, &end);
  return end > digits && isfinite (value) ? value : NAN;
}

const char *
log_line_end (const char *line)
{
  const char *end = strchr (line, '\n');
  return end ? end : line + strlen (line);
}

const char *
log_object_end (const char *object)
{
  int depth = 0;
  for (const char *p = object; *p; p++) {
    depth += *p == '{' ? 1 : *p == '}' ? -1 : 0;
    if (depth == 0)
      return p + 1;
  }
  return NULL;
}

void
log_measure (const GArray *lines, LsImport *import)
{
  LsImportMeasured *m = &import->measured;
  g_autoptr (GArray) times = g_array_new (FALSE, FALSE, sizeof (double));
  m->n_lines = lines->len;
  if (lines->len == 0)
    return;
  double batch = g_array_index (lines, LogStep, lines->len - 1).batch;
  for (guint i = lines->len > N_WARM_UP_LINES ? N_WARM_UP_LINES : 0; i < lines->len; i++)
    if (g_array_index (lines, LogStep, i).batch == batch)
      g_array_append_val (times, g_array_index (lines, LogStep, i).step_s);
  if (times->len >= 4)
    g_array_remove_range (times, 0, times->len / 2);
  if (times->len == 0)
    g_array_append_val (times, g_array_index (lines, LogStep, 0).step_s);
  m->n_steady = times->len;
  m->step_s = ls_median (&g_array_index (times, double, 0), times->len);
  import_infer (import, "measured.iteration_s: the median of the last %u of %u lines that time iterations",
                m->n_steady, m->n_lines);
  if (batch > 0 && import_has_strategy (import, "global_batch") && batch != import->strategy.global_batch)
    import_conflict (import, "the timed iterations have a global batch of %g, the arguments one of %u", batch,
                     import->strategy.global_batch);
}
