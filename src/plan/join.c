#include "plan/join.h"

#include <string.h>

#include <lockstep/error.h>

/* Adds up, and says where each begins. */
static gboolean
count (const LsPlan *const *plans, uint32_t n, LsPlanPart *ret_parts, LsPlan *sum, GError **error)
{
  uint64_t rank = 0, comm = 0, role = 0, segment = 0, kernel = 0;
  for (uint32_t i = 0; i < n; i++) {
    const LsPlan *p = plans[i];
    ret_parts[i] = (LsPlanPart) { (uint32_t) rank, (uint32_t) comm, (uint32_t) role, (uint32_t) segment,
                                  (uint32_t) kernel };
    rank += p->n_ranks;
    comm += p->n_comms;
    role += p->n_roles;
    segment += p->n_segments;
    kernel += p->n_kernels;
    if (MAX (MAX (rank, comm), MAX (MAX (role, segment), kernel)) >= UINT32_MAX / 2) {
      g_set_error_literal (error, LS_ERROR, LS_ERROR_LIMIT,
                           "the jobs have more ranks or communicators than can be replayed together");
      return FALSE;
    }
    sum->n_micro_batches = MAX (sum->n_micro_batches, p->n_micro_batches);
    sum->n_chunks = MAX (sum->n_chunks, p->n_chunks);
  }
  sum->n_ranks = (uint32_t) rank;
  sum->n_comms = (uint32_t) comm;
  sum->n_roles = (uint32_t) role;
  sum->n_segments = (uint32_t) segment;
  sum->n_kernels = (uint32_t) kernel;
  return TRUE;
}

static uint32_t
moved (uint32_t index, uint32_t first)
{
  return index == UINT32_MAX ? index : index + first;
}

/* Its ops name kernels by number. */
static LsSegment
join_segment (LsArena *arena, const LsSegment *from, uint32_t first_kernel)
{
  LsSegment to = *from;
  if (first_kernel == 0 || from->n_ops == 0)
    return to;
  to.ops = ls_arena_new_array (arena, LsOp, from->n_ops);
  memcpy (to.ops, from->ops, from->n_ops * sizeof *to.ops);
  for (uint32_t i = 0; i < to.n_ops; i++)
    to.ops[i].kernel = moved (to.ops[i].kernel, first_kernel);
  return to;
}

static LsProgram
join_program (LsArena *arena, const LsProgram *from, uint32_t first_segment)
{
  LsProgram to = *from;
  to.instances = ls_arena_new_array (arena, LsInstance, MAX (1, from->n_instances));
  for (uint32_t i = 0; i < from->n_instances; i++) {
    to.instances[i] = from->instances[i];
    to.instances[i].segment += first_segment;
  }
  return to;
}

static LsCommunicator
join_comm (LsArena *arena, const LsCommunicator *from, uint32_t first_rank)
{
  LsCommunicator to = *from;
  to.first += first_rank;
  to.offsets = ls_arena_new_array (arena, uint32_t, MAX (1, from->n_ranks));
  memcpy (to.offsets, from->offsets, from->n_ranks * sizeof *to.offsets);
  return to;
}

static LsBinding
join_binding (LsBinding to, const LsPlanPart *part)
{
  to.role += part->role;
  for (int s = 0; s < LS_N_SLOTS; s++)
    to.comm[s] = moved (to.comm[s], part->comm);
  for (int p = 0; p < 2; p++)
    to.peer[p] = moved (to.peer[p], part->rank);
  return to;
}

static void
join_one (LsPlan *to, const LsPlan *from, const LsPlanPart *part)
{
  for (uint32_t i = 0; i < from->n_segments; i++)
    to->segments[part->segment + i] = join_segment (to->arena, &from->segments[i], part->kernel);
  for (uint32_t i = 0; i < from->n_roles; i++)
    to->programs[part->role + i] = join_program (to->arena, &from->programs[i], part->segment);
  if (from->n_kernels > 0)
    memcpy (to->kernels + part->kernel, from->kernels, from->n_kernels * sizeof *from->kernels);
  for (uint32_t i = 0; i < from->n_comms; i++)
    to->comms[part->comm + i] = join_comm (to->arena, &from->comms[i], part->rank);
  for (uint32_t i = 0; i < from->n_ranks; i++) {
    to->bindings[part->rank + i] = join_binding (ls_plan_binding (from, i), part);
    to->gpu_of_rank[part->rank + i] = from->gpu_of_rank[i];
  }
}

LsPlan *
ls_plan_join (const LsPlan *const *plans, uint32_t n, LsPlanPart *ret_parts, GError **error)
{
  LsPlan sum = { 0 };
  if (!count (plans, n, ret_parts, &sum, error))
    return NULL;
  LsPlan *p = g_new (LsPlan, 1);
  *p = sum;
  p->arena = ls_arena_new ();
  p->segments = ls_arena_new_array (p->arena, LsSegment, MAX (1, p->n_segments));
  p->programs = ls_arena_new_array (p->arena, LsProgram, MAX (1, p->n_roles));
  p->kernels = ls_arena_new_array (p->arena, LsKernel, MAX (1, p->n_kernels));
  p->comms = ls_arena_new_array (p->arena, LsCommunicator, MAX (1, p->n_comms));
  p->bindings = ls_arena_new_array (p->arena, LsBinding, MAX (1, p->n_ranks));
  p->gpu_of_rank = ls_arena_new_array (p->arena, uint32_t, MAX (1, p->n_ranks));
  for (uint32_t i = 0; i < n; i++)
    join_one (p, plans[i], &ret_parts[i]);
  return p;
}
