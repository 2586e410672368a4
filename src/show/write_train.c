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

#include "show/train_text.h"

/* --- CSV ------------------------------------------------------------------------------- */

/* Columns behind the kind of the row and its name; NAN: not of this kind. */
enum { TIMES, LOST, INTERVAL, SPARES, TOKENS, STEPS, STEP, GOODPUT, TIME, GPU_HOURS, USD, N_COLUMNS };

static void
csv_row (GString *out, const char *kind, const char *name, const double values[N_COLUMNS])
{
  g_string_append_printf (out, "%s,", kind);
  ls_csv_append (out, name);
  for (int i = 0; i < N_COLUMNS; i++) {
    g_string_append_c (out, ',');
    ls_csv_append_number (out, values[i]);
  }
  g_string_append_c (out, '\n');
}

#define BLANK                                                                                                \
  {                                                                                                          \
    NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN                                                    \
  }

static void
csv_choice (GString *out, const LsTrainChoice *c)
{
  double v[N_COLUMNS] = BLANK;
  g_autofree char *name = spares_text (c->spares);
  v[INTERVAL] = c->interval_s;
  v[SPARES] = c->spares == LS_SPARES_ANY ? NAN : c->spares;
  v[STEPS] = (double) c->every;
  v[GOODPUT] = c->goodput.mean;
  v[TIME] = c->wall_s.mean;
  csv_row (out, "choice", name, v);
}

static void
csv_batch (GString *out, const LsTrainBatch *b)
{
  double v[N_COLUMNS] = BLANK;
  g_autofree char *name = g_strdup_printf ("%u", b->global_batch);
  v[TOKENS] = b->tokens;
  v[STEPS] = b->steps;
  v[STEP] = b->step_s;
  v[TIME] = b->wall_s;
  v[GPU_HOURS] = b->gpu_hours;
  v[USD] = b->usd;
  csv_row (out, "batch", name, v);
}

char *
ls_train_to_csv (const LsTrainReport *r)
{
  GString *out = g_string_new (
      "row,name,times,lost_s,interval_s,spares,tokens,steps,step_time_s,goodput,time_s,gpu_hours,usd\n");
  for (guint i = 0; i < r->causes->len; i++) {
    const LsTrainCause *c = &g_array_index (r->causes, LsTrainCause, i);
    double v[N_COLUMNS] = BLANK;
    v[TIMES] = c->n;
    v[LOST] = c->lost_s;
    csv_row (out, "cause", c->name, v);
  }
  for (guint i = 0; i < r->choices->len; i++)
    csv_choice (out, &g_array_index (r->choices, LsTrainChoice, i));
  for (guint i = 0; i < r->batches->len; i++)
    csv_batch (out, &g_array_index (r->batches, LsTrainBatch, i));
  return g_string_free (out, FALSE);
}
