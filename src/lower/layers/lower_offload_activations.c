/* lower/layers/lower_offload_activations.c — kept activations wait in the memory of the host
 * (Transformer Engine's cpu_offload; Rajbhandari et al. 2020, P_a+cpu).
 *
 * Behind a layer's forward what it keeps is copied out, on a stream of its own. Behind the next
 * layer the compute stream waits for that, so that the memory is free for what the host issues
 * from there on, however far it is ahead, and the next copy begins (NVIDIA/TransformerEngine at
 * d0067d0da, pytorch/cpu_offload.py, release_activation_forward_gpu_memory). A layer's copy back
 * begins with the backward of the layer behind it, so that it has that long to arrive. The last
 * layer of a chunk stays: its backward is the first. So do those behind the first offload_layers,
 * if that is said. PCIe is shared with whatever else crosses it.
 *
 * What comes back takes the place of what came before it (Transformer Engine's double
 * buffer), so that its memory is taken when the copy begins, however far the host is ahead.
 *
 * What waits there at once counts in the order of the program: from the copy out to the copy back.
 *
 * Deviations: the bounce buffers of the host's driver cost nothing. Transformer Engine begins to
 * bring some of several layers back while others, which stayed, are run. */
#include "lower/layers/lower_layers.h"

static bool
is_offloaded (const Lower *l, const Chunk *c, uint32_t layer)
{
  uint32_t n = l->s->memory.offload_layers;
  return l->s->memory.offload_activations && layer + 1 < c->n_layers && (n == 0 || layer < n);
}

/* The copy has the bytes of the buffers that it moves. */
static uint16_t
build_copy (Build *b, const Chunk *c, uint32_t layer, LsStream stream, LsCopyDirection direction,
            const LsDep *deps, uint16_t n_deps)
{
  bool is_out = direction == LS_COPY_TO_HOST;
  LsOp copy
      = ls_op_blank (LS_OP_COPY, stream, LS_TAG_SYNC, is_out ? "offload activations" : "reload activations");
  copy.root = direction;
  copy.host = LS_HOST_LAUNCH;
  copy.is_kept = true;
  uint16_t op = build_op (b, copy, deps, n_deps);
  saved_by_layer (b, op, c, layer, is_out);
  LsOp *made = &g_array_index (b->ops, LsOp, op);
  LsBufferEvent *moved = ls_arena_new_array (b->l->plan->arena, LsBufferEvent, made->n_buffers);
  for (uint16_t i = 0; i < made->n_buffers; i++) {
    moved[i] = made->buffers[i];
    moved[i].when = LS_AT_START;
    made->bytes += moved[i].bytes;
  }
  made->buffers = is_out ? NULL : moved;
  made->n_buffers = is_out ? 0 : made->n_buffers;
  return op;
}

/* The compute stream waits for a copy, and what was copied is free. */
static void
finish_copy (Build *b, const Chunk *c, Offload *o)
{
  if (!o->is_under_way)
    return;
  build_join (b, o->op);
  uint16_t op = build_op (b, ls_op_blank (LS_OP_RECORD, b->stream, LS_TAG_SYNC, "offloaded"), NULL, 0);
  saved_by_layer (b, op, c, o->layer, true);
  o->is_under_way = false;
}

void
offload_behind (Build *b, const Chunk *c, guint i, Offload *o)
{
  bool ends_layer = layer_of (c, i) != UINT16_MAX
      && (i + 1 == c->operators->len || layer_of (c, i + 1) != layer_of (c, i));
  if (!ends_layer)
    return;
  finish_copy (b, c, o);
  if (!is_offloaded (b->l, c, layer_of (c, i)))
    return;
  LsDep done = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  uint16_t op = build_copy (b, c, layer_of (c, i), LS_STREAM_COPY, LS_COPY_TO_HOST, &done, 1);
  *o = (Offload) { .layer = layer_of (c, i), .op = op, .is_under_way = true };
}

void
reload_before (Build *b, const Chunk *c, guint i, Reload *r)
{
  uint32_t layer = layer_of (c, i);
  bool begins = layer != UINT16_MAX && layer != r->layer;
  if (!begins)
    return;
  if (r->is_under_way)
    build_join (b, r->op);
  *r = (Reload) { .layer = layer };
  if (layer == 0 || !is_offloaded (b->l, c, layer - 1))
    return;
  const LsDep deps[] = { { LS_DEP_STREAM, LS_STREAM_COMPUTE }, { LS_DEP_STREAM, LS_STREAM_COPY } };
  r->op = build_copy (b, c, layer - 1, LS_STREAM_COPY_IN, LS_COPY_TO_DEVICE, deps, G_N_ELEMENTS (deps));
  r->is_under_way = true;
}

/* What leaves, and what of it has not come back, at most. */
static void
follow_copies (const LsSegment *seg, uint64_t *bytes, uint64_t *most)
{
  for (uint32_t o = 0; o < seg->n_ops; o++) {
    const LsOp *op = &seg->ops[o];
    if (op->is_kept && op->root == LS_COPY_TO_HOST)
      *bytes += op->bytes;
    else if (op->is_kept)
      *bytes -= MIN (op->bytes, *bytes);
    *most = MAX (*most, *bytes);
  }
}

uint64_t
activations_in_host (const Lower *l, const LsProgram *p)
{
  uint64_t bytes = 0, most = 0;
  for (uint32_t i = 0; l->s->memory.offload_activations && i < p->n_instances; i++)
    follow_copies (&g_array_index (l->segments, LsSegment, p->instances[i].segment), &bytes, &most);
  return most;
}
