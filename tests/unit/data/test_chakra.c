/* Pins that a plan written as Chakra traces reads back as the same plan, what a node says by the fields that
 * simulators of others read, and that damaged, contradictory and hostile files are refused with a reason. */
#include "ls_test.h"

#include "hand_trace.h"

#include <glib/gstdio.h>
#include <string.h>

#include "data/et_def.pb-c.h"
#include "data/datadir.h"
#include "data/traces/traces.h"

typedef ChakraProtoMsg__Node Node;
typedef ChakraProtoMsg__AttributeProto Attr;

/* --- files --- */

static char *
new_folder (void)
{
  g_autofree char *parent = g_dir_make_tmp ("chakra-XXXXXX", NULL);
  return g_build_filename (parent, "job", NULL);
}

static void
remove_folder (const char *folder)
{
  GDir *dir = g_dir_open (folder, 0, NULL);
  for (const char *name = dir ? g_dir_read_name (dir) : NULL; name; name = g_dir_read_name (dir)) {
    g_autofree char *path = g_build_filename (folder, name, NULL);
    g_unlink (path);
  }
  g_clear_pointer (&dir, g_dir_close);
  g_autofree char *parent = g_path_get_dirname (folder);
  g_rmdir (folder);
  g_rmdir (parent);
}

static GByteArray *
bytes_of (const char *folder, uint32_t rank)
{
  g_autofree char *file = g_strdup_printf ("trace.%u.et", rank),
                  *path = g_build_filename (folder, file, NULL);
  char *data = NULL;
  gsize n = 0;
  LS_CHECK (g_file_get_contents (path, &data, &n, NULL));
  return g_byte_array_new_take ((guint8 *) data, n);
}

/* --- messages --- */

static gsize
next_length (const GByteArray *file, gsize *at)
{
  gsize n = 0;
  for (unsigned shift = 0;; shift += 7) {
    guint8 byte = file->data[(*at)++];
    n |= (gsize) (byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return n;
  }
}

/* The node of that name, the first; NULL: there is none. */
static Node *
find_node (const GByteArray *file, const char *name)
{
  gsize at = 0, n = next_length (file, &at);
  for (at += n; at < file->len; at += n) {
    n = next_length (file, &at);
    Node *node = chakra_proto_msg__node__unpack (NULL, n, file->data + at);
    if (node && strcmp (node->name, name) == 0)
      return node;
    chakra_proto_msg__node__free_unpacked (node, NULL);
  }
  return NULL;
}

static const Attr *
attr_of (const Node *node, const char *name)
{
  for (size_t i = 0; i < node->n_attr; i++)
    if (strcmp (node->attr[i]->name, name) == 0)
      return node->attr[i];
  static const Attr none = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__INIT;
  return &none;
}

/* --- traces --- */

static char *
format (const LsTrace *t)
{
  const LsTraceHead head = { .name = "job",
                             .source = t->source,
                             .model = t->has_model ? &t->model : NULL,
                             .strategy = t->has_model ? &t->strategy : NULL };
  return ls_trace_format (t->plan, &head, NULL);
}

static gboolean
write_trace (const LsTrace *t, bool by_role, const char *folder)
{
  g_autoptr (GError) error = NULL;
  const LsTraceHead head = { .name = "job",
                             .source = t->source,
                             .model = t->has_model ? &t->model : NULL,
                             .strategy = t->has_model ? &t->strategy : NULL };
  g_autofree LsTime *times = g_new (LsTime, MAX (1, t->plan->n_kernels));
  for (uint32_t i = 0; i < t->plan->n_kernels; i++)
    times[i] = 1500 * LS_NS;
  gboolean ok = ls_chakra_write (t->plan, &head, times, by_role, folder, &error);
  ls_check_impl (ok, __FILE__, __LINE__, "written: %s", error ? error->message : "");
  return ok;
}

/* The new place of an index, in the order of first use. */
static uint32_t
place_of (GArray *order, uint32_t old)
{
  for (guint i = 0; i < order->len; i++)
    if (g_array_index (order, uint32_t, i) == old)
      return i;
  g_array_append_val (order, old);
  return order->len - 1;
}

/* Segments and kernels stand in the order in which ranks use them, as files of ranks give them back. */
static void
sort_by_use (LsPlan *plan)
{
  g_autoptr (GArray) segments = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_autoptr (GArray) kernels = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++) {
    const LsProgram *p = &plan->programs[ls_plan_role (plan, rank)];
    for (uint32_t i = 0; i < p->n_instances; i++)
      place_of (segments, p->instances[i].segment);
  }
  g_autofree LsSegment *new_segments = g_new (LsSegment, segments->len);
  for (guint i = 0; i < segments->len; i++) {
    new_segments[i] = plan->segments[g_array_index (segments, uint32_t, i)];
    for (uint32_t o = 0; o < new_segments[i].n_ops; o++)
      if (new_segments[i].ops[o].kind == LS_OP_KERNEL && new_segments[i].ops[o].kernel != UINT32_MAX)
        new_segments[i].ops[o].kernel = place_of (kernels, new_segments[i].ops[o].kernel);
  }
  g_autofree LsKernel *new_kernels = g_new (LsKernel, MAX (1, kernels->len));
  for (guint i = 0; i < kernels->len; i++)
    new_kernels[i] = plan->kernels[g_array_index (kernels, uint32_t, i)];
  for (uint32_t r = 0; r < plan->n_roles; r++)
    for (uint32_t i = 0; i < plan->programs[r].n_instances; i++)
      plan->programs[r].instances[i].segment = place_of (segments, plan->programs[r].instances[i].segment);
  LS_CHECK_INT (segments->len, ==, plan->n_segments);
  memcpy (plan->segments, new_segments, segments->len * sizeof *new_segments);
  memcpy (plan->kernels, new_kernels, kernels->len * sizeof *new_kernels);
  plan->n_kernels = kernels->len;
}

/* With a file for each rank, and for each role. */
static void
every_shipped_trace_reads_back (void)
{
  g_autoptr (GPtrArray) traces = ls_data_list (LS_DATA_TRACES);
  LS_CHECK (traces->len >= 4);
  for (guint i = 0; i < 2 * traces->len; i++) {
    const LsDataEntry *entry = traces->pdata[i / 2];
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (LsTrace) trace = ls_trace_load (entry->name, 0, diags);
    g_autofree char *folder = new_folder ();
    if (!LS_CHECK (trace != NULL) || !write_trace (trace, i % 2 == 1, folder))
      continue;
    g_autoptr (LsTrace) again = ls_trace_load (folder, 0, diags);
    sort_by_use (trace->plan);
    g_autofree char *before = format (trace), *after = again ? format (again) : NULL,
                    *said = ls_diag_list_format (diags);
    LS_CHECK_STR (said, "");
    LS_CHECK_STR (after, before);
    remove_folder (folder);
  }
}

/* --- what each kind of op owes --- */

/* An op with all that its row says it has, as a trace that gives nothing else assumes. */
static LsOp
op_of_kind (const Hand *h, uint32_t rank, uint8_t kind, uint32_t direction)
{
  const LsOpKindRow *row = &ls_op_kinds[kind];
  LsOp op = ls_op_blank ((LsOpKind) kind, (LsStream) row->stream, (LsTag) row->tag, "op");
  LsTransfer *t = ls_arena_new_array (h->plan->arena, LsTransfer, 1);
  *t = (LsTransfer) { 1 << 20, rank == 0 ? LS_SLOT_NEXT : LS_SLOT_PREV, rank == 0 };
  op.host = row->host;
  op.event = row->has & LS_HAS_EVENT ? 0 : LS_EVENT_NONE;
  op.recorded = row->needs & LS_HAS_RECORDED ? 7 * LS_US : LS_TIME_NEVER;
  op.bytes = row->has & LS_HAS_BYTES ? 1 << 26 : 0;
  op.slot = row->has & LS_HAS_CALL ? LS_SLOT_TP : op.slot;
  op.coll = row->has & LS_HAS_CALL ? LS_COLL_ALL_REDUCE : op.coll;
  op.direction = row->has & LS_HAS_DIRECTION ? direction : op.direction;
  op.n_transfers = row->has & LS_HAS_TRANSFERS ? 1 : 0;
  op.transfers = op.n_transfers ? t : NULL;
  return op;
}

/* Two ranks: a kernel, an event, the op, n of it, and another kernel. */
static Hand *
job_of_kind (uint8_t kind, uint32_t direction, int n, LsNetworkFidelity network)
{
  Hand *h = hand_new (2);
  h->options.network = network;
  hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, (uint32_t[]) { 0, 1 }, 2);
  for (uint32_t r = 0; r < 2; r++) {
    hand_kernel (h, r, LS_TAG_F, 5 * LS_US);
    LsOp record = ls_op_blank (LS_OP_RECORD, LS_STREAM_COMPUTE, LS_TAG_SYNC, "there");
    record.event = 0;
    hand_op (h, r, record, NULL, 0);
    for (int i = 0; i < n; i++)
      hand_op (h, r, op_of_kind (h, r, kind, direction), NULL, 0);
    hand_kernel (h, r, LS_TAG_B, (5 + r) * LS_US);
  }
  hand_freeze (h);
  h->plan->segments[1] = h->plan->segments[HAND_MAX_SEGMENTS]; /* one of each rank, and no empty ones */
  h->plan->programs[1].instances[0].segment = 1;
  h->plan->n_segments = 2;
  return h;
}

/* What runs with that fidelity, and how long a step is. */
static LsTime
step_of_kind (uint8_t kind, uint32_t direction, int n, LsNetworkFidelity network)
{
  Hand *h = job_of_kind (kind, direction, n, network);
  g_autoptr (GError) error = NULL;
  ls_plan_check (h->plan, &error);
  LS_CHECK_NO_ERROR (error);
  g_autoptr (LsTimeline) t = error ? NULL : hand_run (h);
  LsTime step = t ? t->window_end - t->window_start : 0;
  hand_free (h);
  return step;
}

/* Written as lockstep.trace/1, as Chakra and as GOAL; of the first two it is what was written. */
static void
check_files_of_kind (uint8_t kind, uint32_t direction)
{
  Hand *h = job_of_kind (kind, direction, 1, LS_NETWORK_FLOW);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  const LsTrace trace = { .source = (char *) "a test", .plan = h->plan };
  g_autofree char *folder = new_folder (), *parent = g_path_get_dirname (folder), *before = format (&trace),
                  *goal = g_build_filename (parent, "goal", NULL);
  g_autoptr (LsTrace) read = NULL, again = NULL;
  uint32_t n_rings;
  g_autoptr (LsJsonDoc) doc = before ? ls_json_doc_parse (before, strlen (before), "job.json", diags) : NULL;
  read = doc ? ls_trace_read (doc, 0, diags) : NULL;
  LS_CHECK (
      ls_goal_write (&(LsGoal) { h->plan, h->cluster, &h->nccl, NULL, "a test" }, goal, &n_rings, NULL));
  g_unlink (goal);
  if (read && write_trace (read, false, folder))
    again = ls_trace_load (folder, 0, diags);
  if (read)
    sort_by_use (read->plan);
  g_autofree char *json = read ? format (read) : NULL, *chakra = again ? format (again) : NULL,
                  *said = ls_diag_list_format (diags);
  LS_CHECK_STR (said, "");
  LS_CHECK_STR (json, before);
  LS_CHECK_STR (chakra, json);
  remove_folder (folder);
  hand_free (h);
}

/* Pins what a row of each kind of op, and of each direction of a copy, owes: it replays with every fidelity, what
 * takes time takes more of it, and all that writes traces says which kind it was. */
static void
each_kind_of_op_runs_and_reads_back (void)
{
  for (uint8_t kind = 0; kind < LS_N_OP_KINDS; kind++) {
    uint32_t n_directions = ls_op_has (kind, LS_HAS_DIRECTION) ? LS_N_COPY_DIRECTIONS : 1;
    bool takes_time = ls_op_is_of_host (kind) ? ls_op_has (kind, LS_HAS_RECORDED) : ls_op_has_span (kind);
    for (uint32_t d = 0; d < n_directions; d++) {
      for (int network = LS_NETWORK_FLOW; network <= LS_NETWORK_STEP; network++) {
        LsTime none = step_of_kind (kind, d, 0, (LsNetworkFidelity) network),
               many = step_of_kind (kind, d, 3, (LsNetworkFidelity) network);
        ls_check_impl (takes_time ? many > none : many == none && none > 0, __FILE__, __LINE__,
                       "%s %u, fidelity %d: a step of %" G_GINT64_FORMAT " ps, without it %" G_GINT64_FORMAT,
                       ls_op_kind_names[kind].name, d, network, many, none);
      }
      check_files_of_kind (kind, d);
    }
  }
}

/* --- what others read --- */

#define HEAD                                                                                                 \
  "{ \"schema\": \"lockstep.trace/1\", \"name\": \"job\", \"source\": \"made up\","                          \
  "  \"kernels\": [ { \"name\": \"mm\", \"kind\": \"gemm\", \"dtype\": \"bf16\", \"m\": 64, \"n\": 32, "     \
  "\"k\": 16 } ],"

#define TWO_RANKS                                                                                            \
  "  \"communicators\": [ { \"axis\": \"dp\", \"ranks\": [0, 1] } ],"                                        \
  "  \"roles\": [ { \"instances\": [ [0, 3] ] }, { \"instances\": [ [1] ] } ],"                              \
  "  \"ranks\": [ { \"role\": 0, \"dp\": 0, \"next\": 1 }, { \"role\": 1, \"dp\": 0, \"prev\": 0 } ] }"

static const char *const job
    = HEAD "\"segments\": [ { \"name\": \"a\", \"ops\": ["
           "  { \"op\": \"kernel\", \"kernel\": 0, \"repeat\": 3 },"
           "  { \"op\": \"collective\", \"coll\": \"all-gather\", \"slot\": \"dp\", \"bytes\": \"100B\", "
           "\"after\": [0] },"
           "  { \"op\": \"kernel\", \"name\": \"late\", \"recorded\": \"7us\", \"after\": [\"issue 0\", 1] },"
           "  { \"op\": \"p2p\", \"transfers\": [ { \"send\": \"next\", \"bytes\": \"8B\" }, "
           "{ \"receive\": \"next\", \"bytes\": \"9B\" } ] } ] },"
           "{ \"name\": \"b\", \"ops\": ["
           "  { \"op\": \"collective\", \"coll\": \"all-gather\", \"slot\": \"dp\", \"bytes\": \"100B\" },"
           "  { \"op\": \"p2p\", \"transfers\": [ { \"receive\": \"prev\", \"bytes\": \"8B\" }, "
           "{ \"send\": \"prev\", \"bytes\": \"9B\" } ] } ] } ]," TWO_RANKS;

static LsTrace *
read_job (const char *text)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "job.json", diags);
  LsTrace *t = doc ? ls_trace_read (doc, 0, diags) : NULL;
  g_autofree char *said = ls_diag_list_format (diags);
  LS_CHECK_STR (said, "");
  return t;
}

static GByteArray *
file_of_job (uint32_t rank)
{
  g_autoptr (LsTrace) t = read_job (job);
  g_autofree char *folder = new_folder ();
  GByteArray *file = t && write_trace (t, false, folder) ? bytes_of (folder, rank) : g_byte_array_new ();
  remove_folder (folder);
  return file;
}

/* num_ops and tensor_size of all repetitions, 2 m n k and the bytes of three matrices; 3 times 1.5 us. */
static void
a_kernel_has_operations_bytes_and_a_duration (void)
{
  g_autoptr (GByteArray) file = file_of_job (0);
  Node *mm = find_node (file, "mm"), *late = find_node (file, "late");
  if (LS_CHECK (mm && late)) {
    LS_CHECK_INT (mm->type, ==, CHAKRA_PROTO_MSG__NODE_TYPE__COMP_NODE);
    LS_CHECK_INT (attr_of (mm, "num_ops")->int64_val, ==, 3 * 2 * 64 * 32 * 16);
    LS_CHECK_INT (attr_of (mm, "tensor_size")->uint64_val, ==, 3 * 2 * (64 * 32 + 32 * 16 + 64 * 16));
    LS_CHECK_INT (mm->duration_micros, ==, 5);
    LS_CHECK (!attr_of (mm, "is_cpu_op")->bool_val);
    LS_CHECK_INT (late->duration_micros, ==, 7);
  }
  chakra_proto_msg__node__free_unpacked (mm, NULL);
  chakra_proto_msg__node__free_unpacked (late, NULL);
}

/* A gathering counts what one member brings. The op waits for the kernel, and what follows in another stream
 * for both. */
static void
a_collective_has_type_size_and_group (void)
{
  g_autoptr (GByteArray) file = file_of_job (0);
  Node *mm = find_node (file, "mm"), *gather = find_node (file, "all-gather"),
       *late = find_node (file, "late");
  if (LS_CHECK (mm && gather && late)) {
    LS_CHECK_INT (gather->type, ==, CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE);
    LS_CHECK_INT (attr_of (gather, "comm_type")->int64_val, ==,
                  CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_GATHER);
    LS_CHECK_INT (attr_of (gather, "comm_size")->int64_val, ==, 50);
    LS_CHECK_STR (attr_of (gather, "pg_name")->string_val, "1");
    LS_CHECK_INT (gather->n_data_deps, ==, 1);
    LS_CHECK_INT (gather->data_deps[0], ==, mm->id);
    LS_CHECK_INT (late->n_data_deps, ==, 2);
    LS_CHECK_INT (late->n_ctrl_deps, ==, 1);
    LS_CHECK_INT (late->ctrl_deps[0], ==, mm->id);
  }
  chakra_proto_msg__node__free_unpacked (mm, NULL);
  chakra_proto_msg__node__free_unpacked (gather, NULL);
  chakra_proto_msg__node__free_unpacked (late, NULL);
}

/* Both ends of a message have the same ranks and tag; the two ways differ in the tag. */
static void
messages_match_by_ranks_and_tag (void)
{
  int tags[2][2];
  for (uint32_t rank = 0; rank < 2; rank++) {
    g_autoptr (GByteArray) file = file_of_job (rank);
    Node *node = find_node (file, "p2p");
    if (!LS_CHECK (node != NULL))
      return;
    bool is_send = node->type == CHAKRA_PROTO_MSG__NODE_TYPE__COMM_SEND_NODE;
    LS_CHECK_INT (is_send, ==, rank == 0);
    LS_CHECK_INT (attr_of (node, "comm_src")->int32_val, ==, 0);
    LS_CHECK_INT (attr_of (node, "comm_dst")->int32_val, ==, 1);
    LS_CHECK_INT (attr_of (node, "comm_size")->int64_val, ==, 8);
    tags[rank][0] = attr_of (node, "comm_tag")->int32_val;
    chakra_proto_msg__node__free_unpacked (node, NULL);
  }
  LS_CHECK_INT (tags[0][0], ==, tags[1][0]);
}

/* --- files of others --- */

/* Nodes as somebody else writes them. */
typedef struct {
  GByteArray *bytes;
  uint64_t next_id;
} Other;

static void
put (Other *o, const ProtobufCMessage *message)
{
  size_t n = protobuf_c_message_get_packed_size (message);
  g_autofree uint8_t *packed = g_malloc (n + 1);
  protobuf_c_message_pack (message, packed);
  for (size_t rest = n;; rest >>= 7) {
    guint8 byte = (guint8) ((rest & 0x7f) | (rest >= 0x80 ? 0x80 : 0));
    g_byte_array_append (o->bytes, &byte, 1);
    if (rest < 0x80)
      break;
  }
  g_byte_array_append (o->bytes, packed, (guint) n);
}

static void
begin (Other *o)
{
  *o = (Other) { g_byte_array_new (), 0 };
  ChakraProtoMsg__GlobalMetadata head = CHAKRA_PROTO_MSG__GLOBAL_METADATA__INIT;
  head.version = (char *) "0.0.4";
  put (o, &head.base);
}

/* Waits for the node before, if there is one. */
static void
put_node (Other *o, ChakraProtoMsg__NodeType type, uint64_t micros, Attr *attrs, size_t n)
{
  Node node = CHAKRA_PROTO_MSG__NODE__INIT;
  Attr *list[4];
  uint64_t before = o->next_id - 1;
  for (size_t i = 0; i < n; i++)
    list[i] = &attrs[i];
  node.id = o->next_id++;
  node.type = type;
  node.duration_micros = micros;
  node.data_deps = &before;
  node.n_data_deps = node.id > 0;
  node.attr = list;
  node.n_attr = n;
  put (o, &node.base);
}

static Attr
int_attr (const char *name, int64_t value)
{
  Attr a = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__INIT;
  a.name = (char *) name;
  a.value_case = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT64_VAL;
  a.int64_val = value;
  return a;
}

static LsTrace *
parse (const GByteArray *first, const GByteArray *second, const char *groups, char **ret_said)
{
  g_autoptr (GPtrArray) files = g_ptr_array_new ();
  g_ptr_array_add (files, (gpointer) first);
  if (second)
    g_ptr_array_add (files, (gpointer) second);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsTrace *t = ls_chakra_parse ("job", files, groups, NULL, diags);
  *ret_said = ls_diag_list_format (diags);
  return t;
}

/* As ASTRA-sim's generators write them: durations, no streams, no group, no source and no tag of ours. */
static void
a_trace_of_others_is_read (void)
{
  Other o[2];
  for (int rank = 0; rank < 2; rank++) {
    Attr coll[] = { int_attr ("comm_type", CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_GATHER),
                    int_attr ("comm_size", 1 << 20) };
    Attr message[] = { int_attr (rank == 0 ? "comm_dst" : "comm_src", 1 - rank), int_attr ("comm_size", 64) };
    begin (&o[rank]);
    put_node (&o[rank], CHAKRA_PROTO_MSG__NODE_TYPE__METADATA_NODE, 0, NULL, 0);
    put_node (&o[rank], CHAKRA_PROTO_MSG__NODE_TYPE__COMP_NODE, 40, NULL, 0);
    put_node (&o[rank], CHAKRA_PROTO_MSG__NODE_TYPE__METADATA_NODE, 0, NULL, 0);
    put_node (&o[rank], CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE, 0, coll, 2);
    put_node (&o[rank],
              rank == 0 ? CHAKRA_PROTO_MSG__NODE_TYPE__COMM_SEND_NODE
                        : CHAKRA_PROTO_MSG__NODE_TYPE__COMM_RECV_NODE,
              0, message, 2);
  }
  g_autofree char *said = NULL;
  g_autoptr (LsTrace) t = parse (o[0].bytes, o[1].bytes, NULL, &said);
  LS_CHECK_STR (said, "");
  if (LS_CHECK (t != NULL)) {
    const LsSegment *s = &t->plan->segments[0];
    LS_CHECK_INT (s->n_ops, ==, 3);
    LS_CHECK_INT (s->ops[0].recorded, ==, 40 * LS_US);
    LS_CHECK_INT (s->ops[1].bytes, ==, 2 << 20);
    LS_CHECK_INT (s->ops[1].n_deps, ==, 1); /* through the node that is no op */
    LS_CHECK_INT (s->ops[2].transfers[0].bytes, ==, 64);
  }
  g_byte_array_unref (o[0].bytes);
  g_byte_array_unref (o[1].bytes);
}

static bool
waits_for (const LsOp *op, uint32_t other)
{
  for (uint32_t i = 0; i < op->n_deps; i++)
    if (op->deps[i].kind == LS_DEP_END && op->deps[i].index == other)
      return true;
  return false;
}

/* An explicit algorithm of ASTRA-sim, whose sends wait for no receiver: each rank sends, and only then
 * receives, and then computes. Op 2 waits for both. */
static void
a_send_of_others_waits_for_no_receiver (void)
{
  Other o[2];
  for (int rank = 0; rank < 2; rank++) {
    Attr there[] = { int_attr ("comm_dst", 1 - rank), int_attr ("comm_size", 64) },
         here[] = { int_attr ("comm_src", 1 - rank), int_attr ("comm_size", 64) };
    begin (&o[rank]);
    put_node (&o[rank], CHAKRA_PROTO_MSG__NODE_TYPE__COMM_SEND_NODE, 0, there, 2);
    put_node (&o[rank], CHAKRA_PROTO_MSG__NODE_TYPE__COMM_RECV_NODE, 0, here, 2);
    put_node (&o[rank], CHAKRA_PROTO_MSG__NODE_TYPE__COMP_NODE, 40, NULL, 0);
  }
  g_autofree char *said = NULL;
  g_autoptr (LsTrace) t = parse (o[0].bytes, o[1].bytes, NULL, &said);
  LS_CHECK_STR (said, "");
  if (LS_CHECK (t != NULL && t->plan->segments[0].n_ops == 3)) {
    const LsOp *ops = t->plan->segments[0].ops;
    LS_CHECK (!waits_for (&ops[1], 0));
    LS_CHECK (waits_for (&ops[2], 0) && waits_for (&ops[2], 1));
  }
  g_byte_array_unref (o[0].bytes);
  g_byte_array_unref (o[1].bytes);
}

/* As chakra_converter writes PyTorch's: the op of the host that launches a collective says nothing of it. */
static void
a_launch_of_a_collective_is_of_the_host (void)
{
  Attr is_of_host[] = { int_attr ("is_cpu_op", 0) },
       coll[] = { int_attr ("comm_type", CHAKRA_PROTO_MSG__COLLECTIVE_COMM_TYPE__ALL_REDUCE),
                  int_attr ("comm_size", 1 << 20) };
  is_of_host[0].value_case = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_BOOL_VAL;
  is_of_host[0].bool_val = TRUE;
  Other o[2];
  for (int rank = 0; rank < 2; rank++) {
    begin (&o[rank]);
    put_node (&o[rank], CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE, 35, is_of_host, 1);
    put_node (&o[rank], CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE, 0, coll, 2);
  }
  g_autofree char *said = NULL;
  g_autoptr (LsTrace) t = parse (o[0].bytes, o[1].bytes, NULL, &said);
  LS_CHECK_STR (said, "");
  if (LS_CHECK (t != NULL && t->plan->segments[0].n_ops == 2)) {
    LS_CHECK_INT (t->plan->segments[0].ops[0].kind, ==, LS_OP_HOST_DELAY);
    LS_CHECK_INT (t->plan->segments[0].ops[1].kind, ==, LS_OP_COLLECTIVE);
  }
  g_byte_array_unref (o[0].bytes);
  g_byte_array_unref (o[1].bytes);
}

/* --- refusals --- */

static void
check_said (const GByteArray *file, const char *groups, const char *what)
{
  g_autofree char *said = NULL;
  g_autoptr (LsTrace) t = parse (file, NULL, groups, &said);
  LS_CHECK (t == NULL);
  ls_check_impl (strstr (said, what) != NULL, __FILE__, __LINE__, "\"%s\" in \"%s\"", what, said);
}

static void
check_node_said (ChakraProtoMsg__NodeType type, Attr *attrs, size_t n, const char *groups, const char *what)
{
  Other o;
  begin (&o);
  put_node (&o, type, 0, attrs, n);
  check_said (o.bytes, groups, what);
  g_byte_array_unref (o.bytes);
}

static void
what_cannot_be_replayed_is_refused (void)
{
  Attr type[] = { int_attr ("comm_type", 77), int_attr ("comm_size", 8) };
  Attr size[] = { int_attr ("comm_type", 0), int_attr ("comm_size", -8) };
  Attr group[] = { int_attr ("comm_type", 0), int_attr ("comm_size", 8), int_attr ("pg_name", 0) };
  group[2].value_case = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_VAL;
  group[2].string_val = (char *) "9";
  check_node_said (CHAKRA_PROTO_MSG__NODE_TYPE__COMP_NODE, NULL, 0, NULL, "node 0: expected duration_micros");
  check_node_said (CHAKRA_PROTO_MSG__NODE_TYPE__STORAGE_NODE, NULL, 0, NULL, "no counterpart here");
  check_node_said (CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE, NULL, 0, NULL, "its attribute comm_type");
  check_node_said (CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE, type, 2, NULL, "none of Chakra's");
  check_node_said (CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE, size, 2, NULL, "comm_size: expected a whole");
  check_node_said (CHAKRA_PROTO_MSG__NODE_TYPE__COMM_COLL_NODE, group, 3, NULL, "\"9\" is nowhere defined");
  check_node_said (CHAKRA_PROTO_MSG__NODE_TYPE__COMP_NODE, NULL, 0, "{ \"1\": [-1] }",
                   "a list of ranks below");
}

/* Lengths beyond the file or beyond the limit are refused before memory is taken for them. */
static void
hostile_lengths_are_refused (void)
{
  static const guint8 not_a_trace[] = "{\"schema\": \"lockstep.trace/1\"}", cut[] = { 0x00, 0x50, 1, 2, 3 },
                      huge[] = { 0x00, 0xff, 0xff, 0xff, 0xff, 0x0f }, endless[] = { 0x00, 0xff, 0xff },
                      long_varint[] = { 0x00, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01 };
  const struct {
    const guint8 *bytes;
    guint n;
    const char *what;
  } files[] = {
    { not_a_trace, sizeof not_a_trace - 1, "begins with its GlobalMetadata" },
    { cut, sizeof cut, "cut off, or longer" },
    { huge, sizeof huge, "cut off, or longer" },
    { endless, sizeof endless, "cut off, or longer" },
    { long_varint, sizeof long_varint, "cut off, or longer" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (files); i++) {
    g_autoptr (GByteArray) file = g_byte_array_new ();
    g_byte_array_append (file, files[i].bytes, files[i].n);
    check_said (file, NULL, files[i].what);
  }
}

/* A file of ours cut off anywhere, or with a byte changed, is read or refused. */
static void
damaged_files_end_in_a_reason (void)
{
  g_autoptr (GByteArray) a = file_of_job (0), b = file_of_job (1);
  guint n_read = 0, n_refused = 0;
  for (guint i = 0; i < a->len; i++)
    for (int is_cut = 0; is_cut < 2; is_cut++) {
      g_autoptr (GByteArray) copy = g_byte_array_new ();
      g_byte_array_append (copy, a->data, is_cut ? i : a->len);
      if (!is_cut)
        copy->data[i] ^= (guint8) (1 + i % 255);
      g_autofree char *said = NULL;
      g_autoptr (LsTrace) t = parse (copy, b, NULL, &said);
      LS_CHECK ((t == NULL) == (*said != '\0'));
      t ? n_read++ : n_refused++;
    }
  LS_CHECK (n_read > 0 && n_refused > n_read);
}

LS_TEST_SUITE (LS_TEST (each_kind_of_op_runs_and_reads_back), LS_TEST (every_shipped_trace_reads_back),
               LS_TEST (a_kernel_has_operations_bytes_and_a_duration),
               LS_TEST (a_collective_has_type_size_and_group), LS_TEST (messages_match_by_ranks_and_tag),
               LS_TEST (a_trace_of_others_is_read), LS_TEST (a_send_of_others_waits_for_no_receiver),
               LS_TEST (a_launch_of_a_collective_is_of_the_host),
               LS_TEST (what_cannot_be_replayed_is_refused), LS_TEST (hostile_lengths_are_refused),
               LS_TEST (damaged_files_end_in_a_reason))
