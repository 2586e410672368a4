#include "data/jobs/read_software.h"

#include <string.h>

#include "base/handover.h"
#include "base/list.h"
#include "base/suggest.h"
#include "data/datadir.h"
#include "data/jobs/emit.h"
#include "data/jobs/job_files.h"
#include "data/text/override.h"
#include "strategy/strategy.h"

/* --- lists of names, with commas ----------------------------------------------------------------- */

/* "a|b" lists what it may be, ">=8" is the least that it may. */
bool
ls_software_condition_holds (const char *wanted, const char *value)
{
  if (g_str_has_prefix (wanted, ">="))
    return *value && g_ascii_strtod (value, NULL) >= g_ascii_strtod (wanted + 2, NULL);
  g_auto (GStrv) choices = g_strsplit (wanted, "|", -1);
  return g_strv_contains ((const char *const *) choices, value);
}

/* Whether all words of a list, which a complaint may have left NULL, are known. what: those that are. */
static bool
check_words (const LsJsonDoc *doc, const char *key, const char *list, const char *const *known,
             const char *what, LsDiagList *diags)
{
  g_auto (GStrv) words = g_strsplit (list ? list : "", ",", -1);
  bool ok = true;
  for (char **word = words; *word; word++)
    if (!g_strv_contains (known, *word))
      ok = ls_json_doc_wrong (doc, ls_json_doc_at (doc, key), diags, "expected %s; got \"%s\"", what, *word);
  return ok;
}

static bool
check_lacks (const LsJsonDoc *doc, const LsSoftwareSpec *s, LsDiagList *diags)
{
  g_auto (GStrv) known = g_strsplit (LS_SOFTWARE_WAYS, ", ", -1);
  bool ok = true;
  for (guint i = 0; s->lacks && i < s->lacks->len; i++)
    ok = check_words (doc, "lacks", g_array_index (s->lacks, LsLacking, i).ways, (const char *const *) known,
                      "ways with commas, of " LS_SOFTWARE_WAYS, diags)
        && ok;
  return ok;
}

static bool
check_dp_kinds (const LsJsonDoc *doc, const LsSoftwareSpec *s, LsDiagList *diags)
{
  const char *known[LS_N_DP_KINDS + 1] = { NULL };
  for (int kind = LS_DP_NONE; kind < LS_N_DP_KINDS; kind++)
    known[kind - LS_DP_NONE] = ls_dp_kind_name (kind);
  return check_words (doc, "dp_kinds", s->dp_kinds, known, "values of dp_kind with commas", diags);
}

/* Of all names, each of which is borrowed, and another that is said before them or NULL. */
static GPtrArray *
architectures_of (const GPtrArray *generations, const char *besides)
{
  GPtrArray *names = g_ptr_array_new ();
  if (besides)
    g_ptr_array_add (names, (gpointer) besides);
  for (guint i = 0; i < generations->len; i++)
    g_ptr_array_add (names, ((const LsDataEntry *) generations->pdata[i])->name);
  g_ptr_array_add (names, (gpointer) LS_ARCHITECTURE_TPU);
  g_ptr_array_add (names, NULL);
  return names;
}

/* node: a list with commas, which also takes the word `besides` (NULL: no other); NULL: none. */
static bool
check_architectures (const LsJsonDoc *doc, const cJSON *node, const char *besides, LsDiagList *diags)
{
  if (!cJSON_IsString (node))
    return true;
  g_auto (GStrv) names = g_strsplit (node->valuestring, ",", -1);
  g_autoptr (GPtrArray) generations = ls_data_list (LS_DATA_NCCL_TABLES),
                        known = architectures_of (generations, besides);
  const char *const *all = (const char *const *) known->pdata;
  char **name = names;
  while (*name && g_strv_contains (all, *name))
    name++;
  if (!*name)
    return true;
  g_autofree char *hint = ls_did_you_mean (*name, all);
  return ls_json_doc_wrong (doc, node, diags,
                            "expected names of files in %s, %s%sor " LS_ARCHITECTURE_TPU ", with commas; got "
                            "\"%s\"%s",
                            ls_data_folder (LS_DATA_NCCL_TABLES), besides ? besides : "", besides ? " " : "",
                            *name, hint);
}

static bool
check_all_architectures (const LsJsonDoc *doc, LsDiagList *diags)
{
  const cJSON *root = ls_json_doc_root (doc), *one;
  bool ok = check_architectures (doc, ls_json_at (root, "architectures"), NULL, diags);
  ok = check_architectures (doc, ls_json_at (root, "runs_on"), LS_ARCHITECTURES_OF_GPUS, diags) && ok;
  cJSON_ArrayForEach (one, ls_json_at (root, "by_architecture"))
    ok = check_architectures (doc, ls_json_at (one, "architectures"), NULL, diags) && ok;
  return ok;
}

/* dp_kinds, lacks and what names architectures: whether each name is known; else diags says which is not. */
static bool
ls_software_check_lists (const LsJsonDoc *doc, const LsSoftwareSpec *s, LsDiagList *diags)
{
  bool ok = check_lacks (doc, s, diags);
  ok = check_dp_kinds (doc, s, diags) && ok;
  return check_all_architectures (doc, diags) && ok;
}

static const LsField headroom_fields[] = {
  { "what", LS_FIELD_STRING, offsetof (LsHeadroomItem, what), .required = true },
  { "size", LS_FIELD_BYTES, offsetof (LsHeadroomItem, bytes) },
  { "percent", LS_FIELD_DOUBLE, offsetof (LsHeadroomItem, percent), .max = 90 },
  { "allocator", LS_FIELD_BOOL, offsetof (LsHeadroomItem, is_of_allocator) },
  { "runs_on", LS_FIELD_STRING, offsetof (LsHeadroomItem, runs_on) },
  { "source", LS_FIELD_STRING, offsetof (LsHeadroomItem, source), .required = true },
  { .table = "software.headroom" },
};

static const LsField lacking_fields[] = {
  { "ways", LS_FIELD_STRING, offsetof (LsLacking, ways), .required = true },
  { "source", LS_FIELD_STRING, offsetof (LsLacking, source), .required = true },
  { .table = "software.lacks" },
};

static const LsField missing_fields[] = {
  { "what", LS_FIELD_STRING, offsetof (LsMissing, what), .required = true },
  { "when", LS_FIELD_SETTINGS, offsetof (LsMissing, when), .required = true },
  { "times", LS_FIELD_DOUBLE, offsetof (LsMissing, times), .min = 1, .max = 100 },
  { "memory", LS_FIELD_DOUBLE, offsetof (LsMissing, memory), .above = true, .max = 100 },
  { "source", LS_FIELD_STRING, offsetof (LsMissing, source), .required = true },
  { .table = "software.misses" },
};

static const LsMissing missing_blank = { .times = 1, .memory = 1 };

static const LsField table_fields[] = {
  { "of", LS_FIELD_STRING, offsetof (LsTableFacts, of), .required = true },
  { "family", LS_FIELD_STRING, offsetof (LsTableFacts, family) },
  { "when", LS_FIELD_SETTINGS, offsetof (LsTableFacts, when) },
  { "model", LS_FIELD_SETTINGS, offsetof (LsTableFacts, model), .fields = ls_model_fields,
    .element_size = sizeof (LsModel), .table = "model" },
  { "strategy", LS_FIELD_SETTINGS, offsetof (LsTableFacts, strategy), .fields = ls_strategy_fields,
    .element_size = sizeof (LsStrategy), .table = "strategy" },
  { "cluster", LS_FIELD_STRING, offsetof (LsTableFacts, cluster) },
  { "source", LS_FIELD_STRING, offsetof (LsTableFacts, source), .required = true },
  { .table = "software.tables" },
};

static const LsField by_architecture_fields[] = {
  { "architectures", LS_FIELD_STRING, offsetof (LsArchitectureDefaults, architectures), .required = true },
  { "defaults", LS_FIELD_SETTINGS, offsetof (LsArchitectureDefaults, settings), .required = true,
    .fields = ls_strategy_fields, .element_size = sizeof (LsStrategy), .table = "strategy" },
  { "source", LS_FIELD_STRING, offsetof (LsArchitectureDefaults, source), .required = true },
  { .table = "software.by_architecture" },
};

static const LsEnumName interleaved_p2p[] = {
  { "batched", LS_P2P_BATCHED },
  { "overlapped", LS_P2P_OVERLAPPED },
  { "auto", LS_P2P_AUTO },
  { NULL },
};

static const LsField own_fields[] = {
  LS_FIELDS_HEADER (LsSoftwareSpec),
  { "based_on", LS_FIELD_STRING, offsetof (LsSoftwareSpec, based_on) },
  { "program", LS_FIELD_STRING, offsetof (LsSoftwareSpec, program), .required = true },
  { "vendor", LS_FIELD_STRING, offsetof (LsSoftwareSpec, vendor) },
  { "release", LS_FIELD_STRING, offsetof (LsSoftwareSpec, release) },
  { "package", LS_FIELD_STRING, offsetof (LsSoftwareSpec, package) },
  { "emit", LS_FIELD_STRING, offsetof (LsSoftwareSpec, emit) },
  { "dp_kinds", LS_FIELD_STRING, offsetof (LsSoftwareSpec, dp_kinds) },
  { "architectures", LS_FIELD_STRING, offsetof (LsSoftwareSpec, architectures) },
  { "runs_on", LS_FIELD_STRING, offsetof (LsSoftwareSpec, runs_on) },
  { "experts", LS_FIELD_STRING, offsetof (LsSoftwareSpec, experts) },
  { "runs_like", LS_FIELD_STRING, offsetof (LsSoftwareSpec, runs_like) },
  { "defaults", LS_FIELD_OBJECT, offsetof (LsSoftwareSpec, defaults), .fields = ls_strategy_fields,
    .table = "strategy" },
  { "by_architecture", LS_FIELD_ARRAY, offsetof (LsSoftwareSpec, by_architecture),
    .fields = by_architecture_fields, .element_size = sizeof (LsArchitectureDefaults) },
  { "headroom", LS_FIELD_ARRAY, offsetof (LsSoftwareSpec, headroom), .fields = headroom_fields,
    .element_size = sizeof (LsHeadroomItem) },
  { "lacks", LS_FIELD_ARRAY, offsetof (LsSoftwareSpec, lacks), .fields = lacking_fields,
    .element_size = sizeof (LsLacking) },
  { "misses", LS_FIELD_ARRAY, offsetof (LsSoftwareSpec, misses), .fields = missing_fields,
    .blank = &missing_blank, .element_size = sizeof (LsMissing) },
  { "tables", LS_FIELD_ARRAY, offsetof (LsSoftwareSpec, tables), .fields = table_fields,
    .element_size = sizeof (LsTableFacts) },
  { "p2p_interleaved", LS_FIELD_ENUM, offsetof (LsSoftwareSpec, p2p_interleaved), .names = interleaved_p2p },
};

#define N_OWN G_N_ELEMENTS (own_fields)

const LsField *
ls_software_fields (void)
{
  static LsField fields[N_OWN + 2];
  static gsize is_made;
  if (!ls_once_enter (&is_made))
    return fields;
  memcpy (fields, own_fields, sizeof own_fields);
  fields[N_OWN] = (LsField) { "ranges", LS_FIELD_OBJECT, offsetof (LsSoftwareSpec, ranges),
                              .fields = ls_ranges_fields (), .table = "file of ranges" };
  fields[N_OWN + 1] = (LsField) { .table = "software" };
  ls_once_leave (&is_made);
  return fields;
}

/* --- what the types of values do not say -------------------------------------------------------- */

static bool
check_emit (const LsJsonDoc *doc, const LsSoftwareSpec *s, LsDiagList *diags)
{
  g_autoptr (GError) error = NULL;
  if (!s->emit || ls_emit_check_target (s->emit, &error))
    return true;
  g_autofree char *known = g_strjoinv (", ", (char **) ls_emit_targets ());
  return ls_json_doc_wrong (doc, ls_json_doc_at (doc, "emit"), diags, "expected one of %s; got \"%s\"", known,
                            s->emit);
}

/* A row without the column, or a job without the key, would never meet it. */
static bool
check_conditions (const LsJsonDoc *doc, const char *list, const char *besides, LsDiagList *diags)
{
  const cJSON *all = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), list), *one, *condition;
  bool ok = true;
  cJSON_ArrayForEach (one, all)
    cJSON_ArrayForEach (condition, ls_json_at (one, "when")) {
      const char *key = condition->string ? condition->string : "";
      if (ls_field_find (ls_model_fields, key) || ls_field_find (ls_strategy_fields, key)
          || g_strcmp0 (key, besides) == 0)
        continue;
      ok = ls_json_doc_diag (doc, condition, LS_JSON_AT_KEY, diags, NULL,
                             "expected a key of a model or a strategy%s%s", besides ? ", or " : "",
                             besides ? besides : "");
    }

  return ok;
}

static const LsField *
find_own (const char *key)
{
  for (const LsField *f = ls_software_fields (); f->key; f++)
    if (strcmp (f->key, key) == 0)
      return f;
  return NULL;
}

static bool read_over_bases (const LsJsonDoc *doc, guint n_bases, LsSoftwareSpec *ret_software,
                             LsDiagList *diags);

static bool
read_base (const LsJsonDoc *doc, guint n_bases, LsSoftwareSpec *ret_software, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) base = ls_data_load_base (LS_DATA_SOFTWARE, doc, n_bases, diags);
  return base && read_over_bases (base, n_bases + 1, ret_software, diags);
}

/* What a file says of a knob holds on all accelerators, whatever its base has on some. */
static void
drop_said (const cJSON *defaults, GArray *by_architecture)
{
  for (guint i = 0; by_architecture && i < by_architecture->len; i++) {
    LsArchitectureDefaults *d = &g_array_index (by_architecture, LsArchitectureDefaults, i);
    for (const LsField *f = ls_strategy_fields; f->key; f++)
      if (cJSON_HasObjectItem (defaults, f->key))
        d->settings = g_environ_unsetenv (d->settings, f->key);
  }
}

/* What a file does not take from its base, or replaces as a whole. */
static void
forget_own (const cJSON *root, LsSoftwareSpec *s)
{
  for (const LsField *f = ls_software_fields (); f->key; f++)
    if (ls_is_one_of (f->key, "dp_kinds architectures package tables")
        || (ls_is_one_of (f->key, "headroom lacks misses ranges") && cJSON_HasObjectItem (root, f->key)))
      ls_fields_clear ((const LsField[]) { *f, { NULL } }, s);

  drop_said (ls_json_at (root, "defaults"), s->by_architecture);
}

static bool
read_over_bases (const LsJsonDoc *doc, guint n_bases, LsSoftwareSpec *ret_software, LsDiagList *diags)
{
  const cJSON *root = ls_json_doc_root (doc), *base = ls_json_at (root, "based_on");
  LsSoftwareSpec s = { .p2p_interleaved = LS_P2P_AUTO };
  ls_strategy_init (&s.defaults);
  if (cJSON_IsString (base) && !read_base (doc, n_bases, &s, diags))
    return false;
  forget_own (root, &s);
  bool is_read = ls_fields_read_file (ls_software_fields (), "software", doc, &s, diags);
  bool ok = ls_ranges_check_lists (doc, ls_json_at (root, "ranges"), diags) && is_read;
  ok = check_emit (doc, &s, diags) && ok;
  ok = ls_software_check_lists (doc, &s, diags) && ok;
  ok = check_conditions (doc, "tables", "cluster", diags) && ok;
  ok = check_conditions (doc, "misses", NULL, diags) && ok;
  if (ok)
    *ret_software = s;
  else
    ls_software_clear (&s);
  return ok;
}

static void
architecture_defaults_free (gpointer defaults)
{
  ls_fields_clear (by_architecture_fields, defaults);
  g_free (defaults);
}

/* The list is emptied, and goes into the defaults. */
static void
share_by_architecture (LsSoftwareSpec *s)
{
  if (!s->by_architecture)
    return;
  s->defaults.program.by_architecture = g_ptr_array_new_with_free_func (architecture_defaults_free);
  for (guint i = 0; i < s->by_architecture->len; i++)
    g_ptr_array_add (s->defaults.program.by_architecture,
                     g_memdup2 (&g_array_index (s->by_architecture, LsArchitectureDefaults, i),
                                sizeof (LsArchitectureDefaults)));
  g_clear_pointer (&s->by_architecture, g_array_unref);
}

bool
ls_software_read (const LsJsonDoc *doc, LsSoftwareSpec *ret_software, LsDiagList *diags)
{
  if (!read_over_bases (doc, 0, ret_software, diags))
    return false;
  share_by_architecture (ret_software);
  ret_software->defaults.program.attention_else = ret_software->defaults.use.attention_kernel;
  g_free (ret_software->defaults.program.software);
  ret_software->defaults.program.software = g_strdup (ret_software->name);
  return true;
}

/* Of a mistyped one that is nearer to no key of the file itself: so it is said which was meant. */
static bool
is_knob_perhaps (const char *key)
{
  return ls_field_find (ls_strategy_fields, key)
      || (!strchr (key, '.') && !ls_field_suggest (ls_software_fields (), key)
          && ls_field_suggest (ls_strategy_fields, key));
}

/* "NAME:host_launch=5us" means NAME:defaults.host_launch=5us: a knob may be changed by its key alone. */
static char *
with_whole_keys (const char *name)
{
  const char *changes = ls_override_find (name);
  if (!changes)
    return g_strdup (name);
  g_autoptr (GPtrArray) each = ls_override_split (changes);
  GString *out = g_string_new_len (name, changes - name);
  for (guint i = 0; i < each->len; i++) {
    const char *change = each->pdata[i];
    g_autofree char *key = g_strndup (change, strcspn (change, "="));
    bool is_knob = !find_own (key) && is_knob_perhaps (key);
    g_string_append_printf (out, "%s%s%s", i > 0 ? "," : "", is_knob ? "defaults." : "", change);
  }
  return g_string_free (out, FALSE);
}

/* What is changed holds on all accelerators. name: with whole keys. */
static void
drop_changed (const char *name, const LsSoftwareSpec *s)
{
  const char *changes = ls_override_find (name), *prefix = "defaults.";
  g_autoptr (GPtrArray) each = changes ? ls_override_split (changes) : NULL;
  for (guint i = 0; each && s->defaults.program.by_architecture && i < each->len; i++) {
    const char *change = each->pdata[i];
    g_autofree char *key = g_strndup (change, strcspn (change, "="));
    for (guint k = 0; g_str_has_prefix (key, prefix) && k < s->defaults.program.by_architecture->len; k++) {
      LsArchitectureDefaults *d = s->defaults.program.by_architecture->pdata[k];
      d->settings = g_environ_unsetenv (d->settings, key + strlen (prefix));
    }
  }
}

bool
ls_software_load (const char *name, LsSoftwareSpec *ret_software, LsDiagList *diags)
{
  g_autofree char *whole = with_whole_keys (name);
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_SOFTWARE, whole, diags);
  if (!doc || !ls_software_read (doc, ret_software, diags))
    return false;
  drop_changed (whole, ret_software);
  ret_software->defaults.program.software = ls_override_name (ret_software->defaults.program.software, name);
  return true;
}

static char *
text_of (const cJSON *root, const char *key)
{
  return g_strdup (ls_json_text (root, key));
}

bool
ls_software_load_head (const char *name, LsSoftwareSpec *ret_head, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_SOFTWARE, name, diags);
  const cJSON *root = doc ? ls_json_doc_root (doc) : NULL;
  if (root)
    *ret_head = (LsSoftwareSpec) { .dp_kinds = text_of (root, "dp_kinds"),
                                   .architectures = text_of (root, "architectures"),
                                   .emit = text_of (root, "emit"),
                                   .package = text_of (root, "package") };
  return root != NULL;
}

void
ls_software_clear (LsSoftwareSpec *software)
{
  if (!software)
    return;
  ls_strategy_clear (&software->defaults); /* which owns more than its fields say */
  ls_fields_clear (ls_software_fields (), software);
}

/* --- use ---------------------------------------------------------------------------------------- */

static bool
is_listed (const char *list, const char *word)
{
  g_auto (GStrv) words = g_strsplit (list ? list : "", ",", -1);
  return g_strv_contains ((const char *const *) words, word);
}

bool
ls_software_has_dp_kind (const LsSoftwareSpec *software, int dp_kind)
{
  return is_listed (software->dp_kinds, ls_dp_kind_name (dp_kind));
}

bool
ls_software_has_architecture (const LsSoftwareSpec *software, const char *architecture)
{
  return is_listed (software->architectures, architecture);
}

bool
ls_software_names_architecture (const char *runs_on, const char *architecture)
{
  return !runs_on || is_listed (runs_on, architecture)
      || (is_listed (runs_on, LS_ARCHITECTURES_OF_GPUS) && strcmp (architecture, LS_ARCHITECTURE_TPU) != 0);
}

void
ls_software_settle (const LsSoftwareSpec *software, LsStrategy *s)
{
  bool is_interleaved = s->schedule ? strcmp (s->schedule, "interleaved-1f1b") == 0 : s->vpp > 1;
  if (s->mp.p2p == LS_P2P_AUTO && s->pp > 1 && is_interleaved && software->p2p_interleaved != LS_P2P_AUTO)
    s->mp.p2p = software->p2p_interleaved;
}

/* --- by the version of a package ----------------------------------------------------------------- */

#define N_PARTS  3
#define MAX_PART 999999

/* "0.4.1" as a number that orders versions; what follows the third part, or is no number, does not count. */
static guint64
order_of (const char *version)
{
  g_auto (GStrv) parts = g_strsplit (version, ".", -1);
  guint64 order = 0;
  guint n = g_strv_length (parts);
  for (guint i = 0; i < N_PARTS; i++)
    order = order * (MAX_PART + 1) + (i < n ? MIN (g_ascii_strtoull (parts[i], NULL, 10), MAX_PART) : 0);
  return order;
}

/* The version behind the name; NULL: of another package, or none. */
static const char *
version_of (const LsSoftwareSpec *s, const char *package)
{
  gsize n = strlen (package);
  bool is_its = s->package && strncmp (s->package, package, n) == 0 && s->package[n] == ' ';
  return is_its ? s->package + n + 1 : NULL;
}

char *
ls_software_of_package (const char *package, const char *version)
{
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_SOFTWARE);
  guint64 asked = order_of (version), best = 0;
  char *name = NULL;
  for (guint i = 0; i < entries->len; i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    const LsDataEntry *entry = entries->pdata[i];
    LsSoftwareSpec head;
    if (!ls_software_load_head (entry->path, &head, diags))
      continue;
    const char *from = version_of (&head, package);
    guint64 order = from ? order_of (from) : 0;
    bool is_nearer = order <= asked ? best > asked || order > best : order < best;
    if (from && (!name || is_nearer)) {
      g_free (name);
      name = g_strdup (entry->name);
      best = order;
    }
    ls_software_clear (&head);
  }
  return name;
}
