#include "plan/plan.h"

static const char *const tag_names[LS_N_TAGS] = {
  [LS_TAG_F] = "F",
  [LS_TAG_I] = "I",
  [LS_TAG_W] = "W",
  [LS_TAG_B] = "B",
  [LS_TAG_RECOMPUTE] = "recompute",
  [LS_TAG_OPTIMIZER] = "optimizer",
  [LS_TAG_SYNC] = "sync",
};

static const char *const stream_names[LS_N_STREAMS] = {
  [LS_STREAM_COMPUTE] = "compute",
  [LS_STREAM_TP] = "tp",
  [LS_STREAM_DP] = "dp",
  [LS_STREAM_PP_FWD] = "pp-fwd",
  [LS_STREAM_PP_FWD_RECV] = "pp-fwd-recv",
  [LS_STREAM_PP_BWD] = "pp-bwd",
  [LS_STREAM_PP_BWD_RECV] = "pp-bwd-recv",
  [LS_STREAM_GLOBAL] = "global",
  [LS_STREAM_COPY] = "copy",
  [LS_STREAM_COPY_IN] = "copy-in",
  [LS_STREAM_GATHER] = "gather",
  [LS_STREAM_CP] = "cp",
  [LS_STREAM_EP] = "ep",
  [LS_STREAM_GATHER_IN] = "gather-in",
  [LS_STREAM_REPLICA] = "replica",
  [LS_STREAM_SHARED] = "shared-experts",
};

static const char *const slot_names[LS_N_SLOTS] = {
  [LS_SLOT_TP] = "tp",       [LS_SLOT_DP] = "dp",       [LS_SLOT_CP] = "cp",
  [LS_SLOT_EP] = "ep",       [LS_SLOT_SHARD] = "shard", [LS_SLOT_REPLICA] = "replica",
  [LS_SLOT_ETP] = "etp",     [LS_SLOT_EDP] = "edp",     [LS_SLOT_EMBEDDING] = "embedding",
  [LS_SLOT_PIPES] = "pipes", [LS_SLOT_MODEL] = "model", [LS_SLOT_WORLD] = "world",
  [LS_SLOT_PREV] = "prev",   [LS_SLOT_NEXT] = "next",
};

static const char *const axis_names[LS_N_AXES] = {
  [LS_AXIS_TP] = "tp", [LS_AXIS_DP] = "dp", [LS_AXIS_PP] = "pp", [LS_AXIS_CP] = "cp", [LS_AXIS_EP] = "ep",
};

static const char *const mem_category_names[LS_N_MEM] = {
  [LS_MEM_PARAMETERS] = "parameters", [LS_MEM_GRADIENTS] = "gradients",
  [LS_MEM_OPTIMIZER] = "optimizer",   [LS_MEM_ACTIVATIONS] = "activations",
  [LS_MEM_UNSHARDED] = "unsharded",   [LS_MEM_COMM_BUFFERS] = "comm_buffers",
  [LS_MEM_WORKSPACE] = "workspace",
};

const char *
ls_tag_name (LsTag tag)
{
  return tag_names[tag];
}

const char *
ls_stream_name (LsStream stream)
{
  return stream_names[stream];
}

const char *
ls_slot_name (LsSlot slot)
{
  return slot_names[slot];
}

const char *
ls_axis_name (LsAxis axis)
{
  return axis_names[axis];
}

const char *
ls_mem_category_name (LsMemCategory c)
{
  return mem_category_names[c];
}

uint32_t *
ls_comm_ranks (const LsCommunicator *c)
{
  uint32_t *ranks = g_new (uint32_t, c->n_ranks);
  for (uint32_t i = 0; i < c->n_ranks; i++)
    ranks[i] = ls_comm_rank (c, i);
  return ranks;
}

LsOp
ls_op_blank (LsOpKind kind, LsStream stream, LsTag tag, const char *name)
{
  return (LsOp) {
    .kind = kind,
    .stream = stream,
    .tag = tag,
    .host = LS_HOST_FREE,
    .layer = UINT16_MAX,
    .unit = UINT16_MAX,
    .event = LS_EVENT_NONE,
    .kernel = UINT32_MAX,
    .recorded = LS_TIME_NEVER,
    .name = name,
  };
}

void
ls_plan_free (LsPlan *plan)
{
  if (!plan)
    return;
  ls_arena_free (plan->arena);
  g_free (plan);
}

static uint64_t
n_program_ops (const LsPlan *plan, const LsProgram *program)
{
  uint64_t n = 0;
  for (uint32_t i = program->n_lead; i < program->n_instances; i++)
    n += plan->segments[program->instances[i].segment].n_ops;
  return n;
}

guint
ls_name_hash (gconstpointer key)
{
  uint64_t bits = GPOINTER_TO_SIZE (key) * UINT64_C (0x9e3779b97f4a7c15); /* Fibonacci hashing */
  return (guint) (bits >> 32);
}

uint64_t
ls_plan_n_op_instances (const LsPlan *plan)
{
  g_autofree uint64_t *n_of_role = g_new (uint64_t, plan->n_roles);
  for (uint32_t role = 0; role < plan->n_roles; role++)
    n_of_role[role] = n_program_ops (plan, &plan->programs[role]);

  uint64_t n = 0;
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++)
    n += n_of_role[ls_plan_role (plan, rank)];
  return n;
}

uint64_t *
ls_plan_ranks_of_roles (const LsPlan *plan)
{
  uint64_t *n_ranks = g_new0 (uint64_t, plan->n_roles);
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++)
    n_ranks[ls_plan_role (plan, rank)]++;
  return n_ranks;
}
