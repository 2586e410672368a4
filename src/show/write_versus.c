/* show/write_versus.c — a captured step next to the plan of the same job, as text and JSON. */
#include "show/answers.h"

#include <math.h>

#include "job/assumptions.h"

#define MOST_DIFFERENCES 16 /* of a text */

/* The whole of a section, in what it is counted by. */
static char *
total_of (const LsVersusSum *sum, guint side)
{
  const LsVersusSide *s = &sum->sides[side];
  g_autofree char *time = ls_format_time (s->time), *bytes = ls_format_bytes ((uint64_t) s->bytes);
  return sum->section == LS_VERSUS_MEMORY ? g_steal_pointer (&bytes)
      : sum->section == LS_VERSUS_HOST    ? g_strdup_printf ("%" G_GUINT64_FORMAT, s->n)
                                          : g_strdup_printf ("%" G_GUINT64_FORMAT ", %s", s->n, time);
}

/* Planned over captured. */
static double
ratio_of (const LsVersusSum *sum)
{
  const LsVersusSide *c = &sum->sides[LS_VERSUS_CAPTURED], *p = &sum->sides[LS_VERSUS_PLANNED];
  return sum->section == LS_VERSUS_MEMORY ? p->bytes / c->bytes
      : sum->section == LS_VERSUS_HOST    ? (double) p->n / (double) c->n
                                          : (double) p->time / (double) c->time;
}

static guint
n_differing (const LsVersus *v)
{
  guint n = 0;
  while (n < v->rows->len && g_array_index (v->rows, LsVersusRow, n).differs)
    n++;
  return n;
}

#include "show/capture_compare_keys.h"

#include "show/versus_text.h"
