#include "show/write_captured.h"

#include <math.h>

#include "show/captured_layouts_keys.h"

#define MOST_ROWS 12 /* of lines of the program in a text */

/* The first that was captured and did the same, in the same order; NULL: none before it. */
static const LsCapturedRank *
same_before (const LsCaptured *c, guint i)
{
  const LsCapturedRank *all = (const LsCapturedRank *) (void *) c->ranks->data;
  for (guint j = 0; j < i; j++)
    if (!all[i].error && !all[j].error && all[i].trace && g_strcmp0 (all[i].trace, all[j].trace) == 0)
      return &all[j];
  return NULL;
}

static char *
remark_of (const LsCaptured *c, guint i)
{
  const LsCapturedRank *r = &g_array_index (c->ranks, LsCapturedRank, i), *same = same_before (c, i);
  if (r->error)
    return g_strdup (r->error);
  if (same)
    return g_strdup_printf ("does what %u does", same->rank);
  return r->like != r->rank ? g_strdup_printf ("differs from %u", r->like) : g_strdup ("");
}

#include "show/capture_keys.h"
#include "show/captured_text.h"
