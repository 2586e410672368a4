#include "data/launch/log_steps.h"

#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "base/order.h"

#define N_WARM_UP_LINES 1 /* the first line has what is done once: allocation, compilation, connections */
#define MAX_DIGITS      32

/* "12.3K": what a letter at the end of a number stands for. */
static double
unit_of (const char *digits, const char *end)
{
  static const char letters[] = "KMBT";
  const char *letter = end > digits && *end && end[1] == '\0' ? strchr (letters, *end) : NULL;
  return letter ? pow (1000, (double) (letter - letters) + 1) : 1;
}

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
  double value = g_ascii_strtod (digits, &end) * unit_of (digits, end);
  return end > digits && isfinite (value) ? value : NAN;
}

double
log_amount_behind (const char *line, gsize n, const char *words)
{
  double value = log_number_behind (line, n, words);
  return value > 0 ? value : 0;
}

const char *
log_line_end (const char *line)
{
  const char *end = strchr (line, '\n');
  return end ? end : line + strlen (line);
}

char *
log_without_colours (const char *text)
{
  GString *out = g_string_new (NULL);
  for (const char *p = text; *p; p++)
    if (*p != '\033' || p[1] != '[')
      g_string_append_c (out, *p);
    else if (*(p += strcspn (p, "m\n")) == '\0')
      break;
  return g_string_free (out, FALSE);
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

/* Of one member of lines, where they say it; 0: none does. */
static double
median_of (const GArray *steps, gsize member)
{
  g_autoptr (GArray) values = g_array_new (FALSE, FALSE, sizeof (double));
  for (guint i = 0; i < steps->len; i++) {
    double value = G_STRUCT_MEMBER (double, &g_array_index (steps, LogStep, i), member);
    if (value > 0)
      g_array_append_val (values, value);
  }
  return values->len > 0 ? ls_median (&g_array_index (values, double, 0), values->len) : 0;
}

/* What is steady of them. */
static GArray *
steady_of (const GArray *lines, double batch)
{
  GArray *steady = g_array_new (FALSE, FALSE, sizeof (LogStep));
  for (guint i = lines->len > N_WARM_UP_LINES ? N_WARM_UP_LINES : 0; i < lines->len; i++)
    if (g_array_index (lines, LogStep, i).batch == batch)
      g_array_append_val (steady, g_array_index (lines, LogStep, i));
  if (steady->len >= 4)
    g_array_remove_range (steady, 0, steady->len / 2);
  if (steady->len == 0)
    g_array_append_val (steady, g_array_index (lines, LogStep, 0));
  return steady;
}

void
log_measure (const GArray *lines, LsImport *import)
{
  LsImportMeasured *m = &import->measured;
  m->n_lines = lines->len;
  if (lines->len == 0)
    return;
  double batch = g_array_index (lines, LogStep, lines->len - 1).batch;
  g_autoptr (GArray) steady = steady_of (lines, batch);
  m->n_steady = steady->len;
  m->step_s = median_of (steady, offsetof (LogStep, step_s));
  m->flops_per_gpu = median_of (steady, offsetof (LogStep, flops_per_gpu));
  m->tokens_per_s_per_gpu = median_of (steady, offsetof (LogStep, tokens_per_s_per_gpu));
  import_infer (import, "measured.iteration_s: the median of the last %u of %u lines that time iterations",
                m->n_steady, m->n_lines);
  bool is_other_job = import->departs != NULL; /* as it is asked for now, not as it was logged */
  if (batch > 0 && !is_other_job && import_has_strategy (import, "global_batch")
      && batch != import->strategy.global_batch)
    import_conflict (import, "the timed iterations have a global batch of %g, the arguments one of %u", batch,
                     import->strategy.global_batch);
}
