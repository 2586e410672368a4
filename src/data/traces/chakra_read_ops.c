/* data/traces/chakra_read_ops.c — nodes of a Chakra trace become ops. */
#include <string.h>

#include "data/text/read_file.h"
#include "data/traces/chakra_read.h"

/* Indices within a segment have 16 bits (plan/plan.h). */
#define MAX_OPS 60000

/* --- ops -------------------------------------------------------------------------------------- */

static void
write_attr (LsJsonOut *w, const char *key, const ChakraAttr *attr)
{
  uint64_t value;
  if (chakra_text (attr))
    ls_json_out_string (w, key, chakra_text (attr));
  else if (attr->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_BOOL_VAL)
    ls_json_out_bool (w, key, attr->bool_val);
  else if (attr->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_DOUBLE_VAL)
    ls_json_out_double (w, key, attr->double_val);
  else if (chakra_uint (attr, &value))
    ls_json_out_uint (w, key, value);
  else
    ls_json_out_null (w, key); /* which the reader of traces refuses, with the key */
}

/* The stream of an op of ours; of others that of `kind`, or by default. */
static uint32_t
stream_of (RankReading *x, const ChakraNode *node, const TraceOp *kind)
{
  uint64_t stream = (uint64_t) (kind->stream > 0 ? kind->stream : (int) ls_trace_default_stream (kind));
  if (x->is_ours)
    chakra_uint_of (x, node, "stream", LS_N_STREAMS - 1, &stream);
  return (uint32_t) stream;
}

ChakraSeen *
chakra_begin_op (RankReading *x, const ChakraNode *node, const char *what, const TraceOp *kind)
{
  ChakraSeen *seen = chakra_remember (x, node);
  if (!x->segment)
    chakra_begin_instance (x, "step");
  if (x->n_ops >= MAX_OPS || x->ops->len > LS_MAX_INPUT_BYTES)
    chakra_complain (x, node, "more than %d ops, or %zu bytes of them, without a segment that begins",
                     MAX_OPS, LS_MAX_INPUT_BYTES);
  if (!seen || !x->ok)
    return NULL;
  uint32_t stream = stream_of (x, node, kind);
  *seen = (ChakraSeen) { x->instance,
                         x->n_ops++,
                         (uint8_t) stream,
                         ls_op_is_of_host ((uint8_t) kind->kind),
                         -1,
                         NULL,
                         !x->is_ours && chakra_is_send (node) };
  x->op_stream = stream;
  g_array_set_size (x->stamps, x->n_ops);
  g_string_append (x->ops, x->n_ops > 1 ? ",\n" : "\n");
  ls_json_out_init (&x->op, x->ops, 0);
  ls_json_out_begin_object (&x->op, NULL);
  ls_json_out_string (&x->op, "op", what);
  if (*node->name)
    ls_json_out_string (&x->op, "name", node->name);
  ls_json_out_string (&x->op, "stream", ls_stream_name ((LsStream) stream));
  chakra_read_deps (x, node, seen->is_of_host ? LS_N_STREAMS : stream);
  for (const LsField *f = ls_trace_op_fields; x->is_ours && f->key; f++)
    if (chakra_is_attribute (f->key) && chakra_attr (node, f->key))
      write_attr (&x->op, f->key, chakra_attr (node, f->key));
  return seen;
}

void
chakra_end_op (RankReading *x)
{
  ls_json_out_end_object (&x->op);
}

void
chakra_write_bytes (LsJsonOut *w, uint64_t bytes)
{
  g_autofree char *text = g_strdup_printf ("%" G_GUINT64_FORMAT "B", bytes);
  ls_json_out_string (w, "bytes", text);
}

void
chakra_write_buffers (RankReading *x, const ChakraNode *node)
{
  const ChakraAttr *buffers = x->is_ours ? chakra_attr (node, "buffers") : NULL;
  if (!buffers)
    return;
  bool is_list = buffers->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_LIST;
  g_string_append (x->ops, ",\"buffers\":[");
  for (size_t i = 0; is_list && i < buffers->string_list->n_values; i++) {
    const char *text = buffers->string_list->values[i];
    if (chakra_is_json_object (text))
      g_string_append_printf (x->ops, "%s%s", i > 0 ? "," : "", text);
    else
      chakra_complain (x, node, "buffers: expected JSON objects");
  }
  g_string_append (x->ops, "]");
}

/* An op of one node, whose own keys `write` adds. */
static void
whole_op (RankReading *x, const ChakraNode *node, const char *what, int kind)
{
  const TraceOp op = { .kind = kind, .slot = -1 };
  uint64_t event;
  ChakraSeen *seen = chakra_begin_op (x, node, what, &op);
  if (!seen)
    return;
  if (kind == LS_OP_RECORD && x->is_ours && chakra_uint_of (x, node, "event", UINT16_MAX, &event))
    seen->event = (int64_t) event;
  chakra_write_buffers (x, node);
  chakra_end_op (x);
}

/* --- computing --------------------------------------------------------------------------------- */

/* num_ops and tensor_size are of all repetitions. */
static bool
share_of (RankReading *x, const ChakraNode *node, const char *name, uint64_t *ret_each)
{
  uint64_t all, repeat = 1;
  chakra_uint_of (x, node, "repeat", LS_TRACE_MAX_REPEAT, &repeat);
  if (!chakra_need_uint (x, node, name, &all))
    return false;
  if (repeat == 0 || all % repeat != 0)
    return chakra_complain (x, node, "%s: expected a multiple of repeat", name);
  *ret_each = all / repeat;
  return true;
}

static void
write_shape (RankReading *x, const ChakraNode *node, LsJsonOut *w)
{
  for (const LsField *f = ls_trace_kernel_fields; f->key; f++) {
    g_autofree char *name = g_strconcat (CHAKRA_KERNEL, f->key, NULL);
    bool is_flops = g_str_equal (f->key, "flops"), is_bytes = g_str_equal (f->key, "bytes");
    const ChakraAttr *attr = chakra_attr (node, name);
    uint64_t each = 0;
    if (attr)
      write_attr (w, f->key, attr);
    else if (is_flops && share_of (x, node, "num_ops", &each))
      ls_json_out_uint (w, f->key, each);
    else if (is_bytes && share_of (x, node, "tensor_size", &each))
      chakra_write_bytes (w, each);
  }
}

static uint32_t
kernel_of (RankReading *x, const ChakraNode *node)
{
  g_autoptr (GString) text = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, text, 0);
  ls_json_out_begin_object (&w, NULL);
  write_shape (x, node, &w);
  ls_json_out_end_object (&w);
  return chakra_text_index (&x->all->kernels, text->str);
}

/* A node of others takes its duration; without one nothing is known of it. */
static void
write_duration (RankReading *x, const ChakraNode *node)
{
  g_autofree char *time = g_strdup_printf ("%" G_GUINT64_FORMAT "us", node->duration_micros);
  if (node->duration_micros > 0)
    ls_json_out_string (&x->op, "recorded", time);
  else
    chakra_complain (x, node,
                     "expected duration_micros, or the shape that Lockstep writes (kernel.kind); num_ops and "
                     "tensor_size alone do not tell a kernel's time");
}

static void
read_kernel (RankReading *x, const ChakraNode *node)
{
  static const TraceOp kernel = { .kind = LS_OP_KERNEL, .slot = -1 };
  bool has_shape = chakra_attr (node, CHAKRA_KERNEL "kind") != NULL;
  if (!chakra_begin_op (x, node, "kernel", &kernel))
    return;
  if (has_shape)
    ls_json_out_uint (&x->op, "kernel", kernel_of (x, node));
  else if (!x->is_ours || !chakra_attr (node, "recorded"))
    write_duration (x, node);
  chakra_write_buffers (x, node);
  chakra_end_op (x);
}

/* Compute of the host of others: it holds up what is issued later. */
static void
read_host_delay (RankReading *x, const ChakraNode *node)
{
  static const TraceOp delay = { .kind = LS_OP_HOST_DELAY, .slot = -1 };
  if (x->is_ours) {
    whole_op (x, node, "host-delay", LS_OP_HOST_DELAY);
    return;
  }
  if (node->duration_micros == 0) {
    chakra_pass_through (x, node);
    return;
  }
  if (!chakra_begin_op (x, node, "host-delay", &delay))
    return;
  write_duration (x, node);
  chakra_end_op (x);
}

static void
read_copy (RankReading *x, const ChakraNode *node, const char *direction)
{
  static const TraceOp copy = { .kind = LS_OP_COPY, .slot = -1 };
  uint64_t bytes = 0;
  if (!chakra_need_uint (x, node, "tensor_size", &bytes) || !chakra_begin_op (x, node, "copy", &copy))
    return;
  if (!x->is_ours)
    ls_json_out_string (&x->op, "direction", direction);
  chakra_write_bytes (&x->op, bytes);
  chakra_write_buffers (x, node);
  chakra_end_op (x);
}

/* --- nodes ------------------------------------------------------------------------------------------ */

static void
read_metadata (RankReading *x, const ChakraNode *node)
{
  const char *op = x->is_ours ? chakra_text_of (node, CHAKRA_OP) : NULL;
  if (op && strcmp (op, "segment") == 0) {
    if (chakra_remember (x, node))
      chakra_read_segment (x, node);
  } else if (op && strcmp (op, "record") == 0)
    whole_op (x, node, op, LS_OP_RECORD);
  else if (op && strcmp (op, "wait") == 0)
    whole_op (x, node, op, LS_OP_WAIT);
  else if (op && strcmp (op, "host-sync") == 0)
    whole_op (x, node, op, LS_OP_HOST_SYNC);
  else {
    chakra_pass_through (x, node);
    if (x->ok && strstr (node->name, "process_group:init"))
      chakra_read_groups (x, node);
  }
}

static void
read_compute (RankReading *x, const ChakraNode *node)
{
  if (chakra_is_on (node, "is_cpu_op"))
    read_host_delay (x, node);
  else
    read_kernel (x, node);
}

/* Communication that the host only launches, as PyTorch's traces have it beside that of the GPU. */
static bool
is_launch (const RankReading *x, const ChakraNode *node)
{
  bool is_comm = node->type == CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE || chakra_is_message (node);
  return is_comm && !x->is_ours && chakra_is_on (node, "is_cpu_op") && !chakra_attr (node, "comm_size");
}

void
chakra_read_node (RankReading *x, const ChakraNode *node)
{
  if (x->n_left > 0 && !chakra_is_message (node)) {
    chakra_complain (x, node, "expected a message: the op before has more");
    return;
  }
  if (is_launch (x, node)) {
    read_host_delay (x, node);
    return;
  }
  switch (node->type) {
  case CHAKRA_PROTO_MSG__NODE_TYPE__METADATA_NODE:
    read_metadata (x, node);
    return;
  case CHAKRA_PROTO_MSG__NODE_TYPE__COMP_NODE:
    read_compute (x, node);
    return;
  case CHAKRA_PROTO_MSG__NODE_TYPE__MEM_LOAD_NODE:
    read_copy (x, node, "to-device");
    return;
  case CHAKRA_PROTO_MSG__NODE_TYPE__MEM_STORE_NODE:
    read_copy (x, node, "to-host");
    return;
  case CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE:
    chakra_read_collective (x, node);
    return;
  case CHAKRA_PROTO_MSG__NODE_TYPE__COMM_SEND_NODE:
  case CHAKRA_PROTO_MSG__NODE_TYPE__COMM_RECV_NODE:
    chakra_read_message (x, node);
    return;
  default:
    chakra_complain (x, node, "a node of type %d, which has no counterpart here", (int) node->type);
  }
}
