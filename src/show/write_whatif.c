/* show/write_whatif.c — what single changes gain, as text, JSON, CSV. */
#include "show/run/write_run.h"

#include <math.h>

#include "job/assumptions.h"
#include "show/quantity.h"

#define LEAST_GAIN 5e-4 /* what is shown as 0.0 % is none */

typedef bool (*Filter) (const LsWhatIfRow *row);

static bool
gains_and_fits (const LsWhatIfRow *row)
{
  return !row->refused && row->gain >= LEAST_GAIN && row->fits;
}

static bool
gains_without_fitting (const LsWhatIfRow *row)
{
  return !row->refused && row->gain >= LEAST_GAIN && !row->fits;
}

static bool
gains_nothing (const LsWhatIfRow *row)
{
  return !row->refused && row->gain < LEAST_GAIN;
}

static bool
is_refused (const LsWhatIfRow *row)
{
  return row->refused != NULL;
}

static bool
is_possible (const LsWhatIfRow *row)
{
  return !row->refused;
}

static bool
fits (const LsWhatIfRow *row)
{
  return !row->refused && row->fits;
}

static bool
does_not_fit (const LsWhatIfRow *row)
{
  return !row->refused && !row->fits;
}

static guint
count (const LsWhatIf *w, Filter filter)
{
  guint n = 0;
  for (guint i = 0; i < w->rows->len; i++)
    n += filter (&g_array_index (w->rows, LsWhatIfRow, i));
  return n;
}

/* Whether an hour of all GPUs costs something else than now; false where a price is not known. */
static bool
has_other_price (const LsWhatIf *w, const LsWhatIfRow *row)
{
  double now = w->now.usd_per_million_tokens * w->now.tokens_per_s,
         then = row->usd_per_million_tokens * row->tokens_per_s;
  return fabs (then - now) > 1e-9 * now;
}

#include "show/whatif_text.h"

/* --- JSON ------------------------------------------------------------------------------ */

#include "show/whatif_keys.h"

void
ls_json_what_if (LsJsonOut *w, const LsWhatIf *what_if)
{
  ls_keys_whatif (w, what_if);
}
