/* data/traces/chakra_read_deps.c — nodes of a Chakra trace that were read, where segments begin, and what an
 * op waits for. */
#include <string.h>

#include "data/traces/chakra_read.h"

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

ChakraSeen *
chakra_seen (const RankReading *x, uint64_t id)
{
  return g_hash_table_lookup (x->nodes, GSIZE_TO_POINTER (id));
}

ChakraSeen *
chakra_remember (RankReading *x, const ChakraNode *node)
{
  if (chakra_seen (x, node->id)) {
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

void
chakra_begin_instance (RankReading *x, const char *name)
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

void
chakra_read_segment (RankReading *x, const ChakraNode *node)
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
  chakra_begin_instance (x, node->name);
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
  const ChakraSeen *dep = id == node->id ? NULL : chakra_seen (x, id);
  if (!dep)
    chakra_complain (x, node, "it waits for node %" G_GUINT64_FORMAT ", which does not come before it", id);
  return dep;
}

static void
add_op_dep (RankReading *x, const ChakraNode *node, After *after, uint64_t id, uint32_t stream, int64_t event)
{
  const ChakraSeen *dep = chakra_seen (x, id);
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
  ChakraSeen *receive = chakra_seen (x, node->id);
  if (!chakra_seen (x, id)->is_send || chakra_is_send (node) || !chakra_is_message (node))
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
    const ChakraSeen *dep = chakra_seen (x, node->ctrl_deps[i]);
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
void
chakra_read_deps (RankReading *x, const ChakraNode *node, uint32_t stream)
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
void
chakra_pass_through (RankReading *x, const ChakraNode *node)
{
  GArray *ids = ops_behind (x, node);
  ChakraSeen *seen = x->ok ? chakra_remember (x, node) : NULL;
  x->n_through += ids->len;
  if (seen)
    seen->through = g_array_ref (ids);
  g_array_unref (ids);
}
