/* data/traces/chakra_write.c — plan -> a folder of Chakra traces. */
#include <errno.h>
#include <string.h>

#include <glib/gstdio.h>

#include <lockstep/error.h>

#include "data/jobs/job_files.h"
#include "data/text/field.h"
#include "data/text/write_file.h"
#include "data/traces/chakra_write.h"

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

/* The attributes and dependencies that were gathered become those of a node. */
void
chakra_put_node (ChakraWriter *w, ChakraNode *node)
{
  node->id = w->next_id++;
  node->n_attr = w->attrs.list->len;
  node->attr = (ChakraAttr **) w->attrs.list->pdata;
  node->n_data_deps = w->ends->len;
  node->data_deps = (uint64_t *) (gpointer) w->ends->data;
  node->n_ctrl_deps = w->issues->len;
  node->ctrl_deps = (uint64_t *) (gpointer) w->issues->data;
  put_message (w, &node->base);
  chakra_attrs_reset (&w->attrs);
}

void
chakra_node_init (ChakraNode *node, ChakraProtoMsg__NodeType type, const char *name)
{
  chakra_proto_msg__node__init (node);
  node->type = type;
  node->name = (char *) name;
}

/* --- programs ------------------------------------------------------------------------------- */

static void
put_instance (ChakraWriter *w, const LsInstance *instance, bool is_lead)
{
  const LsSegment *segment = &w->plan->segments[instance->segment];
  ChakraNode node;
  chakra_node_init (&node, CHAKRA_PROTO_MSG__NODE_TYPE__METADATA_NODE, segment->name);
  g_array_set_size (w->ends, 0);
  g_array_set_size (w->issues, 0);
  chakra_add_string (&w->attrs, CHAKRA_OP, "segment");
  chakra_add_bool (&w->attrs, "is_cpu_op", TRUE);
  chakra_add_int64 (&w->attrs, "micro_batch", instance->mb);
  chakra_add_int64 (&w->attrs, "chunk", instance->chunk);
  chakra_add_int64 (&w->attrs, "stage", instance->stage);
  if (is_lead)
    chakra_add_bool (&w->attrs, "lead", TRUE);
  chakra_put_node (w, &node);
  g_array_set_size (w->ops, 0);
  for (uint32_t i = 0; i < segment->n_ops; i++)
    chakra_put_op (w, instance, &segment->ops[i]);
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
  ChakraNode node;
  chakra_node_init (&node, CHAKRA_PROTO_MSG__NODE_TYPE__METADATA_NODE, "## process_group:init ##");
  node.inputs = &inputs;
  g_autoptr (GPtrArray) slots = g_ptr_array_new ();
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (w->binding.comm[s] == comm)
      g_ptr_array_add (slots, (gpointer) ls_slot_name ((LsSlot) s));
  chakra_add_string (&w->attrs, CHAKRA_OP, "communicator");
  chakra_add_bool (&w->attrs, "is_cpu_op", TRUE);
  chakra_add_string (&w->attrs, "axis", ls_axis_name (c.axis));
  if (c.spans_stages)
    chakra_add_bool (&w->attrs, "spans_stages", TRUE);
  chakra_add_strings (&w->attrs, "slots", slots);
  chakra_put_node (w, &node);
}

static void
put_groups (ChakraWriter *w)
{
  for (int s = 0; s < LS_SLOT_PREV; s++) {
    bool is_new = w->binding.comm[s] != UINT32_MAX;
    for (int other = 0; is_new && other < s; other++)
      is_new = w->binding.comm[other] != w->binding.comm[s];
    if (is_new)
      put_group (w, w->binding.comm[s]);
  }
}

/* --- head ------------------------------------------------------------------------------------ */

static char *
object_text (const LsField *fields, const void *object)
{
  GString *text = g_string_new (NULL);
  LsJsonOut out;
  ls_json_out_init (&out, text, 0);
  ls_json_out_begin_object (&out, NULL);
  ls_fields_write (fields, &out, object, NULL);
  ls_json_out_end_object (&out);
  return g_string_free (text, FALSE);
}

static void
add_program (ChakraWriter *w, const LsProgram *p)
{
  chakra_add_int64 (&w->attrs, "role", w->binding.role);
  chakra_add_int64 (&w->attrs, "stage", p->stage);
  chakra_add_uint64 (&w->attrs, "params", p->n_params);
  for (int c = 0; c < LS_N_MEM; c++) {
    g_autofree char *name = g_strconcat (CHAKRA_STATIC, ls_mem_category_name ((LsMemCategory) c), NULL);
    if (p->static_bytes[c] > 0)
      chakra_add_uint64 (&w->attrs, name, p->static_bytes[c]);
  }
}

static void
put_head (ChakraWriter *w)
{
  ChakraProtoMsg__GlobalMetadata head = CHAKRA_PROTO_MSG__GLOBAL_METADATA__INIT;
  head.version = (char *) CHAKRA_VERSION;
  chakra_add_string (&w->attrs, "lockstep", CHAKRA_FORM);
  chakra_add_string (&w->attrs, "name", w->head->name);
  chakra_add_string (&w->attrs, "source", w->head->source);
  chakra_add_int64 (&w->attrs, "rank", w->rank);
  chakra_add_int64 (&w->attrs, "ranks", w->plan->n_ranks);
  chakra_add_int64 (&w->attrs, "gpu", ls_plan_gpu (w->plan, w->rank));
  for (int side = 0; side < 2; side++)
    if (w->binding.peer[side] != UINT32_MAX)
      chakra_add_int64 (&w->attrs, ls_slot_name ((LsSlot) (LS_SLOT_PREV + side)), w->binding.peer[side]);
  add_program (w, &w->plan->programs[w->binding.role]);
  if (w->head->model) {
    g_autofree char *model = object_text (ls_model_fields, w->head->model),
                    *strategy = object_text (ls_strategy_fields, w->head->strategy);
    chakra_add_string (&w->attrs, "model", model);
    chakra_add_string (&w->attrs, "strategy", strategy);
  }
  head.n_attr = w->attrs.list->len;
  head.attr = (ChakraAttr **) w->attrs.list->pdata;
  put_message (w, &head.base);
  chakra_attrs_reset (&w->attrs);
}

/* --- files ----------------------------------------------------------------------------------- */

static void
writer_begin (ChakraWriter *w, FILE *out)
{
  w->out = out;
  w->binding = ls_plan_binding (w->plan, w->rank);
  w->bytes = g_byte_array_new ();
  chakra_attrs_init (&w->attrs);
  w->ends = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  w->issues = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  w->ops = g_array_new (FALSE, FALSE, sizeof (ChakraNodes));
  w->events = g_hash_table_new (NULL, NULL);
  w->calls = g_new0 (uint32_t, MAX (1, w->plan->n_comms));
}

static void
writer_end (ChakraWriter *w)
{
  g_byte_array_unref (w->bytes);
  chakra_attrs_clear (&w->attrs);
  g_array_unref (w->ends);
  g_array_unref (w->issues);
  g_array_unref (w->ops);
  g_hash_table_unref (w->events);
  g_free (w->calls);
}

static gboolean
write_rank (FILE *out, void *data, GError **error)
{
  ChakraWriter *w = data;
  writer_begin (w, out);
  put_head (w);
  put_groups (w);
  const LsProgram *p = &w->plan->programs[w->binding.role];
  for (uint32_t i = 0; i < p->n_instances; i++)
    put_instance (w, &p->instances[i], i < p->n_lead);
  writer_end (w);
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

static double
count_ops (const LsPlan *plan, bool by_role)
{
  double n = 0;
  for (uint32_t role = 0; by_role && role < plan->n_roles; role++)
    for (uint32_t i = 0; i < plan->programs[role].n_instances; i++)
      n += plan->segments[plan->programs[role].instances[i].segment].n_ops;
  return by_role ? n : (double) ls_plan_n_op_instances (plan);
}

static gboolean
check_size (const LsPlan *plan, bool by_role, GError **error)
{
  double n_nodes = count_ops (plan, by_role);
  if (plan->n_ranks <= LS_CHAKRA_MAX_RANKS && n_nodes <= LS_CHAKRA_MAX_NODES)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_LIMIT,
               "%u ranks of %.3g ops together; Chakra traces are written of at most %d ranks and %.3g ops",
               plan->n_ranks, n_nodes, LS_CHAKRA_MAX_RANKS, LS_CHAKRA_MAX_NODES);
  return FALSE;
}

static gboolean
write_in (const char *folder, const char *name, const char *text, GError **error)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);
  return ls_write_text (path, text, error);
}

/* That was made here, with what is in it. */
static void
remove_folder (const char *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  for (const char *name = dir ? g_dir_read_name (dir) : NULL; name; name = g_dir_read_name (dir)) {
    g_autofree char *path = g_build_filename (folder, name, NULL);
    g_remove (path);
  }
  g_rmdir (folder);
}

gboolean
ls_chakra_write (const LsPlan *plan, const LsTraceHead *head, const LsTime *kernel_times, bool by_role,
                 const char *folder, GError **error)
{
  if (!ls_trace_can_say (plan, error) || !check_size (plan, by_role, error))
    return FALSE;
  if (g_mkdir (folder, 0777) != 0) {
    g_set_error (error, LS_ERROR, LS_ERROR_IO, "%s: %s; expected the name of a new folder", folder,
                 g_strerror (errno));
    return FALSE;
  }
  g_autoptr (GArray) kernels = ls_trace_kernels_of (plan);
  g_autofree char *groups = groups_text (plan), *manifest = by_role ? chakra_manifest_text (plan) : NULL;
  gboolean ok = write_in (folder, CHAKRA_GROUPS, groups, error)
      && (!manifest || write_in (folder, CHAKRA_MANIFEST, manifest, error));
  for (uint32_t i = 0; ok && i < (by_role ? plan->n_roles : plan->n_ranks); i++) {
    uint32_t rank = by_role ? chakra_first_of_role (plan, i) : i;
    ChakraWriter w = { plan, head, kernel_times, kernels, rank };
    g_autofree char *file = g_strdup_printf ("trace.%u.et", rank),
                    *path = g_build_filename (folder, file, NULL);
    ok = ls_write_file (path, write_rank, &w, error);
  }
  if (!ok)
    remove_folder (folder);
  return ok;
}
