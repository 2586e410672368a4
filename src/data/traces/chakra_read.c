/* data/traces/chakra_read.c — the files of a folder of Chakra traces, message by message, into the text of
 * one trace: its head, ranks and programs. */
#include "data/traces/chakra_read.h"

#include <string.h>

#include "data/text/read_file.h"

/* --- texts of several --------------------------------------------------------------------- */

static void
append_texts (GString *out, const char *key, const GPtrArray *list)
{
  g_string_append_printf (out, ",\n\"%s\":[", key);
  for (guint i = 0; i < list->len; i++)
    g_string_append_printf (out, "%s\n%s", i > 0 ? "," : "", (const char *) list->pdata[i]);
  g_string_append (out, "]");
}

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

/* `dest` stays where the head does not say it. */
static void
head_uint (RankReading *x, const ChakraProtoMsg__GlobalMetadata *head, const char *name, uint64_t max,
           uint64_t *dest)
{
  const ChakraAttr *attr = chakra_find (head->attr, head->n_attr, name);
  uint64_t value;
  if (!attr)
    return;
  if (!chakra_uint (attr, &value) || value > max)
    chakra_complain (x, NULL, "%s: expected a whole number up to %" G_GUINT64_FORMAT, name, max);
  else
    *dest = value;
}

/* --- head and program of a rank -------------------------------------------------------------- */

/* Of the first file; all others must say the same. */
static void
take_head (RankReading *x, const ChakraProtoMsg__GlobalMetadata *head)
{
  static const char *const keys[N_HEAD_TEXTS] = { "name", "source", "model", "strategy" };
  for (int i = 0; i < N_HEAD_TEXTS; i++) {
    const char *text = head_text (head, keys[i]);
    if (i >= HEAD_MODEL && text && !chakra_is_json_object (text))
      chakra_complain (x, NULL, "%s: expected a JSON object", keys[i]);
    if (x->rank == 0)
      x->all->head[i] = g_strdup (text);
    else if (g_strcmp0 (text, x->all->head[i]) != 0)
      chakra_complain (x, NULL, "%s: another than that of rank 0", keys[i]);
  }
}

static void
read_static (RankReading *x, const ChakraProtoMsg__GlobalMetadata *head, GString *out)
{
  bool has_any = false;
  for (int c = 0; c < LS_N_MEM; c++) {
    const char *category = ls_mem_category_name ((LsMemCategory) c);
    g_autofree char *name = g_strconcat (CHAKRA_STATIC, category, NULL);
    uint64_t bytes = 0;
    head_uint (x, head, name, (uint64_t) LS_TRACE_MAX_BYTES, &bytes);
    if (bytes == 0)
      continue;
    g_string_append_printf (out, "%s\"%s\":\"%" G_GUINT64_FORMAT "B\"", has_any ? "," : ",\"static\":{",
                            category, bytes);
    has_any = true;
  }
  g_string_append (out, has_any ? "}" : "");
}

static void
read_head (RankReading *x, const ChakraProtoMsg__GlobalMetadata *head)
{
  const char *form = head_text (head, "lockstep");
  uint64_t stage = 0, params = 0, rank = x->rank, n_ranks = x->all->n_ranks;
  x->is_ours = form != NULL;
  x->gpu = x->rank;
  x->role = x->peer[0] = x->peer[1] = LS_TRACE_ABSENT;
  if (form && strcmp (form, CHAKRA_FORM) != 0)
    chakra_complain (x, NULL, "expected \"%s\"; got \"%s\"", CHAKRA_FORM, form);
  if (form) {
    take_head (x, head);
    head_uint (x, head, "rank", LS_CHAKRA_MAX_RANKS, &rank);
    head_uint (x, head, "ranks", LS_CHAKRA_MAX_RANKS, &n_ranks);
    head_uint (x, head, "role", UINT16_MAX, &x->role);
    head_uint (x, head, "gpu", UINT32_MAX - 1, &x->gpu);
    head_uint (x, head, "prev", LS_CHAKRA_MAX_RANKS, &x->peer[0]);
    head_uint (x, head, "next", LS_CHAKRA_MAX_RANKS, &x->peer[1]);
    head_uint (x, head, "stage", UINT16_MAX, &stage);
    head_uint (x, head, "params", UINT64_C (1) << 53, &params);
  }
  if (rank != x->rank)
    chakra_complain (x, NULL, "the file says that it is of rank %" G_GUINT64_FORMAT, rank);
  if (n_ranks != x->all->n_ranks)
    chakra_complain (x, NULL, "the file says that there are %" G_GUINT64_FORMAT " ranks; there are %u files",
                     n_ranks, x->all->n_ranks);
  g_string_append_printf (x->program, "{\"stage\":%" G_GUINT64_FORMAT ",\"params\":%" G_GUINT64_FORMAT, stage,
                          params);
  if (form)
    read_static (x, head, x->program);
}

/* Text of a rank as lockstep.trace/1 has it, newly allocated. */
static char *
rank_text (const RankReading *x, uint32_t role)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "{\"role\":%u,\"gpu\":%" G_GUINT64_FORMAT, role, x->gpu);
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (x->slots[s])
      g_string_append_printf (out, ",\"%s\":%u", ls_slot_name ((LsSlot) s), x->slots[s]->index);
  for (int side = 0; side < 2; side++)
    if (x->peer[side] != LS_TRACE_ABSENT)
      g_string_append_printf (out, ",\"%s\":%" G_GUINT64_FORMAT,
                              ls_slot_name ((LsSlot) (LS_SLOT_PREV + side)), x->peer[side]);
  return g_string_free (g_string_append_c (out, '}'), FALSE);
}

static void
append_rank (RankReading *x, uint32_t role)
{
  char *text = rank_text (x, role);
  x->all->n_bytes += strlen (text);
  g_ptr_array_add (x->all->ranks, text);
}

/* Ranks with the same program have one role: the one that they name, else the next. */
static void
finish_rank (RankReading *x)
{
  ChakraReading *all = x->all;
  g_string_append_printf (x->program, ",\"lead\":%u,\"instances\":[%s]}", x->n_lead, x->instances->str);
  if (x->role == LS_TRACE_ABSENT) {
    append_rank (x, chakra_text_index (&all->programs, x->program->str));
    return;
  }
  while (all->roles->len <= x->role)
    g_ptr_array_add (all->roles, NULL);
  char **role = (char **) &all->roles->pdata[x->role];
  if (*role && strcmp (*role, x->program->str) != 0)
    chakra_complain (x, NULL, "its program is not that of the other ranks of role %" G_GUINT64_FORMAT,
                     x->role);
  if (!*role) {
    *role = g_strdup (x->program->str);
    all->n_bytes += x->program->len;
  }
  append_rank (x, (uint32_t) x->role);
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
  read_head (x, head);
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

static bool
read_rank (ChakraReading *all, uint32_t rank, const GByteArray *file)
{
  RankReading x = { .all = all, .rank = rank, .ok = true };
  x.program = g_string_new (NULL);
  x.instances = g_string_new (NULL);
  chakra_nodes_init (&x);
  if (read_messages (&x, file) && chakra_end_instance (&x) && chakra_check_size (&x, x.instances->len))
    finish_rank (&x);
  chakra_nodes_clear (&x);
  g_string_free (x.program, TRUE);
  g_string_free (x.instances, TRUE);
  return x.ok;
}

/* --- what ranks are, where each role has a file ------------------------------------------------ */

static bool
refuse (const LsJsonDoc *doc, const cJSON *node, LsDiagList *diags, const char *expected)
{
  ls_json_doc_diag (doc, node, LS_JSON_AT_VALUE, diags, NULL, "expected %s", expected);
  return false;
}

static const cJSON *
list_of (const LsJsonDoc *doc, const char *key)
{
  const cJSON *list = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), key);
  return cJSON_IsArray (list) ? list : NULL;
}

static bool
is_file_name (const cJSON *item)
{
  return cJSON_IsString (item) && g_str_has_suffix (item->valuestring, ".et")
      && !strpbrk (item->valuestring, "/\\");
}

static bool
check_manifest (const LsJsonDoc *doc, uint32_t *ret_n_ranks, LsDiagList *diags)
{
  const cJSON *root = ls_json_doc_root (doc), *schema = cJSON_GetObjectItemCaseSensitive (root, "schema"),
              *item;
  const cJSON *roles = list_of (doc, "roles"), *ranks = list_of (doc, "ranks");
  if (!cJSON_IsString (schema) || strcmp (schema->valuestring, CHAKRA_MANIFEST_SCHEMA) != 0)
    return refuse (doc, schema ? schema : root, diags, "\"schema\": \"" CHAKRA_MANIFEST_SCHEMA "\"");
  if (!roles || !ranks)
    return refuse (doc, root, diags, "a list \"roles\" of files, and a list \"ranks\"");
  cJSON_ArrayForEach (item, roles) if (!is_file_name (item)) return refuse (
      doc, item, diags, "the name of a file in this folder, NAME.R.et");
  int n = cJSON_GetArraySize (ranks);
  if (n < 1 || n > LS_CHAKRA_MAX_RANKS)
    return refuse (doc, ranks, diags, "1 to 65536 ranks");
  if (cJSON_GetArraySize (roles) > n)
    return refuse (doc, roles, diags, "no more roles than ranks");
  *ret_n_ranks = (uint32_t) n;
  return true;
}

/* The first; the others are next: names of files. */
static const cJSON *
listed_roles (const LsJsonDoc *doc)
{
  return list_of (doc, "roles")->child;
}

/* The same of ranks. */
static const cJSON *
listed_ranks (const LsJsonDoc *doc)
{
  return list_of (doc, "ranks")->child;
}

/* What the file of a role says of the groups of its first rank only. */
static bool
read_axes (ChakraReading *all, const LsJsonDoc *doc)
{
  const cJSON *groups = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "groups"), *said;
  cJSON_ArrayForEach (said, groups)
  {
    const cJSON *axis = cJSON_GetObjectItemCaseSensitive (said, "axis");
    ChakraGroup *g = said->string ? chakra_group (all, said->string) : NULL;
    if (!g)
      return refuse (doc, said, all->diags, "a process group of " CHAKRA_GROUPS);
    for (LsAxis a = 0; a < LS_N_AXES && cJSON_IsString (axis) && !g->axis; a++)
      if (strcmp (ls_axis_name (a), axis->valuestring) == 0)
        g->axis = g_strdup (axis->valuestring);
    if (!g->axis)
      return refuse (doc, axis ? axis : said, all->diags, "\"axis\", one of ours");
    g->spans_stages = cJSON_IsTrue (cJSON_GetObjectItemCaseSensitive (said, "spans_stages"));
  }
  return true;
}

/* A whole number up to max; false: with a complaint. */
static bool
number_of (const LsJsonDoc *doc, const cJSON *item, double max, uint64_t *dest, LsDiagList *diags)
{
  if (!cJSON_IsNumber (item) || !(item->valuedouble >= 0 && item->valuedouble <= max)
      || item->valuedouble != (double) (uint64_t) item->valuedouble)
    return refuse (doc, item, diags, "a whole number, of a role, GPU or rank that there is");
  *dest = (uint64_t) item->valuedouble;
  return true;
}

static bool
read_listed_key (RankReading *x, const LsJsonDoc *doc, const cJSON *item)
{
  ChakraReading *all = x->all;
  if (strcmp (item->string, "role") == 0)
    return number_of (doc, item, cJSON_GetArraySize (list_of (doc, "roles")) - 1, &x->role, all->diags);
  if (strcmp (item->string, "gpu") == 0)
    return number_of (doc, item, UINT32_MAX - 1, &x->gpu, all->diags);
  for (int side = 0; side < 2; side++)
    if (strcmp (item->string, ls_slot_name ((LsSlot) (LS_SLOT_PREV + side))) == 0)
      return number_of (doc, item, all->n_ranks - 1, &x->peer[side], all->diags);
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (strcmp (item->string, ls_slot_name ((LsSlot) s)) == 0) {
      x->slots[s] = cJSON_IsString (item) ? chakra_group (all, item->valuestring) : NULL;
      return x->slots[s] || refuse (doc, item, all->diags, "a process group of " CHAKRA_GROUPS);
    }
  return refuse (doc, item, all->diags, "role, gpu, prev, next or a slot");
}

/* What it says of a rank: role, gpu, neighbours, slots. */
static bool
take_listed (RankReading *x, const LsJsonDoc *doc, const cJSON *said)
{
  const cJSON *item;
  x->role = x->gpu = x->peer[0] = x->peer[1] = LS_TRACE_ABSENT;
  if (!cJSON_IsObject (said))
    return refuse (doc, said, x->all->diags, "a rank: {\"role\": 0, \"gpu\": 0, ...}");
  cJSON_ArrayForEach (item, said) if (!read_listed_key (x, doc, item)) return false;
  return (x->role != LS_TRACE_ABSENT && x->gpu != LS_TRACE_ABSENT)
      || refuse (doc, said, x->all->diags, "a rank with \"role\" and \"gpu\"");
}

/* --- the whole -------------------------------------------------------------------------------- */

static void
append_communicators (GString *out, const ChakraReading *all)
{
  g_string_append (out, ",\n\"communicators\":[");
  for (guint i = 0; i < all->groups->len; i++) {
    const ChakraGroup *g = all->groups->pdata[i];
    g_string_append_printf (out, "%s\n{\"axis\":\"%s\",\"spans_stages\":%s,\"ranks\":%s}", i > 0 ? "," : "",
                            g->axis ? g->axis : "dp", g->spans_stages ? "true" : "false", g->members);
  }
  g_string_append (out, "]");
}

static char *
format_all (const ChakraReading *all)
{
  LsJsonOut w;
  GString *out = g_string_new (NULL);
  g_autofree char *stem = g_path_get_basename (all->name);
  const char *source = all->head[HEAD_SOURCE] ? all->head[HEAD_SOURCE] : "Chakra execution traces";
  ls_json_out_init (&w, out, 0);
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_string (&w, "schema", "lockstep.trace/1");
  ls_json_out_string (&w, "name", stem);
  ls_json_out_string (&w, "source", source);
  if (all->head[HEAD_MODEL] && all->head[HEAD_STRATEGY])
    g_string_append_printf (out, ",\n\"model\":%s,\n\"strategy\":%s", all->head[HEAD_MODEL],
                            all->head[HEAD_STRATEGY]);
  append_texts (out, "kernels", all->kernels.list);
  append_texts (out, "segments", all->segments.list);
  append_texts (out, "roles", all->roles->len > 0 ? all->roles : all->programs.list);
  append_communicators (out, all);
  append_texts (out, "ranks", all->ranks);
  return g_string_free (g_string_append (out, "}\n"), FALSE);
}

static bool
check_roles (ChakraReading *all)
{
  bool ok = all->roles->len == 0 || all->programs.list->len == 0;
  for (guint i = 0; ok && i < all->roles->len; i++)
    ok = all->roles->pdata[i] != NULL;
  if (!ok)
    ls_diag_add (all->diags, LS_ERROR_INPUT, all->name, 0, 0, NULL, NULL, NULL,
                 "expected a rank of each role, from 0 on; some say their role, or some are missing");
  return ok;
}

static void
reading_clear (ChakraReading *all)
{
  chakra_texts_clear (&all->kernels);
  chakra_texts_clear (&all->segments);
  chakra_texts_clear (&all->programs);
  g_ptr_array_unref (all->roles);
  g_ptr_array_unref (all->ranks);
  g_ptr_array_unref (all->groups);
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
  RankReading x = { .all = all, .rank = rank, .ok = true };
  if (!take_listed (&x, source->manifest, said))
    return false;
  bool is_first = x.role >= all->roles->len || !all->roles->pdata[x.role];
  if (!is_first) {
    append_rank (&x, (uint32_t) x.role);
    return chakra_check_size (&x, 0);
  }
  g_autoptr (GByteArray) file = source->load ((uint32_t) x.role, source->data, all->diags);
  if (!file || !read_rank (all, rank, file))
    return false;
  g_autofree char *text = rank_text (&x, (uint32_t) x.role);
  return strcmp (text, all->ranks->pdata[all->ranks->len - 1]) == 0
      || chakra_complain (&x, NULL, CHAKRA_MANIFEST " has it as another rank than its file");
}

static bool
read_all (ChakraReading *all, const Source *source)
{
  const cJSON *said = source->manifest ? listed_ranks (source->manifest) : NULL;
  bool ok = !source->groups || chakra_read_groups_file (all, source->groups);
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

static char *
parse_once (const Source *source, bool has_rings, bool *ret_wants_rings, LsDiagList *diags)
{
  ChakraReading all
      = { .name = source->name, .diags = diags, .n_ranks = source->n_ranks, .has_rings = has_rings };
  chakra_texts_init (&all.kernels);
  chakra_texts_init (&all.segments);
  chakra_texts_init (&all.programs);
  all.roles = g_ptr_array_new_with_free_func (g_free);
  all.ranks = g_ptr_array_new_with_free_func (g_free);
  all.groups = g_ptr_array_new_with_free_func (chakra_group_free);
  char *text = read_all (&all, source) && check_roles (&all) ? format_all (&all) : NULL;
  *ret_wants_rings = all.wants_rings;
  reading_clear (&all);
  return text;
}

/* Messages between neighbours as a pipeline has them, or else as a ring does. */
static char *
parse (const Source *source, LsDiagList *diags)
{
  g_autoptr (LsDiagList) tried = ls_diag_list_new ();
  bool wants_rings = false;
  char *text = parse_once (source, false, &wants_rings, tried);
  return text ? text : parse_once (source, wants_rings, &wants_rings, diags);
}

static GByteArray *
load_given (uint32_t rank, gconstpointer files, LsDiagList *diags)
{
  return g_byte_array_ref (((const GPtrArray *) files)->pdata[rank]);
}

char *
ls_chakra_parse (const char *name, const GPtrArray *files, const char *groups, LsDiagList *diags)
{
  const Source source = { name, files->len, load_given, files, groups, NULL };
  return parse (&source, diags);
}

char *
ls_chakra_parse_roles (const char *name, const GPtrArray *files, const char *manifest, LsDiagList *diags)
{
  uint32_t n_ranks;
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (manifest, strlen (manifest), CHAKRA_MANIFEST, diags);
  if (!doc || !check_manifest (doc, &n_ranks, diags))
    return NULL;
  guint n_roles = 0;
  for (const cJSON *role = listed_roles (doc); role; role = role->next)
    n_roles++;
  if (n_roles != files->len) {
    ls_diag_add (diags, LS_ERROR_INPUT, name, 0, 0, NULL, NULL, NULL,
                 "expected the files of %u roles; got %u", n_roles, files->len);
    return NULL;
  }
  const Source source = { name, n_ranks, load_given, files, NULL, doc };
  return parse (&source, diags);
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
  ls_diag_add (diags, LS_ERROR_INPUT, folder, 0, 0, NULL, NULL, NULL, "%s", message);
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

static char *
load_text (const char *folder, const GPtrArray *paths, uint32_t n_ranks, const LsJsonDoc *manifest,
           LsDiagList *diags)
{
  bool has_groups;
  g_autofree char *groups = load_beside (folder, CHAKRA_GROUPS, &has_groups, diags);
  const Source source = { folder, n_ranks, load_file, paths, groups, manifest };
  return has_groups && !groups ? NULL : parse (&source, diags);
}

static char *
load_by_role (const char *folder, const char *manifest, LsDiagList *diags)
{
  g_autofree char *name = g_build_filename (folder, CHAKRA_MANIFEST, NULL);
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (manifest, strlen (manifest), name, diags);
  g_autoptr (GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);
  uint32_t n_ranks;
  if (!doc || !check_manifest (doc, &n_ranks, diags))
    return NULL;
  for (const cJSON *role = listed_roles (doc); role; role = role->next)
    g_ptr_array_add (paths, g_build_filename (folder, role->valuestring, NULL));
  return load_text (folder, paths, n_ranks, doc, diags);
}

LsJsonDoc *
ls_chakra_load (const char *folder, LsDiagList *diags)
{
  g_autofree char *path = g_strdup (folder);
  for (size_t n = strlen (path); n > 1 && path[n - 1] == '/'; n--)
    path[n - 1] = '\0';
  bool has_roles;
  g_autofree char *manifest = load_beside (path, CHAKRA_MANIFEST, &has_roles, diags);
  g_autoptr (GPtrArray) paths = has_roles ? NULL : find_files (path, diags);
  g_autofree char *text = manifest ? load_by_role (path, manifest, diags)
      : paths                      ? load_text (path, paths, paths->len, NULL, diags)
                                   : NULL;
  return text ? ls_json_doc_parse (text, strlen (text), path, diags) : NULL;
}
