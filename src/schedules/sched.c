#include "schedules/sched.h"

#include <string.h>

#include "schedules/sched_impl.h"
#include "schedules/sched_layout.h"

#define LS_SCHED_MAX_STAGES 32768

static const LsSched *const registry[] = {
  &ls_sched_none,      &ls_sched_naive,       &ls_sched_gpipe,      &ls_sched_1f1b,
  &ls_sched_pipedream, &ls_sched_interleaved, &ls_sched_looped_bfs, &ls_sched_interleaved_zb,
  &ls_sched_zb_h1,     &ls_sched_zb_h2,       &ls_sched_zb_auto,    &ls_sched_zb_1p,
  &ls_sched_zb_2p,     &ls_sched_zbv,         &ls_sched_zbv_auto,   &ls_sched_v_half,
  &ls_sched_v_min,     &ls_sched_dualpipe,    &ls_sched_dualpipev,  &ls_sched_chimera,
  &ls_sched_hanayo,
};

const LsSched *
ls_sched_find (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (registry); i++)
    if (registry[i]->name[0] == name[0] && strcmp (registry[i]->name, name) == 0) /* mostly, and faster */
      return registry[i];
  for (guint i = 0; i < G_N_ELEMENTS (registry); i++)
    if (g_ascii_strcasecmp (registry[i]->name, name) == 0)
      return registry[i];
  return NULL;
}

const LsSched *
ls_sched_at (guint i)
{
  return i < G_N_ELEMENTS (registry) ? registry[i] : NULL;
}

const LsSched *
ls_sched_usual (uint32_t pp, uint32_t vpp)
{
  LsSchedUse use = vpp > 1 ? LS_SCHED_CHUNKS : pp > 1 ? LS_SCHED_STAGES : LS_SCHED_ONE_STAGE;
  for (guint i = 0; i < G_N_ELEMENTS (registry); i++)
    if (registry[i]->use == use)
      return registry[i];
  return NULL;
}

/* What the types of an action and a layout hold. */
static const char *
refuse_size (const LsSched *sched, const LsSchedShape *shape)
{
  if (MAX (MAX (shape->vpp, shape->pipes), MAX (shape->waves, shape->pp)) > LS_SCHED_MAX_STAGES)
    return "there may be at most 32768 stages";
  uint64_t n_chunks = ls_sched_n_chunks (sched, shape);
  if (n_chunks * shape->pp > LS_SCHED_MAX_STAGES)
    return "there may be at most 32768 stages";
  if (n_chunks * shape->n_micro_batches > G_MAXINT32 / 4)
    return "there may be at most 2^29 chunk forwards on a rank";
  return NULL;
}

static const char *
refuse_chunks (const LsSched *sched, const LsSchedShape *shape)
{
  uint32_t vpp = shape->vpp;
  switch (sched->chunks) {
  case LS_CHUNKS_ONE:
    return vpp <= 1 ? NULL : sched->other ? sched->other : "vpp must be 1: a rank holds one stage";
  case LS_CHUNKS_TWO:
    return vpp == 0 || vpp == 2 ? NULL : "vpp must be 2: the model goes down the ranks and back";
  case LS_CHUNKS_SEVERAL:
    return vpp >= 2 ? NULL : sched->other;
  default:
    return NULL;
  }
}

const char *
ls_sched_own_refusal (const LsSched *sched, const LsSchedShape *shape)
{
  const char *rule = refuse_chunks (sched, shape);
  if (!rule && sched->refusal)
    rule = sched->refusal (shape);
  if (!rule && ls_sched_is_searched (sched) && shape->memory_limit != 0 && !(shape->memory_limit >= 1))
    rule = "the memory limit must be at least 1 micro-batch";
  return rule;
}

const char *
ls_sched_refusal (const LsSched *sched, const LsSchedShape *shape)
{
  if (shape->pp == 0)
    return "pp must be at least 1";
  if (shape->n_micro_batches == 0)
    return "there must be at least 1 micro-batch";
  const char *rule = refuse_size (sched, shape);
  return rule ? rule : ls_sched_own_refusal (sched, shape);
}

bool
ls_sched_fixes_chunks (const LsSched *sched)
{
  return sched->n_chunks && sched->placement != LS_PLACE_PIPES; /* pipes replicate the model */
}

bool
ls_sched_is_searched (const LsSched *sched)
{
  return sched->orders != NULL;
}

bool
ls_sched_is_flushed (const LsSched *sched)
{
  return sched->recipe != LS_RECIPE_UNFLUSHED;
}

uint32_t
ls_sched_n_versions (const LsSched *sched, const LsSchedShape *shape, uint32_t rank)
{
  return ls_sched_is_flushed (sched) ? 1 : sched->n_versions (shape, rank);
}

uint64_t
ls_sched_in_flight (const LsSched *sched, const LsSchedShape *shape, uint32_t rank)
{
  return sched->in_flight ? sched->in_flight (shape, rank) : shape->vpp <= 1;
}
