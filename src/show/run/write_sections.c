/* show/run/write_sections.c — sections of the summary of a run: its critical path, how it follows the
 * hardware, how steps vary, seeds of hashed routing, single faults. */
#include "show/run/write_run.h"

#include <math.h>

/* Rows of a text. */
#define MAX_OPS     20
#define MAX_LINKS   10
#define MAX_RANKS   10
#define N_SHOWN     20 /* faults */
#define BAR_WIDTH   30
#define LABEL_WIDTH 28

/* Most effect first; of equals that which the table has first. */
static void
sort (const LsSensitivityTable *t, guint *order)
{
  for (guint i = 0; i < t->n; i++) {
    guint at = i;
    for (; at > 0 && fabs (t->rows[i].elasticity) > fabs (t->rows[order[at - 1]].elasticity); at--)
      order[at] = order[at - 1];
    order[at] = i;
  }
}

/* "link at 50 % of its capacity", "gpu at 90 % of its speed", "failed link". */
static char *
what_text (const LsFaultAsk *ask, const char *kind)
{
  if (ask->share == 0)
    return g_strdup_printf ("failed %s", kind);
  return g_strdup_printf ("%s at %.4g %% of its %s", kind, 100 * ask->share,
                          ask->kind == LS_FAULT_LINK ? "capacity" : "speed");
}

#include "show/sections_text.h"
