/* exec/shortcuts/fold_planned.c — the calls of the quotient's communicators without planning them again: the
 * structure of the cluster (fold_blocks.h) has planned one of each shape, and knows what that loads by class. */
#include <math.h>

#include "exec/shortcuts/refine.h"
#include "exec/shortcuts/shapes.h"
#include "exec/replay/state.h"

typedef struct {
  const Run *x;
  const Fold *f;
  const FoldClasses *c;
  uint32_t comm;     /* of the quotient */
  uint32_t n_alike;  /* how many that stands for */
  uint32_t *classes; /* [n_uses] of resources loaded by the present phase */
  uint64_t *sum;     /* [n_resources] zeros between phases                */
} Planned;

/* What a phase of that pattern loads; behind these *ret_n_ample that are ample. */
static LsFlowUse *
uses_of (Planned *p, uint32_t pattern, uint32_t *ret_n, uint32_t *ret_n_ample)
{
  const Refine *r = p->c->refine;
  const FoldAmple *ample = p->f->ample;
  uint32_t row = p->c->row_of_comm[p->comm], n = 0;
  for (uint32_t i = r->first[row]; i < r->first[row + 1]; i++) {
    const RefineLoad *l = &r->loads[i];
    if (l->pattern != pattern || r->is_ample[l->resource])
      continue;
    uint32_t class = p->c->class_of[l->resource];
    if (p->sum[class] == 0)
      p->classes[n++] = class;
    p->sum[class] += l->coef;
  }
  uint32_t n_ample = *ret_n_ample = fold_ample_uses (ample, p->comm, pattern, NULL);
  LsFlowUse *uses = ls_arena_new_array (p->x->arena, LsFlowUse, n + n_ample);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t class = p->classes[i];
    uses[i] = (LsFlowUse) { .resource = class,
                            .coef = fold_coef (p->sum[class], p->n_alike, p->f->n_of_resource[class]) };
    p->sum[class] = 0;
  }
  fold_ample_uses (ample, p->comm, pattern, &uses[n]);
  *ret_n = n;
  return uses;
}

static Call *
call_of (Planned *p, const ShapedCall *shaped, Call *next)
{
  uint32_t n_phases = shaped->plan->n_phases;
  Call *call = ls_arena_new_array (p->x->arena, Call, 1);
  call->next = next;
  call->key = shaped->key;
  call->plan = shaped->plan;
  call->stall = shaped->stall;
  call->sm_share = (uint64_t) llround (shaped->plan->sm_share * (double) LS_COEF_ONE);
  call->uses = ls_arena_new_array (p->x->arena, LsFlowUse *, n_phases);
  call->n_uses = ls_arena_new_array (p->x->arena, uint32_t, n_phases);
  call->n_ample = ls_arena_new_array (p->x->arena, uint32_t, n_phases);
  for (uint32_t i = 0; i < n_phases; i++)
    if (shaped->pattern[i] != UINT32_MAX)
      call->uses[i] = uses_of (p, shaped->pattern[i], &call->n_uses[i], &call->n_ample[i]);
  return call;
}

Call **
fold_planned (const Run *x, const Fold *f, const FoldClasses *c)
{
  g_autofree uint32_t *classes = g_new (uint32_t, f->whole.n_resources);
  g_autofree uint64_t *sum = g_new0 (uint64_t, f->whole.n_resources);
  Call **calls = g_new0 (Call *, c->n_comms + 1);
  Planned p = { .x = x, .f = f, .c = c, .classes = classes, .sum = sum };
  for (p.comm = 0; p.comm < c->n_comms; p.comm++) {
    p.n_alike = f->whole.n_of_comm[p.comm];
    g_assert (p.n_alike > 0);
    const ShapedCalls *shaped = fold_ample_calls (f->ample, p.comm);
    for (uint32_t i = 0; i < shaped->n; i++)
      calls[p.comm] = call_of (&p, &shaped->calls[i], calls[p.comm]);
  }
  return calls;
}
