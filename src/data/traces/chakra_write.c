/* data/traces/chakra_write.c — plan -> a folder of Chakra traces. */
#include <math.h>
#include <stdio.h>

#include <lockstep/error.h>

#include "base/diag.h"
#include "data/jobs/job_files.h"
#include "data/text/field.h"
#include "data/text/write_file.h"
#include "data/traces/chakra_read.h"

/* Attributes under way, as both messages hold them; what they point to lives in `texts`. */
typedef struct {
  GPtrArray *list; /* ChakraAttr */
  GStringChunk *texts;
} ChakraAttrs;

/* One rank on its way into its file. */
typedef struct {
  const LsPlan *plan;
  const LsTraceHead *head;
  const LsTime *kernel_times; /* NULL: not known   */
  const GArray *kernels;      /* LsKernel          */
  uint32_t rank;
  LsOpWalk at;
  FILE *out;
  GByteArray *bytes; /* of a message      */
  ChakraAttrs attrs; /* of the next node  */
  uint64_t next_id;
  uint32_t sent[2], received[2]; /* messages by neighbour */
  uint32_t *calls;               /* [n_comms] permutations */
} ChakraWriter;

/* --- attributes -------------------------------------------------------------------------- */

/* Their types. */
enum {
  INT32 = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT32_VAL,
  INT64 = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT64_VAL,
  UINT64 = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_UINT64_VAL,
  DOUBLE = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_DOUBLE_VAL,
  BOOL = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_BOOL_VAL,
  STRING = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_VAL,
  STRINGS = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_LIST,
};

static void
attr_free (gpointer attr)
{
  ChakraAttr *a = attr;
  if (a->value_case == CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_LIST) {
    g_free (a->string_list->values);
    g_free (a->string_list);
  }
  g_free (a);
}

/* Empty, for the next node. */
static void
attrs_reset (ChakraAttrs *a)
{
  g_ptr_array_set_size (a->list, 0);
  g_string_chunk_clear (a->texts);
}

/* Its value is the caller's to set. */
static ChakraAttr *
add (ChakraAttrs *a, const char *name, int type)
{
  ChakraAttr *attr = g_new (ChakraAttr, 1);
  chakra_proto_msg__attribute_proto__init (attr);
  attr->name = g_string_chunk_insert (a->texts, name);
  attr->value_case = (ChakraProtoMsg__AttributeProto__ValueCase) type;
  g_ptr_array_add (a->list, attr);
  return attr;
}

static void
add_string (ChakraAttrs *a, const char *name, const char *value)
{
  add (a, name, STRING)->string_val = g_string_chunk_insert (a->texts, value);
}

static void
add_strings (ChakraAttrs *a, const char *name, const GPtrArray *values)
{
  ChakraProtoMsg__StringList *list = g_new (ChakraProtoMsg__StringList, 1);
  chakra_proto_msg__string_list__init (list);
  list->n_values = values->len;
  list->values = g_new (char *, MAX (1, values->len));
  for (guint i = 0; i < values->len; i++)
    list->values[i] = g_string_chunk_insert (a->texts, values->pdata[i]);
  add (a, name, STRINGS)->string_list = list;
}

/* --- messages --------------------------------------------------------------------------- */

/* A message behind its length. */
static void
put_message (ChakraWriter *w, const ProtobufCMessage *message)
{
  size_t n = protobuf_c_message_get_packed_size (message);
  g_byte_array_set_size (w->bytes, (guint) n);
  protobuf_c_message_pack (message, w->bytes->data);
  size_t rest = n;
  for (; rest >= 0x80; rest >>= 7)
    putc ((int) (rest & 0x7f) | 0x80, w->out);
  putc ((int) rest, w->out);
  fwrite (w->bytes->data, 1, n, w->out);
}

/* The attributes and dependencies that were gathered become those of a node. inputs: NULL: none. */
static void
put_node (ChakraWriter *w, ChakraProtoMsg__NodeType type, const char *name, uint64_t micros,
          ChakraProtoMsg__IOInfo *inputs)
{
  ChakraNode node;
  chakra_proto_msg__node__init (&node);
  node.id = w->next_id++;
  node.type = type;
  node.name = (char *) name;
  node.duration_micros = micros;
  node.inputs = inputs;
  node.n_attr = w->attrs.list->len;
  node.attr = (ChakraAttr **) w->attrs.list->pdata;
  node.n_data_deps = w->at.ends->len;
  node.data_deps = (uint64_t *) (gpointer) w->at.ends->data;
  node.n_ctrl_deps = w->at.issues->len;
  node.ctrl_deps = (uint64_t *) (gpointer) w->at.issues->data;
  put_message (w, &node.base);
  attrs_reset (&w->attrs);
}

/* --- attributes of an op ------------------------------------------------------------------ */

static void
add_field (ChakraAttrs *attrs, const char *name, const LsField *f, const void *target, const void *blank)
{
  g_autofree char *text = ls_field_text (f, target, blank);
  if (!text)
    return;
  if (f->kind == LS_FIELD_UINT || f->kind == LS_FIELD_UINT64)
    add (attrs, name, INT64)->int64_val = g_ascii_strtoll (text, NULL, 10);
  else if (f->kind == LS_FIELD_BOOL)
    add (attrs, name, BOOL)->bool_val = TRUE;
  else
    add_string (attrs, name, text);
}

/* What all nodes of ours have. The rest stands with the first node of an op. */
static void
add_op (ChakraWriter *w, const LsOp *op, const TraceOp *said)
{
  g_autoptr (GPtrArray) streams = g_ptr_array_new (), buffers = g_ptr_array_new_with_free_func (g_free);
  add (&w->attrs, "is_cpu_op", BOOL)->bool_val = ls_op_is_of_host (op->kind);
  add (&w->attrs, "stream", INT64)->int64_val = op->stream;
  for (const LsField *f = ls_trace_op_fields; f->key; f++)
    if (chakra_is_attribute (f->key))
      add_field (&w->attrs, f->key, f, said, &ls_trace_op_blank);
  for (uint32_t i = 0; i < op->n_deps; i++)
    if (op->deps[i].kind == LS_DEP_STREAM)
      g_ptr_array_add (streams, (gpointer) ls_stream_names[op->deps[i].index].name);
  for (guint i = 0; said->buffers && i < said->buffers->len; i++)
    g_ptr_array_add (buffers,
                     ls_fields_text (ls_trace_buffer_fields, &g_array_index (said->buffers, TraceBuffer, i),
                                     &ls_trace_buffer_blank));
  if (streams->len > 0)
    add_strings (&w->attrs, CHAKRA_AFTER, streams);
  if (buffers->len > 0)
    add_strings (&w->attrs, "buffers", buffers);
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
  add (&w->attrs, "num_ops", INT64)->int64_val = (int64_t) MIN (k->flops * repeat, limit);
  add (&w->attrs, "tensor_size", UINT64)->uint64_val = (uint64_t) MIN (k->bytes * repeat, limit);
  for (const LsField *f = ls_trace_kernel_fields; f->key; f++) {
    g_autofree char *name = g_strconcat (CHAKRA_KERNEL, f->key, NULL);
    bool is_flops = g_str_equal (f->key, "flops"), is_bytes = g_str_equal (f->key, "bytes");
    bool is_said = (is_flops && is_exact (k->flops, repeat)) || (is_bytes && is_exact (k->bytes, repeat));
    if (is_flops && !is_said)
      add (&w->attrs, name, DOUBLE)->double_val = k->flops;
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
put_copy (ChakraWriter *w, const LsOp *op)
{
  add (&w->attrs, "tensor_size", UINT64)->uint64_val = op->bytes;
  put_node (w,
            ls_copies[op->direction].is_out ? CHAKRA_PROTO_MSG__NODE_TYPE__MEM_STORE_NODE
                                            : CHAKRA_PROTO_MSG__NODE_TYPE__MEM_LOAD_NODE,
            op->name, micros_of (w, op), NULL);
}

/* A message to or from a rank, as its simulators match them: by both ranks and the tag. */
static void
put_message_node (ChakraWriter *w, const char *name, bool is_send, uint32_t other, uint64_t bytes,
                  uint32_t tag)
{
  add (&w->attrs, "comm_size", INT64)->int64_val = (int64_t) bytes;
  add (&w->attrs, "comm_src", INT32)->int32_val = (int32_t) (is_send ? w->rank : other);
  add (&w->attrs, "comm_dst", INT32)->int32_val = (int32_t) (is_send ? other : w->rank);
  add (&w->attrs, "comm_tag", INT32)->int32_val = (int32_t) tag;
  put_node (
      w, is_send ? CHAKRA_PROTO_MSG__NODE_TYPE__COMM_SEND_NODE : CHAKRA_PROTO_MSG__NODE_TYPE__COMM_RECV_NODE,
      name, 0, NULL);
}

/* The k-th message to `next` is the k-th from `prev` there, and has an even tag; those to `prev` odd ones. */
static void
put_p2p (ChakraWriter *w, const LsOp *op)
{
  add_string (&w->attrs, CHAKRA_OP, "p2p");
  add (&w->attrs, CHAKRA_NODES, INT64)->int64_val = op->n_transfers;
  for (uint32_t i = 0; i < op->n_transfers; i++) {
    const LsTransfer *t = &op->transfers[i];
    int side = t->slot == LS_SLOT_NEXT;
    uint32_t k = t->is_send ? w->sent[side]++ : w->received[side]++;
    bool is_forward = t->is_send ? side : !side;
    if (i > 0)
      add (&w->attrs, "is_cpu_op", BOOL)->bool_val = FALSE;
    add_string (&w->attrs, t->is_send ? "send" : "receive", ls_slot_names[t->slot].name);
    put_message_node (w, op->name, t->is_send, w->at.binding.peer[side], t->bytes,
                      2 * k + (is_forward ? 0 : 1));
  }
}

/* No type of Chakra's: a message to the next member and one from the member before. */
static void
put_permute (ChakraWriter *w, const LsOp *op, uint32_t comm)
{
  const LsCommunicator c = ls_plan_communicator (w->plan, comm);
  uint32_t me = w->at.binding.member[op->slot], n = c.n_ranks;
  uint64_t call = (uint64_t) w->calls[comm]++ * w->plan->n_comms + comm;
  uint32_t tag = (1u << 30) + (uint32_t) (call % (1u << 30));
  add_string (&w->attrs, CHAKRA_OP, ls_coll_kind_name ((LsCollKind) op->coll));
  add (&w->attrs, CHAKRA_NODES, INT64)->int64_val = 2;
  put_message_node (w, op->name, true, ls_comm_rank (&c, (me + 1) % n), op->bytes, tag);
  add (&w->attrs, "is_cpu_op", BOOL)->bool_val = FALSE;
  put_message_node (w, op->name, false, ls_comm_rank (&c, (me + n - 1) % n), op->bytes, tag);
}

static void
put_collective (ChakraWriter *w, const LsOp *op)
{
  uint32_t comm = w->at.binding.comm[op->slot];
  g_autofree char *group = g_strdup_printf ("%u", comm + 1);
  add_string (&w->attrs, "pg_name", group);
  if (op->coll == LS_COLL_PERMUTE || op->coll == LS_COLL_COPY_PERMUTE) {
    put_permute (w, op, comm);
    return;
  }
  uint32_t n = chakra_shares ((LsCollKind) op->coll, ls_plan_communicator (w->plan, comm).n_ranks);
  int64_t type = 0;
  while (type < CHAKRA_N_COLLS - 1 && chakra_coll_kinds[type] != (LsCollKind) op->coll)
    type++;
  add (&w->attrs, "comm_type", INT64)->int64_val = type;
  add (&w->attrs, "comm_size", INT64)->int64_val = (int64_t) (op->bytes / n + (op->bytes % n != 0));
  if (op->bytes % n != 0)
    add (&w->attrs, "bytes", INT64)->int64_val = (int64_t) op->bytes;
  put_node (w, CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE, op->name, 0, NULL);
}

static void
put_by_kind (ChakraWriter *w, const LsOp *op)
{
  static const bool is_of_node[LS_N_OP_KINDS]
      = { [LS_OP_KERNEL] = true, [LS_OP_COLLECTIVE] = true, [LS_OP_P2P] = true, [LS_OP_COPY] = true };
  LsOpTakes takes = (LsOpTakes) ls_op_kinds[op->kind].takes;
  if (!is_of_node[op->kind]) /* the type of its node does not tell it from others */
    add_string (&w->attrs, CHAKRA_OP, ls_op_kind_names[op->kind].name);
  if (takes == LS_TAKES_NETWORK)
    (ls_op_has (op->kind, LS_HAS_CALL) ? put_collective : put_p2p) (w, op);
  else if (takes == LS_TAKES_ENGINE)
    put_copy (w, op);
  else if (takes == LS_TAKES_GPU || (takes == LS_TAKES_HOST && ls_op_has (op->kind, LS_HAS_RECORDED))) {
    if (ls_op_has (op->kind, LS_HAS_KERNEL) && op->kernel != UINT32_MAX)
      add_kernel (w, op);
    put_node (w, CHAKRA_PROTO_MSG__NODE_TYPE__COMP_NODE, op->name, micros_of (w, op), NULL);
  } else /* it takes no time on the device */
    put_node (w, CHAKRA_PROTO_MSG__NODE_TYPE__METADATA_NODE, op->name, 0, NULL);
}

static gboolean
put_op (void *data, const LsOp *op, LsOpNodes *ret_nodes, GError **error)
{
  ChakraWriter *w = data;
  (void) error;
  TraceOp said = ls_trace_op_of (op, w->kernels);
  add_op (w, op, &said);
  ls_fields_clear (ls_trace_op_fields, &said);
  ret_nodes->first = w->next_id;
  put_by_kind (w, op);
  ret_nodes->n = (uint32_t) (w->next_id - ret_nodes->first);
  return TRUE;
}

/* --- programs ------------------------------------------------------------------------------- */

static void
put_instance (ChakraWriter *w, const LsInstance *instance, bool is_lead)
{
  const LsSegment *segment = &w->plan->segments[instance->segment];
  g_array_set_size (w->at.ends, 0);
  g_array_set_size (w->at.issues, 0);
  add_string (&w->attrs, CHAKRA_OP, "segment");
  add (&w->attrs, "is_cpu_op", BOOL)->bool_val = TRUE;
  add (&w->attrs, "micro_batch", INT64)->int64_val = instance->mb;
  add (&w->attrs, "chunk", INT64)->int64_val = instance->chunk;
  add (&w->attrs, "stage", INT64)->int64_val = instance->stage;
  if (is_lead)
    add (&w->attrs, "lead", BOOL)->bool_val = TRUE;
  put_node (w, CHAKRA_PROTO_MSG__NODE_TYPE__METADATA_NODE, segment->name, 0, NULL);
  ls_op_walk_instance (&w->at, instance, put_op, w, NULL);
}

static char *
members_of (const LsCommunicator *c)
{
  GString *text = g_string_new ("[");
  for (uint32_t i = 0; i < c->n_ranks; i++)
    g_string_append_printf (text, "%s%u", i > 0 ? "," : "", ls_comm_rank (c, i));
  return g_string_free (g_string_append_c (text, ']'), FALSE);
}

/* A process group, in the words of PyTorch's execution traces, which ASTRA-sim reads: a list of one text,
 * which is JSON. */
static void
put_group (ChakraWriter *w, uint32_t comm)
{
  const LsCommunicator c = ls_plan_communicator (w->plan, comm);
  g_autofree char *members = members_of (&c);
  g_autofree char *values = g_strdup_printf ("['[{\"pg_name\":\"%u\",\"ranks\":%s}]']", comm + 1, members);
  ChakraProtoMsg__IOInfo inputs = CHAKRA_PROTO_MSG__IOINFO__INIT;
  inputs.values = values;
  g_autoptr (GPtrArray) slots = g_ptr_array_new ();
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (w->at.binding.comm[s] == comm)
      g_ptr_array_add (slots, (gpointer) ls_slot_names[s].name);
  add_string (&w->attrs, CHAKRA_OP, "communicator");
  add (&w->attrs, "is_cpu_op", BOOL)->bool_val = TRUE;
  add_string (&w->attrs, "axis", ls_axis_names[c.axis].name);
  if (c.spans_stages)
    add (&w->attrs, "spans_stages", BOOL)->bool_val = TRUE;
  add_strings (&w->attrs, "slots", slots);
  put_node (w, CHAKRA_PROTO_MSG__NODE_TYPE__METADATA_NODE, "## process_group:init ##", 0, &inputs);
}

static void
put_groups (ChakraWriter *w)
{
  for (int s = 0; s < LS_SLOT_PREV; s++) {
    bool is_new = w->at.binding.comm[s] != UINT32_MAX;
    for (int other = 0; is_new && other < s; other++)
      is_new = w->at.binding.comm[other] != w->at.binding.comm[s];
    if (is_new)
      put_group (w, w->at.binding.comm[s]);
  }
}

/* --- head ------------------------------------------------------------------------------------ */

static void
put_head (ChakraWriter *w)
{
  ChakraProtoMsg__GlobalMetadata head = CHAKRA_PROTO_MSG__GLOBAL_METADATA__INIT;
  head.version = (char *) CHAKRA_VERSION;
  add_string (&w->attrs, "lockstep", CHAKRA_FORM);
  add_string (&w->attrs, "name", w->head->name);
  add_string (&w->attrs, "source", w->head->source);
  if (w->head->measured_on)
    add_string (&w->attrs, "measured_on", w->head->measured_on);
  if (w->head->assumes)
    add_string (&w->attrs, "assumes", w->head->assumes);
  g_autofree char *scale = g_strdup_printf ("%.17g", w->head->compute_scale);
  if (w->head->compute_scale > 0 && w->head->compute_scale != 1)
    add_string (&w->attrs, "compute_scale", scale);
  add (&w->attrs, "rank", INT64)->int64_val = w->rank;
  add (&w->attrs, "ranks", INT64)->int64_val = w->plan->n_ranks;
  add (&w->attrs, "gpu", INT64)->int64_val = ls_plan_gpu (w->plan, w->rank);
  for (int side = 0; side < 2; side++)
    if (w->at.binding.peer[side] != UINT32_MAX)
      add (&w->attrs, ls_slot_names[(LS_SLOT_PREV + side)].name, INT64)->int64_val = w->at.binding.peer[side];
  const LsProgram *p = w->at.program;
  add (&w->attrs, "role", INT64)->int64_val = w->at.binding.role;
  add (&w->attrs, "stage", INT64)->int64_val = p->stage;
  add (&w->attrs, "params", UINT64)->uint64_val = p->n_params;
  for (int c = 0; c < LS_N_MEM; c++) {
    g_autofree char *name = g_strconcat (CHAKRA_STATIC, ls_mem_category_names[c].name, NULL);
    if (p->static_bytes[c] > 0)
      add (&w->attrs, name, UINT64)->uint64_val = p->static_bytes[c];
  }
  if (w->head->model) {
    g_autofree char *model = ls_fields_text (ls_model_fields, w->head->model, NULL),
                    *strategy = ls_fields_text (ls_strategy_fields, w->head->strategy, NULL);
    add_string (&w->attrs, "model", model);
    add_string (&w->attrs, "strategy", strategy);
  }
  head.n_attr = w->attrs.list->len;
  head.attr = (ChakraAttr **) w->attrs.list->pdata;
  put_message (w, &head.base);
  attrs_reset (&w->attrs);
}

/* --- what ranks are, where each role has a file ---------------------------------------------- */

/* The rank whose file is that of a role. */
static uint32_t
first_of_role (const LsPlan *plan, uint32_t role)
{
  uint32_t rank = 0;
  while (rank < plan->n_ranks && ls_plan_role (plan, rank) != role)
    rank++;
  return rank;
}

static void
list_groups (LsJsonOut *w, const LsPlan *plan)
{
  ls_json_out_begin_object (w, "groups");
  for (uint32_t c = 0; c < plan->n_comms; c++) {
    char name[16];
    g_snprintf (name, sizeof name, "%u", c + 1);
    ls_json_out_begin_object (w, name);
    ls_json_out_string (w, "axis", ls_axis_names[ls_plan_communicator (plan, c).axis].name);
    if (ls_plan_communicator (plan, c).spans_stages)
      ls_json_out_bool (w, "spans_stages", true);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_object (w);
}

static void
list_rank (LsJsonOut *w, const LsPlan *plan, uint32_t rank)
{
  const LsBinding b = ls_plan_binding (plan, rank);
  ls_json_out_begin_object (w, NULL);
  ls_json_out_uint (w, "role", b.role);
  ls_json_out_uint (w, "gpu", ls_plan_gpu (plan, rank));
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (b.comm[s] != UINT32_MAX) {
      char name[16];
      g_snprintf (name, sizeof name, "%u", b.comm[s] + 1);
      ls_json_out_string (w, ls_slot_names[s].name, name);
    }
  for (int side = 0; side < 2; side++)
    if (b.peer[side] != UINT32_MAX)
      ls_json_out_uint (w, ls_slot_names[(LS_SLOT_PREV + side)].name, b.peer[side]);
  ls_json_out_end_object (w);
}

static char *
manifest_text (const LsPlan *plan)
{
  LsJsonOut w;
  ls_json_out_open (&w);
  w.indent = 0; /* on one line */
  ls_json_out_string (&w, "schema", CHAKRA_MANIFEST_SCHEMA);
  ls_json_out_begin_array (&w, "roles");
  for (uint32_t role = 0; role < plan->n_roles; role++) {
    g_autofree char *file = g_strdup_printf ("trace.%u.et", first_of_role (plan, role));
    ls_json_out_string (&w, NULL, file);
  }
  ls_json_out_end_array (&w);
  list_groups (&w, plan);
  ls_json_out_begin_array (&w, "ranks");
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++)
    list_rank (&w, plan, rank);
  ls_json_out_end_array (&w);
  return ls_json_out_close (&w);
}

/* --- files ----------------------------------------------------------------------------------- */

static gboolean
write_rank (FILE *out, void *data, GError **error)
{
  ChakraWriter *w = data;
  (void) error;
  w->out = out;
  g_autoptr (GByteArray) bytes = w->bytes = g_byte_array_new ();
  g_autoptr (GPtrArray) list = g_ptr_array_new_with_free_func (attr_free);
  g_autofree uint32_t *calls = w->calls = g_new0 (uint32_t, MAX (1, w->plan->n_comms));
  w->attrs = (ChakraAttrs) { list, g_string_chunk_new (4096) };
  ls_op_walk_begin (&w->at, w->plan, w->rank);
  put_head (w);
  put_groups (w);
  for (uint32_t i = 0; i < w->at.program->n_instances; i++)
    put_instance (w, &w->at.program->instances[i], i < w->at.program->n_lead);
  g_string_chunk_free (w->attrs.texts);
  ls_op_walk_end (&w->at);
  return TRUE;
}

/* {"1": [0, 1], ...}: what ASTRA-sim takes as --comm-group-configuration. */
static char *
groups_text (const LsPlan *plan)
{
  GString *text = g_string_new ("{");
  for (uint32_t c = 0; c < plan->n_comms; c++) {
    const LsCommunicator comm = ls_plan_communicator (plan, c);
    g_autofree char *members = members_of (&comm);
    g_string_append_printf (text, "%s\n  \"%u\": %s", c > 0 ? "," : "", c + 1, members);
  }
  return g_string_free (g_string_append (text, plan->n_comms > 0 ? "\n}\n" : "}\n"), FALSE);
}

static gboolean
check_size (const LsPlan *plan, bool by_role, GError **error)
{
  double n_nodes = by_role ? 0 : (double) ls_plan_n_op_instances (plan);
  for (uint32_t role = 0; by_role && role < plan->n_roles; role++)
    for (uint32_t i = 0; i < plan->programs[role].n_instances; i++)
      n_nodes += plan->segments[plan->programs[role].instances[i].segment].n_ops;
  return (plan->n_ranks <= LS_CHAKRA_MAX_RANKS && n_nodes <= LS_CHAKRA_MAX_NODES)
      || ls_fail (error, LS_ERROR_LIMIT,
                  "%u ranks of %.3g ops together; Chakra traces are written of at most %d ranks and %.3g ops",
                  plan->n_ranks, n_nodes, LS_CHAKRA_MAX_RANKS, LS_CHAKRA_MAX_NODES);
}

static gboolean
write_in (const char *folder, const char *name, const char *text, GError **error)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);
  return ls_write_text (path, text, error);
}

gboolean
ls_chakra_write (const LsPlan *plan, const LsTraceHead *head, const LsTime *kernel_times, bool by_role,
                 const char *folder, GError **error)
{
  if (!ls_trace_can_say (plan, error) || !check_size (plan, by_role, error)
      || !ls_make_folder (folder, error))
    return FALSE;
  TraceFile said = { .kernels = ls_trace_kernels_of (plan) };
  g_autofree char *groups = groups_text (plan), *manifest = by_role ? manifest_text (plan) : NULL;
  gboolean ok = write_in (folder, CHAKRA_GROUPS, groups, error)
      && (!manifest || write_in (folder, CHAKRA_MANIFEST, manifest, error));
  for (uint32_t i = 0; ok && i < (by_role ? plan->n_roles : plan->n_ranks); i++) {
    uint32_t rank = by_role ? first_of_role (plan, i) : i;
    ChakraWriter w = { plan, head, kernel_times, said.kernels, rank };
    g_autofree char *file = g_strdup_printf ("trace.%u.et", rank),
                    *path = g_build_filename (folder, file, NULL);
    ok = ls_write_file (path, write_rank, &w, error);
  }
  if (!ok)
    ls_remove_folder (folder);
  ls_fields_clear (ls_trace_fields, &said);
  return ok;
}
