
#include "data/measured/nccl_tests_run.h"
#include "data/text/field.h"

#define MAX_RANK  1048576.0
#define MAX_BYTES 1e15
#define MAX_TIME  1e13 /* us */

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
  { "size", LS_FIELD_UINT64, offsetof (Result, bytes), .required = true, .max = MAX_BYTES,
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
