/* data/measured/read_nsys.c — an export of Nsight Systems, an SQLite file that may be anybody's, read. */
#include "data/measured/kineto_reader.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>

#include <cJSON.h>

#include "analysis/op_class.h"
#include "base/diag.h"
#include "base/list.h"
#include "base/order.h"
#include "base/printable.h"

#define KERNELS "CUPTI_ACTIVITY_KIND_KERNEL"
#define COPIES  "CUPTI_ACTIVITY_KIND_MEMCPY"
#define SETS    "CUPTI_ACTIVITY_KIND_MEMSET"
#define CALLS   "CUPTI_ACTIVITY_KIND_RUNTIME"
#define SYNCS   "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
#define THREADS 0x1000000 /* of a process, in a globalTid */

/* ---- the file ---- */

/* An SQLite file that may be anybody's.
 *
 * Only plain tables are read, by queries of ours; functions that a schema names are not trusted; no text or
 * row is longer than 16 MiB; a query that takes too long is stopped. */

typedef struct {
  sqlite3 *sqlite;
  const char *name; /* of the file, borrowed */
  LsDiagList *diags;
  sqlite3_stmt *rows; /* of the query that runs; NULL: none */
  guint n_rows;       /* of it so far */
} NsysDb;

#define MAX_TEXT  (16 << 20)
#define STEPS     1000000 /* of SQLite's machine, between two looks at how many there were */
#define MAX_LOOKS 20000
#define MAX_ROWS  20000000

static void
blame (NsysDb *db, const char *hint)
{
  ls_file_diag (db->diags, LS_ERROR_INPUT, db->name, hint, "SQLite cannot read it: %s",
                db->sqlite ? sqlite3_errmsg (db->sqlite) : "no memory");
}

static int
look (void *count)
{
  return ++*(int *) count > MAX_LOOKS;
}

/* What a file may make SQLite do. */
static bool
harden (NsysDb *db)
{
  sqlite3_limit (db->sqlite, SQLITE_LIMIT_LENGTH, MAX_TEXT);
  sqlite3_db_config (db->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  sqlite3_db_config (db->sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  sqlite3_db_config (db->sqlite, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
  sqlite3_db_config (db->sqlite, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
  return sqlite3_exec (db->sqlite, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0", NULL, NULL, NULL)
      == SQLITE_OK;
}

/* Whether there is such a plain table (virtual ones have no root page), and such a column of it. */
static bool
db_has (NsysDb *db, const char *table, const char *column)
{
  sqlite3_stmt *rows;
  const char *sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name = ?";
  if (sqlite3_prepare_v2 (db->sqlite, sql, -1, &rows, NULL) != SQLITE_OK)
    return false;
  sqlite3_bind_text (rows, 1, table, -1, SQLITE_STATIC);
  bool ok = sqlite3_step (rows) == SQLITE_ROW;
  sqlite3_finalize (rows);
  return ok
      && (!column
          || sqlite3_table_column_metadata (db->sqlite, "main", table, column, NULL, NULL, NULL, NULL, NULL)
              == SQLITE_OK);
}

/* By path, or n bytes of memory, which stay the caller's. False, with a diagnostic (LS_ERROR_INPUT). Close in
 * either case. */
static bool
db_open (NsysDb *db, const char *name, const void *bytes, size_t n, LsDiagList *diags)
{
  *db = (NsysDb) { .name = name, .diags = diags };
  int status
      = sqlite3_open_v2 (bytes ? ":memory:" : name, &db->sqlite,
                         bytes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY : SQLITE_OPEN_READONLY, NULL);
  if (status == SQLITE_OK && bytes)
    status = sqlite3_deserialize (db->sqlite, "main", (unsigned char *) bytes, (sqlite3_int64) n,
                                  (sqlite3_int64) n, SQLITE_DESERIALIZE_READONLY);
  if (status == SQLITE_OK && harden (db)
      && sqlite3_exec (db->sqlite, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL) == SQLITE_OK)
    return true;
  blame (db, "was it cut off? nsys export --type sqlite writes it anew");
  return false;
}

/* A column as a query names it, of the table called t there; "-1": there is none. */
static const char *
column_of (NsysDb *db, const char *table, const char *column)
{
  if (!db_has (db, table, column))
    return "-1";
  g_autofree char *name = g_strconcat ("t.", column, NULL);
  return g_intern_string (name);
}

/* A query, run row by row by db_next(). */
static void G_GNUC_PRINTF (2, 3) db_query (NsysDb *db, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *sql = g_strdup_vprintf (format, args);
  va_end (args);
  db->n_rows = 0;
  if (sqlite3_prepare_v2 (db->sqlite, sql, -1, &db->rows, NULL) != SQLITE_OK)
    blame (db, NULL);
}

/* No row more. */
static void
db_end (NsysDb *db)
{
  sqlite3_finalize (db->rows);
  db->rows = NULL;
}

/* NULL at its end, of very many rows too, and, with a diagnostic, if it fails. */
static sqlite3_stmt *
db_next (NsysDb *db)
{
  int looks = 0;
  if (!db->rows)
    return NULL;
  sqlite3_progress_handler (db->sqlite, STEPS, look, &looks);
  int status = db->n_rows++ < MAX_ROWS ? sqlite3_step (db->rows) : SQLITE_DONE;
  sqlite3_progress_handler (db->sqlite, 0, NULL, NULL);
  if (status != SQLITE_ROW && status != SQLITE_DONE)
    blame (db, NULL);
  if (status != SQLITE_ROW)
    db_end (db);
  return db->rows;
}

/* ---- an export ---- */

typedef struct {
  NsysDb db;
  KinetoReader r;
  int64_t device, process;       /* whose kernels are taken; process -1: not said */
  GArray *calls, *communicators; /* Call, by thread; Communicator                 */
} NsysReader;

bool
ls_nsys_is (const void *bytes, size_t n)
{
  static const char magic[] = "SQLite format 3";
  return n >= sizeof magic && memcmp (bytes, magic, sizeof magic) == 0;
}

static const char *
text_at (sqlite3_stmt *rows, int column)
{
  const char *text = (const char *) sqlite3_column_text (rows, column);
  return text && g_utf8_validate (text, -1, NULL) ? text : "";
}

static bool
is_time (int64_t start, int64_t end)
{
  return start >= 0 && end >= start && end <= MAX_NS;
}

/* ---- which device ---- */

static bool
find_device (NsysReader *n)
{
  const char *process = column_of (&n->db, KERNELS, "globalPid");
  guint n_devices = 0;
  int64_t n_processes = 0;
  db_query (&n->db, "SELECT %s, min(%s), count(DISTINCT %s) FROM " KERNELS " t GROUP BY 1 ORDER BY 1",
            column_of (&n->db, KERNELS, "deviceId"), process, process);
  for (sqlite3_stmt *rows; (rows = db_next (&n->db));)
    if (n_devices++ == 0) {
      n->device = sqlite3_column_int64 (rows, 0);
      n->process = sqlite3_column_int64 (rows, 1);
      n_processes = sqlite3_column_int64 (rows, 2);
    }
  if (n_devices > 1 || n_processes > 1)
    g_ptr_array_add (n->r.k->notes,
                     g_strdup_printf ("%s: kernels of %u devices, and of %" G_GINT64_FORMAT
                                      " processes of the first: read are those of device %" G_GINT64_FORMAT
                                      " of one process",
                                      n->db.name, n_devices, n_processes, n->device));
  return n_devices > 0;
}

/* ---- what the GPU ran ---- */

/* start, end, stream, correlation, name or kind, graph. */
static void
add_op (NsysReader *n, sqlite3_stmt *rows, LsOpClass class, const char *name)
{
  KinetoReader *r = &n->r;
  uint32_t record = r->k->ops->len;
  int64_t start = sqlite3_column_int64 (rows, 0), end = sqlite3_column_int64 (rows, 1),
          stream = sqlite3_column_int64 (rows, 2), correlation = sqlite3_column_int64 (rows, 3);
  if (!is_time (start, end)) {
    ls_file_diag (n->r.diags, LS_ERROR_INPUT, n->db.name, NULL,
                  "row %u of the GPU's work: it lasts from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT " ns",
                  record, start, end);
    return;
  }
  g_autofree char *shown = ls_printable (name);
  LsKinetoOp *op = kineto_add_op (r, start, end, shown, class, MAX (correlation, 0));
  op->record = record;
  op->stream = (int32_t) CLAMP (stream, -1, G_MAXINT32);
}

static bool
has_columns (NsysReader *n, const char *table)
{
  static const char *const required[] = { "start", "end", "streamId" };
  for (guint i = 0; i < G_N_ELEMENTS (required); i++)
    if (!db_has (&n->db, table, required[i]))
      return ls_file_diag (n->r.diags, LS_ERROR_INPUT, n->db.name, "is it of nsys export --type sqlite?",
                           "table %s has no column \"%s\"", table, required[i]);
  return true;
}

/* Runs through the rows of one table that are of the device and its process. Names are places in
 * StringIds. */
static void
query_device (NsysReader *n, const char *table, const char *name_column)
{
  NsysDb *db = &n->db;
  const char *name = column_of (db, table, name_column);
  bool is_looked_up = strcmp (name_column, "copyKind") != 0 && strcmp (name, "-1") != 0
      && db_has (db, "StringIds", "value");
  g_autofree char *join = is_looked_up ? g_strdup_printf ("LEFT JOIN StringIds s ON s.id = %s", name) : NULL;
  if (has_columns (n, table))
    db_query (db,
              "SELECT t.start, t.end, t.streamId, %s, %s FROM %s t %s WHERE %s = %" G_GINT64_FORMAT
              " AND %s = %" G_GINT64_FORMAT,
              column_of (db, table, "correlationId"), join ? "s.value" : name, table, join ? join : "",
              column_of (db, table, "deviceId"), n->device, column_of (db, table, "globalPid"), n->process);
}

static void
read_table (NsysReader *n, const char *table, const char *name_column)
{
  query_device (n, table, name_column);
  bool is_kernel = strcmp (table, KERNELS) == 0, is_copy = strcmp (table, COPIES) == 0;
  for (sqlite3_stmt *rows; ls_diag_list_n (n->r.diags) < MAX_DIAGS && (rows = db_next (&n->db));) {
    int64_t kind = sqlite3_column_int64 (rows, 4);
    const char *name = is_kernel ? text_at (rows, 4)
        : !is_copy               ? "Memset (Device)"
        : kind == 1              ? "Memcpy HtoD"
        : kind == 2              ? "Memcpy DtoH"
        : kind == 8              ? "Memcpy DtoD"
                                 : "Memcpy";
    add_op (n, rows,
            is_kernel     ? ls_op_class_of_kernel (name)
                : is_copy ? LS_CLASS_COPY
                          : LS_CLASS_MEMSET,
            name);
    if (n->r.k->ops->len >= MAX_ROWS) {
      ls_file_diag (n->r.diags, LS_ERROR_INPUT, n->db.name, "profile fewer steps",
                    "more than %d kernels and copies", MAX_ROWS);
      break;
    }
  }
  db_end (&n->db);
}

static const char *
kernel_names (NsysReader *n)
{
  static const char *const names[] = { "demangledName", "shortName", "mangledName" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (db_has (&n->db, KERNELS, names[i]))
      return names[i];
  return "name";
}

/* ---- what the host called ---- */

static void
read_calls (NsysReader *n)
{
  if (!db_has (&n->db, CALLS, "correlationId") || !db_has (&n->db, CALLS, "nameId")
      || !db_has (&n->db, "StringIds", "value"))
    return;
  const char *thread = column_of (&n->db, CALLS, "globalTid");
  db_query (&n->db,
            "SELECT t.start, t.end, t.correlationId, %s, s.value FROM " CALLS
            " t LEFT JOIN StringIds s ON s.id = t.nameId WHERE %" G_GINT64_FORMAT " < 0 OR %s < 0 OR "
            "%s / %d = %" G_GINT64_FORMAT " / %d",
            thread, n->process, thread, thread, THREADS, n->process, THREADS);
  for (sqlite3_stmt *rows; (rows = db_next (&n->db));) {
    const Launch call = { .start = sqlite3_column_int64 (rows, 0),
                          .end = sqlite3_column_int64 (rows, 1),
                          .thread = sqlite3_column_int64 (rows, 3) };
    if (is_time (call.start, call.end))
      kineto_add_call (&n->r, MAX (sqlite3_column_int64 (rows, 2), 0), text_at (rows, 4), call);
  }
}

/* For which stream a call waited. */
static void
read_syncs (NsysReader *n)
{
  if (!db_has (&n->db, SYNCS, "correlationId") || !db_has (&n->db, SYNCS, "streamId"))
    return;
  db_query (&n->db, "SELECT streamId, correlationId, syncType FROM " SYNCS);
  for (sqlite3_stmt *rows; (rows = db_next (&n->db));) {
    int64_t stream = sqlite3_column_int64 (rows, 0), correlation = sqlite3_column_int64 (rows, 1),
            type = sqlite3_column_int64 (rows, 2);
    const SyncDetail detail
        = { .stream = -1, .awaited = stream > 0 && stream < G_MAXINT32 ? (int32_t) stream : -1 };
    if (correlation > 0 && type == 3) /* CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE */
      kineto_add_detail (&n->r, correlation, detail);
  }
}

/* ---- steps ---- */

/* "ProfilerStep#12", "step 12", "Iteration_12": false: none of these. */
static bool
step_number (const char *text, guint64 *ret)
{
  static const char *const words[] = { "ProfilerStep", "step", "iteration", "iter" };
  for (guint i = 0; i < G_N_ELEMENTS (words); i++) {
    size_t length = strlen (words[i]);
    if (g_ascii_strncasecmp (text, words[i], length) != 0)
      continue;
    const char *digits = text + length + strspn (text + length, " #:_=-");
    return g_ascii_string_to_unsigned (digits, 10, 0, G_MAXINT64, ret, NULL);
  }
  return false;
}

static void
read_steps (NsysReader *n)
{
  bool has_text = db_has (&n->db, "NVTX_EVENTS", "text"),
       has_id = db_has (&n->db, "NVTX_EVENTS", "textId") && db_has (&n->db, "StringIds", "value");
  if (!db_has (&n->db, "NVTX_EVENTS", "end") || !(has_text || has_id))
    return;
  db_query (&n->db, "SELECT t.start, t.end, coalesce(%s, %s) FROM NVTX_EVENTS t %s WHERE t.end IS NOT NULL",
            has_text ? "t.text" : "NULL", has_id ? "s.value" : "NULL",
            has_id ? "LEFT JOIN StringIds s ON s.id = t.textId" : "");
  for (sqlite3_stmt *rows; (rows = db_next (&n->db));) {
    LsKinetoStep step = { sqlite3_column_int64 (rows, 0), sqlite3_column_int64 (rows, 1), 0, -1 };
    if (step_number (text_at (rows, 2), &step.number) && is_time (step.start, step.end))
      kineto_add_step (&n->r, step);
  }
}

/* ---- what collectives move ---- */

/* NCCL (2.19 and later, with NVTX traced) makes a range of each call, "ncclAllReduce", whose payload is in
 * jsonText: "Message size [bytes]" of what one rank gives, or takes in a reduce-scatter, and from 2.24 on
 * "NCCL communicator ID"; "ncclCommInitRank" says "No. of ranks" and "Rank" (NCCL, src/collectives.cc and
 * src/init.cc). A kernel belongs to the last call before its launch, by the same thread, of its own kind.
 * Which ranks a communicator has is not said, but of one of all. */

/* A call of a collective. */
typedef struct {
  int64_t thread, start;
  int64_t communicator, bytes;
  uint8_t class;
} Call;

typedef struct {
  int64_t communicator, size, rank;
} Communicator;

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
take_range (NsysReader *n, const char *name, const cJSON *payload, int64_t start, int64_t thread)
{
  const Communicator made
      = { identity (payload), number (payload, "No. of ranks"), number (payload, "Rank") };
  const Call call = { .thread = thread,
                      .start = start,
                      .communicator = identity (payload),
                      .bytes = number (payload, "Message size [bytes]"),
                      .class = (uint8_t) ls_op_class_of_collective (name) };
  if (made.size > 0 && made.size < G_MAXINT32)
    g_array_append_val (n->communicators, made);
  else if (call.bytes > 0 && call.class != LS_CLASS_OTHER)
    g_array_append_val (n->calls, call);
}

static int
by_thread (gconstpointer a, gconstpointer b)
{
  const Call *x = a, *y = b;
  LS_SMALLER_FIRST (x->thread, y->thread);
  return LS_ORDER (x->start, y->start);
}

static void
read_ranges (NsysReader *n)
{
  bool has_text = db_has (&n->db, "NVTX_EVENTS", "text"), has_id = db_has (&n->db, "NVTX_EVENTS", "textId");
  if (!db_has (&n->db, "NVTX_EVENTS", "jsonText") || !db_has (&n->db, "NVTX_EVENTS", "globalTid")
      || !db_has (&n->db, "StringIds", "value") || !(has_text || has_id))
    return;
  db_query (&n->db,
            "SELECT t.start, t.globalTid, t.jsonText, coalesce(%s, s.value) FROM NVTX_EVENTS t "
            "LEFT JOIN StringIds s ON s.id = %s WHERE t.jsonText IS NOT NULL",
            has_text ? "t.text" : "NULL", has_id ? "t.textId" : "NULL");
  for (sqlite3_stmt *rows; (rows = db_next (&n->db));) {
    const char *json = (const char *) sqlite3_column_text (rows, 2),
               *name = (const char *) sqlite3_column_text (rows, 3);
    cJSON *payload = json && name && strncmp (name, "nccl", 4) == 0 ? cJSON_Parse (json) : NULL;
    if (cJSON_IsObject (payload))
      take_range (n, name + 4, payload, sqlite3_column_int64 (rows, 0), sqlite3_column_int64 (rows, 1));
    cJSON_Delete (payload);
  }
  g_array_sort (n->calls, by_thread);
}

/* Of one that is not named: of all, if they are alike. 0: not known. */
static int64_t
size_of (const NsysReader *n, int64_t communicator)
{
  int64_t size = 0;
  for (guint i = 0; i < n->communicators->len; i++) {
    const Communicator *made = &g_array_index (n->communicators, Communicator, i);
    if (communicator >= 0 && made->communicator == communicator)
      return made->size;
    if (size > 0 && size != made->size)
      return 0;
    size = made->size;
  }
  return communicator < 0 ? size : 0;
}

static void
find_world (const NsysReader *n)
{
  LsKineto *k = n->r.k;
  for (guint i = 0; i < n->communicators->len; i++) {
    const Communicator *made = &g_array_index (n->communicators, Communicator, i);
    if (made->size <= k->world_size)
      continue;
    k->world_size = made->size;
    k->rank = made->rank >= 0 && made->rank < made->size ? made->rank : -1;
  }
}

/* Of the last call of its thread at or before its launch. */
static void
link_op (const NsysReader *n, LsKinetoOp *op, const Launch *launch)
{
  const Call behind = { .thread = launch->thread, .start = launch->start + 1 };
  guint place = ls_list_first_from (n->calls, by_thread, &behind);
  const Call *call = place > 0 ? &g_array_index (n->calls, Call, place - 1) : NULL;
  if (!call || call->thread != launch->thread || call->class != op->class)
    return;
  int64_t size = size_of (n, call->communicator);
  bool is_part = op->class == LS_CLASS_ALL_GATHER || op->class == LS_CLASS_REDUCE_SCATTER
      || op->class == LS_CLASS_ALL_TO_ALL;
  if (size < 1 || call->bytes > G_MAXINT64 / size)
    return;
  g_autofree char *name = g_strdup_printf ("%" G_GINT64_FORMAT, call->communicator);
  const LsKinetoGroup g = { .name = g_string_chunk_insert_const (n->r.k->names, name),
                            .what = g_string_chunk_insert_const (n->r.k->names, ""),
                            .size = size,
                            .stride = size == n->r.k->world_size };
  op->bytes = (uint64_t) (call->bytes * (is_part ? size : 1));
  op->group = kineto_add_group (n->r.k, &g);
}

/* Once ops and launches are there, before kineto_finish(). */
static void
add_messages (NsysReader *n)
{
  LsKineto *k = n->r.k;
  g_autoptr (GArray) calls = n->calls = g_array_new (FALSE, FALSE, sizeof (Call)),
                     communicators = n->communicators = g_array_new (FALSE, FALSE, sizeof (Communicator));
  read_ranges (n);
  find_world (n);
  for (guint i = 0; i < k->ops->len; i++) {
    LsKinetoOp *op = &g_array_index (k->ops, LsKinetoOp, i);
    int64_t key = (int64_t) op->correlation;
    const Launch *launch = key > 0 ? g_hash_table_lookup (n->r.launches, GSIZE_TO_POINTER (key)) : NULL;
    if (launch && ls_op_class_is_communication ((LsOpClass) op->class))
      link_op (n, op, launch);
  }
}

/* ---- the whole ---- */

static void
read_all (NsysReader *n)
{
  if (!db_has (&n->db, KERNELS, NULL) || !find_device (n)) {
    ls_file_diag (n->r.diags, LS_ERROR_INPUT, n->db.name,
                  "is it of nsys export --type sqlite, of a run with --trace cuda?",
                  "an SQLite file without kernels (table " KERNELS ")");
    return;
  }
  n->r.has_kernels = true;
  read_table (n, KERNELS, kernel_names (n));
  if (db_has (&n->db, COPIES, NULL))
    read_table (n, COPIES, "copyKind");
  if (db_has (&n->db, SETS, NULL))
    read_table (n, SETS, "copyKind");
  read_calls (n);
  read_syncs (n);
  read_steps (n);
  if (db_has (&n->db, "TARGET_INFO_GPU", "name")) {
    db_query (&n->db, "SELECT name FROM TARGET_INFO_GPU LIMIT 1");
    sqlite3_stmt *rows = db_next (&n->db);
    if (rows && *text_at (rows, 0))
      n->r.k->gpu = ls_printable (text_at (rows, 0));
    db_end (&n->db);
  }
  add_messages (n);
  n->r.k->n_records = n->r.k->ops->len;
}

LsKineto *
ls_nsys_load (const char *path, const void *bytes, size_t n, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (LsKineto) k = kineto_new (path);
  NsysReader reader = { .device = -1, .process = -1 };
  kineto_reader_init (&reader.r, k, diags);
  if (db_open (&reader.db, path, bytes, n, diags))
    read_all (&reader);
  sqlite3_close (reader.db.sqlite);
  if (ls_diag_list_n (diags) == n_before)
    kineto_finish (&reader.r);
  kineto_reader_clear (&reader.r);
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&k) : NULL;
}
