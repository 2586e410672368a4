/* data/traces/chakra_read_groups.c — process groups of Chakra traces: those of the folder's file, and those
 * that nodes of PyTorch's process_group:init name. */
#include <string.h>

#include "data/traces/chakra_read.h"

static void bind_group (RankReading *x, const ChakraNode *node, ChakraGroup *group);

/* --- process groups ------------------------------------------------------------------------ */

static bool
is_member_list (const cJSON *ranks)
{
  const cJSON *rank;
  if (!cJSON_IsArray (ranks))
    return false;
  cJSON_ArrayForEach (rank, ranks) if (!cJSON_IsNumber (rank) || rank->valuedouble < 0
                                       || rank->valuedouble >= LS_CHAKRA_MAX_RANKS
                                       || rank->valuedouble != (double) rank->valueint) return false;
  return true;
}

/* [0,1,2]; no members are all ranks, as PyTorch has it. */
static char *
members_text (const ChakraReading *all, const cJSON *ranks)
{
  GString *text = g_string_new ("[");
  const cJSON *rank;
  cJSON_ArrayForEach (rank, ranks)
      g_string_append_printf (text, "%s%d", text->len > 1 ? "," : "", rank->valueint);
  for (uint32_t i = 0; !ranks->child && i < all->n_ranks; i++)
    g_string_append_printf (text, "%s%u", i > 0 ? "," : "", i);
  return g_string_free (g_string_append_c (text, ']'), FALSE);
}

void
chakra_group_free (gpointer group)
{
  ChakraGroup *g = group;
  g_free (g->name);
  g_free (g->members);
  g_free (g->axis);
  g_free (g);
}

ChakraGroup *
chakra_group (ChakraReading *all, const char *name)
{
  for (guint i = 0; i < all->groups->len; i++)
    if (strcmp (((ChakraGroup *) all->groups->pdata[i])->name, name) == 0)
      return all->groups->pdata[i];
  return NULL;
}

/* NULL: it is there, with other members. */
static ChakraGroup *
add_group (ChakraReading *all, const char *name, const cJSON *ranks)
{
  g_autofree char *members = members_text (all, ranks);
  ChakraGroup *g = chakra_group (all, name);
  if (g)
    return strcmp (g->members, members) == 0 ? g : NULL;
  g = g_new0 (ChakraGroup, 1);
  g->index = all->groups->len;
  g->name = g_strdup (name);
  g->members = g_steal_pointer (&members);
  g_ptr_array_add (all->groups, g);
  return g;
}

bool
chakra_read_groups_file (ChakraReading *all, const char *text)
{
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), CHAKRA_GROUPS, all->diags);
  const cJSON *group, *root = doc ? ls_json_doc_root (doc) : NULL;
  if (!doc)
    return false;
  cJSON_ArrayForEach (group, root) if (!group->string || !is_member_list (group))
  {
    ls_json_doc_diag (doc, group, LS_JSON_AT_VALUE, all->diags, NULL,
                      "expected a list of ranks below %d for each name of a process group",
                      LS_CHAKRA_MAX_RANKS);
    return false;
  }
  else add_group (all, group->string, group);
  return true;
}

/* What PyTorch puts around JSON: a list of one text, as Python writes it. */
static cJSON *
parse_groups (const char *values)
{
  size_t n = strlen (values);
  return n > 4 && values[0] == '[' && values[n - 1] == ']' ? cJSON_ParseWithLength (values + 2, n - 4) : NULL;
}

static void
read_group (RankReading *x, const ChakraNode *node, const cJSON *said)
{
  const cJSON *name = cJSON_GetObjectItemCaseSensitive (said, "pg_name"),
              *ranks = cJSON_GetObjectItemCaseSensitive (said, "ranks");
  if (!cJSON_IsString (name) || !is_member_list (ranks)) {
    chakra_complain (x, node, "expected process groups with \"pg_name\" and \"ranks\" below %d",
                     LS_CHAKRA_MAX_RANKS);
    return;
  }
  ChakraGroup *g = add_group (x->all, name->valuestring, ranks);
  if (!g) {
    chakra_complain (x, node, "process group %s has other members here", name->valuestring);
    return;
  }
  bind_group (x, node, g);
}

void
chakra_read_groups (RankReading *x, const ChakraNode *node)
{
  const char *values = node->inputs ? node->inputs->values : "";
  cJSON *list = parse_groups (values);
  const cJSON *said;
  if (!cJSON_IsArray (list))
    chakra_complain (x, node, "expected process groups as a list in inputs.values");
  cJSON_ArrayForEach (said, list) read_group (x, node, said);
  cJSON_Delete (list);
}

/* --- slots of a rank --- */

static void
bind_slot (RankReading *x, const ChakraNode *node, const char *slot, const ChakraGroup *group)
{
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (strcmp (ls_slot_name ((LsSlot) s), slot) == 0) {
      if (x->slots[s] && x->slots[s] != group)
        chakra_complain (x, node, "slot %s is that of another process group", slot);
      x->slots[s] = group;
      return;
    }
  chakra_complain (x, node, "slots: \"%.40s\" is none", slot);
}

/* NULL: none yet. */
static const char *
slot_of (const RankReading *x, const ChakraGroup *group)
{
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (x->slots[s] == group)
      return ls_slot_name ((LsSlot) s);
  return NULL;
}

/* Slots are only names: a group of others takes the next. */
static void
bind_next_slot (RankReading *x, const ChakraNode *node, const ChakraGroup *group)
{
  for (int s = 0; s < LS_SLOT_PREV && !slot_of (x, group); s++)
    if (!x->slots[s])
      x->slots[s] = group;
  if (!slot_of (x, group))
    chakra_complain (x, node, "a rank in more than %d process groups", LS_SLOT_PREV);
}

/* The rank has this group; of ours, the node says its slots and axis. */
static void
bind_group (RankReading *x, const ChakraNode *node, ChakraGroup *group)
{
  const ChakraAttr *slots = chakra_attr (node, "slots");
  const char *axis = chakra_text_of (node, "axis");
  if (!x->is_ours || !axis)
    return;
  for (LsAxis a = 0; a < LS_N_AXES; a++)
    if (strcmp (ls_axis_name (a), axis) == 0 && !group->axis)
      group->axis = g_strdup (axis);
  if (g_strcmp0 (group->axis, axis) != 0)
    chakra_complain (x, node, "axis: another than before, or none of ours");
  group->spans_stages |= chakra_is_on (node, "spans_stages");
  if (!slots || slots->value_case != CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_LIST)
    return;
  for (size_t i = 0; i < slots->string_list->n_values; i++)
    bind_slot (x, node, slots->string_list->values[i], group);
}

/* --- communication ------------------------------------------------------------------------------ */

/* NULL and a complaint: there is no such group, or the rank is not in it. All ranks, where none is named. */
static const char *
group_slot (RankReading *x, const ChakraNode *node, uint32_t *ret_n)
{
  const char *name = chakra_text_of (node, "pg_name");
  const ChakraGroup *group = chakra_group (x->all, name ? name : "");
  cJSON *none = name || group ? NULL : cJSON_CreateArray ();
  if (none)
    group = add_group (x->all, "", none);
  cJSON_Delete (none);
  if (!group) {
    chakra_complain (x, node,
                     "process group \"%.40s\" is nowhere defined: neither in " CHAKRA_GROUPS
                     " nor by a node of process groups",
                     name);
    return NULL;
  }
  if (!slot_of (x, group))
    bind_next_slot (x, node, group);
  *ret_n = 1;
  for (const char *c = group->members; *c; c++)
    *ret_n += *c == ',';
  return slot_of (x, group);
}

static const LsCollKind kinds[] = {
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
bytes_of (RankReading *x, const ChakraNode *node, LsCollKind kind, uint32_t n_ranks, uint64_t *ret_bytes)
{
  uint64_t size = 0, bytes, shares = chakra_shares (kind, n_ranks);
  if (kind != LS_COLL_BARRIER && !chakra_need_uint (x, node, "comm_size", &size))
    return false;
  *ret_bytes = size * shares;
  if (!x->is_ours || !chakra_uint_of (x, node, "bytes", (uint64_t) LS_TRACE_MAX_BYTES, &bytes))
    return x->ok;
  *ret_bytes = bytes;
  return bytes / shares + (bytes % shares != 0) == size
      || chakra_complain (x, node, "bytes and comm_size contradict each other");
}

static void
begin_collective (RankReading *x, const ChakraNode *node, LsCollKind kind, uint32_t *ret_n)
{
  const char *slot = group_slot (x, node, ret_n);
  const char *said = x->is_ours ? chakra_text_of (node, "slot") : NULL;
  const TraceOp op = { .kind = LS_OP_COLLECTIVE, .slot = LS_SLOT_DP };
  if (!slot || !chakra_begin_op (x, node, "collective", &op))
    return;
  if (!said)
    ls_json_out_string (&x->op, "slot", slot);
  ls_json_out_string (&x->op, "coll", ls_coll_kind_name (kind));
}

void
chakra_read_collective (RankReading *x, const ChakraNode *node)
{
  uint64_t type, bytes;
  uint32_t n_ranks;
  if (!chakra_need_uint (x, node, "comm_type", &type))
    return;
  if (type >= G_N_ELEMENTS (kinds)) {
    chakra_complain (x, node, "comm_type %" G_GUINT64_FORMAT " is none of Chakra's", type);
    return;
  }
  begin_collective (x, node, kinds[type], &n_ranks);
  if (!x->ok || !bytes_of (x, node, kinds[type], n_ranks, &bytes))
    return;
  ls_json_out_bytes (&x->op, "bytes", bytes);
  chakra_write_buffers (x, node);
  chakra_end_op (x);
}

static void
read_permute (RankReading *x, const ChakraNode *node, LsCollKind kind)
{
  uint64_t bytes = 0;
  uint32_t n_ranks;
  if (!chakra_need_uint (x, node, "comm_size", &bytes))
    return;
  begin_collective (x, node, kind, &n_ranks);
  if (!x->ok)
    return;
  ls_json_out_bytes (&x->op, "bytes", bytes);
  chakra_write_buffers (x, node);
  x->is_permute = true;
  x->n_left = 1;
}

/* --- messages ------------------------------------------------------------------------------------- */

bool
chakra_is_send (const ChakraNode *node)
{
  return node->type == CHAKRA_PROTO_MSG__NODE_TYPE__COMM_SEND_NODE;
}

bool
chakra_is_message (const ChakraNode *node)
{
  return chakra_is_send (node) || node->type == CHAKRA_PROTO_MSG__NODE_TYPE__COMM_RECV_NODE;
}

/* Where the node does not say it: ranks further on are `next`; in a ring, who is sent to first. */
static int
guess_side (const RankReading *x, const ChakraNode *node, uint64_t other)
{
  int wanted = x->all->has_rings ? chakra_is_send (node) : other > x->rank;
  for (int side = 0; x->all->has_rings && side < 2; side++)
    if (x->peer[side] == other)
      return side;
  bool is_free = x->peer[wanted] == LS_TRACE_ABSENT || x->peer[wanted] == other;
  return is_free || !x->all->has_rings ? wanted : !wanted;
}

/* The neighbour that a message goes to or comes from; NULL and a complaint: the rank has others there. */
static const char *
side_of (RankReading *x, const ChakraNode *node)
{
  const char *said = x->is_ours ? chakra_text_of (node, chakra_is_send (node) ? "send" : "receive") : NULL;
  uint64_t other;
  if (!chakra_need_uint (x, node, chakra_is_send (node) ? "comm_dst" : "comm_src", &other))
    return NULL;
  int side = said ? strcmp (said, "next") == 0 : guess_side (x, node, other);
  if (x->peer[side] == LS_TRACE_ABSENT && !x->is_ours)
    x->peer[side] = other;
  if (x->peer[side] == other)
    return side ? "next" : "prev";
  x->all->wants_rings = !x->is_ours && !x->all->has_rings;
  chakra_complain (x, node,
                   "rank %" G_GUINT64_FORMAT " is not its %s: a rank exchanges messages with one rank before "
                   "and one after it",
                   other, side ? "next" : "prev");
  return NULL;
}

static void
write_transfer (RankReading *x, const ChakraNode *node)
{
  const char *side = side_of (x, node);
  uint64_t bytes = 0;
  if (!side || !chakra_need_uint (x, node, "comm_size", &bytes))
    return;
  ls_json_out_begin_object (&x->op, NULL);
  ls_json_out_string (&x->op, chakra_is_send (node) ? "send" : "receive", side);
  ls_json_out_bytes (&x->op, "bytes", bytes);
  ls_json_out_end_object (&x->op);
}

static void
end_messages (RankReading *x)
{
  if (!x->is_permute)
    ls_json_out_end_array (&x->op);
  x->is_permute = false;
  chakra_end_op (x);
}

/* A further node of the op that is open. */
static void
continue_op (RankReading *x, const ChakraNode *node)
{
  ChakraSeen *seen = chakra_remember (x, node);
  if (!seen)
    return;
  *seen = (ChakraSeen) { x->instance, x->n_ops - 1, (uint8_t) x->op_stream, false, -1, NULL };
  if (!x->is_permute)
    write_transfer (x, node);
  if (--x->n_left == 0 && x->ok)
    end_messages (x);
}

/* Messages of others wait for none of another direction. */
static LsStream
message_stream (RankReading *x, const ChakraNode *node)
{
  const char *side = x->is_ours ? NULL : side_of (x, node);
  bool is_next = side && strcmp (side, "next") == 0;
  if (chakra_is_send (node))
    return is_next ? LS_STREAM_PP_FWD : LS_STREAM_PP_BWD;
  return is_next ? LS_STREAM_PP_BWD_RECV : LS_STREAM_PP_FWD_RECV;
}

static void
read_messages (RankReading *x, const ChakraNode *node)
{
  const TraceOp p2p = { .kind = LS_OP_P2P, .slot = -1, .stream = (int) message_stream (x, node) };
  uint64_t n = 1;
  if (x->is_ours)
    chakra_uint_of (x, node, CHAKRA_NODES, UINT16_MAX, &n);
  if (n == 0 || !x->ok || !chakra_begin_op (x, node, "p2p", &p2p)) {
    x->ok = false;
    if (n == 0)
      chakra_complain (x, node, CHAKRA_NODES ": expected 1 or more");
    return;
  }
  chakra_write_buffers (x, node);
  ls_json_out_begin_array (&x->op, "transfers");
  write_transfer (x, node);
  x->n_left = n - 1;
  if (x->n_left == 0 && x->ok)
    end_messages (x);
}

void
chakra_read_message (RankReading *x, const ChakraNode *node)
{
  const char *op = x->is_ours ? chakra_text_of (node, CHAKRA_OP) : NULL;
  if (x->n_left > 0)
    continue_op (x, node);
  else if (op && strcmp (op, ls_coll_kind_name (LS_COLL_PERMUTE)) == 0)
    read_permute (x, node, LS_COLL_PERMUTE);
  else if (op && strcmp (op, ls_coll_kind_name (LS_COLL_COPY_PERMUTE)) == 0)
    read_permute (x, node, LS_COLL_COPY_PERMUTE);
  else
    read_messages (x, node);
}
