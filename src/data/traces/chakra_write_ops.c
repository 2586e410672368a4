/* data/traces/chakra_write_ops.c — ops of a plan become nodes of a Chakra trace. */
#include <math.h>
#include <string.h>

#include "data/text/field.h"
#include "data/traces/chakra_write.h"

static const ChakraProtoMsg__CollectiveCommType comm_types[LS_N_COLL_KINDS] = {
  [LS_COLL_ALL_REDUCE] = CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_REDUCE,
  [LS_COLL_ALL_GATHER] = CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_GATHER,
  [LS_COLL_REDUCE_SCATTER] = CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__REDUCE_SCATTER,
  [LS_COLL_BROADCAST] = CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__BROADCAST,
  [LS_COLL_REDUCE] = CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__REDUCE,
  [LS_COLL_ALL_TO_ALL] = CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_TO_ALL,
  [LS_COLL_GATHER] = CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__GATHER,
  [LS_COLL_SCATTER] = CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__SCATTER,
  [LS_COLL_BARRIER] = CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__BARRIER,
};

/* --- dependencies ------------------------------------------------------------------------- */

static void
add_id (GArray *ids, uint64_t id)
{
  for (guint i = ids->len; i-- > 0;)
    if (g_array_index (ids, uint64_t, i) == id)
      return;
  g_array_append_val (ids, id);
}

static void
add_nodes (GArray *ids, const ChakraNodes *nodes)
{
  for (uint32_t i = 0; i < nodes->n; i++)
    add_id (ids, nodes->first + i);
}

static void
add_event (ChakraWriter *w, const LsInstance *instance, const LsOp *op)
{
  size_t event = ls_plan_event (w->plan, instance, op);
  uint64_t id = GPOINTER_TO_SIZE (g_hash_table_lookup (w->events, GSIZE_TO_POINTER (event)));
  if (id > 0)
    add_id (w->ends, id - 1);
}

/* What must have ended: where the op stands, then what it says itself. */
static void
gather_deps (ChakraWriter *w, const LsInstance *instance, const LsOp *op)
{
  g_array_set_size (w->ends, 0);
  g_array_set_size (w->issues, 0);
  if (!ls_op_is_of_host (op->kind))
    add_nodes (w->ends, &w->last[op->stream]);
  add_nodes (w->ends, &w->host);
  for (uint32_t i = 0; i < op->n_deps; i++) {
    const LsDep *dep = &op->deps[i];
    if (dep->kind == LS_DEP_STREAM)
      add_nodes (w->ends, &w->last[dep->index]);
    else
      add_nodes (dep->kind == LS_DEP_ISSUE ? w->issues : w->ends,
                 &g_array_index (w->ops, ChakraNodes, dep->index));
  }
  if (ls_op_awaits (op))
    add_event (w, instance, op);
}

/* --- attributes --------------------------------------------------------------------------- */

static void
add_field (ChakraAttrs *attrs, const char *name, const LsField *f, const void *target, const void *blank)
{
  g_autofree char *text = ls_field_text (f, target, blank);
  if (!text)
    return;
  if (f->kind == LS_FIELD_UINT || f->kind == LS_FIELD_UINT64)
    chakra_add_int64 (attrs, name, g_ascii_strtoll (text, NULL, 10));
  else if (f->kind == LS_FIELD_BOOL)
    chakra_add_bool (attrs, name, TRUE);
  else
    chakra_add_string (attrs, name, text);
}

static void
add_streams (ChakraWriter *w, const LsOp *op)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new ();
  for (uint32_t i = 0; i < op->n_deps; i++)
    if (op->deps[i].kind == LS_DEP_STREAM)
      g_ptr_array_add (names, (gpointer) ls_stream_name ((LsStream) op->deps[i].index));
  if (names->len > 0)
    chakra_add_strings (&w->attrs, CHAKRA_AFTER, names);
}

static void
add_buffers (ChakraWriter *w, const TraceOp *op)
{
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; op->buffers && i < op->buffers->len; i++) {
    GString *text = g_string_new (NULL);
    LsJsonOut out;
    ls_json_out_init (&out, text, 0);
    ls_json_out_begin_object (&out, NULL);
    ls_fields_write (ls_trace_buffer_fields, &out, &g_array_index (op->buffers, TraceBuffer, i),
                     &ls_trace_buffer_blank);
    ls_json_out_end_object (&out);
    g_ptr_array_add (texts, g_string_free (text, FALSE));
  }
  if (texts->len > 0)
    chakra_add_strings (&w->attrs, "buffers", texts);
}

/* What all nodes of ours have. The rest stands with the first node of an op. */
static void
add_op (ChakraWriter *w, const LsOp *op, const TraceOp *said)
{
  chakra_add_bool (&w->attrs, "is_cpu_op", ls_op_is_of_host (op->kind));
  chakra_add_int64 (&w->attrs, "stream", op->stream);
  for (const LsField *f = ls_trace_op_fields; f->key; f++)
    if (chakra_is_attribute (f->key))
      add_field (&w->attrs, f->key, f, said, &ls_trace_op_blank);
  add_streams (w, op);
  add_buffers (w, said);
}

/* A product that may be too large, or no whole number, to stand in a field of 64 bits. */
static bool
is_exact (double each, uint32_t repeat)
{
  double all = each * repeat;
  return each >= 0 && all < 0x1p53 && (double) (int64_t) each == each;
}

static void
add_kernel (ChakraWriter *w, const LsOp *op)
{
  const LsKernel *k = &g_array_index (w->kernels, LsKernel, op->kernel);
  uint32_t repeat = MAX (op->repeat, 1);
  double limit = 0x1p62;
  chakra_add_int64 (&w->attrs, "num_ops", (int64_t) MIN (k->flops * repeat, limit));
  chakra_add_uint64 (&w->attrs, "tensor_size", (uint64_t) MIN (k->bytes * repeat, limit));
  for (const LsField *f = ls_trace_kernel_fields; f->key; f++) {
    g_autofree char *name = g_strconcat (CHAKRA_KERNEL, f->key, NULL);
    bool is_flops = g_str_equal (f->key, "flops"), is_bytes = g_str_equal (f->key, "bytes");
    bool is_said = (is_flops && is_exact (k->flops, repeat)) || (is_bytes && is_exact (k->bytes, repeat));
    if (is_flops && !is_said)
      chakra_add_double (&w->attrs, name, k->flops);
    else if (!is_said)
      add_field (&w->attrs, name, f, k, &ls_trace_kernel_blank);
  }
}

/* --- ops ---------------------------------------------------------------------------------- */

static uint64_t
micros_of (const ChakraWriter *w, const LsOp *op)
{
  uint32_t repeat = MAX (op->repeat, 1);
  bool is_costed = op->recorded == LS_TIME_NEVER;
  if (is_costed && (!ls_op_has (op->kind, LS_HAS_KERNEL) || op->kernel == UINT32_MAX || !w->kernel_times))
    return 0;
  double time = (double) (is_costed ? w->kernel_times[op->kernel] : op->recorded) * repeat / (double) LS_US;
  return time > 0 ? (uint64_t) MAX (1, round (time)) : 0;
}

static void
put_compute (ChakraWriter *w, const LsOp *op)
{
  ChakraNode node;
  chakra_node_init (&node, CHAKRA_PROTO_MSG__NODE_TYPE__COMP_NODE, op->name);
  node.duration_micros = micros_of (w, op);
  if (ls_op_is_of_host (op->kind))
    chakra_add_string (&w->attrs, CHAKRA_OP, ls_op_kinds[op->kind].name);
  else if (op->kernel != UINT32_MAX)
    add_kernel (w, op);
  chakra_put_node (w, &node);
}

static void
put_copy (ChakraWriter *w, const LsOp *op)
{
  ChakraNode node;
  bool is_load = op->root == LS_COPY_TO_DEVICE || op->root == LS_COPY_FROM_NVME;
  chakra_node_init (&node,
                    is_load ? CHAKRA_PROTO_MSG__NODE_TYPE__MEM_LOAD_NODE
                            : CHAKRA_PROTO_MSG__NODE_TYPE__MEM_STORE_NODE,
                    op->name);
  node.duration_micros = micros_of (w, op);
  chakra_add_uint64 (&w->attrs, "tensor_size", op->bytes);
  chakra_put_node (w, &node);
}

/* A message to or from a rank, as its simulators match them: by both ranks and the tag. */
static void
put_message_node (ChakraWriter *w, const char *name, bool is_send, uint32_t other, uint64_t bytes,
                  uint32_t tag)
{
  ChakraNode node;
  chakra_node_init (&node,
                    is_send ? CHAKRA_PROTO_MSG__NODE_TYPE__COMM_SEND_NODE
                            : CHAKRA_PROTO_MSG__NODE_TYPE__COMM_RECV_NODE,
                    name);
  chakra_add_int64 (&w->attrs, "comm_size", (int64_t) bytes);
  chakra_add_int32 (&w->attrs, "comm_src", (int32_t) (is_send ? w->rank : other));
  chakra_add_int32 (&w->attrs, "comm_dst", (int32_t) (is_send ? other : w->rank));
  chakra_add_int32 (&w->attrs, "comm_tag", (int32_t) tag);
  chakra_put_node (w, &node);
}

/* The k-th message to `next` is the k-th from `prev` there, and has an even tag; those to `prev` odd ones. */
static void
put_p2p (ChakraWriter *w, const LsOp *op)
{
  chakra_add_string (&w->attrs, CHAKRA_OP, "p2p");
  chakra_add_int64 (&w->attrs, CHAKRA_NODES, op->n_transfers);
  for (uint32_t i = 0; i < op->n_transfers; i++) {
    const LsTransfer *t = &op->transfers[i];
    int side = t->slot == LS_SLOT_NEXT;
    uint32_t k = t->is_send ? w->sent[side]++ : w->received[side]++;
    bool is_forward = t->is_send ? side : !side;
    if (i > 0)
      chakra_add_bool (&w->attrs, "is_cpu_op", FALSE);
    chakra_add_string (&w->attrs, t->is_send ? "send" : "receive", ls_slot_name ((LsSlot) t->slot));
    put_message_node (w, op->name, t->is_send, w->binding.peer[side], t->bytes, 2 * k + (is_forward ? 0 : 1));
  }
}

/* No type of Chakra's: a message to the next member and one from the member before. */
static void
put_permute (ChakraWriter *w, const LsOp *op, uint32_t comm)
{
  const LsCommunicator c = ls_plan_communicator (w->plan, comm);
  uint32_t me = w->binding.member[op->slot], n = c.n_ranks;
  uint64_t call = (uint64_t) w->calls[comm]++ * w->plan->n_comms + comm;
  uint32_t tag = (1u << 30) + (uint32_t) (call % (1u << 30));
  chakra_add_string (&w->attrs, CHAKRA_OP, ls_coll_kind_name ((LsCollKind) op->coll));
  chakra_add_int64 (&w->attrs, CHAKRA_NODES, 2);
  put_message_node (w, op->name, true, ls_comm_rank (&c, (me + 1) % n), op->bytes, tag);
  chakra_add_bool (&w->attrs, "is_cpu_op", FALSE);
  put_message_node (w, op->name, false, ls_comm_rank (&c, (me + n - 1) % n), op->bytes, tag);
}

static void
put_collective (ChakraWriter *w, const LsOp *op)
{
  uint32_t comm = w->binding.comm[op->slot];
  g_autofree char *group = g_strdup_printf ("%u", comm + 1);
  chakra_add_string (&w->attrs, "pg_name", group);
  if (op->coll == LS_COLL_PERMUTE || op->coll == LS_COLL_COPY_PERMUTE) {
    put_permute (w, op, comm);
    return;
  }
  ChakraNode node;
  chakra_node_init (&node, CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE, op->name);
  uint32_t n = chakra_shares ((LsCollKind) op->coll, ls_plan_communicator (w->plan, comm).n_ranks);
  chakra_add_int64 (&w->attrs, "comm_type", comm_types[op->coll]);
  chakra_add_int64 (&w->attrs, "comm_size", (int64_t) (op->bytes / n + (op->bytes % n != 0)));
  if (op->bytes % n != 0)
    chakra_add_int64 (&w->attrs, "bytes", (int64_t) op->bytes);
  chakra_put_node (w, &node);
}

/* Takes no time on the device. */
static void
put_mark (ChakraWriter *w, const LsOp *op)
{
  ChakraNode node;
  chakra_node_init (&node, CHAKRA_PROTO_MSG__NODE_TYPE__METADATA_NODE, op->name);
  chakra_add_string (&w->attrs, CHAKRA_OP, ls_op_kinds[op->kind].name);
  chakra_put_node (w, &node);
}

static void
put_by_kind (ChakraWriter *w, const LsOp *op)
{
  switch ((LsOpTakes) ls_op_kinds[op->kind].takes) {
  case LS_TAKES_GPU:
    put_compute (w, op);
    return;
  case LS_TAKES_NETWORK:
    (ls_op_has (op->kind, LS_HAS_CALL) ? put_collective : put_p2p) (w, op);
    return;
  case LS_TAKES_ENGINE:
    put_copy (w, op);
    return;
  case LS_TAKES_HOST:
    (ls_op_has (op->kind, LS_HAS_RECORDED) ? put_compute : put_mark) (w, op);
    return;
  case LS_TAKES_NOTHING:
    put_mark (w, op);
    return;
  }
  g_assert_not_reached ();
}

void
chakra_put_op (ChakraWriter *w, const LsInstance *instance, const LsOp *op)
{
  TraceOp said = ls_trace_op_of (op, w->kernels);
  gather_deps (w, instance, op);
  add_op (w, op, &said);
  ls_trace_op_clear (&said);
  ChakraNodes nodes = { .first = w->next_id };
  put_by_kind (w, op);
  nodes.n = (uint32_t) (w->next_id - nodes.first);
  g_array_append_val (w->ops, nodes);
  if (ls_op_is_of_host (op->kind))
    w->host = nodes;
  else
    w->last[op->stream] = nodes;
  if (ls_op_records (op))
    g_hash_table_insert (w->events, GSIZE_TO_POINTER (ls_plan_event (w->plan, instance, op)),
                         GSIZE_TO_POINTER (nodes.first + 1));
}
