/* data/measured/nsys_nccl.c — what collectives move, of an export of Nsight Systems.
 *
 * NCCL (2.19 and later, with NVTX traced) makes a range of each call, "ncclAllReduce", whose payload is in
 * jsonText: "Message size [bytes]" of what one rank gives, or takes in a reduce-scatter, and from 2.24 on
 * "NCCL communicator ID"; "ncclCommInitRank" says "No. of ranks" and "Rank" (NCCL, src/collectives.cc and
 * src/init.cc). A kernel belongs to the last call before its launch, by the same thread, of its own kind.
 * Which ranks a communicator has is not said, but of one of all. */
#include <string.h>

#include <cJSON.h>

#include "analysis/op_class.h"
#include "data/measured/nsys_reader.h"

/* A call of a collective. */
typedef struct {
  int64_t thread, start;
  int64_t communicator, bytes;
  uint8_t class;
} Call;

typedef struct {
  int64_t communicator, size, rank;
} Communicator;

typedef struct {
  GArray *calls;         /* Call          */
  GArray *communicators; /* Communicator */
} Calls;

static int64_t
number (const cJSON *payload, const char *key)
{
  const cJSON *value = cJSON_GetObjectItem (payload, key);
  double is = cJSON_IsNumber (value) ? value->valuedouble : -1;
  return is >= 0 && is < 9e15 ? (int64_t) is : -1;
}

/* Numbers of 64 bits as what a double keeps of them: enough to tell communicators apart. */
static int64_t
identity (const cJSON *payload)
{
  const cJSON *value = cJSON_GetObjectItem (payload, "NCCL communicator ID");
  if (cJSON_IsString (value))
    return (int64_t) g_str_hash (value->valuestring);
  return cJSON_IsNumber (value) ? (int64_t) g_double_hash (&value->valuedouble) : -1;
}

static void
take_range (Calls *c, const char *name, const cJSON *payload, int64_t start, int64_t thread)
{
  const Communicator made
      = { identity (payload), number (payload, "No. of ranks"), number (payload, "Rank") };
  const Call call = { .thread = thread,
                      .start = start,
                      .communicator = identity (payload),
                      .bytes = number (payload, "Message size [bytes]"),
                      .class = (uint8_t) ls_op_class_of_collective (name) };
  if (made.size > 0 && made.size < G_MAXINT32)
    g_array_append_val (c->communicators, made);
  else if (call.bytes > 0 && call.class != LS_CLASS_OTHER)
    g_array_append_val (c->calls, call);
}

static int
by_thread (gconstpointer a, gconstpointer b)
{
  const Call *x = a, *y = b;
  if (x->thread != y->thread)
    return x->thread < y->thread ? -1 : 1;
  return x->start < y->start ? -1 : x->start > y->start;
}

static void
read_ranges (NsysReader *n, Calls *c)
{
  bool has_text = nsys_db_has (&n->db, "NVTX_EVENTS", "text");
  static const char *const ids[] = { "textId", NULL };
  g_autofree char *text_id = nsys_db_column (&n->db, "NVTX_EVENTS", "t", ids);
  if (!nsys_db_has (&n->db, "NVTX_EVENTS", "jsonText") || !nsys_db_has (&n->db, "NVTX_EVENTS", "globalTid")
      || !nsys_db_has (&n->db, "StringIds", "value") || !(has_text || text_id))
    return;
  g_autofree char *sql
      = g_strdup_printf ("SELECT t.start, t.globalTid, t.jsonText, coalesce(%s, s.value) FROM NVTX_EVENTS t "
                         "LEFT JOIN StringIds s ON s.id = %s WHERE t.jsonText IS NOT NULL",
                         has_text ? "t.text" : "NULL", text_id ? text_id : "NULL");
  sqlite3_stmt *rows = nsys_db_query (&n->db, sql);
  for (guint i = 0; rows && i < NSYS_MAX_ROWS && nsys_db_next (&n->db, rows); i++) {
    const char *json = (const char *) sqlite3_column_text (rows, 2),
               *name = (const char *) sqlite3_column_text (rows, 3);
    cJSON *payload = json && name && strncmp (name, "nccl", 4) == 0 ? cJSON_Parse (json) : NULL;
    if (cJSON_IsObject (payload))
      take_range (c, name + 4, payload, sqlite3_column_int64 (rows, 0), sqlite3_column_int64 (rows, 1));
    cJSON_Delete (payload);
  }
  sqlite3_finalize (rows);
  g_array_sort (c->calls, by_thread);
}

/* The last call of the thread at or before that time; NULL: none. */
static const Call *
call_before (const Calls *c, int64_t thread, int64_t at)
{
  guint low = 0, high = c->calls->len;
  while (low < high) {
    guint mid = low + (high - low) / 2;
    const Call *call = &g_array_index (c->calls, Call, mid);
    if (call->thread < thread || (call->thread == thread && call->start <= at))
      low = mid + 1;
    else
      high = mid;
  }
  const Call *call = low > 0 ? &g_array_index (c->calls, Call, low - 1) : NULL;
  return call && call->thread == thread ? call : NULL;
}

/* Of one that is not named: of all, if they are alike. 0: not known. */
static int64_t
size_of (const Calls *c, int64_t communicator)
{
  int64_t size = 0;
  for (guint i = 0; i < c->communicators->len; i++) {
    const Communicator *made = &g_array_index (c->communicators, Communicator, i);
    if (communicator >= 0 && made->communicator == communicator)
      return made->size;
    if (size > 0 && size != made->size)
      return 0;
    size = made->size;
  }
  return communicator < 0 ? size : 0;
}

static void
find_world (LsKineto *k, const Calls *c)
{
  for (guint i = 0; i < c->communicators->len; i++) {
    const Communicator *made = &g_array_index (c->communicators, Communicator, i);
    if (made->size <= k->world_size)
      continue;
    k->world_size = made->size;
    k->rank = made->rank >= 0 && made->rank < made->size ? made->rank : -1;
  }
}

static uint32_t
group_of (LsKineto *k, const Call *call, int64_t size)
{
  g_autofree char *name = g_strdup_printf ("%" G_GINT64_FORMAT, call->communicator);
  const LsKinetoGroup g = { .name = g_string_chunk_insert_const (k->names, name),
                            .what = g_string_chunk_insert_const (k->names, ""),
                            .size = size,
                            .stride = size == k->world_size };
  for (guint i = 0; i < k->groups->len; i++)
    if (g_array_index (k->groups, LsKinetoGroup, i).name == g.name)
      return i + 1;
  g_array_append_val (k->groups, g);
  return k->groups->len;
}

static void
link_op (LsKineto *k, LsKinetoOp *op, const Launch *launch, const Calls *c)
{
  const Call *call = call_before (c, launch->thread, launch->start);
  int64_t size = call ? size_of (c, call->communicator) : 0;
  bool is_part = op->class == LS_CLASS_ALL_GATHER || op->class == LS_CLASS_REDUCE_SCATTER
      || op->class == LS_CLASS_ALL_TO_ALL;
  if (!call || call->class != op->class || size < 1 || call->bytes > G_MAXINT64 / size)
    return;
  op->bytes = (uint64_t) (call->bytes * (is_part ? size : 1));
  op->group = group_of (k, call, size);
}

void
nsys_add_messages (NsysReader *n)
{
  LsKineto *k = n->r.k;
  g_autoptr (GArray) calls = g_array_new (FALSE, FALSE, sizeof (Call)),
                     communicators = g_array_new (FALSE, FALSE, sizeof (Communicator));
  Calls c = { calls, communicators };
  read_ranges (n, &c);
  find_world (k, &c);
  for (guint i = 0; i < k->ops->len; i++) {
    LsKinetoOp *op = &g_array_index (k->ops, LsKinetoOp, i);
    int64_t key = (int64_t) op->correlation;
    const Launch *launch = key > 0 ? g_hash_table_lookup (n->r.launches, &key) : NULL;
    if (launch && ls_op_class_is_communication ((LsOpClass) op->class))
      link_op (k, op, launch, &c);
  }
}
