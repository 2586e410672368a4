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

void
chakra_group_free (gpointer group)
{
  ChakraGroup *g = group;
  g_free (g->name);
  g_free (g->is.ranks);
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

/* No members are all ranks, as PyTorch has it. NULL: it is there, with other members. */
static ChakraGroup *
add_group (ChakraReading *all, const char *name, const cJSON *ranks)
{
  uint32_t n = ranks && ranks->child ? (uint32_t) cJSON_GetArraySize (ranks) : all->n_ranks;
  g_autofree uint32_t *members = g_new (uint32_t, n);
  const cJSON *rank = ranks ? ranks->child : NULL;
  for (uint32_t i = 0; i < n; i++, rank = rank ? rank->next : NULL)
    members[i] = rank ? (uint32_t) rank->valueint : i;
  ChakraGroup *g = chakra_group (all, name);
  if (g)
    return g->is.n_ranks == n && memcmp (g->is.ranks, members, n * sizeof *members) == 0 ? g : NULL;
  g = g_new0 (ChakraGroup, 1);
  *g = (ChakraGroup) { all->groups->len,
                       g_strdup (name),
                       { .axis = -1, .ranks = g_steal_pointer (&members), .n_ranks = n } };
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

/* -1: none yet. */
static int
slot_of (const RankReading *x, const ChakraGroup *group)
{
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (x->is.comm[s] == group->index)
      return s;
  return -1;
}

/* Slots are only names: a group of others takes the next. */
static void
bind_next_slot (RankReading *x, const ChakraNode *node, const ChakraGroup *group)
{
  int slot = 0;
  while (slot < LS_SLOT_PREV && x->is.comm[slot] != LS_TRACE_ABSENT)
    slot++;
  if (slot < LS_SLOT_PREV)
    x->is.comm[slot] = group->index;
  else
    chakra_complain (x, node, "a rank in more than %d process groups", LS_SLOT_PREV);
}

/* The rank has this group; of ours, the node says its slots and axis. */
static void
bind_group (RankReading *x, const ChakraNode *node, ChakraGroup *group)
{
  const ChakraProtoMsg__StringList *slots = chakra_list_of (node, "slots");
  const char *name = chakra_text_of (node, "axis");
  int axis = ls_enum_value (ls_axis_names, name);
  if (!x->is_ours || !name)
    return;
  group->is.axis = group->is.axis < 0 ? axis : group->is.axis;
  if (axis < 0 || group->is.axis != axis)
    chakra_complain (x, node, "axis: another than before, or none of ours");
  group->is.spans_stages |= chakra_is_on (node, "spans_stages");
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

/* --- communication ------------------------------------------------------------------------------ */

/* NULL and a complaint: there is no such group, or the rank is not in it. All ranks, where none is named. */
static const ChakraGroup *
group_of (RankReading *x, const ChakraNode *node)
{
  const char *name = chakra_text_of (node, "pg_name");
  const ChakraGroup *group = chakra_group (x->all, name ? name : "");
  if (!group && !name)
    group = add_group (x->all, "", NULL);
  if (!group)
    chakra_complain (x, node,
                     "process group \"%.40s\" is nowhere defined: neither in " CHAKRA_GROUPS
                     " nor by a node of process groups",
                     name);
  else if (slot_of (x, group) < 0)
    bind_next_slot (x, node, group);
  return x->ok ? group : NULL;
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
read_bytes (RankReading *x, const ChakraNode *node, LsCollKind kind, uint32_t n_ranks, uint64_t *ret_bytes)
{
  uint64_t size = 0, bytes, shares = chakra_shares (kind, n_ranks);
  if (kind != LS_COLL_BARRIER && !chakra_need_uint (x, node, "comm_size", &size))
    return false;
  if ((double) size * (double) shares > LS_TRACE_MAX_BYTES)
    return chakra_complain (x, node, "comm_size: more than can be simulated");
  *ret_bytes = size * shares;
  if (!x->is_ours || !chakra_uint_of (x, node, "bytes", (uint64_t) LS_TRACE_MAX_BYTES, &bytes))
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
  TraceOp *op = chakra_begin_op (x, node, LS_OP_COLLECTIVE, LS_STREAM_DP);
  if (!op)
    return;
  op->slot = op->slot < 0 ? slot_of (x, group) : op->slot;
  op->coll = (int) kind;
  op->bytes = bytes;
}

void
chakra_read_collective (RankReading *x, const ChakraNode *node)
{
  uint64_t type;
  if (!chakra_need_uint (x, node, "comm_type", &type))
    return;
  if (type < G_N_ELEMENTS (kinds))
    read_collective (x, node, kinds[type]);
  else
    chakra_complain (x, node, "comm_type %" G_GUINT64_FORMAT " is none of Chakra's", type);
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
  const char *said = x->is_ours ? chakra_text_of (node, chakra_is_send (node) ? "send" : "receive") : NULL;
  uint64_t other;
  if (!chakra_need_uint (x, node, chakra_is_send (node) ? "comm_dst" : "comm_src", &other))
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
  if (side < 0 || !chakra_need_uint (x, node, "comm_size", &t.bytes))
    return;
  *(chakra_is_send (node) ? &t.send : &t.receive) = LS_SLOT_PREV + side;
  g_array_append_val (op->transfers, t);
}

/* A further node of the last op: of a permutation it says nothing new. */
static void
continue_op (RankReading *x, const ChakraNode *node)
{
  ChakraSeen *seen = chakra_remember (x, node);
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
static LsStream
message_stream (RankReading *x, const ChakraNode *node)
{
  bool is_next = !x->is_ours && side_of (x, node) == 1;
  if (chakra_is_send (node))
    return is_next ? LS_STREAM_PP_FWD : LS_STREAM_PP_BWD;
  return is_next ? LS_STREAM_PP_BWD_RECV : LS_STREAM_PP_FWD_RECV;
}

static void
read_messages (RankReading *x, const ChakraNode *node)
{
  LsStream stream = message_stream (x, node);
  uint64_t n = 1;
  if (x->is_ours)
    chakra_uint_of (x, node, CHAKRA_NODES, UINT16_MAX, &n);
  if (n == 0)
    chakra_complain (x, node, CHAKRA_NODES ": expected 1 or more");
  TraceOp *op = x->ok ? chakra_begin_op (x, node, LS_OP_P2P, stream) : NULL;
  if (!op)
    return;
  op->transfers = g_array_new (FALSE, FALSE, sizeof (TraceTransfer));
  add_transfer (x, node, op);
  x->n_left = n - 1;
}

void
chakra_read_message (RankReading *x, const ChakraNode *node)
{
  const char *op = x->is_ours ? chakra_text_of (node, CHAKRA_OP) : NULL;
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
