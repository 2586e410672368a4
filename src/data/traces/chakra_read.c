/* data/traces/chakra_read.c — the files of a folder of Chakra traces, message by message, into one trace: its
 * head, ranks and programs. */
#include "data/traces/chakra_read.h"

#include <string.h>

#include "base/printable.h"
#include "data/text/read_file.h"

/* --- messages ------------------------------------------------------------------------------ */

typedef struct {
  const uint8_t *at, *end;
} Cursor;

/* The next message: NULL with *ret_n 0 at the end, NULL with *ret_n 1 if it is damaged or too large. */
static const uint8_t *
next_message (Cursor *c, size_t *ret_n)
{
  uint64_t n = 0;
  *ret_n = c->at < c->end;
  if (c->at == c->end)
    return NULL;
  for (unsigned shift = 0;; shift += 7) {
    if (c->at == c->end || shift > 28)
      return NULL;
    n |= (uint64_t) (*c->at & 0x7f) << shift;
    if (!(*c->at++ & 0x80))
      break;
  }
  if (n > LS_CHAKRA_MAX_MESSAGE || n > (uint64_t) (c->end - c->at))
    return NULL;
  const uint8_t *message = c->at;
  c->at += n;
  *ret_n = (size_t) n;
  return message;
}

static const char *
head_text (const ChakraProtoMsg__GlobalMetadata *head, const char *name)
{
  return chakra_text (chakra_find (head->attr, head->n_attr, name));
}

/* --- process groups ------------------------------------------------------------------------ */

bool
chakra_is_member_list (const cJSON *ranks)
{
  const cJSON *rank;
  if (!cJSON_IsArray (ranks))
    return false;
  cJSON_ArrayForEach (rank, ranks)
    if (!cJSON_IsNumber (rank) || rank->valuedouble < 0 || rank->valuedouble >= LS_CHAKRA_MAX_RANKS
        || rank->valuedouble != (double) rank->valueint)
      return false;
  return true;
}

static void
group_free (gpointer group)
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

ChakraGroup *
chakra_add_group (ChakraReading *all, const char *name, const cJSON *ranks)
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

static bool
read_groups_file (ChakraReading *all, const char *text)
{
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), CHAKRA_GROUPS, all->diags);
  const cJSON *group, *root = doc ? ls_json_doc_root (doc) : NULL;
  if (!doc)
    return false;
  cJSON_ArrayForEach (group, root) {
    if (!group->string || !chakra_is_member_list (group))
      return ls_json_doc_wrong (doc, group, all->diags,
                                "expected a list of ranks below %d for each name of a process group",
                                LS_CHAKRA_MAX_RANKS);
    chakra_add_group (all, group->string, group);
  }
  return true;
}

/* --- head and program of a rank -------------------------------------------------------------- */

/* Of the first file; all others must say the same. */
static void
take_head (RankReading *x, const ChakraProtoMsg__GlobalMetadata *head)
{
  static const char *const keys[N_HEAD_TEXTS]
      = { "name", "source", "measured_on", "assumes", "compute_scale", "model", "strategy" };
  for (int i = 0; i < N_HEAD_TEXTS; i++) {
    const char *text = head_text (head, keys[i]);
    cJSON *json = i >= HEAD_MODEL && text ? cJSON_ParseWithOpts (text, NULL, TRUE) : NULL;
    if (i >= HEAD_MODEL && text && !cJSON_IsObject (json))
      chakra_complain (x, NULL, "%s: expected a JSON object", keys[i]);
    cJSON_Delete (json);
    if (x->rank == 0)
      x->all->head[i] = g_strdup (text);
    else if (g_strcmp0 (text, x->all->head[i]) != 0)
      chakra_complain (x, NULL, "%s: another than that of rank 0", keys[i]);
  }
}

static void
read_ours (RankReading *x, const ChakraProtoMsg__GlobalMetadata *head)
{
  uint32_t rank = x->rank, n_ranks = x->all->n_ranks;
  const struct {
    const char *name;
    uint64_t max;
    uint32_t *to; /* stays where the head does not say it */
  } numbers[] = {
    { "rank", LS_CHAKRA_MAX_RANKS, &rank },
    { "ranks", LS_CHAKRA_MAX_RANKS, &n_ranks },
    { "role", UINT16_MAX, &x->is.role },
    { "gpu", UINT32_MAX - 1, &x->is.gpu },
    { "prev", LS_CHAKRA_MAX_RANKS, &x->is.peer[0] },
    { "next", LS_CHAKRA_MAX_RANKS, &x->is.peer[1] },
    { "stage", UINT16_MAX, &x->program.stage },
  };
  take_head (x, head);
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++) {
    uint64_t value = *numbers[i].to;
    chakra_uint_in (x, NULL, chakra_find (head->attr, head->n_attr, numbers[i].name), numbers[i].max, &value);
    *numbers[i].to = (uint32_t) value;
  }
  if (rank != x->rank)
    chakra_complain (x, NULL, "the file says that it is of rank %u", rank);
  if (n_ranks != x->all->n_ranks)
    chakra_complain (x, NULL, "the file says that there are %u ranks; there are %u files", n_ranks,
                     x->all->n_ranks);
  chakra_uint_in (x, NULL, chakra_find (head->attr, head->n_attr, "params"), UINT64_C (1) << 53,
                  &x->program.n_params);
  for (int c = 0; c < LS_N_MEM; c++) {
    g_autofree char *name = g_strconcat (CHAKRA_STATIC, ls_mem_category_names[c].name, NULL);
    chakra_uint_in (x, NULL, chakra_find (head->attr, head->n_attr, name), (uint64_t) LS_TRACE_MAX_BYTES,
                    &x->program.static_bytes[c]);
  }
}

/* The program of a role that a rank has named, the same for all of them. */
static void
take_role (RankReading *x)
{
  ChakraReading *all = x->all;
  g_autofree char *what = ls_fields_text (ls_trace_role_fields, &x->program, NULL);
  while (all->roles->len <= x->is.role) {
    static const TraceRole none;
    g_ptr_array_add (all->roles, NULL);
    g_array_append_val (all->file.roles, none);
  }
  char **known = (char **) &all->roles->pdata[x->is.role];
  if (*known && strcmp (*known, what) != 0)
    chakra_complain (x, NULL, "its program is not that of the other ranks of role %u", x->is.role);
  if (*known)
    return;
  all->n_bytes += strlen (what);
  *known = g_steal_pointer (&what);
  g_array_index (all->file.roles, TraceRole, x->is.role) = x->program;
  x->program = (TraceRole) { 0 };
}

/* --- a file ---------------------------------------------------------------------------------- */

static bool
read_messages (RankReading *x, const GByteArray *file)
{
  if (file->len == 0)
    return chakra_complain (x, NULL, "an empty file; expected a Chakra trace");
  Cursor c = { file->data, file->data + file->len };
  size_t n;
  const uint8_t *bytes = next_message (&c, &n);
  ChakraProtoMsg__GlobalMetadata *head
      = bytes ? chakra_proto_msg__global_metadata__unpack (NULL, n, bytes) : NULL;
  if (!head)
    return chakra_complain (x, NULL, "expected a Chakra trace, which begins with its GlobalMetadata");
  const char *form = head_text (head, "lockstep");
  x->is_ours = form != NULL;
  if (form && strcmp (form, CHAKRA_FORM) != 0)
    chakra_complain (x, NULL, "expected \"%s\"; got \"%s\"", CHAKRA_FORM, form);
  if (form)
    read_ours (x, head);
  chakra_proto_msg__global_metadata__free_unpacked (head, NULL);
  while (x->ok && (bytes = next_message (&c, &n))) {
    ChakraNode *node = chakra_proto_msg__node__unpack (NULL, n, bytes);
    if (!node)
      return chakra_complain (x, NULL, "a damaged message at byte %td; expected a node", bytes - file->data);
    chakra_read_node (x, node);
    chakra_proto_msg__node__free_unpacked (node, NULL);
  }
  if (x->ok && n > 0)
    chakra_complain (x, NULL, "a message at byte %td that is cut off, or longer than %zu bytes",
                     c.at - file->data, LS_CHAKRA_MAX_MESSAGE);
  return x->ok;
}

static RankReading
rank_reading (ChakraReading *all, uint32_t rank)
{
  RankReading x = { .all = all, .rank = rank, .ok = true, .is = ls_trace_rank_blank };
  x.is.role = LS_TRACE_ABSENT;
  return x;
}

static bool
read_rank (ChakraReading *all, uint32_t rank, const GByteArray *file)
{
  RankReading x = rank_reading (all, rank);
  x.is.gpu = rank;
  chakra_nodes_init (&x);
  if (read_messages (&x, file) && chakra_end_instance (&x) && chakra_check_size (&x, 0)) {
    /* ranks with the same program have one role: the one that they name, else the next */
    if (x.is.role != LS_TRACE_ABSENT) {
      take_role (&x);
    } else {
      x.is.role
          = ls_trace_place (all->programs, ls_trace_role_fields, all->file.roles, &x.program, &all->n_bytes);
      x.program = (TraceRole) { 0 };
    }
    g_array_append_val (all->file.ranks, x.is);
  }
  chakra_nodes_clear (&x);
  return x.ok;
}

/* --- what ranks are, where each role has a file ------------------------------------------------ */

static bool
refuse (const LsJsonDoc *doc, const cJSON *node, LsDiagList *diags, const char *expected)
{
  return ls_json_doc_wrong (doc, node, diags, "expected %s", expected);
}

static const cJSON *
list_of (const LsJsonDoc *doc, const char *key)
{
  const cJSON *list = ls_json_doc_at (doc, key);
  return cJSON_IsArray (list) ? list : NULL;
}

static bool
check_manifest (const LsJsonDoc *doc, uint32_t *ret_n_ranks, LsDiagList *diags)
{
  const cJSON *root = ls_json_doc_root (doc), *schema = ls_json_at (root, "schema"), *item;
  const cJSON *roles = list_of (doc, "roles"), *ranks = list_of (doc, "ranks");
  if (g_strcmp0 (ls_json_text (root, "schema"), CHAKRA_MANIFEST_SCHEMA) != 0)
    return refuse (doc, schema ? schema : root, diags, "\"schema\": \"" CHAKRA_MANIFEST_SCHEMA "\"");
  if (!roles || !ranks)
    return refuse (doc, root, diags, "a list \"roles\" of files, and a list \"ranks\"");
  cJSON_ArrayForEach (item, roles) {
    const char *name = cJSON_GetStringValue (item);
    if (!name || !g_str_has_suffix (name, ".et") || strpbrk (name, "/\\"))
      return refuse (doc, item, diags, "the name of a file in this folder, NAME.R.et");
  }
  int n = cJSON_GetArraySize (ranks);
  if (n < 1 || n > LS_CHAKRA_MAX_RANKS)
    return refuse (doc, ranks, diags, "1 to 65536 ranks");
  if (cJSON_GetArraySize (roles) > n)
    return refuse (doc, roles, diags, "no more roles than ranks");
  *ret_n_ranks = (uint32_t) n;
  return true;
}

/* What the file of a role says of the groups of its first rank only. */
static bool
read_axes (ChakraReading *all, const LsJsonDoc *doc)
{
  const cJSON *groups = ls_json_doc_at (doc, "groups"), *said;
  cJSON_ArrayForEach (said, groups) {
    const cJSON *axis = ls_json_at (said, "axis");
    ChakraGroup *g = said->string ? chakra_group (all, said->string) : NULL;
    if (!g)
      return refuse (doc, said, all->diags, "a process group of " CHAKRA_GROUPS);
    g->is.axis = ls_enum_value (ls_axis_names, cJSON_GetStringValue (axis));
    if (g->is.axis < 0)
      return refuse (doc, axis ? axis : said, all->diags, "\"axis\", one of ours");
    g->is.spans_stages = cJSON_IsTrue (ls_json_at (said, "spans_stages"));
  }
  return true;
}

/* A whole number up to max; false: with a complaint. */
static bool
number_of (const LsJsonDoc *doc, const cJSON *item, double max, uint32_t *dest, LsDiagList *diags)
{
  if (!cJSON_IsNumber (item) || !(item->valuedouble >= 0 && item->valuedouble <= max)
      || item->valuedouble != (double) (uint64_t) item->valuedouble)
    return refuse (doc, item, diags, "a whole number, of a role, GPU or rank that there is");
  *dest = (uint32_t) item->valuedouble;
  return true;
}

static bool
read_listed_key (RankReading *x, const LsJsonDoc *doc, const cJSON *item)
{
  ChakraReading *all = x->all;
  if (strcmp (item->string, "role") == 0)
    return number_of (doc, item, cJSON_GetArraySize (list_of (doc, "roles")) - 1, &x->is.role, all->diags);
  if (strcmp (item->string, "gpu") == 0)
    return number_of (doc, item, UINT32_MAX - 1, &x->is.gpu, all->diags);
  int slot = ls_enum_value (ls_slot_names, item->string);
  if (slot >= LS_SLOT_PREV)
    return number_of (doc, item, all->n_ranks - 1, &x->is.peer[slot - LS_SLOT_PREV], all->diags);
  const ChakraGroup *group = cJSON_IsString (item) ? chakra_group (all, item->valuestring) : NULL;
  if (slot < 0)
    return refuse (doc, item, all->diags, "role, gpu, prev, next or a slot");
  if (!group)
    return refuse (doc, item, all->diags, "a process group of " CHAKRA_GROUPS);
  x->is.comm[slot] = group->index;
  return true;
}

/* --- the whole -------------------------------------------------------------------------------- */

static bool
check_roles (ChakraReading *all)
{
  bool ok = all->roles->len == 0 || g_hash_table_size (all->programs) == 0;
  for (guint i = 0; ok && i < all->roles->len; i++)
    ok = all->roles->pdata[i] != NULL;
  return ok
      || ls_file_diag (all->diags, LS_ERROR_INPUT, all->name, NULL,
                       "expected a rank of each role, from 0 on; some say their role, or some are missing");
}

static ChakraReading
reading_new (const char *name, uint32_t n_ranks, bool has_rings, LsDiagList *diags)
{
  ChakraReading all = { .name = name, .diags = diags, .n_ranks = n_ranks, .has_rings = has_rings };
  GHashTable **known[] = { &all.kernels, &all.segments, &all.programs };
  for (guint i = 0; i < G_N_ELEMENTS (known); i++)
    *known[i] = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  all.roles = g_ptr_array_new_with_free_func (g_free);
  all.groups = g_ptr_array_new_with_free_func (group_free);
  all.file = ls_trace_file_new (name);
  return all;
}

static void
reading_clear (ChakraReading *all)
{
  g_hash_table_unref (all->kernels);
  g_hash_table_unref (all->segments);
  g_hash_table_unref (all->programs);
  g_ptr_array_unref (all->roles);
  g_ptr_array_unref (all->groups);
  ls_fields_clear (ls_trace_fields, &all->file);
  for (int i = 0; i < N_HEAD_TEXTS; i++)
    g_free (all->head[i]);
}

/* What is asked of the files of a folder. */
typedef struct {
  const char *name;
  uint32_t n_ranks;
  ChakraLoad load;
  gconstpointer data;
  const char *groups; /* NULL: no such file */
  const LsJsonDoc
      *manifest; /* of a folder with a file for each role, which `load` takes; NULL: for each rank */
} Source;

/* A rank that the manifest lists: the first of a role has its file, and the others run as it does. */
static bool
read_listed (ChakraReading *all, const Source *source, uint32_t rank, const cJSON *said)
{
  RankReading x = rank_reading (all, rank);
  const cJSON *item;
  if (!cJSON_IsObject (said))
    return refuse (source->manifest, said, all->diags, "a rank: {\"role\": 0, \"gpu\": 0, ...}");
  cJSON_ArrayForEach (item, said)
    if (!read_listed_key (&x, source->manifest, item))
      return false;
  if (x.is.role == LS_TRACE_ABSENT || x.is.gpu == LS_TRACE_ABSENT)
    return refuse (source->manifest, said, all->diags, "a rank with \"role\" and \"gpu\"");
  if (x.is.role < all->roles->len && all->roles->pdata[x.is.role]) {
    g_array_append_val (all->file.ranks, x.is);
    return true;
  }
  g_autoptr (GByteArray) file = source->load (x.is.role, source->data, all->diags);
  if (!file || !read_rank (all, rank, file))
    return false;
  return memcmp (&x.is, &g_array_index (all->file.ranks, TraceRank, rank), sizeof x.is) == 0
      || chakra_complain (&x, NULL, CHAKRA_MANIFEST " has it as another rank than its file");
}

static bool
read_all (ChakraReading *all, const Source *source)
{
  const cJSON *said = source->manifest ? list_of (source->manifest, "ranks")->child : NULL;
  bool ok = !source->groups || read_groups_file (all, source->groups);
  ok = ok && (!source->manifest || read_axes (all, source->manifest));
  for (uint32_t rank = 0; ok && rank < source->n_ranks; rank++) {
    if (said) {
      ok = read_listed (all, source, rank, said);
      said = said->next;
      continue;
    }
    g_autoptr (GByteArray) file = source->load (rank, source->data, all->diags);
    ok = file && read_rank (all, rank, file);
  }
  return ok;
}

static LsTrace *
trace_of (ChakraReading *all, uint32_t dp)
{
  for (guint i = 0; i < all->groups->len; i++) {
    ChakraGroup *g = all->groups->pdata[i];
    g->is.axis = g->is.axis < 0 ? LS_AXIS_DP : g->is.axis;
    g_array_append_val (all->file.communicators, g->is);
    g->is.ranks = NULL;
  }
  all->file.source
      = ls_printable (all->head[HEAD_SOURCE] ? all->head[HEAD_SOURCE] : "Chakra execution traces");
  all->file.measured_on = ls_printable (all->head[HEAD_GPU]);
  all->file.assumes = ls_printable (all->head[HEAD_ASSUMES]);
  all->file.compute_scale = all->head[HEAD_SCALE] ? g_ascii_strtod (all->head[HEAD_SCALE], NULL) : 1;
  bool has_work = all->head[HEAD_MODEL] && all->head[HEAD_STRATEGY];
  g_autofree char *text = has_work
      ? g_strdup_printf ("{\"model\":%s,\n\"strategy\":%s}", all->head[HEAD_MODEL], all->head[HEAD_STRATEGY])
      : NULL;
  g_autoptr (LsJsonDoc) work = text ? ls_json_doc_parse (text, strlen (text), all->name, all->diags) : NULL;
  return has_work && !work ? NULL : ls_trace_of_file (&all->file, all->name, work, dp, all->diags);
}

/* Messages between neighbours as a pipeline has them, or else as a ring does. */
static LsTrace *
parse (const Source *source, uint32_t dp, LsDiagList *diags)
{
  g_autoptr (LsDiagList) tried = ls_diag_list_new_counting ();
  ChakraReading all = reading_new (source->name, source->n_ranks, false, tried);
  bool ok = read_all (&all, source) && check_roles (&all);
  if (!ok) {
    bool has_rings = all.wants_rings;
    reading_clear (&all);
    all = reading_new (source->name, source->n_ranks, has_rings, diags);
    ok = read_all (&all, source) && check_roles (&all);
  }
  all.diags = diags;
  LsTrace *t = ok ? trace_of (&all, dp) : NULL;
  reading_clear (&all);
  return t;
}

static GByteArray *
load_given (uint32_t rank, gconstpointer files, LsDiagList *diags)
{
  return g_byte_array_ref (((const GPtrArray *) files)->pdata[rank]);
}

LsTrace *
ls_chakra_parse (const char *name, const GPtrArray *files, const char *groups, const char *manifest,
                 LsDiagList *diags)
{
  Source source = { name, files->len, load_given, files, groups, NULL };
  g_autoptr (LsJsonDoc) doc
      = manifest ? ls_json_doc_parse (manifest, strlen (manifest), CHAKRA_MANIFEST, diags) : NULL;
  if (manifest && (!doc || !check_manifest (doc, &source.n_ranks, diags)))
    return NULL;
  guint n_files = doc ? (guint) cJSON_GetArraySize (list_of (doc, "roles")) : files->len;
  if (n_files != files->len) {
    ls_file_diag (diags, LS_ERROR_INPUT, name, NULL, "expected the files of %u roles; got %u", n_files,
                  files->len);
    return NULL;
  }
  source.manifest = doc;
  return parse (&source, 0, diags);
}

/* --- the files of a folder ------------------------------------------------------------------------ */

/* "trace" and 12 of "trace.12.et". */
static bool
split_name (const char *name, char **ret_prefix, guint64 *ret_rank)
{
  g_auto (GStrv) parts = g_strsplit (name, ".", -1);
  guint n = g_strv_length (parts);
  if (n < 3 || strcmp (parts[n - 1], "et") != 0
      || !g_ascii_string_to_unsigned (parts[n - 2], 10, 0, LS_CHAKRA_MAX_RANKS - 1, ret_rank, NULL))
    return false;
  *ret_prefix = g_strndup (name, strlen (name) - strlen (parts[n - 2]) - strlen ("..et"));
  return true;
}

static GPtrArray *
refuse_folder (const char *folder, LsDiagList *diags, const char *message)
{
  ls_file_diag (diags, LS_ERROR_INPUT, folder, NULL, "%s", message);
  return NULL;
}

/* Paths (char *) of NAME.R.et by rank, of one NAME; NULL: diagnostics. */
static GPtrArray *
find_files (const char *folder, LsDiagList *diags)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GDir) dir = g_dir_open (folder, 0, &error);
  if (!dir)
    return refuse_folder (folder, diags, error->message);
  g_autoptr (GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);
  g_autofree char *first = NULL;
  guint n = 0;
  for (const char *name = g_dir_read_name (dir); name; name = g_dir_read_name (dir)) {
    g_autofree char *prefix = NULL;
    guint64 rank;
    if (!split_name (name, &prefix, &rank))
      continue;
    if (first && strcmp (first, prefix) != 0)
      return refuse_folder (folder, diags,
                            "expected traces of one job, NAME.0.et, NAME.1.et, ...; got several names");
    first = first ? first : g_steal_pointer (&prefix);
    if (rank >= paths->len)
      g_ptr_array_set_size (paths, (int) rank + 1);
    g_free (paths->pdata[rank]);
    paths->pdata[rank] = g_build_filename (folder, name, NULL);
    n++;
  }
  if (n == 0 || n != paths->len)
    return refuse_folder (folder, diags,
                          "expected the traces of all ranks, NAME.0.et, NAME.1.et, ...; some are missing");
  return g_steal_pointer (&paths);
}

/* --- folders ------------------------------------------------------------------------------------ */

static GByteArray *
load_file (uint32_t rank, gconstpointer paths, LsDiagList *diags)
{
  size_t n;
  char *data = ls_read_file (((const GPtrArray *) paths)->pdata[rank], LS_CHAKRA_MAX_FILE, &n, diags);
  return data ? g_byte_array_new_take ((guint8 *) data, n) : NULL;
}

/* The text of a file of the folder; *ret_is_there: whether there is one. */
static char *
load_beside (const char *folder, const char *name, bool *ret_is_there, LsDiagList *diags)
{
  size_t n;
  g_autofree char *path = g_build_filename (folder, name, NULL);
  *ret_is_there = g_file_test (path, G_FILE_TEST_EXISTS);
  return *ret_is_there ? ls_read_file (path, LS_MAX_INPUT_BYTES, &n, diags) : NULL;
}

LsTrace *
ls_chakra_load (const char *folder, uint32_t dp, LsDiagList *diags)
{
  g_autofree char *path = g_strdup (folder);
  for (size_t n = strlen (path); n > 1 && path[n - 1] == '/'; n--)
    path[n - 1] = '\0';
  bool has_roles, has_groups;
  uint32_t n_ranks;
  g_autofree char *text = load_beside (path, CHAKRA_MANIFEST, &has_roles, diags),
                  *name = g_build_filename (path, CHAKRA_MANIFEST, NULL);
  g_autoptr (LsJsonDoc) manifest = text ? ls_json_doc_parse (text, strlen (text), name, diags) : NULL;
  if (has_roles && (!manifest || !check_manifest (manifest, &n_ranks, diags)))
    return NULL;
  g_autoptr (GPtrArray) paths = manifest ? g_ptr_array_new_with_free_func (g_free) : find_files (path, diags);
  for (const cJSON *role = manifest ? list_of (manifest, "roles")->child : NULL; role; role = role->next)
    g_ptr_array_add (paths, g_build_filename (path, role->valuestring, NULL));
  g_autofree char *groups = paths ? load_beside (path, CHAKRA_GROUPS, &has_groups, diags) : NULL;
  if (!paths || (has_groups && !groups))
    return NULL;
  const Source source = { path, manifest ? n_ranks : paths->len, load_file, paths, groups, manifest };
  return parse (&source, dp, diags);
}
