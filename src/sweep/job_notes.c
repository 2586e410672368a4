#include "sweep/job_notes.h"

#include "parallel/sched.h"

#define LEAST_SHARE 0.01 /* of a step that is worth a line */

/* In a whole backward the collective of an input gradient runs beside the GEMM of the weight gradient
 * (parallel/lower_operator.c); I has none. */
static void
note_tensor_parallel (LsJobResult *r)
{
  const LsStrategy *s = &r->strategy;
  double exposed = r->report.breakdown_s[LS_PART_EXPOSED_TP];
  if (s->tp == 1 || !s->tp_async || s->tp_overlap || exposed < LEAST_SHARE * r->report.step_time_s)
    return;
  g_ptr_array_add (r->notes, g_strdup_printf ("%s puts weight gradients off: tensor-parallel collectives of backwards have no GEMM of them to run beside,"
                                              " as they have in 1f1b (exposed tp %.1f %% of the step)", s->schedule,
                                              100 * exposed / r->report.step_time_s));
}

void
ls_job_note_schedule (LsJobResult *r)
{
  const LsSched *sched = r->model.name ? ls_sched_find (r->strategy.schedule) : NULL;
  if (!sched || !sched->is_split || !r->notes || r->strategy.pp == 1)
    return;
  note_tensor_parallel (r);
}
