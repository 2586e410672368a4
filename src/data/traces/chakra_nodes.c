/* data/traces/chakra_nodes.c — nodes of a Chakra trace that were read: where segments begin, the process
 * groups of a rank, what an op waits for, and what op each becomes. */
#include <string.h>

#include "base/printable.h"
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
  ls_file_diag (x->all->diags, LS_ERROR_INPUT, x->all->name, NULL, "rank %u: %s%s", x->rank, place, message);
  x->ok = false;
  return false;
}

/* --- what is kept once ---------------------------------------------------------------------- */

bool
chakra_check_size (RankReading *x, size_t n)
{
  return n + x->all->n_bytes <= LS_MAX_INPUT_BYTES
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
  x->stamps = g_array_new (FALSE, TRUE, sizeof (uint32_t));
  x->program.instances = g_array_new (FALSE, FALSE, sizeof x->row);
}

void
chakra_nodes_clear (RankReading *x)
{
  g_hash_table_unref (x->nodes);
  g_array_unref (x->stamps);
  ls_fields_clear (ls_trace_role_fields, &x->program);
  ls_fields_clear (ls_trace_segment_fields, &x->segment);
}

/* NULL: there is none. */
static ChakraSeen *
seen_of (const RankReading *x, uint64_t id)
{
  return g_hash_table_lookup (x->nodes, GSIZE_TO_POINTER (id));
}

/* NULL and a complaint: there is one of that id, or there are too many. */
static ChakraSeen *
remember (RankReading *x, const ChakraNode *node)
{
  if (seen_of (x, node->id))
    return chakra_complain (x, node, "its id is that of an earlier node"), NULL;
  if (g_hash_table_size (x->nodes) >= LS_CHAKRA_MAX_NODES_OF_RANK)
    return chakra_complain (x, node, "more than %u nodes", LS_CHAKRA_MAX_NODES_OF_RANK), NULL;
  ChakraSeen *seen = g_new0 (ChakraSeen, 1);
  *seen = (ChakraSeen) { .instance = x->instance, .op = UINT32_MAX, .event = -1 };
  g_hash_table_insert (x->nodes, GSIZE_TO_POINTER (node->id), seen);
  return seen;
}

/* --- attributes ------------------------------------------------------------------------------ */

const ChakraAttr *
chakra_find (ChakraAttr *const *attrs, size_t n, const char *name)
{
  for (size_t i = 0; i < n; i++)
    if (strcmp (attrs[i]->name, name) == 0)
      return attrs[i];
  return NULL;
}

/* A whole number of any of the integer types, not below 0; false: it is none. */
static bool
read_uint (const ChakraAttr *attr, uint64_t *ret_value)
{
  switch (attr->value_case) { /* members of one type are one member */
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT32_VAL:
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_SINT32_VAL:
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_SFIXED32_VAL:
    *ret_value = (uint64_t) attr->int32_val;
    return attr->int32_val >= 0;
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT64_VAL:
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_SINT64_VAL:
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_SFIXED64_VAL:
    *ret_value = (uint64_t) attr->int64_val;
    return attr->int64_val >= 0;
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_UINT32_VAL:
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_FIXED32_VAL:
    *ret_value = attr->uint32_val;
    return true;
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_UINT64_VAL:
  case CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_FIXED64_VAL:
    *ret_value = attr->uint64_val;
    return true;
  default:
    return false;
  }
}

const char *
chakra_text (const ChakraAttr *attr)
{
  return attr && attr->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_VAL ? attr->string_val
                                                                                         : NULL;
}

bool
chakra_is_attribute (const char *key)
{
  static const char *const others[]
      = { "op", "name", "kernel", "coll", "bytes", "after", "stream", "transfers", "buffers", NULL };
  return !g_strv_contains (others, key);
}

static const ChakraAttr *
attribute (const ChakraNode *node, const char *name)
{
  return chakra_find (node->attr, node->n_attr, name);
}

static const char *
text_of (const ChakraNode *node, const char *name)
{
  return chakra_text (attribute (node, name));
}

/* That of an attribute of a list of texts; NULL: it is none. */
static const ChakraProtoMsg__StringList *
list_of (const ChakraNode *node, const char *name)
{
  const ChakraAttr *attr = attribute (node, name);
  bool is_list = attr && attr->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_LIST;
  return is_list ? attr->string_list : NULL;
}

bool
chakra_uint_in (RankReading *x, const ChakraNode *node, const ChakraAttr *attr, uint64_t max,
                uint64_t *ret_value)
{
  uint64_t value;
  if (!attr)
    return false;
  if (!read_uint (attr, &value) || value > max)
    return chakra_complain (x, node, "%s: expected a whole number up to %" G_GUINT64_FORMAT, attr->name, max);
  *ret_value = value;
  return true;
}

static bool
uint_of (RankReading *x, const ChakraNode *node, const char *name, uint64_t max, uint64_t *ret_value)
{
  return chakra_uint_in (x, node, attribute (node, name), max, ret_value);
}

/* A number up to that of bytes which can be simulated, or a complaint. */
static bool
need_uint (RankReading *x, const ChakraNode *node, const char *name, uint64_t *ret_value)
{
  return uint_of (x, node, name, (uint64_t) LS_TRACE_MAX_BYTES, ret_value)
      || (x->ok && chakra_complain (x, node, "expected its attribute %s", name));
}

static bool
is_on (const ChakraNode *node, const char *name)
{
  const ChakraAttr *attr = attribute (node, name);
  return attr && attr->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_BOOL_VAL && attr->bool_val;
}

/* As a file of ours has it; "": it is of a type that none has. Newly allocated. */
static char *
value_text (const ChakraAttr *attr)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  uint64_t value;
  if (attr->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_BOOL_VAL)
    return g_strdup (attr->bool_val ? "true" : "false");
  if (attr->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_DOUBLE_VAL)
    return g_strdup (g_ascii_dtostr (number, sizeof number, attr->double_val));
  if (read_uint (attr, &value))
    return g_strdup_printf ("%" G_GUINT64_FORMAT, value);
  return ls_printable (chakra_text (attr) ? chakra_text (attr) : "");
}

/* What the value of a field is, with a complaint if it is none. */
static void
set_field (RankReading *x, const ChakraNode *node, const LsField *f, void *target, const char *text)
{
  if (ls_field_value_set (f, target, text))
    return;
  g_autofree char *got = g_strdup_printf ("\"%.40s\"", text);
  g_autofree char *complaint = ls_field_value_complaint (f, LS_FIELD_IN_JSON, text, got);
  chakra_complain (x, node, "%s: %s", f->key, complaint);
}

static bool
is_send (const ChakraNode *node)
{
  return node->type == CHAKRA_PROTO_MSG__NODE_TYPE__COMM_SEND_NODE;
}

static bool
is_message (const ChakraNode *node)
{
  return is_send (node) || node->type == CHAKRA_PROTO_MSG__NODE_TYPE__COMM_RECV_NODE;
}

/* --- segments ------------------------------------------------------------------------------- */

static void
begin_instance (RankReading *x, const char *name)
{
  x->segment = (TraceSegment) { ls_printable (*name ? name : "segment"),
                                g_array_new (FALSE, FALSE, sizeof (TraceOp)) };
  x->instance++;
  g_array_set_size (x->stamps, 0);
}

bool
chakra_end_instance (RankReading *x)
{
  if (x->n_left > 0)
    return chakra_complain (x, NULL, "the trace ends within an op that has %" G_GUINT64_FORMAT " more nodes",
                            x->n_left);
  if (!x->segment.ops)
    return true;
  x->row[ROW_SEGMENT] = ls_trace_place (x->all->segments, ls_trace_segment_fields, x->all->file.segments,
                                        &x->segment, &x->all->n_bytes);
  x->segment = (TraceSegment) { 0 };
  g_array_append_val (x->program.instances, x->row);
  return chakra_check_size (x, x->program.instances->len * sizeof x->row);
}

static void
read_segment (RankReading *x, const ChakraNode *node)
{
  static const char *const keys[N_ROW]
      = { [ROW_MB] = "micro_batch", [ROW_CHUNK] = "chunk", [ROW_STAGE] = "stage" };
  if (!chakra_end_instance (x))
    return;
  for (guint i = ROW_MB; i < N_ROW; i++) {
    uint64_t value = 0;
    uint_of (x, node, keys[i], UINT32_MAX - 1, &value);
    x->row[i] = (uint32_t) value;
  }
  if (is_on (node, "lead"))
    x->program.n_lead++;
  begin_instance (x, node->name);
}

/* --- dependencies --------------------------------------------------------------------------- */

/* What an op waits for. */
typedef struct {
  GArray *deps;             /* LsDep: ops of the instance so far */
  uint32_t stream, streams; /* its own, LS_N_STREAMS: none; all of those, as bits */
  int64_t event;            /* -1: none */
} After;

static void
add (GArray *deps, LsDepKind kind, uint32_t index)
{
  const LsDep dep = { kind, (uint16_t) index };
  g_array_append_val (deps, dep);
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

/* Unless what the op waits for anyway says it: its stream, the host, a stream that it names, its event. Each
 * op once: its stamp is that of the op at hand. */
static void
add_op_dep (RankReading *x, const ChakraNode *node, After *after, uint64_t id)
{
  const ChakraSeen *dep = seen_of (x, id);
  if (dep->is_of_host || dep->stream == after->stream || (after->streams >> dep->stream & 1)
      || (after->event >= 0 && dep->event == after->event))
    return;
  if (dep->instance != x->instance) {
    chakra_complain (x, node, "it waits for node %" G_GUINT64_FORMAT " of an earlier segment", id);
    return;
  }
  uint32_t *stamp = &g_array_index (x->stamps, uint32_t, dep->op);
  if (*stamp != x->stamps->len)
    add (after->deps, LS_DEP_END, dep->op);
  *stamp = x->stamps->len;
}

/* A receive of others does not wait for a send before it, as a send there does not wait for its receiver: who
 * waits for the receive waits for both. false: it is no such pair. */
static bool
pass_send (RankReading *x, const ChakraNode *node, uint64_t id)
{
  ChakraSeen *receive = seen_of (x, node->id);
  if (!seen_of (x, id)->is_send || is_send (node) || !is_message (node))
    return false;
  if (!receive->through)
    receive->through = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  g_array_append_val (receive->through, id);
  x->n_through++;
  return true;
}

static void
add_dep (RankReading *x, const ChakraNode *node, After *after, uint64_t id)
{
  const ChakraSeen *dep = earlier (x, node, id);
  if (dep && dep->op != UINT32_MAX && !pass_send (x, node, id))
    add_op_dep (x, node, after, id);
  for (guint i = 0; x->ok && dep && dep->through && i < dep->through->len; i++)
    if (!pass_send (x, node, g_array_index (dep->through, uint64_t, i)))
      add_op_dep (x, node, after, g_array_index (dep->through, uint64_t, i));
  if (x->n_through > MAX_THROUGH)
    chakra_complain (x, node, "nodes without ops wait for more than %u others together", MAX_THROUGH);
}

/* All streams that a node of ours waits for, as bits; also into deps. */
static uint32_t
add_streams (RankReading *x, const ChakraNode *node, GArray *deps)
{
  const ChakraProtoMsg__StringList *names = x->is_ours ? list_of (node, CHAKRA_AFTER) : NULL;
  uint32_t streams = 0;
  for (size_t i = 0; names && i < names->n_values; i++) {
    int stream = ls_enum_value (ls_stream_names, names->values[i]);
    if (stream < 0)
      chakra_complain (x, node, CHAKRA_AFTER ": \"%.40s\" is no stream", names->values[i]);
    streams |= 1u << MAX (stream, 0);
    add (deps, LS_DEP_STREAM, (uint32_t) stream);
  }
  return streams;
}

/* What the op waits for, on a stream of its own or, LS_N_STREAMS, on none. NULL: nothing. */
static GArray *
read_deps (RankReading *x, const ChakraNode *node, uint32_t stream)
{
  uint64_t event = 0;
  bool has_event = x->is_ours && uint_of (x, node, "event", UINT16_MAX, &event);
  g_autoptr (GArray) streams = g_array_new (FALSE, FALSE, sizeof (LsDep));
  After after = { g_array_new (FALSE, FALSE, sizeof (LsDep)), stream, add_streams (x, node, streams),
                  has_event ? (int64_t) event : -1 };
  for (size_t i = 0; x->ok && i < node->n_data_deps; i++)
    add_dep (x, node, &after, node->data_deps[i]);
  for (size_t i = 0; x->is_ours && i < node->n_ctrl_deps; i++) { /* ops whose issue it waits for */
    const ChakraSeen *dep = seen_of (x, node->ctrl_deps[i]);
    if (dep && dep->op != UINT32_MAX && dep->instance == x->instance)
      add (after.deps, LS_DEP_ISSUE, dep->op);
    else
      chakra_complain (x, node, "ctrl_deps: expected earlier ops of its segment");
  }
  g_array_append_vals (after.deps, streams->data, streams->len);
  if (after.deps->len == 0)
    g_clear_pointer (&after.deps, g_array_unref);
  return after.deps;
}

/* What takes no time: dependencies go through it. */
static void
pass_through (RankReading *x, const ChakraNode *node)
{
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (uint64_t)); /* of the ops behind it */
  for (size_t i = 0; x->ok && i < node->n_data_deps; i++) {
    const ChakraSeen *dep = earlier (x, node, node->data_deps[i]);
    if (dep && dep->op != UINT32_MAX)
      g_array_append_val (ids, node->data_deps[i]);
    if (dep && dep->through)
      g_array_append_vals (ids, dep->through->data, dep->through->len);
    if (ids->len > MAX_THROUGH - x->n_through)
      chakra_complain (x, node, "nodes without ops wait for more than %u others together", MAX_THROUGH);
  }
  ChakraSeen *seen = x->ok ? remember (x, node) : NULL;
  x->n_through += ids->len;
  if (seen)
    seen->through = g_array_ref (ids);
}

/* Indices within a segment have 16 bits (plan/plan.h). */
#define MAX_OPS 60000

/* --- ops -------------------------------------------------------------------------------------- */

static GArray *
read_buffers (RankReading *x, const ChakraNode *node)
{
  const ChakraProtoMsg__StringList *texts = list_of (node, "buffers");
  GArray *buffers = texts ? g_array_new (FALSE, FALSE, sizeof (TraceBuffer)) : NULL;
  for (size_t i = 0; texts && i < texts->n_values; i++) {
    const char *text = texts->values[i];
    TraceBuffer b = ls_trace_buffer_blank;
    g_autoptr (LsDiagList) unsaid = ls_diag_list_new_counting ();
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "buffer", unsaid);
    if (!doc || !ls_fields_read (ls_trace_buffer_fields, doc, ls_json_doc_root (doc), &b, NULL, unsaid))
      chakra_complain (x, node, "buffers: expected JSON objects as in a trace; got \"%.80s\"", text);
    g_array_append_val (buffers, b);
  }
  return buffers;
}

/* The kind that a node of ours names, among those that take their time from the same; else the usual one. */
static LsOpKind
kind_of (const RankReading *x, const ChakraNode *node, LsOpKind usual)
{
  const char *name = x->is_ours ? text_of (node, CHAKRA_OP) : NULL;
  int kind = name ? ls_enum_value (ls_op_kind_names, name) : -1;
  return kind >= 0 && ls_op_takes ((uint8_t) kind, (LsOpTakes) ls_op_kinds[usual].takes) ? (LsOpKind) kind
                                                                                         : usual;
}

/* An op of that kind, or of another that it names, with what the node says of all, until the next begins; of
 * others than ours on the stream, LS_N_STREAMS: as its kind. NULL and a complaint: it cannot be. */
static TraceOp *
begin_op (RankReading *x, const ChakraNode *node, LsOpKind usual_kind, LsStream usual)
{
  LsOpKind kind = kind_of (x, node, usual_kind);
  ChakraSeen *seen = remember (x, node);
  uint64_t stream = usual == LS_N_STREAMS ? ls_op_kinds[kind].stream : (uint64_t) usual;
  if (!x->segment.ops)
    begin_instance (x, "step");
  if (x->segment.ops->len >= MAX_OPS)
    chakra_complain (x, node, "more than %d ops without a segment that begins", MAX_OPS);
  if (x->is_ours)
    uint_of (x, node, "stream", LS_N_STREAMS - 1, &stream);
  if (!seen || !x->ok)
    return NULL;
  *seen = (ChakraSeen) { .instance = x->instance,
                         .op = x->segment.ops->len,
                         .stream = (uint8_t) stream,
                         .is_of_host = ls_op_is_of_host ((uint8_t) kind),
                         .event = -1,
                         .is_send = !x->is_ours && is_send (node) };
  g_array_append_vals (x->segment.ops, &ls_trace_op_blank, 1);
  g_array_set_size (x->stamps, x->segment.ops->len);
  TraceOp *op = &g_array_index (x->segment.ops, TraceOp, seen->op);
  op->kind = kind;
  op->name = *node->name ? ls_printable (node->name) : NULL;
  op->stream = (int) stream;
  op->after = read_deps (x, node, seen->is_of_host ? LS_N_STREAMS : (uint32_t) stream);
  for (size_t i = 0; x->is_ours && i < node->n_attr; i++) {
    const LsField *f = ls_trace_op_fields;
    while (f->key && strcmp (f->key, node->attr[i]->name) != 0)
      f++;
    if (!f->key || !chakra_is_attribute (f->key))
      continue;
    g_autofree char *text = value_text (node->attr[i]);
    set_field (x, node, f, op, text);
  }
  if (x->is_ours)
    op->buffers = read_buffers (x, node);
  if (ls_op_kinds[kind].records && op->event != LS_TRACE_ABSENT)
    seen->event = op->event;
  return op;
}

/* --- process groups of a rank ---------------------------------------------------------------------- */

/* -1: none yet. */
static int
slot_of (const RankReading *x, const ChakraGroup *group)
{
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (x->is.comm[s] == group->index)
      return s;
  return -1;
}

/* The rank has this group; of ours, the node says its slots and axis. */
static void
bind_group (RankReading *x, const ChakraNode *node, ChakraGroup *group)
{
  const ChakraProtoMsg__StringList *slots = list_of (node, "slots");
  const char *name = text_of (node, "axis");
  int axis = ls_enum_value (ls_axis_names, name);
  if (!x->is_ours || !name)
    return;
  group->is.axis = group->is.axis < 0 ? axis : group->is.axis;
  if (axis < 0 || group->is.axis != axis)
    chakra_complain (x, node, "axis: another than before, or none of ours");
  group->is.spans_stages |= is_on (node, "spans_stages");
  for (size_t i = 0; slots && i < slots->n_values; i++) {
    int slot = ls_enum_value (ls_slot_names, slots->values[i]);
    if (slot < 0 || slot >= LS_SLOT_PREV)
      chakra_complain (x, node, "slots: \"%.40s\" is none", slots->values[i]);
    else if (x->is.comm[slot] != LS_TRACE_ABSENT && x->is.comm[slot] != group->index)
      chakra_complain (x, node, "slot %s is that of another process group", slots->values[i]);
    else
      x->is.comm[slot] = group->index;
  }
}

static void
read_group (RankReading *x, const ChakraNode *node, const cJSON *said)
{
  const cJSON *name = cJSON_GetObjectItemCaseSensitive (said, "pg_name"),
              *ranks = cJSON_GetObjectItemCaseSensitive (said, "ranks");
  if (!cJSON_IsString (name) || !chakra_is_member_list (ranks)) {
    chakra_complain (x, node, "expected process groups with \"pg_name\" and \"ranks\" below %d",
                     LS_CHAKRA_MAX_RANKS);
    return;
  }
  ChakraGroup *g = chakra_add_group (x->all, name->valuestring, ranks);
  if (!g) {
    chakra_complain (x, node, "process group %s has other members here", name->valuestring);
    return;
  }
  bind_group (x, node, g);
}

/* A list of one text, as Python writes it, which is JSON: what PyTorch makes of it. */
static void
read_groups (RankReading *x, const ChakraNode *node)
{
  const char *values = node->inputs ? node->inputs->values : "";
  size_t n = strlen (values);
  bool is_list = n > 4 && values[0] == '[' && values[n - 1] == ']';
  g_autoptr (cJSON) list = is_list ? cJSON_ParseWithLength (values + 2, n - 4) : NULL;
  const cJSON *said;
  if (!cJSON_IsArray (list))
    chakra_complain (x, node, "expected process groups as a list in inputs.values");
  cJSON_ArrayForEach (said, list)
    read_group (x, node, said);
}

/* --- communication ------------------------------------------------------------------------------ */

/* NULL and a complaint: there is no such group, or the rank has too many. All ranks, where none is named.
 * Slots are only names: a group of others takes the next. */
static const ChakraGroup *
group_of (RankReading *x, const ChakraNode *node)
{
  const char *name = text_of (node, "pg_name");
  const ChakraGroup *group = chakra_group (x->all, name ? name : "");
  int slot = 0;
  if (!group && !name)
    group = chakra_add_group (x->all, "", NULL);
  while (slot < LS_SLOT_PREV && x->is.comm[slot] != LS_TRACE_ABSENT)
    slot++;
  if (!group)
    chakra_complain (x, node,
                     "process group \"%.40s\" is nowhere defined: neither in " CHAKRA_GROUPS
                     " nor by a node of process groups",
                     name);
  else if (slot_of (x, group) < 0 && slot == LS_SLOT_PREV)
    chakra_complain (x, node, "a rank in more than %d process groups", LS_SLOT_PREV);
  else if (slot_of (x, group) < 0)
    x->is.comm[slot] = group->index;
  return x->ok ? group : NULL;
}

const LsCollKind chakra_coll_kinds[CHAKRA_N_COLLS] = {
  [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_REDUCE] = LS_COLL_ALL_REDUCE,
  [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__REDUCE] = LS_COLL_REDUCE,
  [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_GATHER] = LS_COLL_ALL_GATHER,
  [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__GATHER] = LS_COLL_GATHER,
  [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__SCATTER] = LS_COLL_SCATTER,
  [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__BROADCAST] = LS_COLL_BROADCAST,
  [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_TO_ALL] = LS_COLL_ALL_TO_ALL,
  [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__REDUCE_SCATTER] = LS_COLL_REDUCE_SCATTER,
  [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__REDUCE_SCATTER_BLOCK] = LS_COLL_REDUCE_SCATTER,
  [CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__BARRIER] = LS_COLL_BARRIER,
};

/* comm_size is one member's part of what `bytes` counts. */
static bool
read_bytes (RankReading *x, const ChakraNode *node, LsCollKind kind, uint32_t n_ranks, uint64_t *ret_bytes)
{
  uint64_t size = 0, bytes, shares = chakra_shares (kind, n_ranks);
  if (kind != LS_COLL_BARRIER && !need_uint (x, node, "comm_size", &size))
    return false;
  if ((double) size * (double) shares > LS_TRACE_MAX_BYTES)
    return chakra_complain (x, node, "comm_size: more than can be simulated");
  *ret_bytes = size * shares;
  if (!x->is_ours || !uint_of (x, node, "bytes", (uint64_t) LS_TRACE_MAX_BYTES, &bytes))
    return x->ok;
  *ret_bytes = bytes;
  return bytes / shares + (bytes % shares != 0) == size
      || chakra_complain (x, node, "bytes and comm_size contradict each other");
}

static void
read_collective (RankReading *x, const ChakraNode *node, LsCollKind kind)
{
  const ChakraGroup *group = group_of (x, node);
  uint64_t bytes = 0;
  if (!group || !read_bytes (x, node, kind, group->is.n_ranks, &bytes))
    return;
  TraceOp *op = begin_op (x, node, LS_OP_COLLECTIVE, LS_STREAM_DP);
  if (!op)
    return;
  op->slot = op->slot < 0 ? slot_of (x, group) : op->slot;
  op->coll = (int) kind;
  op->bytes = bytes;
}

static void
take_collective (RankReading *x, const ChakraNode *node)
{
  uint64_t type;
  if (!need_uint (x, node, "comm_type", &type))
    return;
  if (type < CHAKRA_N_COLLS)
    read_collective (x, node, chakra_coll_kinds[type]);
  else
    chakra_complain (x, node, "comm_type %" G_GUINT64_FORMAT " is none of Chakra's", type);
}

/* --- messages ------------------------------------------------------------------------------------- */

/* Where the node does not say it: ranks further on are `next`; in a ring, who is sent to first. */
static int
guess_side (const RankReading *x, const ChakraNode *node, uint64_t other)
{
  int wanted = x->all->has_rings ? is_send (node) : other > x->rank;
  for (int side = 0; x->all->has_rings && side < 2; side++)
    if (x->is.peer[side] == other)
      return side;
  bool is_free = x->is.peer[wanted] == LS_TRACE_ABSENT || x->is.peer[wanted] == other;
  return is_free || !x->all->has_rings ? wanted : !wanted;
}

/* The neighbour that a message goes to or comes from: 0 before, 1 after. -1 and a complaint: the rank has
 * others there. */
static int
side_of (RankReading *x, const ChakraNode *node)
{
  const char *said = x->is_ours ? text_of (node, is_send (node) ? "send" : "receive") : NULL;
  uint64_t other;
  if (!need_uint (x, node, is_send (node) ? "comm_dst" : "comm_src", &other))
    return -1;
  int side = said ? strcmp (said, "next") == 0 : guess_side (x, node, other);
  if (x->is.peer[side] == LS_TRACE_ABSENT && !x->is_ours && other < LS_CHAKRA_MAX_RANKS)
    x->is.peer[side] = (uint32_t) other;
  if (x->is.peer[side] == other)
    return side;
  x->all->wants_rings = !x->is_ours && !x->all->has_rings;
  chakra_complain (x, node,
                   "rank %" G_GUINT64_FORMAT " is not its %s: a rank exchanges messages with one rank before "
                   "and one after it",
                   other, side ? "next" : "prev");
  return -1;
}

static void
add_transfer (RankReading *x, const ChakraNode *node, TraceOp *op)
{
  TraceTransfer t = ls_trace_transfer_blank;
  int side = side_of (x, node);
  if (side < 0 || !need_uint (x, node, "comm_size", &t.bytes))
    return;
  *(is_send (node) ? &t.send : &t.receive) = LS_SLOT_PREV + side;
  g_array_append_val (op->transfers, t);
}

/* A further node of the last op: of a permutation it says nothing new. */
static void
continue_op (RankReading *x, const ChakraNode *node)
{
  ChakraSeen *seen = remember (x, node);
  uint32_t last = x->segment.ops->len - 1;
  TraceOp *op = &g_array_index (x->segment.ops, TraceOp, last);
  if (!seen)
    return;
  *seen = (ChakraSeen) { x->instance, last, (uint8_t) op->stream, false, -1, NULL };
  if (op->transfers)
    add_transfer (x, node, op);
  x->n_left--;
}

/* Messages of others wait for none of another direction. */
static void
read_messages (RankReading *x, const ChakraNode *node)
{
  bool is_next = !x->is_ours && side_of (x, node) == 1;
  LsStream stream = is_send (node) ? (is_next ? LS_STREAM_PP_FWD : LS_STREAM_PP_BWD)
                                   : (is_next ? LS_STREAM_PP_BWD_RECV : LS_STREAM_PP_FWD_RECV);
  uint64_t n = 1;
  if (x->is_ours)
    uint_of (x, node, CHAKRA_NODES, UINT16_MAX, &n);
  if (n == 0)
    chakra_complain (x, node, CHAKRA_NODES ": expected 1 or more");
  TraceOp *op = x->ok ? begin_op (x, node, LS_OP_P2P, stream) : NULL;
  if (!op)
    return;
  op->transfers = g_array_new (FALSE, FALSE, sizeof (TraceTransfer));
  add_transfer (x, node, op);
  x->n_left = n - 1;
}

static void
take_message (RankReading *x, const ChakraNode *node)
{
  const char *op = x->is_ours ? text_of (node, CHAKRA_OP) : NULL;
  bool is_permute = g_strcmp0 (op, ls_coll_kind_name (LS_COLL_PERMUTE)) == 0,
       is_copy = g_strcmp0 (op, ls_coll_kind_name (LS_COLL_COPY_PERMUTE)) == 0;
  if (x->n_left > 0) {
    continue_op (x, node);
  } else if (is_permute || is_copy) {
    read_collective (x, node, is_copy ? LS_COLL_COPY_PERMUTE : LS_COLL_PERMUTE);
    x->n_left = 1;
  } else {
    read_messages (x, node);
  }
}

/* --- computing --------------------------------------------------------------------------------- */

/* num_ops and tensor_size are of all repetitions. */
static double
share_of (RankReading *x, const ChakraNode *node, const char *name)
{
  uint64_t all = 0, repeat = 1;
  uint_of (x, node, "repeat", LS_TRACE_MAX_REPEAT, &repeat);
  if (need_uint (x, node, name, &all) && (repeat == 0 || all % repeat != 0))
    chakra_complain (x, node, "%s: expected a multiple of repeat", name);
  return x->ok ? (double) (all / repeat) : 0;
}

static uint32_t
kernel_of (RankReading *x, const ChakraNode *node)
{
  LsKernel k = ls_trace_kernel_blank;
  for (const LsField *f = ls_trace_kernel_fields; f->key; f++) {
    g_autofree char *name = g_strconcat (CHAKRA_KERNEL, f->key, NULL);
    const ChakraAttr *attr = attribute (node, name);
    g_autofree char *text = attr ? value_text (attr) : NULL;
    if (attr)
      set_field (x, node, f, &k, text);
    else if (g_str_equal (f->key, "flops"))
      k.flops = share_of (x, node, "num_ops");
    else if (g_str_equal (f->key, "bytes"))
      k.bytes = share_of (x, node, "tensor_size");
    else if (f->required)
      chakra_complain (x, node, "expected its attribute %s", name);
  }
  return ls_trace_place (x->all->kernels, ls_trace_kernel_fields, x->all->file.kernels, &k, &x->all->n_bytes);
}

/* A node of others takes its duration; without one nothing is known of it. */
static void
read_duration (RankReading *x, const ChakraNode *node, TraceOp *op)
{
  g_autofree char *time = g_strdup_printf ("%" G_GUINT64_FORMAT "us", node->duration_micros);
  if (node->duration_micros == 0)
    chakra_complain (x, node,
                     "expected duration_micros, or the shape that Lockstep writes (kernel.kind); num_ops and "
                     "tensor_size alone do not tell a kernel's time");
  else if (!ls_field_value_set (ls_field_find (ls_trace_op_fields, "recorded"), op, time))
    chakra_complain (x, node, "duration_micros: %s is longer than can be simulated", time);
}

static void
read_kernel (RankReading *x, const ChakraNode *node)
{
  TraceOp *op = begin_op (x, node, LS_OP_KERNEL, LS_N_STREAMS);
  if (op && attribute (node, CHAKRA_KERNEL "kind"))
    op->kernel = kernel_of (x, node);
  else if (op && (!x->is_ours || op->recorded == LS_TIME_NEVER))
    read_duration (x, node, op);
}

/* Compute of the host of others: it holds up what is issued later. */
static void
read_host_delay (RankReading *x, const ChakraNode *node)
{
  if (!x->is_ours && node->duration_micros == 0) {
    pass_through (x, node);
    return;
  }
  TraceOp *op = begin_op (x, node, LS_OP_HOST_DELAY, LS_N_STREAMS);
  if (op && !x->is_ours)
    read_duration (x, node, op);
}

static void
read_compute (RankReading *x, const ChakraNode *node)
{
  (is_on (node, "is_cpu_op") ? read_host_delay : read_kernel) (x, node);
}

static void
read_copy (RankReading *x, const ChakraNode *node)
{
  bool is_load = node->type == CHAKRA_PROTO_MSG__NODE_TYPE__MEM_LOAD_NODE;
  uint64_t bytes = 0;
  TraceOp *op
      = need_uint (x, node, "tensor_size", &bytes) ? begin_op (x, node, LS_OP_COPY, LS_N_STREAMS) : NULL;
  if (!op)
    return;
  op->bytes = bytes;
  if (!x->is_ours)
    op->direction = is_load ? LS_COPY_TO_DEVICE : LS_COPY_TO_HOST;
}

/* --- nodes ------------------------------------------------------------------------------------------ */

static void
read_metadata (RankReading *x, const ChakraNode *node)
{
  const char *op = x->is_ours ? text_of (node, CHAKRA_OP) : NULL;
  int kind = op ? ls_enum_value (ls_op_kind_names, op) : -1;
  bool is_mark = kind >= 0 && !ls_op_has ((uint8_t) kind, LS_HAS_RECORDED)
      && (ls_op_takes ((uint8_t) kind, LS_TAKES_NOTHING) || ls_op_is_of_host ((uint8_t) kind));
  if (is_mark) { /* takes no time that could be said */
    begin_op (x, node, (LsOpKind) kind, LS_N_STREAMS);
  } else if (op && strcmp (op, "segment") == 0) {
    if (remember (x, node))
      read_segment (x, node);
  } else {
    pass_through (x, node);
    if (x->ok && strstr (node->name, "process_group:init"))
      read_groups (x, node);
  }
}

void
chakra_read_node (RankReading *x, const ChakraNode *node)
{
  static void (*const readers[]) (RankReading * x, const ChakraNode *node)
      = { [CHAKRA_PROTO_MSG__NODE_TYPE__METADATA_NODE] = read_metadata,
          [CHAKRA_PROTO_MSG__NODE_TYPE__COMP_NODE] = read_compute,
          [CHAKRA_PROTO_MSG__NODE_TYPE__MEM_LOAD_NODE] = read_copy,
          [CHAKRA_PROTO_MSG__NODE_TYPE__MEM_STORE_NODE] = read_copy,
          [CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE] = take_collective,
          [CHAKRA_PROTO_MSG__NODE_TYPE__COMM_SEND_NODE] = take_message,
          [CHAKRA_PROTO_MSG__NODE_TYPE__COMM_RECV_NODE] = take_message };
  bool is_comm = node->type == CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE || is_message (node);
  /* what the host only launches, as PyTorch's traces have it next to that of the GPU */
  bool is_launch = is_comm && !x->is_ours && is_on (node, "is_cpu_op") && !attribute (node, "comm_size");
  guint type = (guint) node->type;
  if (x->n_left > 0 && !is_message (node))
    chakra_complain (x, node, "expected a message: the op before has more");
  else if (is_launch)
    read_host_delay (x, node);
  else if (type < G_N_ELEMENTS (readers) && readers[type])
    readers[type](x, node);
  else
    chakra_complain (x, node, "a node of type %d, which has no counterpart here", (int) node->type);
}
