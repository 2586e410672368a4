/* show/write_train.c — a training run of weeks, as text, JSON and CSV. */
#include "show/answers.h"

#include <math.h>

#include "data/text/csv.h"
#include "job/assumptions.h"
#include "show/train_keys.h"

#define MAX_PHASES   12
#define DOES_NOT_FIT "does not fit into memory: see lockstep memory"

static char *
spares_text (uint32_t spares)
{
  return spares == LS_SPARES_ANY ? g_strdup ("any") : g_strdup_printf ("%u", spares);
}

/* Until when batches are compared that need no more tokens. */
static const char *
batches_to (const LsTrainReport *r)
{
  return r->has_end      ? "after the same days"
      : r->has_steps     ? "after the same steps"
      : r->goal.law.name ? "to the same loss, as if a larger batch needed no more tokens"
                         : "to the same tokens";
}

/* Cells of CSV. */
static char *
number (double value)
{
  GString *out = g_string_new (NULL);
  ls_csv_append_number (out, value);
  return g_string_free (out, FALSE);
}

static char *
cell (const char *text)
{
  GString *out = g_string_new (NULL);
  ls_csv_append (out, text);
  return g_string_free (out, FALSE);
}

#include "show/train_text.h"
