/* lower/layers/lower_offload_activations.c — kept activations wait in the memory of the host
 * (Transformer Engine's cpu_offload; Rajbhandari et al. 2020, P_a+cpu).
 *
 * Behind a layer's forward what it keeps is copied out, on a stream of its own, and its memory
 * is free once that is done. A layer's copy back begins with the backward of the layer behind
 * it, so that it has that long to arrive. The last layer of a chunk stays: its backward is
 * the first. PCIe is shared with whatever else crosses it.
 *
 * What comes back takes the place of what came before it (Transformer Engine's double
 * buffer), so that its memory is taken when the copy begins, however far the host is ahead.
 *
 * Deviation: the bounce buffers of the host's driver cost nothing. */
#include "lower/layers/lower_layers.h"

static bool
is_offloaded (const Lower *l, const Chunk *c, uint32_t layer)
{
  return l->s->offload_activations && layer + 1 < c->n_layers;
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
  uint16_t op = build_op (b, copy, deps, n_deps);
  saved_by_layer (b, op, c, layer, is_out);
  LsOp *made = &g_array_index (b->ops, LsOp, op);
  LsBufferEvent *moved = ls_arena_new_array (b->l->plan->arena, LsBufferEvent, made->n_buffers);
  for (uint16_t i = 0; i < made->n_buffers; i++) {
    moved[i] = made->buffers[i];
    moved[i].when = is_out ? LS_AT_END : LS_AT_START;
    made->bytes += moved[i].bytes;
  }
  made->buffers = moved;
  return op;
}

void
offload_behind (Build *b, const Chunk *c, guint i)
{
  bool ends_layer = layer_of (c, i) != UINT16_MAX
      && (i + 1 == c->operators->len || layer_of (c, i + 1) != layer_of (c, i));
  if (!ends_layer || !is_offloaded (b->l, c, layer_of (c, i)))
    return;
  LsDep done = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  build_copy (b, c, layer_of (c, i), LS_STREAM_COPY, LS_COPY_TO_HOST, &done, 1);
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
