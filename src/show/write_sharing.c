/* show/write_sharing.c — what jobs on one cluster lose to each other. */
#include "show/answers.h"

#include <math.h>
#include <string.h>

#include <lockstep/units.h>

#include "job/assumptions.h"
#include "show/run/write_run.h"
#include "show/share_keys.h"

#define MOST_JOBS_SHOWN  4    /* of a link */
#define MOST_NODES_SHOWN 32   /* characters of a list */
#define LEAST_GAIN       5e-4 /* what is shown as equal is */

/* A list as it is, or how many where it is long. Newly allocated. */
static char *
nodes_text (const char *nodes, uint32_t n)
{
  return strlen (nodes) > MOST_NODES_SHOWN ? g_strdup_printf ("%u nodes", n) : g_strdup (nodes);
}

static const LsSharingShift *
shift_at (const LsSharing *s, guint i)
{
  return &g_array_index (s->shifts, LsSharingShift, i);
}

static guint
worst_shift (const LsSharing *s)
{
  guint worst = 0;
  for (guint i = 1; i < s->shifts->len; i++)
    if (shift_at (s, i)->mean > shift_at (s, worst)->mean)
      worst = i;
  return worst;
}

#include "show/share_text.h"
