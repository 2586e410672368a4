#include "ask/pace.h"

#include <math.h>

#include <lockstep/error.h>

#include "base/parallel.h"
#include "job/rerun.h"

#define PROBE        0.03
#define MAX_STAGES   3 /* that are tried: the first, the middle, the last */
#define N_ALL_PROBES 3

/* --- the ranks of a job ---------------------------------------------------------------------- */

static uint32_t
least_common_multiple (uint32_t a, uint32_t b)
{
  uint32_t x = a, y = b;
  while (y > 0) {
    uint32_t rest = x % y;
    x = y;
    y = rest;
  }
  return a / x * b;
}

/* How many ranks of a stage meet each layer (plan/bind.h). */
static uint32_t
together (const LsStrategy *s, uint32_t per_stage)
{
  uint32_t dense = s->tp * s->cp, experts = MAX (s->ep, 1) * (s->etp > 0 ? s->etp : s->tp);
  uint32_t n = s->ep > 1 ? least_common_multiple (dense, experts) : dense;
  return n > 0 && per_stage % n == 0 ? n : per_stage;
}

/* --- runs ------------------------------------------------------------------------------------- */

typedef struct {
  const LsJobResult *r;
  LsRunOptions options;
  uint32_t stage[MAX_STAGES]; /* that are tried */
  double step_s[N_ALL_PROBES + MAX_STAGES];
  GError *errors[N_ALL_PROBES + MAX_STAGES];
} Probes;

/* What a probe slows: nothing; all kernels; all clocks; a stage. */
enum { ALIKE, ALL, CLOCK };

static double *
slow_of (const Probes *p, guint probe)
{
  const LsMesh mesh = ls_strategy_mesh (&p->r->strategy);
  uint32_t n = p->r->plan->n_ranks;
  double *slow = g_new (double, n);
  for (uint32_t rank = 0; rank < n; rank++) {
    bool is_slow = probe == ALL
        || (probe >= N_ALL_PROBES && ls_mesh_coord (&mesh, rank).pp == p->stage[probe - N_ALL_PROBES]);
    slow[rank] = is_slow ? 1 + PROBE : 1;
  }
  return slow;
}

static void
run_probe (guint i, gpointer data)
{
  Probes *p = data;
  const LsHardware *hardware = p->r->hardware;
  LsHardware h;
  if (!ls_hardware_for_job (hardware, p->r->strategy.attention_kernel, 1, &h, &p->errors[i]))
    return;
  if (i == CLOCK)
    h.calibration.clock /= 1 + PROBE;
  g_autofree double *slow = slow_of (p, i);
  LsRunOptions options = p->options;
  options.slow = slow;
  g_autoptr (LsTimeline) t
      = ls_run (p->r->plan, p->r->cluster, &h.calibration, &hardware->nccl, &options, NULL, &p->errors[i]);
  if (t)
    p->step_s[i] = ls_rerun_step_s (t);
}

/* --- what they say ------------------------------------------------------------------------------ */

static double
follows (const Probes *p, guint probe)
{
  return (p->step_s[probe] / p->step_s[ALIKE] - 1) / PROBE;
}

/* Which probe stands for a stage. */
static guint
probe_of (const Probes *p, guint n_tried, uint32_t stage)
{
  for (guint i = 0; i < n_tried; i++)
    if (p->stage[i] == stage)
      return N_ALL_PROBES + i;
  return N_ALL_PROBES + n_tried / 2;
}

static LsPace *
pace_of (const Probes *p, guint n_tried)
{
  const LsStrategy *s = &p->r->strategy;
  LsPace *pace = g_malloc0 (sizeof *pace + s->pp * sizeof *pace->alone);
  uint32_t per_stage = p->r->plan->n_ranks / s->pp;
  pace->n_stages = s->pp;
  pace->n_together = together (s, per_stage);
  pace->n_replicas = per_stage / pace->n_together;
  pace->meets_each_layer = s->zero_stage == 3;
  pace->step_s = p->step_s[ALIKE];
  pace->clock = p->step_s[ALL] > p->step_s[ALIKE] ? follows (p, CLOCK) / follows (p, ALL) : 0;
  double most = 0;
  for (uint32_t i = 0; i < s->pp; i++) {
    pace->alone[i] = s->pp == 1 ? follows (p, ALL) : follows (p, probe_of (p, n_tried, i));
    most = fmax (most, pace->alone[i]);
  }
  if (s->pp > 1)
    pace->beside = fmax (follows (p, ALL) - most, 0) / (s->pp - 1);
  return pace;
}

static gboolean
check (const LsJobSpec *spec, const LsJobResult *r, GError **error)
{
  if (!r->model.name || spec->trace) {
    g_set_error_literal (error, LS_ERROR, LS_ERROR_UNSUPPORTED,
                         "--jitter does not go with --trace: which ranks make up a replica is not known");
    return FALSE;
  }
  if (spec->slow.ranks) {
    g_set_error_literal (error, LS_ERROR, LS_ERROR_CONFLICT,
                         "--jitter does not go with --slow: both say how fast each rank is");
    return FALSE;
  }
  return TRUE;
}

LsPace *
ls_pace_new (const LsJobSpec *spec, const LsJobResult *r, guint n_threads, GError **error)
{
  Probes p = { .r = r };
  if (!check (spec, r, error) || !ls_rerun_options (spec, r, &p.options, error))
    return NULL;
  uint32_t pp = r->strategy.pp;
  guint n_tried = pp > 1 ? MIN (pp, MAX_STAGES) : 0;
  for (guint i = 0; i < n_tried; i++)
    p.stage[i] = n_tried < MAX_STAGES ? i : i * (pp - 1) / (MAX_STAGES - 1);
  guint n = N_ALL_PROBES + n_tried;
  ls_parallel (n, n_threads, run_probe, &p, NULL);
  if (ls_parallel_first_error (p.errors, n, error) == n)
    return pace_of (&p, n_tried);
  g_prefix_error (error, "with slower ranks: ");
  return NULL;
}

/* --- a step ---------------------------------------------------------------------------------------- */

void
ls_pace_step_init (LsPaceStep *step, const LsPace *pace, double *slowest)
{
  *step = (LsPaceStep) { pace, slowest, -INFINITY };
  for (uint32_t i = 0; i < pace->n_stages; i++)
    slowest[i] = -INFINITY;
}

static double
of_replica (const LsPace *p, const double *x)
{
  double longest = -INFINITY, sum = 0;
  for (uint32_t i = 0; i < p->n_stages; i++) {
    longest = fmax (longest, (p->alone[i] - p->beside) * x[i]);
    sum += x[i];
  }
  return longest + p->beside * sum;
}

void
ls_pace_step_add (LsPaceStep *step, const double *x)
{
  if (!step->pace->meets_each_layer)
    step->longest = fmax (step->longest, of_replica (step->pace, x));
  for (uint32_t i = 0; i < step->pace->n_stages; i++)
    step->slowest[i] = fmax (step->slowest[i], x[i]);
}

double
ls_pace_step_end (const LsPaceStep *step)
{
  return step->pace->meets_each_layer ? of_replica (step->pace, step->slowest) : step->longest;
}
