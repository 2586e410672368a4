#include "data/measured/read_nccl_tests.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/list.h"
#include "data/text/csv.h"
#include "data/text/field.h"
#include "data/text/read_file.h"

/* --- measured collectives, one a row, as `lockstep collective --compare` reads them -------------- */

#define MAX_TIME_US 1e13 /* beyond the clock: 115 days */

static const LsField fields[] = {
  { "cluster", LS_FIELD_STRING, offsetof (LsMeasuredCollective, cluster) },
  { "trust", LS_FIELD_STRING, offsetof (LsMeasuredCollective, trust) },
  { "algorithm", LS_FIELD_STRING, offsetof (LsMeasuredCollective, algorithm) },
  { "protocol", LS_FIELD_STRING, offsetof (LsMeasuredCollective, protocol) },
  { "source", LS_FIELD_STRING, offsetof (LsMeasuredCollective, source) },
  { "op", LS_FIELD_STRING, offsetof (LsMeasuredCollective, op), .required = true },
  { "gpus", LS_FIELD_UINT, offsetof (LsMeasuredCollective, n_gpus), .min = 1, .max = LS_COLLECTIVE_MAX_GPUS },
  { "nodes", LS_FIELD_UINT, offsetof (LsMeasuredCollective, n_nodes), .min = 1,
    .max = LS_COLLECTIVE_MAX_GPUS },
  { "size_bytes", LS_FIELD_UINT64, offsetof (LsMeasuredCollective, bytes),
    .max = (double) LS_COLLECTIVE_MAX_BYTES },
  { "time_us", LS_FIELD_DOUBLE, offsetof (LsMeasuredCollective, time_us), .min = 1e-6, .max = MAX_TIME_US },
  { NULL },
};

static void
measured_free (gpointer data)
{
  ls_fields_clear (fields, data);
  g_free (data);
}

GPtrArray *
ls_measured_collectives_new (void)
{
  return g_ptr_array_new_with_free_func (measured_free);
}

GPtrArray *
ls_read_collectives (const char *path, const char *text, char **ret_unread, LsDiagList *diags)
{
  g_autoptr (LsCsv) csv = ls_csv_parse (path, text, -1, diags);
  if (!csv)
    return NULL;
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (GArray) columns = g_array_new (FALSE, FALSE, sizeof (LsCsvField));
  for (const LsField *field = fields; field->key; field++)
    ls_csv_fields_find (csv, field,
                        ls_is_one_of (field->key, "trust algorithm protocol source") ? LS_CSV_MAY_LACK
                                                                                     : LS_CSV_REQUIRED,
                        0, columns, diags);
  if (ls_csv_n_rows (csv) == 0)
    ls_csv_header_error (csv, diags,
                         "expected a row for each measured collective below the header; got none");
  if (ls_diag_list_n (diags) > n_before)
    return NULL;

  g_autoptr (GPtrArray) rows = ls_measured_collectives_new ();
  bool is_single = false; /* the row above */
  for (guint row = 0; row < ls_csv_n_rows (csv); row++) {
    LsMeasuredCollective *m = g_new0 (LsMeasuredCollective, 1);
    ls_csv_fields_read (csv, row, columns, m, diags);
    if (m->n_gpus > 0 && m->n_nodes > 0 && m->n_gpus % m->n_nodes != 0)
      ls_csv_error (csv, row, (guint) ls_csv_column (csv, "nodes"), diags,
                    "expected a divisor of gpus %u; got %u", m->n_gpus, m->n_nodes);
    is_single = m->source
        && (strstr (m->source, LS_SINGLE_CALLS) || (is_single && g_str_has_prefix (m->source, "the same,")));
    m->is_single = is_single;
    g_ptr_array_add (rows, m);
  }
  if (ret_unread)
    *ret_unread = ls_csv_unread (csv, columns);
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&rows) : NULL;
}

/* Runs of nccl-tests, as text or as JSON (its -J), or a table of measured collectives
 * (data/measured/read_nccl_tests.h), whose rows of one kind are then a run. */

/* --- a text of several runs ------------------------------------------------------------------------- */

/* The first lines of a run, in their order; then all others. */
typedef enum { VERSION, START, SETTING, BODY, NONE } Part;

/* Which of them a line is; banners of hosts and MPI are none. */
static Part
part_of (const char *line)
{
  static const struct {
    const char *prefix;
    Part part;
  } parts[] = {
    { "# nccl-tests version", VERSION },
    { "# Collective test starting:", START },
    { "# nThread", SETTING },
    { "#  Rank", BODY },
    { "# Rank", BODY },
    { "# Collective test concluded", BODY },
    { "#", NONE },
  };
  const char *first = line + strspn (line, " \t");
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    if (g_str_has_prefix (line, parts[i].prefix))
      return parts[i].part;
  return g_ascii_isdigit (*first) ? BODY : NONE;
}

/* Of what starts a run, as logs show it above. */
static bool
is_command (const char *line)
{
  return *line != '#'
      && (strstr (line, "_perf") || strstr (line, "NCCL_ALGO=") || strstr (line, "NCCL_PROTO="));
}

/* Where the runs of a text begin: ascending indices of lines (guint), the first 0. A line that cannot follow
 * those of the run begins the next, with the command lines above it. */
static GArray *
nccl_tests_split (char *const *lines)
{
  guint at = 0, command = 0;
  GArray *starts = g_array_append_val (g_array_new (FALSE, FALSE, sizeof at), at);
  for (Part reached = NONE; lines[at]; at++) {
    Part part = part_of (lines[at]);
    if (reached == BODY && command == 0 && is_command (lines[at]))
      command = at;
    if (part < BODY && reached != NONE && part <= reached) {
      g_array_append_val (starts, *(command > 0 ? &command : &at));
      command = 0;
    }
    reached = part == NONE ? reached : part;
  }
  return starts;
}

/* --- runs ------------------------------------------------------------------------------------------- */

/* Rates are printed with as few as two digits, times too. */
#define RATE_SLACK     0.1
#define RATE_STEP_GB_S 0.011

void
ls_nccl_tests_free (LsNcclTests *t)
{
  if (!t)
    return;
  g_free (t->path);
  g_free (t->sha256);
  g_free (t->test);
  g_free (t->op);
  g_free (t->cluster);
  g_free (t->trust);
  g_free (t->gpu);
  g_free (t->date);
  g_free (t->version);
  g_free (t->algorithm);
  g_free (t->protocol);
  g_clear_pointer (&t->rows, g_array_unref);
  g_free (t);
}

/* ---- devices ---- */

/* Who takes part, as the lines of devices say it. */
typedef struct {
  GHashTable *hosts; /* names */
  guint n_listed;
  guint64 last_rank;
  guint per_process; /* ranks of one process */
  bool has_groups;   /* more than one */
} Devices;

/* Nobody yet. */
static Devices
devices_new (void)
{
  return (Devices) { .hosts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
                     .per_process = 1 };
}

static void
add_device (Devices *d, guint64 rank, guint64 group, const char *host)
{
  g_hash_table_add (d->hosts, g_strdup (host));
  d->has_groups = d->has_groups || group != 0;
  d->last_rank = MAX (d->last_rank, rank);
  d->n_listed++;
}

/* Those of a run, all of which are there. A process that names only its first rank has per_process of
 * them. */
static void
devices_end (Devices *d, LsNcclTests *t)
{
  bool is_first_of_process = d->last_rank % d->per_process == 0;
  if (d->n_listed > 0)
    t->n_ranks = (guint) d->last_rank + (is_first_of_process ? d->per_process : 1);
  t->n_hosts = g_hash_table_size (d->hosts);
  g_hash_table_unref (d->hosts);
}

#define SEVERAL_GROUPS "several groups of ranks ran at once: their times are not those of one alone"
#define TIMES_OF_HOST  "these are times of the host (-C 1), not of the collective"

/* ---- rows ---- */

/* Appends a row of a size above 0; what is wrong with it, newly allocated, or NULL. algbw in GB/s. */
static char *
take_row (LsNcclTests *t, uint64_t bytes, double time_us, double algbw, double n_wrong)
{
  double should = (double) bytes / time_us / 1e3;
  if (bytes == 0)
    return NULL;
  if (!(time_us > 0) || isinf (time_us))
    return g_strdup_printf ("expected a time above 0; got %g", time_us);
  if (n_wrong > 0)
    return g_strdup_printf ("%g wrong elements (#wrong): times of wrong results are worth nothing", n_wrong);
  if (!(fabs (algbw - should) <= RATE_SLACK * should + RATE_STEP_GB_S))
    return g_strdup_printf ("the line is damaged: %.0f bytes in %g us are %.4g GB/s, not %g", (double) bytes,
                            time_us, should, algbw);
  const LsNcclTestsRow row = { bytes, time_us };
  g_array_append_val (t->rows, row);
  return NULL;
}

/* "all_reduce" of "/opt/nccl-tests/build/all_reduce_perf_mpi"; newly allocated, NULL if it
 * is no such name. */
static char *
test_name (const char *program)
{
  g_autofree char *base = g_path_get_basename (program);
  char *end = strstr (base, "_perf");
  return end && end > base ? g_strndup (base, (gsize) (end - base)) : NULL;
}

/* ---- one run, in its text ---- */

#define MAX_RANK   (1u << 20)
#define MAX_BYTES  ((guint64) 1 << 50)
#define MAX_LABELS 5 /* size, count, type, redop, root: old versions leave the last two blank */
#define MIN_LABELS 3

typedef struct {
  LsNcclTests *t;
  LsDiagList *diags;
  Devices devices;
  const char *line; /* the one being read */
  int number;
  guint n_values;  /* columns from the first time on; 0: no title line yet    */
  guint at_wrong;  /* the column #wrong out of place, counted from that time  */
  bool is_error;   /* that is the largest error of a value, as until 2022     */
  bool is_useless; /* the title line says that no row is worth reading        */
  bool is_over;    /* "concluded" was read                                    */
} Reader;

static void G_GNUC_PRINTF (2, 3) complain (const Reader *r, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  ls_diag_add (r->diags, LS_ERROR_INPUT, r->t->path, r->number, 1, NULL, r->line, NULL, "%s", message);
}

/* The words of a line; owned by the caller. */
static GPtrArray *
words_of (const char *line)
{
  GPtrArray *words = g_ptr_array_new_with_free_func (g_free);
  g_auto (GStrv) parts = g_strsplit_set (line, " \t\r", -1);
  for (char **part = parts; *part; part++)
    if (**part)
      g_ptr_array_add (words, g_strdup (*part));
  return words;
}

static const char *
word (const GPtrArray *words, guint i)
{
  return i < words->len ? g_ptr_array_index (words, i) : "";
}

static guint
find (const GPtrArray *words, const char *what, guint from)
{
  guint i = from;
  while (i < words->len && strcmp (word (words, i), what) != 0)
    i++;
  return i;
}

/* "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong": a
 * timestamp is a date and a time of day. Until 2022 "error" stood for "#wrong": only "Out of bounds values"
 * tells wrong results then. */
static void
read_titles (Reader *r, const GPtrArray *words)
{
  if (r->n_values > 0) {
    complain (r,
              "a second title line: where the run that it belongs to begins is not said; expected its first "
              "lines (\"# nThread ...\")");
    return;
  }
  guint time = find (words, "time", 1), wrong = find (words, "#wrong", time);
  r->is_error = wrong >= words->len;
  if (r->is_error)
    wrong = find (words, "error", time);
  r->is_useless = find (words, "cputime", 1) < words->len;
  if (r->is_useless)
    complain (r, TIMES_OF_HOST);
  else if (wrong >= words->len || wrong - time < 3)
    complain (r, "expected the columns time, algbw, busbw and #wrong (or error), as nccl-tests prints them");
  else {
    bool has_stamp = find (words, "timestamp", time) < words->len;
    r->n_values = words->len - time + has_stamp;
    r->at_wrong = wrong - time;
  }
}

/* "#  Rank  0 Group  0 Pid  31 on node-1 device  0 [0x07] NVIDIA A100-SXM4-40GB"; old
 * versions have no group. */
static void
read_device (Reader *r, const GPtrArray *words)
{
  if (r->t->rows->len > 0) {
    complain (r,
              "devices of another run: where it begins is not said; expected its first lines (\"# nThread "
              "...\")");
    return;
  }
  guint on = find (words, "on", 0), device = find (words, "device", on), group = find (words, "Group", 0);
  guint64 rank, of_group = 0;
  bool ok = g_ascii_string_to_unsigned (word (words, 2), 10, 0, MAX_RANK, &rank, NULL) && on + 1 < words->len
      && device + 1 < words->len;
  if (ok && group < on)
    ok = g_ascii_string_to_unsigned (word (words, group + 1), 10, 0, MAX_RANK, &of_group, NULL);
  if (!ok) {
    complain (r, "expected \"#  Rank N Group N Pid N on HOST device N [BUS] NAME\"");
    return;
  }
  add_device (&r->devices, rank, of_group, word (words, on + 1));
  const char *name = strchr (r->line, ']');
  if (!r->t->gpu && name)
    r->t->gpu = g_strstrip (g_strdup (name + 1));
}

static void
read_setting (Reader *r, const GPtrArray *words)
{
  guint64 n_threads, n_gpus;
  if (g_ascii_string_to_unsigned (word (words, 2), 10, 1, MAX_RANK, &n_threads, NULL)
      && strcmp (word (words, 3), "nGpus") == 0
      && g_ascii_string_to_unsigned (word (words, 4), 10, 1, MAX_RANK / n_threads, &n_gpus, NULL))
    r->devices.per_process = (guint) (n_threads * n_gpus);
  else
    complain (r, "expected \"# nThread N nGpus N ...\"");
}

static void
read_out_of_bounds (Reader *r, const GPtrArray *words)
{
  const char *n = word (words, find (words, ":", 0) + 1);
  guint64 count;
  if (!g_ascii_string_to_unsigned (n, 10, 0, G_MAXUINT64, &count, NULL))
    complain (r, "expected \"# Out of bounds values : N OK\"");
  else if (count > 0)
    complain (r, "%s out of bounds values: times of wrong results are worth nothing", n);
}

/* Runs that write into one file at a time mix their lines. */
static void
read_end (Reader *r, const GPtrArray *words)
{
  g_autofree char *test = test_name (word (words, 4));
  if (r->is_over || (r->t->test && g_strcmp0 (test, r->t->test) != 0))
    complain (r, "the end of %s_perf in a run of %s_perf: lines of several runs are mixed",
              test ? test : "another", r->t->test ? r->t->test : "another");
  r->is_over = true;
}

static void
read_comment (Reader *r)
{
  static const char test[] = "# Collective test starting:", end[] = "# Collective test concluded:",
                    version[] = "nccl-library=";
  g_autoptr (GPtrArray) words = words_of (r->line);
  const char *first = word (words, 1), *library = strstr (r->line, version);
  if (g_str_has_prefix (r->line, test)) {
    g_free (r->t->test);
    r->t->test = test_name (word (words, 4));
  } else if (g_str_has_prefix (r->line, end))
    read_end (r, words);
  else if (library && !r->t->version)
    r->t->version = g_strndup (library + strlen (version), strspn (library + strlen (version), "0123456789"));
  else if (strcmp (first, "nThread") == 0)
    read_setting (r, words);
  else if (strcmp (first, "Rank") == 0)
    read_device (r, words);
  else if (strcmp (first, "size") == 0)
    read_titles (r, words);
  else if (g_str_has_prefix (r->line, "# Out of bounds values"))
    read_out_of_bounds (r, words);
}

/* Values of a line that starts a run: the last counts, but for the program. */
static void
read_command (LsNcclTests *t, const GPtrArray *words)
{
  const struct {
    const char *name;
    char **value;
  } variables[] = { { "NCCL_ALGO=", &t->algorithm }, { "NCCL_PROTO=", &t->protocol } };
  for (guint i = 0; i < words->len; i++) {
    if (!t->test)
      t->test = test_name (word (words, i));
    for (guint v = 0; v < G_N_ELEMENTS (variables); v++)
      if (g_str_has_prefix (word (words, i), variables[v].name)) {
        g_free (*variables[v].value);
        *variables[v].value = g_ascii_strdown (word (words, i) + strlen (variables[v].name), -1);
      }
  }
}

static bool
number (const char *text, double *ret_value)
{
  char *end;
  *ret_value = g_ascii_strtod (text, &end);
  return *text && *end == '\0' && isfinite (*ret_value);
}

static void
read_figures (Reader *r)
{
  g_autoptr (GPtrArray) words = words_of (r->line);
  if (r->is_over) {
    complain (r,
              "figures after the end of the run: lines of several runs are mixed, or the first ones of the "
              "next are missing");
    return;
  }
  if (r->n_values == 0) {
    complain (r, "expected the title line of nccl-tests (\"# size count type ...\") before this");
    return;
  }
  guint64 bytes;
  double time_us, algbw, busbw, n_wrong = 0;
  guint n = words->len, time = n - r->n_values;
  const char *wrong = word (words, time + r->at_wrong);
  bool ok = n >= MIN_LABELS + r->n_values && n <= MAX_LABELS + r->n_values
      && g_ascii_string_to_unsigned (word (words, 0), 10, 0, MAX_BYTES, &bytes, NULL)
      && number (word (words, time), &time_us) && number (word (words, time + 1), &algbw)
      && (strcmp (wrong, "N/A") == 0 || number (wrong, &n_wrong));
  if (!ok) {
    complain (r, "the line is damaged: expected size, count, type, redop, root and %u figures", r->n_values);
    return;
  }
  g_autofree char *trouble = take_row (r->t, bytes, time_us, algbw, r->is_error ? 0 : n_wrong);
  if (trouble)
    complain (r, "%s", trouble);
  r->t->bus_factor = algbw > 0 && number (word (words, time + 2), &busbw) ? busbw / algbw : 0;
  r->t->reduces = time > MIN_LABELS && strcmp (word (words, MIN_LABELS), "none") != 0;
  r->t->has_root = time == MAX_LABELS && *word (words, MAX_LABELS - 1) != '-';
}

/* One run: lines first to last - 1, which it may change. */
static bool
read_lines (LsNcclTests *t, char **lines, guint first, guint last, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  Reader r = { .t = t, .diags = diags, .devices = devices_new () };
  for (guint i = first; i < last; i++) {
    r.number = (int) i + 1;
    r.line = g_strchomp (lines[i]);
    const char *tag = strstr (r.line, "<stdout>:"); /* mpirun --tag-output, --timestamp-output */
    r.line = tag ? tag + strlen ("<stdout>:") : r.line;
    const char *first_word = r.line + strspn (r.line, " \t");
    bool is_figures
        = g_ascii_isdigit (*first_word) || (*first_word == '-' && g_ascii_isdigit (first_word[1]));
    if (*r.line == '#')
      read_comment (&r);
    else if (*r.line == '{')
      complain (&r, "JSON among text; expected a file for each");
    else if (is_figures && !r.is_useless) /* what MPI and NCCL print in between begins otherwise */
      read_figures (&r);
    else if (t->rows->len == 0 && is_command (r.line)) {
      g_autoptr (GPtrArray) words = words_of (r.line);
      read_command (t, words);
    }
  }
  if (r.devices.has_groups)
    ls_diag_add (diags, LS_ERROR_INPUT, t->path, t->line, t->line > 0, NULL, NULL, NULL, SEVERAL_GROUPS);
  devices_end (&r.devices, t);
  return ls_diag_list_n (diags) == n_before;
}

static LsNcclTests *
run_new (const char *path, const char *sha256)
{
  LsNcclTests *t = g_new0 (LsNcclTests, 1);
  t->path = g_strdup (path);
  t->sha256 = g_strdup (sha256);
  t->rows = g_array_new (FALSE, FALSE, sizeof (LsNcclTestsRow));
  return t;
}

static void
check_run (const LsNcclTests *t, LsDiagList *diags)
{
  const char *missing = t->rows->len == 0 ? "output of nccl-tests with rows of sizes above 0"
      : t->n_ranks == 0                   ? "devices that took part (\"#  Rank  0 ... on HOST device ...\")"
                                          : NULL;
  if (missing)
    ls_diag_add (diags, LS_ERROR_INPUT, t->path, t->line, t->line > 0, NULL, NULL, NULL,
                 "expected the %s; got none", missing);
}

/* --- as JSON ------------------------------------------------------------------------------------- */

#define MAX_JSON_BYTES 1e15

typedef struct {
  double time, cpu_time, algbw, n_wrong;
} Side;

typedef struct {
  uint64_t bytes;
  Side out_of_place;
} Result;

typedef struct {
  uint32_t rank, group;
  char *host, *gpu;
} Device;

typedef struct {
  char *date;
  uint32_t n_threads, n_gpus;
  uint64_t nccl_version;
  uint64_t n_out_of_bounds;
  GArray *devices, *results;
} File;

/* A number, or null where the results were not checked. */
static const LsField side_fields[] = {
  { "time", LS_FIELD_DOUBLE, offsetof (Side, time), .max = MAX_TIME_US },
  { "cpu_time", LS_FIELD_DOUBLE, offsetof (Side, cpu_time), .max = MAX_TIME_US },
  { "alg_bw", LS_FIELD_DOUBLE, offsetof (Side, algbw), .required = true, .max = 1e9, .meaning = "in GB/s" },
  { "nwrong", LS_FIELD_DOUBLE, offsetof (Side, n_wrong), .max = 1e18 },
  { NULL },
};
static const LsField result_fields[] = {
  { "size", LS_FIELD_UINT64, offsetof (Result, bytes), .required = true, .max = MAX_JSON_BYTES,
    .meaning = "in bytes" },
  { "out_of_place", LS_FIELD_OBJECT, offsetof (Result, out_of_place), .required = true, .fields = side_fields,
    .meaning = "the time that counts here" },
  { NULL },
};
static const LsField device_fields[] = {
  { "rank", LS_FIELD_UINT, offsetof (Device, rank), .required = true, .max = MAX_RANK },
  { "group", LS_FIELD_UINT, offsetof (Device, group), .max = MAX_RANK },
  { "hostname", LS_FIELD_STRING, offsetof (Device, host), .required = true },
  { "device_info", LS_FIELD_STRING, offsetof (Device, gpu) },
  { NULL },
};
static const LsField config_fields[] = {
  { "nthreads", LS_FIELD_UINT, offsetof (File, n_threads), .required = true, .min = 1, .max = 1024 },
  { "ngpus", LS_FIELD_UINT, offsetof (File, n_gpus), .required = true, .min = 1, .max = 1024 },
  { "devices", LS_FIELD_ARRAY, offsetof (File, devices), .fields = device_fields,
    .element_size = sizeof (Device) },
  { NULL },
};
static const LsField bounds_fields[] = {
  { "count", LS_FIELD_UINT64, offsetof (File, n_out_of_bounds), .max = 9e15 },
  { NULL },
};
/* Some versions close `config` before the devices, some after. */
static const LsField file_fields[] = {
  { "start_time", LS_FIELD_STRING, offsetof (File, date) },
  { "nccl_version", LS_FIELD_UINT64, offsetof (File, nccl_version), .max = 1e9 },
  { "config", LS_FIELD_OBJECT, 0, .required = true, .fields = config_fields,
    .meaning = "how the ranks were started" },
  { "devices", LS_FIELD_ARRAY, offsetof (File, devices), .fields = device_fields,
    .element_size = sizeof (Device) },
  { "results", LS_FIELD_ARRAY, offsetof (File, results), .required = true, .fields = result_fields,
    .element_size = sizeof (Result), .meaning = "the rows" },
  { "out_of_bounds", LS_FIELD_OBJECT, 0, .fields = bounds_fields },
  { NULL },
};

static void
read_results (LsNcclTests *t, const LsJsonDoc *doc, const File *file, LsDiagList *diags)
{
  const cJSON *results = ls_json_doc_at (doc, "results");
  for (guint i = 0; file->results && i < file->results->len; i++) {
    const Result *r = &g_array_index (file->results, Result, i);
    const Side *s = &r->out_of_place;
    g_autofree char *trouble
        = s->cpu_time > 0 ? g_strdup (TIMES_OF_HOST) : take_row (t, r->bytes, s->time, s->algbw, s->n_wrong);
    if (trouble)
      ls_json_doc_wrong (doc, ls_json_at (cJSON_GetArrayItem (results, (int) i), "out_of_place"), diags, "%s",
                         trouble);
  }
  if (file->n_out_of_bounds > 0)
    ls_json_doc_wrong (doc, ls_json_doc_at (doc, "out_of_bounds"), diags,
                       "%" G_GUINT64_FORMAT " out of bounds values: times of wrong results are worth nothing",
                       file->n_out_of_bounds);
}

static void
read_devices (LsNcclTests *t, const LsJsonDoc *doc, const File *file, LsDiagList *diags)
{
  Devices d = devices_new ();
  d.per_process = MAX (1, file->n_threads * file->n_gpus);
  for (guint i = 0; file->devices && i < file->devices->len; i++) {
    const Device *device = &g_array_index (file->devices, Device, i);
    add_device (&d, device->rank, device->group, device->host);
    if (!t->gpu)
      t->gpu = g_strdup (device->gpu);
  }
  if (d.has_groups)
    ls_json_doc_wrong (doc, ls_json_doc_root (doc), diags, SEVERAL_GROUPS);
  devices_end (&d, t);
}

/* One run. */
static void
read_json (GPtrArray *runs, const char *path, const char *sha256, const char *text, size_t n,
           LsDiagList *diags)
{
  LsNcclTests *t = run_new (path, sha256);
  g_ptr_array_add (runs, t);
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, n, path, diags);
  if (!doc)
    return;
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  File file = { 0 };
  if (ls_fields_read (file_fields, doc, ls_json_doc_root (doc), &file, notes, diags)) {
    read_results (t, doc, &file, diags);
    read_devices (t, doc, &file, diags);
    const char *program = cJSON_GetStringValue (cJSON_GetArrayItem (ls_json_doc_at (doc, "args"), 0));
    t->test = program ? test_name (program) : NULL;
    t->date = g_steal_pointer (&file.date);
    t->version = file.nccl_version > 0 ? g_strdup_printf ("%" G_GUINT64_FORMAT, file.nccl_version) : NULL;
  }
  ls_fields_clear (file_fields, &file);
  if (ls_diag_list_n (diags) == n_before)
    check_run (t, diags);
}

/* ---- file ---- */

static void
read_texts (GPtrArray *runs, const char *path, const char *sha256, const char *text, size_t n,
            LsDiagList *diags)
{
  if (!g_utf8_validate (text, (gssize) n, NULL)) {
    ls_file_diag (diags, LS_ERROR_INPUT, path, NULL, "expected UTF-8 text without NUL");
    return;
  }
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  g_autoptr (GArray) starts = nccl_tests_split (lines);
  for (guint i = 0; i < starts->len; i++) {
    LsNcclTests *t = run_new (path, sha256);
    guint first = g_array_index (starts, guint, i),
          last = i + 1 < starts->len ? g_array_index (starts, guint, i + 1) : g_strv_length (lines);
    t->line = starts->len > 1 ? (int) first + 1 : 0;
    g_ptr_array_add (runs, t);
    if (read_lines (t, lines, first, last, diags))
      check_run (t, diags);
  }
}

/* ---- operations ---- */

const char *
ls_nccl_tests_op (const LsNcclTests *t)
{
  static const char *const names[][2] = {
    { "all_reduce", "all-reduce" }, { "all_gather", "all-gather" }, { "reduce_scatter", "reduce-scatter" },
    { "broadcast", "broadcast" },   { "reduce", "reduce" },         { "alltoall", "all-to-all" },
    { "gather", "gather" },         { "scatter", "scatter" },       { "sendrecv", "send-recv" },
  };
  for (guint i = 0; !t->op && t->test && i < G_N_ELEMENTS (names); i++)
    if (strcmp (names[i][0], t->test) == 0)
      return names[i][1];
  return t->op;
}

const char *
ls_nccl_tests_likely_op (const LsNcclTests *t)
{
  const double n = t->n_ranks, factor = t->bus_factor, once = (n - 1) / n;
  const struct {
    const char *op;
    double factor;
    bool reduces, has_root;
  } ops[] = { { "all-reduce", 2 * once, true, false },
              { "reduce-scatter", once, true, false },
              { "reduce", 1, true, true },
              { "broadcast", 1, false, true },
              { "send-recv", 1, false, false } };
  for (guint i = 0; i < G_N_ELEMENTS (ops); i++)
    if (ops[i].reduces == t->reduces && ops[i].has_root == t->has_root
        && fabs (factor / ops[i].factor - 1) < RATE_SLACK / 4) /* (n-1)/n of 16 GPUs is 0.94 */
      return ops[i].op;
  return NULL;
}

/* ---- tables ---- */

/* What nccl-tests prints has no commas there. */
bool
ls_is_collectives (const char *text)
{
  while (*text == '#' || *text == '\n' || *text == '\r')
    text += strcspn (text, "\n") + (text[strcspn (text, "\n")] == '\n');
  g_autofree char *header = g_strndup (text, strcspn (text, "\n"));
  return strchr (header, ',') && strstr (header, "size_bytes");
}

static LsNcclTests *
run_of (GPtrArray *runs, const char *path, const char *sha256, const LsMeasuredCollective *m)
{
  for (guint i = 0; i < runs->len; i++) {
    LsNcclTests *run = runs->pdata[i];
    if (strcmp (run->op, m->op) == 0 && strcmp (run->cluster, m->cluster) == 0
        && g_strcmp0 (run->trust, m->trust) == 0 && run->n_ranks == m->n_gpus && run->n_hosts == m->n_nodes)
      return run;
  }
  LsNcclTests *t = run_new (path, sha256);
  t->op = g_strdup (m->op);
  t->cluster = g_strdup (m->cluster);
  t->trust = g_strdup (m->trust);
  t->n_ranks = m->n_gpus;
  t->n_hosts = m->n_nodes;
  g_ptr_array_add (runs, t);
  return t;
}

static void
read_table (GPtrArray *runs, const char *path, const char *sha256, const char *text, size_t n,
            LsDiagList *diags)
{
  g_autoptr (GPtrArray) rows = ls_read_collectives (path, text, NULL, diags);
  for (guint i = 0; rows && i < rows->len; i++) {
    const LsMeasuredCollective *m = rows->pdata[i];
    if (m->is_single) /* with what the host took, which no figure of NCCL has */
      continue;
    LsNcclTests *t = run_of (runs, path, sha256, m);
    const LsNcclTestsRow row = { m->bytes, m->time_us };
    if (m->bytes > 0)
      g_array_append_val (t->rows, row);
  }
  for (guint i = 0; i < runs->len; i++)
    check_run (runs->pdata[i], diags);
}

GPtrArray *
ls_nccl_tests_parse (const char *path, const char *text, size_t n, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  g_autofree char *own = text ? NULL : ls_read_file (path, LS_MAX_INPUT_BYTES, &n, diags);
  if (!text && !(text = own))
    return NULL;
  g_autoptr (GPtrArray) runs = g_ptr_array_new_with_free_func ((GDestroyNotify) ls_nccl_tests_free);
  g_autofree char *sha256 = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *) text, n);
  bool is_json = text[strspn (text, " \t\r\n")] == '{';
  (is_json                        ? read_json
       : ls_is_collectives (text) ? read_table
                                  : read_texts) (runs, path, sha256, text, n, diags);
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&runs) : NULL;
}
