/* data/measured/read_nccl_tests_text.c — one run of nccl-tests, in its text and in its JSON. */
#include <math.h>
#include <string.h>

#include "data/measured/read_nccl_tests.h"
#include "data/text/field.h"

#define MAX_RANK   (1u << 20)
#define MAX_BYTES  ((guint64) 1 << 50)
#define MAX_LABELS 5 /* size, count, type, redop, root: old versions leave the last two blank */
#define MIN_LABELS 3

typedef struct {
  LsNcclTests *t;
  LsDiagList *diags;
  LsNcclTestsDevices devices;
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
    complain (r, "these are times of the host (-C 1), not of the collective");
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
  ls_nccl_tests_add_device (&r->devices, rank, of_group, word (words, on + 1));
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
  g_autofree char *test = ls_nccl_tests_name (word (words, 4));
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
    r->t->test = ls_nccl_tests_name (word (words, 4));
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

static bool
number (const char *text, double *ret_value)
{
  char *end;
  *ret_value = g_ascii_strtod (text, &end);
  return *text && *end == '\0' && isfinite (*ret_value);
}

static void
read_row (Reader *r)
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
  double time_us, algbw, n_wrong = 0;
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
  g_autofree char *trouble = bytes > 0
      ? ls_nccl_tests_row_trouble ((double) bytes, time_us, algbw, r->is_error ? 0 : n_wrong)
      : NULL;
  const LsNcclTestsRow row = { bytes, time_us };
  if (trouble)
    complain (r, "%s", trouble);
  else if (bytes > 0)
    g_array_append_val (r->t->rows, row);
}

/* What MPI and NCCL print in between ("NCCL version 2.18.5+cuda12.2", a host's banner) is
 * no row: those begin with a blank or a digit. */
static bool
is_row (const char *line)
{
  const char *first = line + strspn (line, " \t");
  return g_ascii_isdigit (*first) || (*first == '-' && g_ascii_isdigit (first[1]));
}

bool
ls_nccl_tests_read_lines (LsNcclTests *t, char **lines, guint first, guint last, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  Reader r = { .t = t, .diags = diags };
  ls_nccl_tests_devices_init (&r.devices);
  for (guint i = first; i < last; i++) {
    r.number = (int) i + 1;
    r.line = g_strchomp (lines[i]);
    if (*r.line == '#')
      read_comment (&r);
    else if (*r.line == '{')
      complain (&r, "JSON among text; expected a file for each");
    else if (is_row (r.line) && !r.is_useless)
      read_row (&r);
  }
  if (r.devices.has_groups)
    ls_diag_add (diags, LS_ERROR_INPUT, t->path, t->line, t->line > 0, NULL, NULL, NULL,
                 "several groups of ranks ran at once: their times are not those of one alone");
  t->n_ranks = ls_nccl_tests_n_ranks (&r.devices);
  t->n_hosts = g_hash_table_size (r.devices.hosts);
  ls_nccl_tests_devices_clear (&r.devices);
  return ls_diag_list_n (diags) == n_before;
}

/* --- as JSON ------------------------------------------------------------------------------------- */

#define MAX_JSON_RANK  1048576.0
#define MAX_JSON_BYTES 1e15
#define MAX_TIME       1e13 /* us */

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
  { "time", LS_FIELD_DOUBLE, offsetof (Side, time), .max = MAX_TIME },
  { "cpu_time", LS_FIELD_DOUBLE, offsetof (Side, cpu_time), .max = MAX_TIME },
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
  { "rank", LS_FIELD_UINT, offsetof (Device, rank), .required = true, .max = MAX_JSON_RANK },
  { "group", LS_FIELD_UINT, offsetof (Device, group), .max = MAX_JSON_RANK },
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

/* The program is the first of `args`. */
static char *
test_of (const LsJsonDoc *doc)
{
  const cJSON *args = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "args");
  const char *program = cJSON_GetStringValue (cJSON_GetArrayItem (args, 0));
  return program ? ls_nccl_tests_name (program) : NULL;
}

static void
read_results (LsNcclTests *t, const LsJsonDoc *doc, const File *file, LsDiagList *diags)
{
  const cJSON *results = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "results");
  for (guint i = 0; file->results && i < file->results->len; i++) {
    const Result *r = &g_array_index (file->results, Result, i);
    const Side *s = &r->out_of_place;
    const cJSON *node
        = cJSON_GetObjectItemCaseSensitive (cJSON_GetArrayItem (results, (int) i), "out_of_place");
    g_autofree char *trouble = NULL;
    if (s->cpu_time > 0)
      trouble = g_strdup ("these are times of the host (-C 1), not of the collective");
    else if (r->bytes > 0)
      trouble = ls_nccl_tests_row_trouble ((double) r->bytes, s->time, s->algbw, s->n_wrong);
    const LsNcclTestsRow row = { r->bytes, s->time };
    if (trouble)
      ls_json_doc_diag (doc, node, LS_JSON_AT_VALUE, diags, NULL, "%s", trouble);
    else if (r->bytes > 0)
      g_array_append_val (t->rows, row);
  }
  const cJSON *bounds = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "out_of_bounds");
  if (file->n_out_of_bounds > 0)
    ls_json_doc_diag (doc, bounds, LS_JSON_AT_VALUE, diags, NULL,
                      "%" G_GUINT64_FORMAT " out of bounds values: times of wrong results are worth nothing",
                      file->n_out_of_bounds);
}

static void
read_devices (LsNcclTests *t, const LsJsonDoc *doc, const File *file, LsDiagList *diags)
{
  LsNcclTestsDevices d;
  ls_nccl_tests_devices_init (&d);
  d.per_process = MAX (1, file->n_threads * file->n_gpus);
  for (guint i = 0; file->devices && i < file->devices->len; i++) {
    const Device *device = &g_array_index (file->devices, Device, i);
    ls_nccl_tests_add_device (&d, device->rank, device->group, device->host);
    if (!t->gpu)
      t->gpu = g_strdup (device->gpu);
  }
  if (d.has_groups)
    ls_json_doc_diag (doc, ls_json_doc_root (doc), LS_JSON_AT_VALUE, diags, NULL,
                      "several groups of ranks ran at once: their times are not those of one alone");
  t->n_ranks = ls_nccl_tests_n_ranks (&d);
  t->n_hosts = g_hash_table_size (d.hosts);
  ls_nccl_tests_devices_clear (&d);
}

bool
ls_nccl_tests_read_json (LsNcclTests *t, const char *text, size_t n, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, n, t->path, diags);
  if (!doc)
    return false;
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  File file = { 0 };
  if (ls_fields_read (file_fields, doc, ls_json_doc_root (doc), &file, notes, diags)) {
    read_results (t, doc, &file, diags);
    read_devices (t, doc, &file, diags);
    t->test = test_of (doc);
    t->date = g_steal_pointer (&file.date);
    t->version = file.nccl_version > 0 ? g_strdup_printf ("%" G_GUINT64_FORMAT, file.nccl_version) : NULL;
  }
  ls_fields_clear (file_fields, &file);
  return ls_diag_list_n (diags) == n_before;
}
