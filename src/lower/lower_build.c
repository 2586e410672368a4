/* lower/lower_build.c — a segment under construction. */
#include "lower/data/lower_dp.h"

#include <string.h>

#include "base/diag.h"
#include "strategy/shard.h"

void
build_init (Build *b, Lower *l)
{
  *b = (Build) {
    .l = l,
    .ops = l->spare_ops ? g_steal_pointer (&l->spare_ops) : g_array_new (FALSE, FALSE, sizeof (LsOp)),
    .next_deps = g_array_new (FALSE, FALSE, sizeof (LsDep)),
    .layer = UINT16_MAX,
    .stream = LS_STREAM_COMPUTE,
    .documents = documents_at (l, 0),
  };
}

void
build_piece (Build *b, PieceKind kind)
{
  PieceStart start = { b->ops->len, kind };
  if (b->cuts)
    g_array_append_val (b->cuts, start);
}

void
build_clear (Build *b)
{
  g_array_set_size (b->ops, 0);
  g_clear_pointer (&b->l->spare_ops, g_array_unref);
  b->l->spare_ops = b->ops;
  g_array_unref (b->next_deps);
  g_clear_pointer (&b->cuts, g_array_unref);
}

char *
build_role_name (const Lower *l, const char *name)
{
  g_autofree char *cp = l->n_cp_roles > 1 ? g_strdup_printf (" cp %u", l->cp_rank) : NULL;
  g_autofree char *ep = l->n_ep_roles > 1 ? g_strdup_printf (" ep %u", l->shard.experts.ep_rank) : NULL;
  return g_strconcat (name, cp ? cp : "", ep ? ep : "", NULL);
}

bool
build_reuses (Build *b, Lower *l, const char *segment)
{
  g_autofree char *name = build_role_name (l, segment);
  gpointer id = g_hash_table_lookup (l->segment_ids, name);
  if (id)
    b->segment = GPOINTER_TO_UINT (id) - 1;
  else
    build_init (b, l);
  return id != NULL;
}

/* Dependencies on ops that are elsewhere now. */
static const LsDep *
deps_moved (Build *b, const LsOp *op, const uint16_t *moved)
{
  LsDep *deps = ls_arena_new_array (b->l->plan->arena, LsDep, op->n_deps);
  for (uint16_t d = 0; d < op->n_deps; d++) {
    LsDep dep = op->deps[d];
    deps[d] = (LsDep) { dep.kind, dep.kind == LS_DEP_STREAM ? dep.index : moved[dep.index] };
  }
  return deps;
}

static LsOp
wait_for_op (Build *b, const LsOp *op, uint16_t index)
{
  LsDep *end = ls_arena_new_array (b->l->plan->arena, LsDep, 1);
  *end = (LsDep) { LS_DEP_END, index };
  LsOp wait = ls_op_blank (LS_OP_HOST_SYNC, LS_STREAM_COMPUTE, LS_TAG_SYNC, "launch blocks");
  wait.host = LS_HOST_SYNC;
  wait.layer = op->layer;
  wait.deps = end;
  wait.n_deps = 1;
  return wait;
}

/* Puts a wait of the host behind each op that is launched. */
static void
block_on_launches (Build *b)
{
  GArray *ops = g_array_new (FALSE, FALSE, sizeof (LsOp));
  g_autofree uint16_t *moved = g_new (uint16_t, b->ops->len);
  for (guint i = 0; i < b->ops->len; i++) {
    LsOp op = g_array_index (b->ops, LsOp, i);
    op.deps = deps_moved (b, &op, moved);
    moved[i] = (uint16_t) ops->len;
    g_array_append_val (ops, op);
    if (!ls_op_has_span (op.kind))
      continue;
    LsOp wait = wait_for_op (b, &op, moved[i]);
    g_array_append_val (ops, wait);
  }
  b->is_too_long |= ops->len > MAX_OPS;
  g_array_set_size (ops, MIN (ops->len, MAX_OPS));
  g_array_unref (b->ops);
  b->ops = ops;
}

/* Whether a CUDA graph may hold it: what waits for the device, or is fed from the host, it may not; that of a
 * layer nothing whose size the host has counted (tokens of experts). Reduction of gradients, gathers and
 * transfers between stages are issued by hooks, outside the graph of a layer. */
static bool
is_in_graph (const Build *b, const LsOp *op)
{
  bool is_launch = op->host == LS_HOST_LAUNCH || op->host == LS_HOST_COMM || op->host == LS_HOST_VIEW
      || op->host == LS_HOST_PRODUCT;
  if (!is_launch || op->tag == LS_TAG_OPTIMIZER)
    return false;
  bool is_of_layer = op->layer != UINT16_MAX && !op->is_counted
      && (op->stream == LS_STREAM_COMPUTE || op->stream == LS_STREAM_TP || op->stream == LS_STREAM_CP);
  return b->l->s->launch.cuda_graphs == LS_GRAPHS_STEP || is_of_layer;
}

/* The first op of a graph launches all of it. That of a step is launched once in all its segments: nothing is
 * charged. */
static void
launch_graphs (Build *b)
{
  bool is_step = b->l->s->launch.cuda_graphs == LS_GRAPHS_STEP;
  uint16_t layer = UINT16_MAX;
  for (guint i = 0; i < b->ops->len; i++) {
    LsOp *op = &g_array_index (b->ops, LsOp, i);
    if (!is_in_graph (b, op)) {
      bool is_between = op->host == LS_HOST_SYNC || op->host == LS_HOST_BATCH || op->is_counted;
      layer = is_between ? UINT16_MAX : layer; /* the host comes between */
      continue;
    }
    bool is_launched = is_step || op->layer == layer;
    op->is_in_graph = is_launched && ls_op_takes (op->kind, LS_TAKES_GPU);
    op->host = is_launched ? LS_HOST_FREE : LS_HOST_LAUNCH;
    layer = op->layer;
  }
}

uint32_t
build_finish (Build *b, const char *segment)
{
  Lower *l = b->l;
  g_autofree char *name = build_role_name (l, segment);
  if (b->next_deps->len > 0)
    build_barrier (b);
  if (l->s->launch.cuda_graphs != LS_GRAPHS_NONE)
    launch_graphs (b);
  if (l->s->launch.launch_blocking)
    block_on_launches (b);
  if (b->is_too_long && !l->too_long) {
    l->too_long = g_strdup (name);
    l->is_end_too_long = b->is_end;
  }
  LsSegment seg = { .name = ls_arena_strdup (l->plan->arena, name), .n_ops = b->ops->len };
  seg.ops = ls_arena_new_array (l->plan->arena, LsOp, b->ops->len);
  if (b->ops->len > 0)
    memcpy (seg.ops, b->ops->data, b->ops->len * sizeof (LsOp));
  g_array_append_val (l->segments, seg);
  g_hash_table_insert (l->segment_ids, g_strdup (name), GUINT_TO_POINTER (l->segments->len));
  build_clear (b);
  return l->segments->len - 1;
}

LsSite
site_of (const Chunk *c, guint i)
{
  const LsOperator *o = operator_at (c, i);
  static const LsSite of_roles[] = { [LS_OPERATOR_NORM] = LS_SITE_NORM,
                                     [LS_OPERATOR_QKV] = LS_SITE_ATTENTION,
                                     [LS_OPERATOR_ROPE] = LS_SITE_ATTENTION,
                                     [LS_OPERATOR_ATTENTION] = LS_SITE_ATTENTION,
                                     [LS_OPERATOR_RESIDUAL] = LS_SITE_RESIDUAL };
  if (o->kept.is_norm || of_roles[o->role] != LS_SITE_OTHER)
    return o->kept.is_norm ? LS_SITE_NORM : of_roles[o->role];
  if (o->part != LS_MLP_PART_NONE)
    return o->part == LS_MLP_PART_DENSE ? LS_SITE_MLP : LS_SITE_EXPERTS;
  if (is_layer (c, i))
    return LS_SITE_ATTENTION;
  for (guint k = i; k < c->operators->len; k++)
    if (is_layer (c, k))
      return LS_SITE_EMBEDDING; /* what stands before the layers */
  return o->is_logits ? LS_SITE_HEAD : o->params.n > 0 ? LS_SITE_EMBEDDING : LS_SITE_LOSS;
}

uint16_t
build_op (Build *b, LsOp op, const LsDep *deps, uint16_t n_deps)
{
  if (b->ops->len >= MAX_OPS) { /* build_finish() reports it */
    b->is_too_long = true;
    g_array_set_size (b->ops, MAX_OPS - 1);
  }
  bool takes_joins = op.stream == b->stream && !ls_op_kinds[op.kind].host_waits;
  guint n_joins = takes_joins ? b->next_deps->len : 0;
  LsDep *all = ls_arena_new_array (b->l->plan->arena, LsDep, n_deps + n_joins);
  if (n_deps > 0)
    memcpy (all, deps, n_deps * sizeof (LsDep));
  if (n_joins > 0)
    memcpy (all + n_deps, b->next_deps->data, n_joins * sizeof (LsDep));
  if (takes_joins)
    g_array_set_size (b->next_deps, 0);
  op.deps = all;
  op.n_deps = (uint16_t) (n_deps + n_joins);
  op.layer = b->layer;
  op.site = op.tag == LS_TAG_OPTIMIZER ? LS_SITE_OPTIMIZER : b->site & 15;
  op.is_counted = b->is_counted;
  if (b->l->s->launch.is_compiled)
    op.host = LS_HOST_FREE; /* a step is one executable */
  g_array_append_val (b->ops, op);
  return (uint16_t) (b->ops->len - 1);
}

static uint32_t
intern_kernel (Lower *l, const LsKernel *k)
{
  gpointer id = g_hash_table_lookup (l->kernel_ids, k);
  if (id)
    return GPOINTER_TO_UINT (id) - 1;
  g_array_append_val (l->kernels, *k);
  g_hash_table_insert (l->kernel_ids, g_memdup2 (k, sizeof *k), GUINT_TO_POINTER (l->kernels->len));
  return l->kernels->len - 1;
}

void
build_waits (Build *b, LsHostCost each, uint32_t n, LsTag tag)
{
  LsOp op = ls_op_blank (LS_OP_HOST_DELAY, LS_STREAM_COMPUTE, tag, "launches");
  op.host = (uint8_t) each;
  op.recorded = 0;
  op.repeat = n;
  build_op (b, op, NULL, 0);
}

uint16_t
build_kernel_on (Build *b, LsStream stream, const LsKernel *k, LsTag tag, const LsDep *deps, uint16_t n_deps)
{
  LsOp op = ls_op_blank (LS_OP_KERNEL, stream, tag, k->name);
  LsHostCost each = k->n_launches > 1 && k->kind == LS_KERNEL_GEMM ? LS_HOST_PRODUCT : LS_HOST_LAUNCH;
  op.host = (uint8_t) each;
  op.dtype = (uint8_t) k->dtype;
  op.kernel = intern_kernel (b->l, k);
  uint16_t index = build_op (b, op, deps, n_deps);
  if (k->n_launches > 1 && !b->l->s->launch.is_compiled)
    build_waits (b, each, k->n_launches - 1, tag); /* the others, while the first runs */
  return index;
}

uint16_t
build_kernel (Build *b, const LsKernel *k, LsTag tag)
{
  uint16_t op = build_kernel_on (b, b->stream, k, tag, NULL, 0);
  if (k->of_cut)
    build_coll_joined (b, LS_STREAM_TP, LS_SLOT_TP, LS_COLL_ALL_REDUCE, 4, LS_DTYPE_FP32, tag,
                       "amax all-reduce");
  return op;
}

/* Thread blocks that its communicator is held to. What is not NCCL's has none: copy engines, and what
 * Transformer Engine moves beside GEMMs (tp_overlap). */
static uint32_t
max_ctas_of (const LsStrategy *s, LsSlot slot, int coll)
{
  const uint32_t tp = s->mp.tp_overlap ? 0 : s->mp.tp_max_ctas, dp = s->mp.dp_max_ctas;
  const uint32_t most[LS_N_SLOTS] = {
    [LS_SLOT_TP] = tp,
    [LS_SLOT_ETP] = tp,
    [LS_SLOT_CP] = s->mp.cp_max_ctas,
    [LS_SLOT_EP] = s->mp.ep_max_ctas,
    [LS_SLOT_DP] = dp,
    [LS_SLOT_SHARD] = dp,
    [LS_SLOT_REPLICA] = dp,
    [LS_SLOT_EDP] = dp,
  };
  return coll == LS_COLL_COPY_PERMUTE ? 0 : most[slot];
}

static LsOp
coll_op (const Build *b, LsStream stream, LsSlot slot, int coll, uint64_t bytes, LsDtype dtype, LsTag tag,
         const char *name)
{
  LsOp op = ls_op_blank (LS_OP_COLLECTIVE, stream, tag, name);
  op.host = LS_HOST_COMM;
  op.slot = (uint8_t) slot;
  op.coll = (uint8_t) coll;
  op.max_ctas = (uint8_t) max_ctas_of (b->l->s, slot, coll);
  op.bytes = bytes;
  op.dtype = (uint8_t) dtype;
  return op;
}

uint16_t
build_coll (Build *b, LsStream stream, LsSlot slot, int coll, uint64_t bytes, LsDtype dtype, LsTag tag,
            const char *name)
{
  return build_behind (b, b->stream, coll_op (b, stream, slot, coll, bytes, dtype, tag, name));
}

uint16_t
build_coll_after (Build *b, LsStream stream, LsSlot slot, int coll, uint64_t bytes, LsDtype dtype, LsTag tag,
                  const char *name, const LsDep *dep)
{
  return build_op (b, coll_op (b, stream, slot, coll, bytes, dtype, tag, name), dep, dep ? 1 : 0);
}

void
build_coll_joined (Build *b, LsStream stream, LsSlot slot, int coll, uint64_t bytes, LsDtype dtype, LsTag tag,
                   const char *name)
{
  build_join (b, build_coll (b, stream, slot, coll, bytes, dtype, tag, name));
}

uint16_t
build_behind (Build *b, LsStream stream, LsOp op)
{
  LsDep before = { LS_DEP_STREAM, (uint16_t) stream };
  if (b->next_deps->len == 0)
    return build_op (b, op, &before, 1);
  g_autoptr (GArray) deps = g_array_copy (b->next_deps);
  g_array_append_val (deps, before);
  return build_op (b, op, (const LsDep *) deps->data, (uint16_t) deps->len);
}

uint16_t
build_transfers (Build *b, LsStream stream, LsTransfer *transfers, uint16_t n, const char *name)
{
  LsOp op = ls_op_blank (LS_OP_P2P, stream, LS_TAG_SYNC, name);
  op.host = LS_HOST_COMM;
  op.dtype = (uint8_t) b->l->shard.dtype;
  op.transfers = transfers;
  op.n_transfers = n;
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  return build_op (b, op, &compute, 1);
}

uint16_t
build_event (Build *b, LsOpKind kind, LsStream stream, const char *name, uint16_t event, const LsDep *dep)
{
  LsOp op = ls_op_blank (kind, stream, LS_TAG_SYNC, name);
  op.event = event;
  return build_op (b, op, dep, dep ? 1 : 0);
}

void
build_host_sync (Build *b, LsTag tag, const char *name, const LsDep *deps, uint16_t n_deps)
{
  LsOp op = ls_op_blank (LS_OP_HOST_SYNC, LS_STREAM_COMPUTE, tag, name);
  op.host = LS_HOST_SYNC;
  build_op (b, op, deps, n_deps);
}
void
build_host_calls (Build *b, LsTag tag, LsHostCost of, uint64_t n, const char *name)
{
  LsOp op = ls_op_blank (LS_OP_HOST_DELAY, LS_STREAM_COMPUTE, tag, name);
  op.host = of;
  op.recorded = 0;
  op.repeat = (uint32_t) n;
  build_op (b, op, NULL, 0);
}

void
build_join (Build *b, uint16_t index)
{
  LsDep dep = { LS_DEP_END, index };
  if (index != NO_OP)
    g_array_append_val (b->next_deps, dep);
}

void
build_join_stream (Build *b, LsStream stream)
{
  LsDep dep = { LS_DEP_STREAM, (uint16_t) stream };
  g_array_append_val (b->next_deps, dep);
}

void
build_barrier (Build *b)
{
  build_event (b, LS_OP_RECORD, b->stream, "join", LS_EVENT_NONE, NULL);
}

void
build_compute_sync (Build *b, const char *name)
{
  if (b->next_deps->len > 0)
    build_barrier (b);
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  build_host_sync (b, LS_TAG_SYNC, name, &compute, 1);
}

void
build_device_sync (Build *b)
{
  const Lower *l = b->l;
  LsDep deps[LS_N_STREAMS];
  uint16_t n = 0;
  for (int s = 0; s < LS_N_STREAMS; s++) {
    bool is_used = s == LS_STREAM_COMPUTE || s == LS_STREAM_GLOBAL || (s == LS_STREAM_TP && l->mesh.tp > 1)
        || (s == LS_STREAM_DP && l->mesh.dp * l->mesh.cp > 1) || (s == LS_STREAM_CP && l->mesh.cp > 1)
        || (s == LS_STREAM_PP_FWD && l->mesh.pp > 1) || (s == LS_STREAM_EP && l->mesh.ep * l->mesh.etp > 1)
        || ((s == LS_STREAM_GATHER || s == LS_STREAM_REPLICA) && l->backend->steps_on_shards);
    if (is_used)
      deps[n++] = (LsDep) { LS_DEP_STREAM, (uint16_t) s };
  }
  build_host_sync (b, LS_TAG_SYNC, "device synchronize", deps, n);
}

void
build_buffer (Build *b, uint16_t op, uint16_t id, LsMemCategory category, uint64_t bytes, bool is_free)
{
  build_buffer_at (b, op, id, category, bytes, is_free, is_free ? LS_AT_END : LS_AT_ISSUE);
}

void
build_buffer_at (Build *b, uint16_t op_index, uint16_t id, LsMemCategory category, uint64_t bytes,
                 bool is_free, LsMemWhen when)
{
  if (bytes == 0)
    return;
  LsOp *op = &g_array_index (b->ops, LsOp, op_index);
  LsBufferEvent *all = ls_arena_new_array (b->l->plan->arena, LsBufferEvent, op->n_buffers + 1u);
  if (op->n_buffers > 0)
    memcpy (all, op->buffers, op->n_buffers * sizeof (LsBufferEvent));
  all[op->n_buffers++] = (LsBufferEvent) {
    .bytes = bytes,
    .id = id,
    .category = (uint8_t) category,
    .is_free = is_free,
    .when = (uint8_t) when,
  };
  op->buffers = all;
}

/* Ranks of other copies become more stages, or share its experts; a step on the optimizer's part of a rank is
 * shorter than on all. */
gboolean
refuse_long_segment (const Lower *l, GError **error)
{
  const LsStrategy *s = l->s;
  uint32_t n_layers = l->model->n_layers, copies = s->dp * s->cp;
  bool is_end = l->is_end_too_long,
       has_shards = s->opt.kind ? s->dp_kind == LS_DP_MEGATRON : ls_dp_traits (s->dp_kind)->stages >> 1 & 1;
  const struct {
    bool is_possible;
    const char *what;
  } ways[] = {
    { 2 * s->pp <= n_layers && s->dp % 2 == 0, "more pipeline stages (--pp)" },
    { !is_end && s->vpp > 1 && s->pp * (s->vpp + 1) <= n_layers, "more chunks (--vpp)" },
    { is_end && s->zero_stage == 0 && copies > 1 && has_shards, "--zero 1" },
    { is_end && l->model->moe.n_experts % (2 * s->ep) == 0 && l->model->moe.n_experts > s->ep
          && copies * s->tp % (2 * s->ep * s->experts.etp) == 0,
      "more --ep" },
  };
  g_autoptr (GString) text = g_string_new (NULL);
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++)
    if (ways[i].is_possible)
      g_string_append_printf (text, "%s%s", text->len > 0 ? ", " : "", ways[i].what);
  return ls_fail (error, LS_ERROR_UNSUPPORTED, "segment \"%s\" has more than %u ops%s%s", l->too_long,
                  MAX_OPS, text->len > 0 ? "; what makes it shorter: " : "", text->str);
}
