
#include <string.h>

#include "analysis/op_class.h"
#include "base/printable.h"
#include "data/measured/nsys_reader.h"

#define KERNELS "CUPTI_ACTIVITY_KIND_KERNEL"
#define COPIES  "CUPTI_ACTIVITY_KIND_MEMCPY"
#define SETS    "CUPTI_ACTIVITY_KIND_MEMSET"
#define CALLS   "CUPTI_ACTIVITY_KIND_RUNTIME"
#define SYNCS   "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
#define THREADS 0x1000000 /* of a process, in a globalTid */

bool
ls_nsys_is (const void *bytes, size_t n)
{
  static const char magic[] = "SQLite format 3";
  return n >= sizeof magic && memcmp (bytes, magic, sizeof magic) == 0;
}

static void G_GNUC_PRINTF (3, 4) complain (NsysReader *n, const char *hint, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  ls_diag_add (n->r.diags, LS_ERROR_INPUT, n->db.name, 0, 0, NULL, NULL, hint, "%s", message);
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

static const char *
or_null (const char *column)
{
  return column ? column : "-1";
}

static char *
column_of (NsysReader *n, const char *table, const char *column)
{
  const char *const names[] = { column, NULL };
  return nsys_db_column (&n->db, table, "t", names);
}

static bool
find_device (NsysReader *n)
{
  g_autofree char *device = column_of (n, KERNELS, "deviceId"),
                  *process = column_of (n, KERNELS, "globalPid");
  g_autofree char *sql
      = g_strdup_printf ("SELECT %s, min(%s), count(DISTINCT %s) FROM " KERNELS " t GROUP BY 1 ORDER BY 1",
                         or_null (device), or_null (process), or_null (process));
  sqlite3_stmt *rows = nsys_db_query (&n->db, sql);
  guint n_devices = 0;
  int64_t n_processes = 0;
  while (rows && nsys_db_next (&n->db, rows))
    if (n_devices++ == 0) {
      n->device = sqlite3_column_int64 (rows, 0);
      n->process = sqlite3_column_int64 (rows, 1);
      n_processes = sqlite3_column_int64 (rows, 2);
    }
  sqlite3_finalize (rows);
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
  int64_t start = sqlite3_column_int64 (rows, 0), end = sqlite3_column_int64 (rows, 1),
          stream = sqlite3_column_int64 (rows, 2), correlation = sqlite3_column_int64 (rows, 3),
          external = (int64_t) r->k->ops->len;
  if (!is_time (start, end)) {
    complain (n, NULL,
              "row %u of the GPU's work: it lasts from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT " ns",
              r->k->ops->len, start, end);
    return;
  }
  g_autofree char *shown = ls_printable (name);
  const LsKinetoOp op = { .start = start,
                          .end = end,
                          .launch = LS_KINETO_NONE,
                          .called = LS_KINETO_NONE,
                          .thread = -1,
                          .name = g_string_chunk_insert_const (r->k->names, shown),
                          .correlation = correlation > 0 ? (uint64_t) correlation : 0,
                          .record = r->k->ops->len,
                          .stream = (int32_t) CLAMP (stream, -1, G_MAXINT32),
                          .dtype = kineto_dtype (""),
                          .class = (uint8_t) class };
  g_array_append_val (r->k->ops, op);
  g_array_append_val (r->externals, external);
  r->first = MIN (r->first, start);
}

static bool
has_columns (NsysReader *n, const char *table)
{
  static const char *const required[] = { "start", "end", "streamId" };
  for (guint i = 0; i < G_N_ELEMENTS (required); i++)
    if (!nsys_db_has (&n->db, table, required[i])) {
      complain (n, "is it of nsys export --type sqlite?", "table %s has no column \"%s\"", table,
                required[i]);
      return false;
    }
  return true;
}

/* Names are places in StringIds. NULL: there are none, or nothing to look up. Newly allocated. */
static char *
join_of (NsysReader *n, const char *name)
{
  bool is_looked_up = name && nsys_db_has (&n->db, "StringIds", "value");
  return is_looked_up ? g_strdup_printf ("LEFT JOIN StringIds s ON s.id = %s", name) : NULL;
}

/* The rows of one table that are of the device and its process. */
static sqlite3_stmt *
device_rows (NsysReader *n, const char *table, const char *name_column)
{
  if (!has_columns (n, table))
    return NULL;
  bool is_number = strcmp (name_column, "copyKind") == 0;
  g_autofree char *device = column_of (n, table, "deviceId"), *process = column_of (n, table, "globalPid"),
                  *id = column_of (n, table, "correlationId"), *name = column_of (n, table, name_column),
                  *join = is_number ? NULL : join_of (n, name);
  g_autofree char *sql
      = g_strdup_printf ("SELECT t.start, t.end, t.streamId, %s, %s FROM %s t %s WHERE %s = %" G_GINT64_FORMAT
                         " AND %s = %" G_GINT64_FORMAT,
                         or_null (id), join ? "s.value" : or_null (name), table, join ? join : "",
                         or_null (device), n->device, or_null (process), n->process);
  return nsys_db_query (&n->db, sql);
}

static const char *
copy_name (int64_t kind)
{
  static const char *const names[] = { "Memcpy", "Memcpy HtoD", "Memcpy DtoH", "Memcpy",     "Memcpy",
                                       "Memcpy", "Memcpy",      "Memcpy",      "Memcpy DtoD" };
  return kind >= 0 && kind < (int64_t) G_N_ELEMENTS (names) ? names[kind] : names[0];
}

static void
read_table (NsysReader *n, const char *table, const char *name_column)
{
  sqlite3_stmt *rows = device_rows (n, table, name_column);
  bool is_kernel = strcmp (table, KERNELS) == 0, is_copy = strcmp (table, COPIES) == 0;
  while (rows && nsys_db_next (&n->db, rows) && ls_diag_list_n (n->r.diags) < MAX_DIAGS) {
    const char *name = is_kernel ? text_at (rows, 4)
        : is_copy                ? copy_name (sqlite3_column_int64 (rows, 4))
                                 : "Memset (Device)";
    add_op (n, rows,
            is_kernel     ? ls_op_class_of_kernel (name)
                : is_copy ? LS_CLASS_COPY
                          : LS_CLASS_MEMSET,
            name);
    if (n->r.k->ops->len >= NSYS_MAX_ROWS) {
      complain (n, "profile fewer steps", "more than %d kernels and copies", NSYS_MAX_ROWS);
      break;
    }
  }
  sqlite3_finalize (rows);
}

static const char *
kernel_names (NsysReader *n)
{
  static const char *const names[] = { "demangledName", "shortName", "mangledName" };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (nsys_db_has (&n->db, KERNELS, names[i]))
      return names[i];
  return "name";
}

/* ---- what the host called ---- */

static bool
call_kind (const char *name, LsKinetoCallKind *ret)
{
  *ret = strstr (name, "Synchronize")    ? LS_CALL_SYNC
      : strstr (name, "StreamWaitEvent") ? LS_CALL_WAIT
                                         : LS_CALL_RECORD;
  return *ret != LS_CALL_RECORD || strstr (name, "EventRecord");
}

static void
add_call (NsysReader *n, sqlite3_stmt *rows)
{
  KinetoReader *r = &n->r;
  int64_t start = sqlite3_column_int64 (rows, 0), end = sqlite3_column_int64 (rows, 1),
          correlation = sqlite3_column_int64 (rows, 2), thread = sqlite3_column_int64 (rows, 3);
  const char *name = text_at (rows, 4);
  LsKinetoCallKind kind;
  if (!is_time (start, end))
    return;
  if (call_kind (name, &kind)) {
    const LsKinetoCall call = { .start = start,
                                .end = end,
                                .correlation = correlation > 0 ? (uint64_t) correlation : 0,
                                .stream = -1,
                                .awaited = -1,
                                .kind = (uint8_t) kind };
    g_array_append_val (r->k->calls, call);
  } else if (correlation > 0) {
    Launch *launch = g_new (Launch, 1);
    int64_t *key = g_new (int64_t, 1);
    *key = correlation;
    *launch = (Launch) { start, end, thread, strstr (name, "GraphLaunch") != NULL };
    g_hash_table_insert (r->launches, key, launch);
  }
}

static void
read_calls (NsysReader *n)
{
  if (!nsys_db_has (&n->db, CALLS, "correlationId") || !nsys_db_has (&n->db, CALLS, "nameId")
      || !nsys_db_has (&n->db, "StringIds", "value"))
    return;
  g_autofree char *thread = column_of (n, CALLS, "globalTid");
  g_autofree char *sql = g_strdup_printf (
      "SELECT t.start, t.end, t.correlationId, %s, s.value FROM " CALLS
      " t LEFT JOIN StringIds s ON s.id = t.nameId WHERE %" G_GINT64_FORMAT " < 0 OR %s < 0 OR "
      "%s / %d = %" G_GINT64_FORMAT " / %d",
      or_null (thread), n->process, or_null (thread), or_null (thread), THREADS, n->process, THREADS);
  sqlite3_stmt *rows = nsys_db_query (&n->db, sql);
  for (guint i = 0; rows && i < NSYS_MAX_ROWS && nsys_db_next (&n->db, rows); i++)
    add_call (n, rows);
  sqlite3_finalize (rows);
}

/* For which stream a call waited. */
static void
read_syncs (NsysReader *n)
{
  if (!nsys_db_has (&n->db, SYNCS, "correlationId") || !nsys_db_has (&n->db, SYNCS, "streamId"))
    return;
  sqlite3_stmt *rows = nsys_db_query (&n->db, "SELECT streamId, correlationId, syncType FROM " SYNCS);
  for (guint i = 0; rows && i < NSYS_MAX_ROWS && nsys_db_next (&n->db, rows); i++) {
    int64_t stream = sqlite3_column_int64 (rows, 0), correlation = sqlite3_column_int64 (rows, 1),
            type = sqlite3_column_int64 (rows, 2);
    const SyncDetail detail = { .correlation = (uint64_t) MAX (correlation, 0),
                                .stream = -1,
                                .awaited = stream > 0 && stream < G_MAXINT32 ? (int32_t) stream : -1 };
    if (correlation > 0 && type == 3) /* CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE */
      g_array_append_val (n->r.details, detail);
  }
  sqlite3_finalize (rows);
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
  bool has_text = nsys_db_has (&n->db, "NVTX_EVENTS", "text"),
       has_id = nsys_db_has (&n->db, "NVTX_EVENTS", "textId") && nsys_db_has (&n->db, "StringIds", "value");
  if (!nsys_db_has (&n->db, "NVTX_EVENTS", "end") || !(has_text || has_id))
    return;
  g_autofree char *sql
      = g_strdup_printf ("SELECT t.start, t.end, %s FROM NVTX_EVENTS t %s WHERE t.end IS NOT NULL",
                         has_text && has_id ? "coalesce(t.text, s.value)"
                             : has_text     ? "t.text"
                                            : "s.value",
                         has_id ? "LEFT JOIN StringIds s ON s.id = t.textId" : "");
  sqlite3_stmt *rows = nsys_db_query (&n->db, sql);
  for (guint i = 0; rows && i < NSYS_MAX_ROWS && nsys_db_next (&n->db, rows); i++) {
    LsKinetoStep step = { sqlite3_column_int64 (rows, 0), sqlite3_column_int64 (rows, 1), 0, -1 };
    if (!step_number (text_at (rows, 2), &step.number) || !is_time (step.start, step.end))
      continue;
    g_array_append_val (n->r.k->steps, step);
    n->r.first = MIN (n->r.first, step.start);
  }
  sqlite3_finalize (rows);
}

static void
read_gpu (NsysReader *n)
{
  if (!nsys_db_has (&n->db, "TARGET_INFO_GPU", "name"))
    return;
  sqlite3_stmt *rows = nsys_db_query (&n->db, "SELECT name FROM TARGET_INFO_GPU LIMIT 1");
  if (rows && nsys_db_next (&n->db, rows) && *text_at (rows, 0))
    n->r.k->gpu = ls_printable (text_at (rows, 0));
  sqlite3_finalize (rows);
}

/* ---- the whole ---- */

static void
read_all (NsysReader *n)
{
  if (!nsys_db_has (&n->db, KERNELS, NULL) || !find_device (n)) {
    complain (n, "is it of nsys export --type sqlite, of a run with --trace cuda?",
              "an SQLite file without kernels (table " KERNELS ")");
    return;
  }
  n->r.has_kernels = true;
  read_table (n, KERNELS, kernel_names (n));
  if (nsys_db_has (&n->db, COPIES, NULL))
    read_table (n, COPIES, "copyKind");
  if (nsys_db_has (&n->db, SETS, NULL))
    read_table (n, SETS, "copyKind");
  read_calls (n);
  read_syncs (n);
  read_steps (n);
  read_gpu (n);
  nsys_add_messages (n);
  n->r.k->n_records = n->r.k->ops->len;
}

static void
reader_init (KinetoReader *r, LsKineto *k, LsDiagList *diags)
{
  *r = (KinetoReader) { .k = k, .diags = diags, .device = -1, .first = G_MAXINT64 };
  r->launches = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, g_free);
  r->messages = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, g_free);
  r->externals = g_array_new (FALSE, FALSE, sizeof (int64_t));
  r->details = g_array_new (FALSE, FALSE, sizeof (SyncDetail));
  r->categories = g_ptr_array_new ();
}

static void
reader_clear (KinetoReader *r)
{
  g_hash_table_unref (r->launches);
  g_hash_table_unref (r->messages);
  g_array_unref (r->externals);
  g_array_unref (r->details);
  g_ptr_array_unref (r->categories);
}

LsKineto *
ls_nsys_load (const char *path, const void *bytes, size_t n, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (LsKineto) k = kineto_new (path);
  NsysReader reader = { .device = -1, .process = -1 };
  reader_init (&reader.r, k, diags);
  if (nsys_db_open (&reader.db, path, bytes, n, diags))
    read_all (&reader);
  nsys_db_close (&reader.db);
  if (ls_diag_list_n (diags) == n_before)
    kineto_finish (&reader.r);
  reader_clear (&reader.r);
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&k) : NULL;
}
