/* data/traces/chakra_nodes.c — nodes of a Chakra trace that were read, where segments begin, what an op waits
 * for, and what op it becomes. */
#include <string.h>

#include "data/text/read_file.h"
#include "data/traces/chakra_read.h"

/* --- complaints --------------------------------------------------------------------------- */

bool
chakra_complain (RankReading *x, const ChakraNode *node, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  g_autofree char *place = node ? g_strdup_printf ("node %" G_GUINT64_FORMAT ": ", node->id) : g_strdup ("");
  ls_diag_add (x->all->diags, LS_ERROR_INPUT, x->all->name, 0, 0, NULL, NULL, NULL, "rank %u: %s%s", x->rank,
               place, message);
  x->ok = false;
  return false;
}

/* --- texts that are kept once -------------------------------------------------------------- */

void
chakra_texts_init (ChakraTexts *t)
{
  *t = (ChakraTexts) { g_ptr_array_new_with_free_func (g_free), g_hash_table_new (g_str_hash, g_str_equal),
                       0 };
}

void
chakra_texts_clear (ChakraTexts *t)
{
  g_hash_table_unref (t->index);
  g_ptr_array_unref (t->list);
}

uint32_t
chakra_text_index (ChakraTexts *t, const char *text)
{
  gpointer found = g_hash_table_lookup (t->index, text);
  if (found)
    return GPOINTER_TO_UINT (found) - 1;
  char *kept = g_strdup (text);
  g_ptr_array_add (t->list, kept);
  t->n_bytes += strlen (kept);
  g_hash_table_insert (t->index, kept, GUINT_TO_POINTER (t->list->len));
  return t->list->len - 1;
}

bool
chakra_check_size (RankReading *x, size_t n)
{
  const ChakraReading *all = x->all;
  n += all->kernels.n_bytes + all->segments.n_bytes + all->programs.n_bytes + all->n_bytes;
  return n <= LS_MAX_INPUT_BYTES
      || chakra_complain (x, NULL, "as a trace the files take more than %zu bytes", LS_MAX_INPUT_BYTES);
}

/* What nodes that are no op waited for, together. */
#define MAX_THROUGH (1u << 24)

static void
seen_free (gpointer seen)
{
  ChakraSeen *s = seen;
  if (s->through)
    g_array_unref (s->through);
  g_free (s);
}

void
chakra_nodes_init (RankReading *x)
{
  x->nodes = g_hash_table_new_full (NULL, NULL, NULL, seen_free);
  x->ops = g_string_new (NULL);
  x->stamps = g_array_new (FALSE, TRUE, sizeof (uint32_t));
}

void
chakra_nodes_clear (RankReading *x)
{
  g_hash_table_unref (x->nodes);
  g_array_unref (x->stamps);
  g_string_free (x->ops, TRUE);
  g_free (x->segment);
}

/* NULL: there is none. */
static ChakraSeen *
seen_of (const RankReading *x, uint64_t id)
{
  return g_hash_table_lookup (x->nodes, GSIZE_TO_POINTER (id));
}

ChakraSeen *
chakra_remember (RankReading *x, const ChakraNode *node)
{
  if (seen_of (x, node->id)) {
    chakra_complain (x, node, "its id is that of an earlier node");
    return NULL;
  }
  if (g_hash_table_size (x->nodes) >= LS_CHAKRA_MAX_NODES_OF_RANK) {
    chakra_complain (x, node, "more than %u nodes", LS_CHAKRA_MAX_NODES_OF_RANK);
    return NULL;
  }
  ChakraSeen *seen = g_new0 (ChakraSeen, 1);
  *seen = (ChakraSeen) { .instance = x->instance, .op = UINT32_MAX, .event = -1 };
  g_hash_table_insert (x->nodes, GSIZE_TO_POINTER (node->id), seen);
  return seen;
}

const ChakraAttr *
chakra_attr (const ChakraNode *node, const char *name)
{
  return chakra_find (node->attr, node->n_attr, name);
}

const char *
chakra_text_of (const ChakraNode *node, const char *name)
{
  return chakra_text (chakra_attr (node, name));
}

/* false: it is not there; a complaint if it is no whole number up to max. */
bool
chakra_uint_of (RankReading *x, const ChakraNode *node, const char *name, uint64_t max, uint64_t *ret_value)
{
  const ChakraAttr *attr = chakra_attr (node, name);
  uint64_t value;
  if (!attr)
    return false;
  if (!chakra_uint (attr, &value) || value > max)
    return chakra_complain (x, node, "%s: expected a whole number up to %" G_GUINT64_FORMAT, name, max);
  *ret_value = value;
  return true;
}

bool
chakra_need_uint (RankReading *x, const ChakraNode *node, const char *name, uint64_t *ret_value)
{
  return chakra_uint_of (x, node, name, (uint64_t) LS_TRACE_MAX_BYTES, ret_value)
      || (x->ok && chakra_complain (x, node, "expected its attribute %s", name));
}

bool
chakra_is_on (const ChakraNode *node, const char *name)
{
  const ChakraAttr *attr = chakra_attr (node, name);
  return attr && attr->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_BOOL_VAL && attr->bool_val;
}

/* --- segments ------------------------------------------------------------------------------- */

static void
begin_instance (RankReading *x, const char *name)
{
  g_free (x->segment);
  x->segment = g_strdup (*name ? name : "segment");
  x->instance++;
  x->n_ops = 0;
  g_array_set_size (x->stamps, 0);
  g_string_truncate (x->ops, 0);
}

bool
chakra_end_instance (RankReading *x)
{
  if (x->n_left > 0)
    return chakra_complain (x, NULL, "the trace ends within an op that has %" G_GUINT64_FORMAT " more nodes",
                            x->n_left);
  if (!x->segment)
    return true;
  g_autoptr (GString) text = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, text, 0);
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_string (&w, "name", x->segment);
  g_string_append_printf (text, ",\"ops\":[%s]}", x->ops->str);
  g_string_append_printf (x->instances,
                          "%s[%u,%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT "]",
                          x->instances->len > 0 ? "," : "", chakra_text_index (&x->all->segments, text->str),
                          x->place[0], x->place[1], x->place[2]);
  g_clear_pointer (&x->segment, g_free);
  return chakra_check_size (x, x->instances->len);
}

static void
read_segment (RankReading *x, const ChakraNode *node)
{
  static const char *const keys[] = { "micro_batch", "chunk", "stage" };
  if (!chakra_end_instance (x))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    x->place[i] = 0;
    chakra_uint_of (x, node, keys[i], UINT32_MAX - 1, &x->place[i]);
  }
  if (chakra_is_on (node, "lead"))
    x->n_lead++;
  begin_instance (x, node->name);
}

/* --- dependencies --------------------------------------------------------------------------- */

typedef struct {
  GArray *ends; /* uint32_t: ops of the instance */
  const ChakraAttr *streams;
} After;

static bool
is_after_stream (const After *after, uint32_t stream)
{
  const char *name = ls_stream_name ((LsStream) stream);
  for (size_t i = 0; after->streams && i < after->streams->string_list->n_values; i++)
    if (strcmp (after->streams->string_list->values[i], name) == 0)
      return true;
  return false;
}

/* Each op once: its stamp is that of the op at hand. */
static void
add_end (RankReading *x, After *after, uint32_t op)
{
  uint32_t *stamp = &g_array_index (x->stamps, uint32_t, op);
  if (*stamp == x->n_ops)
    return;
  *stamp = x->n_ops;
  g_array_append_val (after->ends, op);
}

/* Whether what the op waits for anyway says it: its stream, the host, a stream that it names, its event. */
static bool
is_implied (const RankReading *x, const After *after, const ChakraSeen *dep, uint32_t stream, int64_t event)
{
  bool is_in_stream = stream < LS_N_STREAMS && dep->stream == stream && !dep->is_of_host;
  return dep->is_of_host || is_in_stream || is_after_stream (after, dep->stream)
      || (event >= 0 && dep->event == event);
}

/* NULL and a complaint: it does not come before the node. */
static const ChakraSeen *
earlier (RankReading *x, const ChakraNode *node, uint64_t id)
{
  const ChakraSeen *dep = id == node->id ? NULL : seen_of (x, id);
  if (!dep)
    chakra_complain (x, node, "it waits for node %" G_GUINT64_FORMAT ", which does not come before it", id);
  return dep;
}

static void
add_op_dep (RankReading *x, const ChakraNode *node, After *after, uint64_t id, uint32_t stream, int64_t event)
{
  const ChakraSeen *dep = seen_of (x, id);
  if (is_implied (x, after, dep, stream, event))
    return;
  if (dep->instance != x->instance)
    chakra_complain (x, node, "it waits for node %" G_GUINT64_FORMAT " of an earlier segment", id);
  else
    add_end (x, after, dep->op);
}

/* A receive of others does not wait for a send before it, as a send there does not wait for its receiver: who
 * waits for the receive waits for both. false: it is no such pair. */
static bool
pass_send (RankReading *x, const ChakraNode *node, uint64_t id)
{
  ChakraSeen *receive = seen_of (x, node->id);
  if (!seen_of (x, id)->is_send || chakra_is_send (node) || !chakra_is_message (node))
    return false;
  if (!receive->through)
    receive->through = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  g_array_append_val (receive->through, id);
  x->n_through++;
  return true;
}

static void
add_dep (RankReading *x, const ChakraNode *node, After *after, uint64_t id, uint32_t stream, int64_t event)
{
  const ChakraSeen *dep = earlier (x, node, id);
  if (dep && dep->op != UINT32_MAX && !pass_send (x, node, id))
    add_op_dep (x, node, after, id, stream, event);
  for (guint i = 0; x->ok && dep && dep->through && i < dep->through->len; i++)
    if (!pass_send (x, node, g_array_index (dep->through, uint64_t, i)))
      add_op_dep (x, node, after, g_array_index (dep->through, uint64_t, i), stream, event);
  if (x->n_through > MAX_THROUGH)
    chakra_complain (x, node, "nodes without ops wait for more than %u others together", MAX_THROUGH);
}

static void
write_after (RankReading *x, const ChakraNode *node, const After *after)
{
  bool has_streams = after->streams && after->streams->string_list->n_values > 0;
  if (after->ends->len == 0 && !has_streams && (!x->is_ours || node->n_ctrl_deps == 0))
    return;
  ls_json_out_begin_array (&x->op, "after");
  for (guint i = 0; i < after->ends->len; i++)
    ls_json_out_uint (&x->op, NULL, g_array_index (after->ends, uint32_t, i));
  for (size_t i = 0; x->is_ours && i < node->n_ctrl_deps; i++) {
    const ChakraSeen *dep = seen_of (x, node->ctrl_deps[i]);
    g_autofree char *text = dep ? g_strdup_printf ("issue %u", dep->op) : NULL;
    if (dep && dep->op != UINT32_MAX && dep->instance == x->instance)
      ls_json_out_string (&x->op, NULL, text);
    else
      chakra_complain (x, node, "ctrl_deps: expected earlier ops of its segment");
  }
  for (size_t i = 0; has_streams && i < after->streams->string_list->n_values; i++)
    ls_json_out_string (&x->op, NULL, after->streams->string_list->values[i]);
  ls_json_out_end_array (&x->op);
}

/* stream LS_N_STREAMS: it stands in none. */
static void
read_deps (RankReading *x, const ChakraNode *node, uint32_t stream)
{
  uint64_t event = 0;
  bool has_event = x->is_ours && chakra_uint_of (x, node, "event", UINT16_MAX, &event);
  After after = { g_array_new (FALSE, FALSE, sizeof (uint32_t)) };
  const ChakraAttr *streams = x->is_ours ? chakra_attr (node, CHAKRA_AFTER) : NULL;
  if (streams && streams->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_LIST)
    after.streams = streams;
  for (size_t i = 0; x->ok && i < node->n_data_deps; i++)
    add_dep (x, node, &after, node->data_deps[i], stream, has_event ? (int64_t) event : -1);
  write_after (x, node, &after);
  g_array_unref (after.ends);
}

/* The ops that a node waits for, where there is one that is none. */
static GArray *
ops_behind (RankReading *x, const ChakraNode *node)
{
  GArray *ids = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  for (size_t i = 0; x->ok && i < node->n_data_deps; i++) {
    const ChakraSeen *dep = earlier (x, node, node->data_deps[i]);
    if (dep && dep->op != UINT32_MAX)
      g_array_append_val (ids, node->data_deps[i]);
    if (dep && dep->through)
      g_array_append_vals (ids, dep->through->data, dep->through->len);
    if (ids->len > MAX_THROUGH - x->n_through)
      chakra_complain (x, node, "nodes without ops wait for more than %u others together", MAX_THROUGH);
  }
  return ids;
}

/* What takes no time: dependencies go through it. */
static void
pass_through (RankReading *x, const ChakraNode *node)
{
  GArray *ids = ops_behind (x, node);
  ChakraSeen *seen = x->ok ? chakra_remember (x, node) : NULL;
  x->n_through += ids->len;
  if (seen)
    seen->through = g_array_ref (ids);
  g_array_unref (ids);
}

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
    begin_instance (x, "step");
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
  read_deps (x, node, seen->is_of_host ? LS_N_STREAMS : stream);
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
  uint64_t event = 0;
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
  uint64_t all = 0, repeat = 1;
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
      ls_json_out_bytes (w, "bytes", each);
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
    pass_through (x, node);
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
  ls_json_out_bytes (&x->op, "bytes", bytes);
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
      read_segment (x, node);
  } else if (op && strcmp (op, "record") == 0)
    whole_op (x, node, op, LS_OP_RECORD);
  else if (op && strcmp (op, "wait") == 0)
    whole_op (x, node, op, LS_OP_WAIT);
  else if (op && strcmp (op, "host-sync") == 0)
    whole_op (x, node, op, LS_OP_HOST_SYNC);
  else {
    pass_through (x, node);
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
