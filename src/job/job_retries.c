/* job/job_retries.c — a job whose segments meet the GPU's memory, at the speed that it then has. */
#include "job/job_steps.h"

#include <string.h>

#include <lockstep/error.h>

#include "data/jobs/job_files.h"
#include "exec/memory/retries.h"
#include "plan/plan.h"

#define GIB 1073741824.0

/* Segments over the bytes in use, at most, in what was published: 37.04 of 21.12 GB (FSDP,
 * pytorch/pytorch issue 103093). */
#define MOST_RESERVED 1.75

/* --- whether ------------------------------------------------------------------------------ */

/* Whether its allocator has segments that may run short. XLA's holds all memory from the start. */
static bool
has_segments (const LsJobResult *r)
{
  return r->strategy.memory.cuda_allocator == LS_CUDA_ALLOCATOR_CACHING
      && !ls_cluster_traits (&r->cluster->spec)->runs_xla;
}

/* Of a job that needs so much in the order of its allocations. */
bool
ls_job_may_retry (const LsJobResult *r, uint64_t needed_bytes)
{
  return has_segments (r)
      && MOST_RESERVED * (double) needed_bytes >= (double) ls_memory_capacity (&r->cluster->spec.gpu);
}

/* By the times of the run, where it has spans, or else by the order of allocations. retries: NULL, or filled
 * beside. */
static LsMemory *
memory_of (const LsJobResult *r, const LsHardware *hardware, const LsTimeline *timeline, LsRetries *retries)
{
  const LsMemoryInput in = {
    .plan = r->plan,
    .timeline = timeline,
    .cluster = r->cluster,
    .nccl = &hardware->nccl,
    .retries = retries,
  };
  return ls_memory_new (&in);
}

static bool
may_meet_limit (const LsMemory *m)
{
  const LsClassMemory *fullest = ls_memory_fullest (m);
  return MOST_RESERVED * (double) fullest->needed_bytes >= (double) fullest->capacity_bytes;
}

/* Of a run without spans, by one that has them. */
static gboolean
find_retries_timed (const LsJobResult *r, const LsHardware *hardware, const LsRunOptions *run,
                    LsRetries *retries, GError **error)
{
  LsRunOptions with_spans = *run;
  with_spans.no_spans = false;
  g_autoptr (LsTimeline) t
      = ls_run (r->plan, r->cluster, &hardware->calibration, &hardware->nccl, &with_spans, NULL, error);
  if (t)
    ls_memory_free (memory_of (r, hardware, t, retries));
  return t != NULL;
}

/* *ret_is_near: whether the limit may be met; else nothing of it counts. What was measured for that in
 * r->memory. */
static LsRetries *
find_retries (LsJobResult *r, const LsHardware *hardware, const LsRunOptions *run, bool *ret_is_near,
              GError **error)
{
  bool is_timed = !run->no_spans || !ls_plan_changes_streams (r->plan);
  LsRetries *retries = ls_retries_new (r->plan);
  g_clear_pointer (&r->memory, ls_memory_free);
  r->memory = memory_of (r, hardware, r->timeline, is_timed ? retries : NULL);
  *ret_is_near = may_meet_limit (r->memory);
  if (*ret_is_near && !is_timed && !find_retries_timed (r, hardware, run, retries, error))
    g_clear_pointer (&retries, ls_retries_free);
  return retries;
}

/* --- what they cost ----------------------------------------------------------------------- */

/* What adding stalls replaces in a plan. */
typedef struct {
  LsSegment *segments;
  uint32_t n_segments;
  LsProgram *programs; /* a copy */
} Before;

static Before
remember (const LsPlan *plan)
{
  LsProgram *programs = g_memdup2 (plan->programs, plan->n_roles * sizeof *plan->programs);
  return (Before) { plan->segments, plan->n_segments, programs };
}

static void
restore (LsPlan *plan, const Before *before)
{
  plan->segments = before->segments;
  plan->n_segments = before->n_segments;
  memcpy (plan->programs, before->programs, plan->n_roles * sizeof *plan->programs);
}

static gboolean
add_stalls (LsPlan *plan, uint32_t role, const LsRoleRetries *of, GError **error)
{
  g_autoptr (GArray) stalls = g_array_new (FALSE, FALSE, sizeof (LsStall));
  for (guint i = 0; of->calls && i < of->calls->len; i++) {
    const LsDriverCall *c = &g_array_index (of->calls, LsDriverCall, i);
    LsStall s = { c->instance, c->op, c->waits, ls_driver_time (c) };
    g_array_append_val (stalls, s);
  }
  return stalls->len == 0 || ls_plan_add_stalls (plan, role, stalls, error);
}

static LsTimeline *
run_stalled (LsJobResult *r, const LsRetries *x, const LsHardware *hardware, const LsRunOptions *run,
             double *ret_cost_share, GError **error)
{
  for (uint32_t role = 0; role < x->n_roles; role++)
    if (!add_stalls (r->plan, role, &x->roles[role], error))
      return NULL;
  return ls_run (r->plan, r->cluster, &hardware->calibration, &hardware->nccl, run, ret_cost_share, error);
}

/* A wait for the device may block a pipeline for ever, and a segment may become too long: then nothing
 * is charged. */
static gboolean
forgive (LsJobResult *r, GError *reason, GError **error)
{
  r->retries.is_refused = g_error_matches (reason, LS_ERROR, LS_ERROR_DEADLOCK)
      || g_error_matches (reason, LS_ERROR, LS_ERROR_LIMIT);
  if (r->retries.is_refused)
    g_error_free (reason);
  else
    g_propagate_error (error, reason);
  return r->retries.is_refused;
}

static LsTime
step_of (const LsTimeline *t)
{
  return t->window_end - t->window_start;
}

/* A step that stalls make shorter is so by chance, as others share links at other times: it counts as it is
 * without them, so no step is shorter than without retries. */
static gboolean
charge (LsJobResult *r, const LsRetries *x, const LsHardware *hardware, const LsRunOptions *run,
        double *ret_cost_share, GError **error)
{
  Before before = remember (r->plan);
  g_autoptr (GError) reason = NULL;
  g_autoptr (LsTimeline) t = run_stalled (r, x, hardware, run, ret_cost_share, &reason);
  bool is_longer = t && step_of (t) >= step_of (r->timeline);
  if (!is_longer)
    restore (r->plan, &before);
  g_free (before.programs);
  if (!t)
    return forgive (r, g_steal_pointer (&reason), error);
  if (!is_longer)
    return TRUE;
  r->retries.lost_s = ls_time_to_s (step_of (t)) - ls_time_to_s (step_of (r->timeline));
  ls_timeline_free (r->timeline);
  r->timeline = g_steal_pointer (&t);
  g_clear_pointer (&r->memory, ls_memory_free);
  return TRUE;
}

/* --- the whole ---------------------------------------------------------------------------- */

/* Of two roles the one with no room at all, or more retries, or, of equals, less left of what it may have. */
static bool
is_worse (const LsRoleRetries *a, const LsRoleRetries *b)
{
  if (a->is_out_of_memory != b->is_out_of_memory)
    return a->is_out_of_memory;
  if (a->n_retries != b->n_retries)
    return a->n_retries > b->n_retries;
  return (double) a->reserved_bytes / (double) a->limit_bytes
      > (double) b->reserved_bytes / (double) b->limit_bytes;
}

static const LsRoleRetries *
worst_of (const LsRetries *x)
{
  const LsRoleRetries *worst = &x->roles[0];
  for (uint32_t i = 1; i < x->n_roles; i++)
    if (x->roles[i].limit_bytes > 0 && (worst->limit_bytes == 0 || is_worse (&x->roles[i], worst)))
      worst = &x->roles[i];
  return worst;
}

gboolean
ls_job_settle_retries (LsJobResult *r, const LsHardware *chosen, const LsRunOptions *run,
                       double *ret_cost_share, GError **error)
{
  bool is_near;
  if (!has_segments (r))
    return TRUE;
  g_autoptr (LsRetries) x = find_retries (r, chosen, run, &is_near, error);
  if (!x || !is_near)
    return x != NULL;
  const LsRoleRetries *worst = worst_of (x);
  r->retries = (LsRetriesReport) {
    .is_known = true,
    .n = worst->n_retries,
    .freed_bytes = worst->freed,
    .taken_bytes = worst->taken,
    .reserved_bytes = worst->reserved_bytes,
    .limit_bytes = worst->limit_bytes,
    .is_out_of_memory = worst->is_out_of_memory,
  };
  bool is_free = worst->n_retries == 0 || worst->is_out_of_memory;
  return is_free || charge (r, x, chosen, run, ret_cost_share, error);
}

/* What a GPU holds outside the segments. */
static uint64_t
beside_segments (const LsRetriesReport *x, uint64_t capacity_bytes)
{
  return capacity_bytes - MIN (capacity_bytes, x->limit_bytes);
}

void
ls_job_fit_retries (LsJobResult *r)
{
  const LsRetriesReport *x = &r->retries;
  if (!x->is_out_of_memory && (x->n == 0 || x->is_refused))
    return;
  LsClassMemory *fullest = &r->memory->classes[ls_memory_fullest (r->memory) - r->memory->classes];
  uint64_t with_segments = x->reserved_bytes + beside_segments (x, fullest->capacity_bytes);
  if (x->is_out_of_memory) { /* what does not fit without segments needs what it needs */
    if (fullest->needed_bytes <= fullest->capacity_bytes)
      fullest->needed_bytes = with_segments;
    return;
  }
  for (uint32_t i = 0; i < r->memory->n_classes; i++) {
    LsClassMemory *m = &r->memory->classes[i];
    m->needed_bytes = MIN (m->needed_bytes, with_segments);
  }
}

/* --- what is said ------------------------------------------------------------------------- */

static double
gib (uint64_t bytes)
{
  return (double) bytes / GIB;
}

static char *
cost_text (const LsRetriesReport *x)
{
  g_autofree char *lost = ls_format_time (ls_time_from_s (x->lost_s));
  return x->is_refused ? g_strdup ("what that costs could not be simulated")
                       : g_strdup_printf ("which costs %s of the step", lost);
}

static char *
many_text (const LsRetriesReport *x)
{
  g_autofree char *cost = cost_text (x);
  return g_strdup_printf (
      "PyTorch's allocator meets the limit of the GPU's memory (num_alloc_retries: %" G_GUINT64_FORMAT
      " a step): it waits for the device, gives back %.1f GiB and takes"
      " %.1f GiB anew, %s; cuda_allocator=expandable (expandable_segments) or less memory avoids it",
      x->n, gib (x->freed_bytes), gib (x->taken_bytes), cost);
}

static char *
no_room_text (const LsRetriesReport *x)
{
  return g_strdup_printf (
      "PyTorch's allocator finds no room: its segments take %.2f of the %.2f GiB that they may, also"
      " when all that is cached is given back; the step is that of a GPU with memory enough",
      gib (x->reserved_bytes), gib (x->limit_bytes));
}

static char *
near_text (const LsRetriesReport *x, const LsHeadroom *h)
{
  g_autofree char *headroom = ls_headroom_text (h);
  return g_strdup_printf (
      "PyTorch's allocator reserves %.2f of the %.2f GiB that it may: what is not simulated (%s) may"
      " make it wait for the device, give back and take anew (num_alloc_retries), which is not charged",
      gib (x->reserved_bytes), gib (x->limit_bytes), headroom);
}

/* What else is to stay free, where segments are simulated. */
static void
headroom_beside (const LsJobSpec *spec, const LsJobResult *r, LsHeadroom *ret_headroom)
{
  const LsHeadroomAsk nothing = { 0 };
  const LsMemoryOptions caching = { .allocator = LS_MEMORY_CACHING };
  ls_headroom_of (&nothing, spec->program, ls_job_software (spec, r), r->strategy.dp_kind, r->hardware,
                  &caching, ret_headroom);
}

/* NULL: nothing. */
static char *
note_of (const LsRetriesReport *x, const LsReport *report, const LsHeadroom *beside)
{
  if (x->is_out_of_memory) { /* of what does not fit without segments that is said elsewhere */
    uint64_t with_segments = x->reserved_bytes + beside_segments (x, report->capacity_bytes);
    return report->needed_bytes == with_segments ? no_room_text (x) : NULL;
  }
  if (x->n > 0)
    return many_text (x);
  return ls_headroom_is_left (beside, x->reserved_bytes, x->limit_bytes) ? NULL : near_text (x, beside);
}

/* Why it makes no difference how the allocator works at the limit; NULL: it makes one. */
static const char *
idle_reason (const LsJobResult *r)
{
  const char *none = "segments of fixed size do not meet the limit of the memory",
             *no_room = "there is no room even with retries";
  if (r->retries.is_known)
    return r->retries.is_out_of_memory ? no_room : r->retries.n == 0 ? none : NULL;
  g_autoptr (LsRetries) x = ls_retries_new (r->plan);
  g_autoptr (LsMemory) m = memory_of (r, r->hardware, r->timeline, x);
  if (ls_cluster_traits (&r->cluster->spec)->runs_xla)
    return "XLA places buffers when it compiles";
  if (!may_meet_limit (m))
    return none;
  return worst_of (x)->is_out_of_memory ? no_room : worst_of (x)->n_retries == 0 ? none : NULL;
}

static void
note_if_idle (const LsJobSpec *spec, LsJobResult *r)
{
  bool has_one = r->strategy.memory.cuda_allocator != LS_CUDA_ALLOCATOR_NONE;
  g_autofree char *said
      = has_one ? ls_job_said_as (spec, ls_field_find (ls_strategy_fields, "cuda_allocator")) : NULL;
  const char *why = said ? idle_reason (r) : NULL;
  if (why)
    ls_note (r->notes, "%s has no effect here: %s", said, why);
}

void
ls_job_note_retries (const LsJobSpec *spec, LsJobResult *r)
{
  if (!r->notes)
    return;
  note_if_idle (spec, r);
  if (!r->retries.is_known)
    return;
  g_auto (LsHeadroom) beside = { 0 };
  headroom_beside (spec, r, &beside);
  char *note = note_of (&r->retries, &r->report, &beside);
  if (note)
    g_ptr_array_add (r->notes, note);
}
