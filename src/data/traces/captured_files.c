/* data/traces/captured_files.c — the folder of a captured step, written, and read as a trace. */
#include "data/traces/captured_read.h"

#include <string.h>

#include <lockstep/error.h>

#include "data/text/json_out.h"
#include "data/text/read_file.h"
#include "data/text/write_file.h"

#define MAX_WORLD    1048576
#define MOST_UNKNOWN 4 /* operators that are named */

/* --- groups of ranks that a program made --------------------------------------------------------------- */

#define MOST_MEMBERS (1 << 26) /* of all groups that a program makes */

/* Of a list of [first, n, apart] or {"ranks": []}; NULL and a complaint. */
static GArray *
read_ranks (CapturedReading *x, const char *file, const cJSON *run)
{
  const cJSON *list = cJSON_IsObject (run) ? ls_json_at (run, "ranks") : NULL, *each;
  g_autoptr (GArray) ranks = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  double first = cJSON_GetNumberValue (cJSON_GetArrayItem (run, 0)),
         n = cJSON_GetNumberValue (cJSON_GetArrayItem (run, 1)),
         apart = cJSON_GetNumberValue (cJSON_GetArrayItem (run, 2));
  bool is_run = cJSON_IsArray (run) && first >= 0 && n >= 1 && apart >= 1 && apart <= x->world
      && first + (n - 1) * apart < x->world;
  x->n_members += is_run ? (uint64_t) n : (uint64_t) cJSON_GetArraySize (list);
  if (x->n_members > MOST_MEMBERS)
    return captured_complain (x, file, "groups of more than %d ranks together", MOST_MEMBERS), NULL;
  for (uint32_t i = 0; is_run && i < (uint32_t) n; i++) {
    uint32_t rank = (uint32_t) first + i * (uint32_t) apart;
    g_array_append_val (ranks, rank);
  }
  cJSON_ArrayForEach (each, list) {
    uint32_t rank = cJSON_IsNumber (each) && each->valuedouble >= 0 && each->valuedouble < x->world
        ? (uint32_t) each->valuedouble
        : UINT32_MAX;
    if (rank != UINT32_MAX)
      g_array_append_val (ranks, rank);
  }
  if (ranks->len > 0 && (is_run || ranks->len == (guint) cJSON_GetArraySize (list)))
    return g_steal_pointer (&ranks);
  captured_complain (x, file,
                     "a group: expected [FIRST, HOW MANY, HOW FAR APART] or {\"ranks\": [...]}, below %u",
                     x->world);
  return NULL;
}

static void
group_free (gpointer group)
{
  CapturedGroup *g = group;
  g_free (g->name);
  g_array_unref (g->ranks);
  g_free (g);
}

/* --- files -------------------------------------------------------------------------------------------- */

static LsJsonDoc *
load_packed (const char *file, gconstpointer folder, LsDiagList *diags)
{
  g_autofree char *path = g_build_filename (folder, file, NULL);
  g_autoptr (LsInput) input = ls_input_open (path, diags);
  if (!input)
    return NULL;
  g_autoptr (GByteArray) all = g_byte_array_new ();
  guint8 buffer[1 << 16];
  for (size_t n; (n = ls_input_read (input, buffer, sizeof buffer)) > 0;)
    g_byte_array_append (all, buffer, (guint) n);
  if (!ls_input_trouble (input))
    return ls_json_doc_parse ((const char *) all->data, all->len, path, diags);
  ls_file_diag (diags, LS_ERROR_INPUT, path, NULL, "%s", ls_input_trouble (input));
  return NULL;
}

static void
role_free (gpointer data)
{
  CapturedRole *role = data;
  g_ptr_array_unref (role->groups);
  g_free (role->streams);
  g_array_unref (role->work);
  g_free (role);
}

static bool
read_groups (CapturedReading *x, const char *file, const cJSON *root, CapturedRole *role)
{
  const cJSON *every = x->roles->len == 0 ? ls_json_at (root, "every_group") : NULL, *each;
  cJSON_ArrayForEach (each, ls_json_at (root, "groups")) {
    GArray *ranks = read_ranks (x, file, ls_json_at (each, "ranks"));
    const char *name = ls_json_text (each, "name");
    if (!ranks)
      return false;
    CapturedGroup *g = g_new0 (CapturedGroup, 1);
    *g = (CapturedGroup) { g_strdup (name ? name : ""), ranks, .slot = LS_N_SLOTS };
    g_ptr_array_add (role->groups, g);
  }
  cJSON_ArrayForEach (each, every) {
    GArray *ranks = read_ranks (x, file, each);
    if (!ranks)
      return false;
    g_ptr_array_add (x->every, ranks);
  }
  return true;
}

/* What lockstep_trace.py calls kinds; all others are activations: gradients of these, and what backward
 * needs. */
static void
read_held (const cJSON *root, CapturedRole *role)
{
  static const struct {
    const char *kind;
    LsMemCategory category;
  } kinds[] = { { "parameters", LS_MEM_PARAMETERS },
                { "gradients", LS_MEM_GRADIENTS },
                { "optimizer", LS_MEM_OPTIMIZER },
                { "buffers and others", LS_MEM_WORKSPACE } };
  const cJSON *each;
  cJSON_ArrayForEach (each, ls_json_at (root, "held")) {
    guint i = 0;
    while (i < G_N_ELEMENTS (kinds) && g_strcmp0 (each->string, kinds[i].kind) != 0)
      i++;
    LsMemCategory category = i < G_N_ELEMENTS (kinds) ? kinds[i].category : LS_MEM_ACTIVATIONS;
    if (cJSON_IsNumber (each) && each->valuedouble > 0 && each->valuedouble < 1e15)
      role->held[category] += (uint64_t) each->valuedouble;
  }
}

static bool
read_rank (CapturedReading *x, const char *file, uint32_t rank, GPtrArray *docs)
{
  g_autoptr (LsJsonDoc) doc = x->load (file, x->data, x->diags);
  const cJSON *root = doc ? ls_json_doc_root (doc) : NULL;
  if (!doc)
    return false;
  if (g_strcmp0 (ls_json_text (root, "schema"), "lockstep.captured/1") != 0)
    return captured_complain (x, file, "expected \"schema\": \"lockstep.captured/1\"");
  CapturedRole *role = g_new0 (CapturedRole, 1);
  *role = (CapturedRole) { rank, g_ptr_array_new_with_free_func (group_free), .pipe = -1,
                           .work = g_array_new (FALSE, FALSE, sizeof (int32_t)) };
  read_held (root, role);
  bool ok = read_groups (x, file, root, role) && captured_read_used (x, file, root, role);
  if (x->roles->len == 0) {
    const char *torch = ls_json_text (root, "torch"), *cuda = ls_json_text (root, "cuda");
    x->made_with = g_strdup_printf ("torch %s, CUDA %s", torch ? torch : "?", cuda ? cuda : "?");
  }
  g_ptr_array_add (x->roles, role);
  g_ptr_array_add (docs, g_steal_pointer (&doc));
  return ok;
}

/* --- the manifest -------------------------------------------------------------------------------------- */

/* The first of a role that has a second member, which was captured to be compared; rank: it is none. */
static uint32_t
first_of (const cJSON *manifest, uint32_t rank)
{
  const cJSON *roles = ls_json_at (manifest, "roles"), *each;
  cJSON_ArrayForEach (each, ls_json_at (roles, "members")) {
    const cJSON *member = cJSON_GetArrayItem (each, 0), *first = cJSON_GetArrayItem (each, 1);
    if (cJSON_IsNumber (member) && cJSON_IsNumber (first) && member->valuedouble == rank
        && first->valuedouble >= 0)
      return (uint32_t) first->valuedouble;
  }
  return rank;
}

static bool
read_roles (CapturedReading *x, const cJSON *root)
{
  const cJSON *roles = ls_json_at (root, "roles");
  const cJSON *represents = ls_json_at (roles, "represents");
  const cJSON *each = cJSON_IsArray (represents) ? represents->child : NULL;
  if (each && (uint32_t) cJSON_GetArraySize (represents) != x->world)
    return captured_complain (x, LS_CAPTURED_MANIFEST, "roles.represents: expected one for each of %u ranks",
                              x->world);
  for (uint32_t rank = 0; rank < x->world; rank++, each = each ? each->next : NULL) {
    uint32_t stands = first_of (root, each && each->valuedouble >= 0 ? (uint32_t) each->valuedouble : rank);
    uint32_t role = 0; /* that of the rank, or of the nearest below it that was captured */
    for (guint i = 0; i < x->roles->len; i++)
      role = ((const CapturedRole *) x->roles->pdata[i])->rank <= stands ? i : role;
    if (each && ((const CapturedRole *) x->roles->pdata[role])->rank != stands)
      return captured_complain (x, LS_CAPTURED_MANIFEST, "roles.represents: rank %u was not captured",
                                (uint32_t) each->valuedouble);
    g_array_append_val (x->role_of, role);
  }
  return true;
}

static bool
read_manifest (CapturedReading *x, const LsJsonDoc *doc, GPtrArray *docs, GPtrArray *names)
{
  const cJSON *root = ls_json_doc_root (doc), *each;
  double world = cJSON_GetNumberValue (ls_json_at (root, "world"));
  if (g_strcmp0 (ls_json_text (root, "schema"), "lockstep.captured-job/1") != 0)
    return captured_complain (x, LS_CAPTURED_MANIFEST, "expected \"schema\": \"lockstep.captured-job/1\"");
  if (!(world >= 1 && world <= MAX_WORLD))
    return captured_complain (x, LS_CAPTURED_MANIFEST, "world: expected 1 to %d", MAX_WORLD);
  x->world = (uint32_t) world;
  const char *gpu = ls_json_text (root, "gpu");
  x->gpu = g_strdup (gpu ? gpu : "a GPU that it does not name");
  double before = -1;
  cJSON_ArrayForEach (each, ls_json_at (root, "files")) {
    const char *file = ls_json_text (each, "file");
    double rank = cJSON_GetNumberValue (ls_json_at (each, "rank"));
    if (!file || strchr (file, G_DIR_SEPARATOR) || !(rank > before && rank < world))
      return captured_complain (x, LS_CAPTURED_MANIFEST,
                                "files: expected {\"rank\": N, \"file\": NAME}, by rank");
    before = rank;
    if (first_of (root, (uint32_t) rank) != (uint32_t) rank)
      continue;
    g_ptr_array_add (names, g_strdup (file));
    if (!read_rank (x, file, (uint32_t) rank, docs))
      return false;
  }
  if (x->roles->len == 0)
    return captured_complain (x, LS_CAPTURED_MANIFEST, "files: none");
  return read_roles (x, root);
}

/* --- slots ---------------------------------------------------------------------------------------------- */

/* By words of names that programs give: "mesh_dp_shard", "TENSOR_MODEL_PARALLEL_GROUP". The first holds. */
static const struct {
  const char *word;
  LsAxis axis;
} axes[] = {
  { "expert_data", LS_AXIS_DP }, { "expert_tensor", LS_AXIS_TP },
  { "expert_dp", LS_AXIS_DP },   { "expert", LS_AXIS_EP },
  { "ep", LS_AXIS_EP },          { "pipeline", LS_AXIS_PP },
  { "embedding", LS_AXIS_PP },   { "pp", LS_AXIS_PP },
  { "data", LS_AXIS_DP },        { "dp", LS_AXIS_DP },
  { "instance", LS_AXIS_DP },    { "tensor", LS_AXIS_TP },
  { "tp", LS_AXIS_TP },          { "model_parallel", LS_AXIS_TP },
  { "context", LS_AXIS_CP },     { "cp", LS_AXIS_CP },
};

static bool
is_named (const CapturedGroup *g)
{
  return *g->name && strcmp (g->name, "undefined") != 0;
}

static uint32_t
apart_of (const GArray *ranks)
{
  return ranks->len > 1 ? g_array_index (ranks, uint32_t, 1) - g_array_index (ranks, uint32_t, 0) : 1;
}

/* Neighbours without a name are taken for tensor parallelism, all ranks and others for data parallelism. */
static LsAxis
axis_of (const CapturedReading *x, const CapturedGroup *g)
{
  g_autofree char *name = g_ascii_strdown (g->name, -1);
  for (guint i = 0; is_named (g) && i < G_N_ELEMENTS (axes); i++)
    if (strstr (name, axes[i].word))
      return axes[i].axis;
  return g->ranks->len < x->world && apart_of (g->ranks) == 1 && !is_named (g) ? LS_AXIS_TP : LS_AXIS_DP;
}

static uint8_t
free_slot (uint32_t taken, LsAxis axis)
{
  static const LsSlot first[LS_N_AXES] = { [LS_AXIS_TP] = LS_SLOT_TP,
                                           [LS_AXIS_DP] = LS_SLOT_DP,
                                           [LS_AXIS_PP] = LS_SLOT_EMBEDDING,
                                           [LS_AXIS_CP] = LS_SLOT_CP,
                                           [LS_AXIS_EP] = LS_SLOT_EP };
  if (!(taken >> first[axis] & 1))
    return (uint8_t) first[axis];
  for (uint8_t slot = LS_SLOT_PREV; slot > 0; slot--) /* those with a meaning of their own come first */
    if (!(taken >> (slot - 1) & 1))
      return slot - 1;
  return LS_N_SLOTS;
}

/* Gives groups that are used their slots, alike on all ranks; false: there are more than a plan has. */
static bool
give_slots (CapturedReading *x)
{
  g_autoptr (GHashTable) slots = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL); /* slot + 1 */
  uint32_t taken = 0;
  for (guint i = 0; i < x->roles->len; i++) {
    CapturedRole *role = x->roles->pdata[i];
    g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
    for (guint k = 0; k < role->groups->len; k++) {
      CapturedGroup *g = role->groups->pdata[k];
      if (!g->is_used)
        continue;
      char *kind
          = g_strdup_printf ("%s %u %u", is_named (g) ? g->name : "", g->ranks->len, apart_of (g->ranks));
      guint n = GPOINTER_TO_UINT (g_hash_table_lookup (seen, kind));
      g_autofree char *key = g_strdup_printf ("%s %u", kind, n);
      g_hash_table_replace (seen, kind, GUINT_TO_POINTER (n + 1));
      g->axis = (uint8_t) axis_of (x, g);
      guint slot = GPOINTER_TO_UINT (g_hash_table_lookup (slots, key));
      g->slot = slot > 0 ? (uint8_t) (slot - 1) : free_slot (taken, (LsAxis) g->axis);
      if (g->slot == LS_N_SLOTS)
        return captured_complain (x, LS_CAPTURED_MANIFEST,
                                  "its ranks send in more than %d groups each, which a trace cannot say",
                                  LS_SLOT_PREV);
      taken |= 1u << g->slot;
      g_hash_table_replace (slots, g_steal_pointer (&key), GUINT_TO_POINTER (g->slot + 1u));
    }
  }
  return true;
}

/* --- ranks ---------------------------------------------------------------------------------------------- */

typedef struct {
  GArray **groups_of; /* of each rank, places in x->every, in order */
  GHashTable *number; /* of x->every's: communicator + 1 */
} Binding;

static uint32_t
communicator (CapturedReading *x, Binding *b, guint place, const CapturedGroup *g)
{
  GArray *all = x->file.communicators;
  guint number = GPOINTER_TO_UINT (g_hash_table_lookup (b->number, GUINT_TO_POINTER (place)));
  if (number > 0)
    return number - 1;
  const GArray *ranks = x->every->pdata[place];
  TraceCommunicator c = { .axis = g->axis,
                          .ranks = g_memdup2 (ranks->data, ranks->len * sizeof (uint32_t)),
                          .n_ranks = ranks->len };
  for (guint i = 1; i < ranks->len; i++)
    c.spans_stages |= g_array_index (x->role_of, uint32_t, c.ranks[i])
        != g_array_index (x->role_of, uint32_t, c.ranks[0]);
  g_array_append_val (all, c);
  g_hash_table_insert (b->number, GUINT_TO_POINTER (place), GUINT_TO_POINTER (all->len));
  return all->len - 1;
}

/* The kth group that the program made with the rank, as with the one that stands for it. */
static bool
add_rank (CapturedReading *x, Binding *b, uint32_t rank)
{
  TraceRank to = ls_trace_rank_blank;
  to.role = g_array_index (x->role_of, uint32_t, rank);
  const CapturedRole *role = x->roles->pdata[to.role];
  for (guint k = 0; k < role->groups->len; k++) {
    const CapturedGroup *g = role->groups->pdata[k];
    bool is_bound = g->slot != LS_N_SLOTS && g->ranks->len > 1, is_pipe = (int) k == role->pipe;
    if (!is_bound && !is_pipe)
      continue;
    guint place = k < b->groups_of[rank]->len ? g_array_index (b->groups_of[rank], guint, k) : 0;
    const GArray *ranks = k < b->groups_of[rank]->len ? x->every->pdata[place] : NULL;
    if (!ranks || ranks->len != g->ranks->len)
      return captured_complain (
          x, LS_CAPTURED_MANIFEST,
          "rank %u is in other groups than rank %u, which stands for it: capture it too (--ranks LIST)", rank,
          role->rank);
    guint n = ranks->len, i = captured_place_in (ranks, rank);
    if (is_bound)
      to.comm[g->slot] = communicator (x, b, place, g);
    for (guint side = 0; is_pipe && side < 2; side++)
      to.peer[side] = g_array_index (ranks, uint32_t, (i + (side ? 1 : n - 1)) % n);
  }
  g_array_append_val (x->file.ranks, to);
  return true;
}

static bool
add_ranks (CapturedReading *x)
{
  g_autoptr (GPtrArray) groups_of = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  g_autoptr (GHashTable) number = g_hash_table_new (NULL, NULL);
  bool ok = true;
  for (uint32_t rank = 0; rank < x->world; rank++)
    g_ptr_array_add (groups_of, g_array_new (FALSE, FALSE, sizeof (guint)));
  Binding b = { (GArray **) groups_of->pdata, number };
  for (guint place = 0; place < x->every->len; place++) {
    const GArray *members = x->every->pdata[place];
    for (guint i = 0; i < members->len; i++)
      g_array_append_val (b.groups_of[g_array_index (members, uint32_t, i)], place);
  }
  for (uint32_t rank = 0; ok && rank < x->world; rank++)
    ok = add_rank (x, &b, rank);
  return ok;
}

/* --- the trace ------------------------------------------------------------------------------------------ */

static int
compare_counts (gconstpointer a, gconstpointer b, gpointer counts)
{
  const char *x = *(char *const *) a, *y = *(char *const *) b;
  guint n = GPOINTER_TO_UINT (g_hash_table_lookup (counts, x)),
        m = GPOINTER_TO_UINT (g_hash_table_lookup (counts, y));
  return n != m ? (n < m) - (n > m) : strcmp (x, y);
}

/* " (mul 3, sort 1)": the operators that launch most of what is not known; "": there are none. */
static char *
unknown_text (const CapturedReading *x)
{
  guint n;
  g_autofree gpointer *names = g_hash_table_get_keys_as_array (x->unknown, &n);
  GString *text = g_string_new (n > 0 ? " (" : "");
  g_qsort_with_data (names, (gint) n, sizeof *names, compare_counts, x->unknown);
  for (guint i = 0; i < MIN (n, MOST_UNKNOWN); i++)
    g_string_append_printf (text, "%s%.40s %u", i > 0 ? ", " : "", (const char *) names[i],
                            GPOINTER_TO_UINT (g_hash_table_lookup (x->unknown, names[i])));
  g_string_append (text, n > MOST_UNKNOWN ? ", ...)" : n > 0 ? ")" : "");
  return g_string_free (text, FALSE);
}

static char *
source_of (const CapturedReading *x)
{
  uint64_t n = 0, unknown = 0, calls = 0;
  for (guint i = 0; i < x->roles->len; i++) {
    n += ((const CapturedRole *) x->roles->pdata[i])->n_launches;
    unknown += ((const CapturedRole *) x->roles->pdata[i])->n_unknown;
    calls += ((const CapturedRole *) x->roles->pdata[i])->n_calls;
  }
  g_autofree char *names = unknown_text (x);
  g_autofree char *of_which = unknown == 0
      ? g_strdup ("all of a known class")
      : g_strdup_printf ("%" G_GUINT64_FORMAT
                         "%s of no known class, whose time is a guess, and counts as extrapolated",
                         unknown, names);
  g_autofree char *python = calls == 0
      ? g_strdup ("no calls of Python were counted, and none has a time")
      : g_strdup_printf ("%" G_GUINT64_FORMAT " calls of Python (host_python)", calls);
  return g_strdup_printf ("captured with %s as on %s, %u of %u ranks; %" G_GUINT64_FORMAT
                          " launches, %s; %s; memory is that of the capture",
                          x->made_with, x->gpu, x->roles->len, x->world, n, of_which, python);
}

/* What the rank of each role does, and what it holds. */
static bool
add_ops (CapturedReading *x, const GPtrArray *docs, const GPtrArray *names)
{
  bool ok = true;
  for (guint i = 0; ok && i < x->roles->len; i++) {
    CapturedRole *role = x->roles->pdata[i];
    TraceRole to
        = { .stage = LS_TRACE_ABSENT, .instances = g_array_new (FALSE, TRUE, N_ROW * sizeof (uint32_t)) };
    guint segment = x->file.segments->len;
    ok = captured_read_ops (x, names->pdata[i], ls_json_doc_root (docs->pdata[i]), role);
    memcpy (to.static_bytes, role->held, sizeof to.static_bytes);
    for (; segment < x->file.segments->len; segment++) {
      const uint32_t row[N_ROW] = { [ROW_SEGMENT] = segment };
      g_array_append_val (to.instances, row);
    }
    g_array_append_val (x->file.roles, to);
  }
  for (guint i = 0; i < x->exchange_ops->len; i++) {
    const CapturedExchange *e = &g_array_index (x->exchange_ops, CapturedExchange, i);
    g_array_index (e->ops, TraceOp, e->at).bytes = g_array_index (x->exchanges, uint64_t, e->exchange);
  }
  return ok;
}

LsTrace *
ls_captured_trace_parse (const char *name, const LsJsonDoc *manifest, LsCapturedLoad *load,
                         gconstpointer data, uint32_t dp, LsDiagList *diags)
{
  if (dp > 0) {
    ls_file_diag (diags, LS_ERROR_CONFLICT, name, NULL,
                  "--dp %u: capture the program with the ranks that this takes: that is no slower", dp);
    return NULL;
  }
  g_autoptr (GPtrArray) docs = g_ptr_array_new_with_free_func ((GDestroyNotify) ls_json_doc_free),
                        names = g_ptr_array_new_with_free_func (g_free);
  CapturedReading x = { .folder = name,
                        .load = load,
                        .data = data,
                        .diags = diags,
                        .role_of = g_array_new (FALSE, FALSE, sizeof (uint32_t)),
                        .roles = g_ptr_array_new_with_free_func (role_free),
                        .every = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref),
                        .file = ls_trace_file_new (name),
                        .exchanges = g_array_new (FALSE, FALSE, sizeof (uint64_t)),
                        .exchange_of = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
                        .exchange_ops = g_array_new (FALSE, FALSE, sizeof (CapturedExchange)),
                        .unknown = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
                        .kernel_index = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL) };
  bool ok = read_manifest (&x, manifest, docs, names) && give_slots (&x) && add_ops (&x, docs, names)
      && add_ranks (&x);
  x.file.source = source_of (&x);
  LsTrace *t = ok ? ls_trace_of_file (&x.file, name, NULL, 0, diags) : NULL;
  if (t)
    t->work = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  for (guint i = 0; t && i < x.roles->len; i++)
    g_ptr_array_add (t->work, g_array_ref (((const CapturedRole *) x.roles->pdata[i])->work));
  ls_fields_clear (ls_trace_fields, &x.file);
  g_array_unref (x.role_of);
  g_ptr_array_unref (x.roles);
  g_ptr_array_unref (x.every);
  g_hash_table_unref (x.kernel_index);
  g_hash_table_unref (x.unknown);
  g_array_unref (x.exchanges);
  g_hash_table_unref (x.exchange_of);
  g_array_unref (x.exchange_ops);
  g_free (x.made_with);
  g_free (x.gpu);
  return t;
}

LsTrace *
ls_captured_trace_load (const char *folder, uint32_t dp, LsDiagList *diags)
{
  g_autofree char *path = g_build_filename (folder, LS_CAPTURED_MANIFEST, NULL);
  g_autoptr (LsJsonDoc) doc = ls_json_doc_load (path, diags);
  return doc ? ls_captured_trace_parse (folder, doc, load_packed, folder, dp, diags) : NULL;
}

/* --- writing ----------------------------------------------------------------------------------------- */

static char *
name_of (const LsCapturedFile *f)
{
  return g_strdup_printf ("rank-%u.json.gz", f->rank);
}

static char *
manifest (uint32_t world, const char *gpu, const char *roles, const GArray *files)
{
  LsJsonOut w;
  ls_json_out_open_as (&w, "captured-job");
  ls_json_out_uint (&w, "world", world);
  ls_json_out_string (&w, "gpu", gpu);
  ls_json_out_begin_array (&w, "files");
  for (guint i = 0; i < files->len; i++) {
    const LsCapturedFile *f = &g_array_index (files, LsCapturedFile, i);
    g_autofree char *name = name_of (f);
    ls_json_out_begin_object (&w, NULL);
    ls_json_out_uint (&w, "rank", f->rank);
    ls_json_out_string (&w, "file", name);
    ls_json_out_end_object (&w);
  }
  ls_json_out_end_array (&w);
  g_string_append_printf (w.text, ",\n  \"roles\": %s", roles ? roles : "null"); /* JSON already */
  return ls_json_out_close (&w);
}

gboolean
ls_captured_trace_write (const char *folder, uint32_t world, const char *gpu, const char *roles,
                         const GArray *files, GError **error)
{
  if (!ls_make_folder (folder, error))
    return FALSE;
  g_autofree char *text = manifest (world, gpu, roles, files),
                  *path = g_build_filename (folder, LS_CAPTURED_MANIFEST, NULL);
  gboolean ok = TRUE;
  for (guint i = 0; ok && i < files->len; i++) {
    const LsCapturedFile *f = &g_array_index (files, LsCapturedFile, i);
    g_autofree char *name = name_of (f), *place = g_build_filename (folder, name, NULL);
    ok = ls_write_file (place, ls_write_bytes, f->recorded, error);
  }
  ok = ok && ls_write_text (path, text, error);
  if (!ok)
    ls_remove_folder (folder);
  return ok;
}

bool
ls_captured_trace_is (const char *folder)
{
  g_autofree char *path = g_build_filename (folder, LS_CAPTURED_MANIFEST, NULL);
  return g_file_test (path, G_FILE_TEST_EXISTS);
}
