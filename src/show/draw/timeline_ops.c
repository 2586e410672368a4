/* How an op of a timeline is drawn and called. */
#include "show/draw/pictures.h"
#include "show/draw/timeline_draw.h"

const char *
ls_box_paint (LsBoxKind kind)
{
  static const char *const paints[LS_N_BOX_KINDS] = {
    [LS_BOX_FORWARD] = "forward",     [LS_BOX_BACKWARD] = "backward",   [LS_BOX_WEIGHT] = "weight",
    [LS_BOX_RECOMPUTE] = "recompute", [LS_BOX_OPTIMIZER] = "optimizer",
  };
  return paints[kind];
}

const char *
ls_stream_paint (int stream)
{
  static const char *const paints[LS_N_STREAMS + 1] = {
    [LS_STREAM_COMPUTE] = "forward", [LS_STREAM_TP] = "tp",          [LS_STREAM_DP] = "dp",
    [LS_STREAM_PP_FWD] = "pp",       [LS_STREAM_PP_FWD_RECV] = "pp", [LS_STREAM_PP_BWD] = "pp",
    [LS_STREAM_PP_BWD_RECV] = "pp",  [LS_STREAM_GLOBAL] = "other",   [LS_STREAM_COPY] = "copy",
    [LS_STREAM_COPY_IN] = "copy",    [LS_STREAM_GATHER] = "dp",      [LS_STREAM_CP] = "cp",
    [LS_STREAM_EP] = "ep",           [LS_STREAM_GATHER_IN] = "copy", [LS_STREAM_REPLICA] = "dp",
    [LS_STREAM_SHARED] = "forward",  [LS_N_STREAMS] = "host",
  };
  return paints[stream];
}

static const char *
letters_of (const LsOp *op)
{
  static const char *const tags[LS_N_TAGS]
      = { [LS_TAG_F] = "F",         [LS_TAG_I] = "B",           [LS_TAG_W] = "W",  [LS_TAG_B] = "B",
          [LS_TAG_RECOMPUTE] = "R", [LS_TAG_OPTIMIZER] = "opt", [LS_TAG_SYNC] = "" };
  if (op->kind == LS_OP_P2P)
    return op->n_transfers > 0 && op->transfers[0].is_send ? "send" : "recv";
  if (op->kind != LS_OP_COLLECTIVE)
    return op->kind == LS_OP_KERNEL ? tags[op->tag] : "";
  switch (op->coll) {
  case LS_COLL_ALL_GATHER:
    return "AG";
  case LS_COLL_REDUCE_SCATTER:
    return "RS";
  case LS_COLL_ALL_REDUCE:
    return "AR";
  case LS_COLL_ALL_TO_ALL:
    return "A2A";
  default:
    return "";
  }
}

/* What an op of a stream is drawn as: its own, or for kernels that of its tag. */
const char *
ls_op_paint (const LsOp *op)
{
  int stream = ls_lane_of (op);
  bool is_work = stream == LS_STREAM_COMPUTE || stream == LS_STREAM_SHARED;
  return is_work ? ls_box_paint (ls_box_kind_of ((LsTag) op->tag)) : ls_stream_paint (stream);
}

/* A job without a pipeline is told by layers, one with by micro-batches. */
void
ls_op_label (const LsTimeline *t, uint32_t rank, const LsSpan *s, char *label, gsize size)
{
  const LsOp *op = ls_span_op (t, rank, s);
  const char *letters = letters_of (op);
  bool has_layers = t->plan->n_chunks <= 1 && t->plan->n_roles == 1;
  label[0] = '\0';
  if (!*letters || op->tag == LS_TAG_OPTIMIZER)
    g_strlcpy (label, letters, size);
  else if (!has_layers)
    g_snprintf (label, size, "%s %u", letters, ls_span_instance (t, rank, s)->mb);
  else if (op->layer != UINT16_MAX)
    g_snprintf (label, size, "%s %u", letters, op->layer);
  else
    g_strlcpy (label, letters, size);
}
