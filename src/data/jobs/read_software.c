#include "data/jobs/read_software.h"

#include <string.h>

#include "base/handover.h"
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

static bool
check_lacks (const LsJsonDoc *doc, const LsSoftwareSpec *s, LsDiagList *diags)
{
  g_auto (GStrv) known = g_strsplit (LS_SOFTWARE_WAYS, ", ", -1);
  bool ok = true;
  for (guint i = 0; s->lacks && i < s->lacks->len; i++) {
    const char *said = g_array_index (s->lacks, LsLacking, i).ways; /* NULL: a complaint has told it */
    g_auto (GStrv) ways = g_strsplit (said ? said : "", ",", -1);
    for (char **way = ways; *way; way++)
      if (!g_strv_contains ((const char *const *) known, *way)) {
        ls_json_doc_diag (doc, ls_json_doc_at (doc, "lacks"), LS_JSON_AT_VALUE, diags, NULL,
                          "expected ways with commas, of " LS_SOFTWARE_WAYS "; got \"%s\"", *way);
        ok = false;
      }
  }
  return ok;
}

static bool
check_dp_kinds (const LsJsonDoc *doc, const LsSoftwareSpec *s, LsDiagList *diags)
{
  g_auto (GStrv) names = g_strsplit (s->dp_kinds ? s->dp_kinds : "", ",", -1);
  bool ok = true;
  for (char **name = names; *name; name++) {
    bool is_known = false;
    for (int kind = LS_DP_NONE; kind < LS_N_DP_KINDS; kind++)
      is_known |= strcmp (*name, ls_dp_kind_name (kind)) == 0;
    if (!is_known)
      ls_json_doc_diag (doc, ls_json_doc_at (doc, "dp_kinds"), LS_JSON_AT_VALUE, diags, NULL,
                        "expected values of dp_kind with commas; got \"%s\"", *name);
    ok &= is_known;
  }
  return ok;
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
  const char *near = ls_suggest (*name, all);
  return ls_json_doc_diag (doc, node, LS_JSON_AT_VALUE, diags, NULL,
                           "expected names of files in %s, %s%sor " LS_ARCHITECTURE_TPU ", with commas; got "
                           "\"%s\"%s%s%s",
                           ls_data_folder (LS_DATA_NCCL_TABLES), besides ? besides : "", besides ? " " : "",
                           *name, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static bool
check_all_architectures (const LsJsonDoc *doc, LsDiagList *diags)
{
  const cJSON *root = ls_json_doc_root (doc), *one;
  bool ok = check_architectures (doc, ls_json_at (root, "architectures"), NULL, diags);
  ok = check_architectures (doc, ls_json_at (root, "runs_on"), LS_ARCHITECTURES_OF_GPUS, diags) && ok;
  cJSON_ArrayForEach (one, ls_json_at (root, "by_architecture")) ok
      = check_architectures (doc, ls_json_at (one, "architectures"), NULL, diags) && ok;
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
  { "what", LS_FIELD_STRING, offsetof (LsHeadroomItem, what), .required = true, .meaning = "who takes it" },
  { "size", LS_FIELD_BYTES, offsetof (LsHeadroomItem, bytes), .default_text = "0B", .meaning = "so much" },
  { "percent", LS_FIELD_DOUBLE, offsetof (LsHeadroomItem, percent), .max = 90, .default_text = "0",
    .meaning = "and so much of the accelerator's memory" },
  { "allocator", LS_FIELD_BOOL, offsetof (LsHeadroomItem, is_of_allocator), .default_text = "false",
    .meaning = "is what --memory-allocator caching simulates, and is left out with it" },
  { "runs_on", LS_FIELD_STRING, offsetof (LsHeadroomItem, runs_on), .default_text = "all",
    .meaning = "on these accelerators only, written as that of the file" },
  { "source", LS_FIELD_STRING, offsetof (LsHeadroomItem, source), .required = true,
    .meaning = "who says so" },
  { NULL },
};

static const LsField lacking_fields[] = {
  { "ways", LS_FIELD_STRING, offsetof (LsLacking, ways), .required = true,
    .meaning = "with commas: " LS_SOFTWARE_WAYS },
  { "source", LS_FIELD_STRING, offsetof (LsLacking, source), .required = true, .meaning = "who says so" },
  { NULL },
};

static const LsField missing_fields[] = {
  { "what", LS_FIELD_STRING, offsetof (LsMissing, what), .required = true,
    .meaning = "what of the program is not simulated" },
  { "when", LS_FIELD_SETTINGS, offsetof (LsMissing, when), .required = true,
    .meaning = "in which jobs: keys of a strategy or a model, and what they are, as `\"a\"`, `\"a|b\"` or "
               "`\">=8\"`" },
  { "times", LS_FIELD_DOUBLE, offsetof (LsMissing, times), .min = 1, .max = 100, .default_text = "1",
    .meaning
    = "so many times as long as simulated such steps were measured, at most: the interval reaches as "
      "far" },
  { "memory", LS_FIELD_DOUBLE, offsetof (LsMissing, memory), .above = true, .max = 100, .default_text = "1",
    .meaning = "so many times what is simulated was measured of their memory" },
  { "source", LS_FIELD_STRING, offsetof (LsMissing, source), .required = true, .meaning = "who says so" },
  { NULL },
};

static const LsMissing missing_blank = { .times = 1, .memory = 1 };

static const LsField table_fields[] = {
  { "of", LS_FIELD_STRING, offsetof (LsTableFacts, of), .required = true,
    .meaning = "the table: what the column `source` of its rows says, with * and ?; several with |" },
  { "family", LS_FIELD_STRING, offsetof (LsTableFacts, family),
    .default_text = "as the facts before it say, else the name of the file",
    .meaning = "what its rows are called together on a scoreboard" },
  { "when", LS_FIELD_SETTINGS, offsetof (LsTableFacts, when), .default_text = "all its rows",
    .meaning = "which rows: a column and what it says, as `\"a\"`, `\"a|b\"` or `\">=8\"`" },
  { "model", LS_FIELD_SETTINGS, offsetof (LsTableFacts, model), .fields = ls_model_fields,
    .element_size = sizeof (LsModel), .table = "model", .default_text = "none",
    .meaning = "what their models had, over the columns" },
  { "strategy", LS_FIELD_SETTINGS, offsetof (LsTableFacts, strategy), .fields = ls_strategy_fields,
    .element_size = sizeof (LsStrategy), .table = "strategy", .default_text = "none",
    .meaning = "what they ran with, over the columns" },
  { "cluster", LS_FIELD_STRING, offsetof (LsTableFacts, cluster), .default_text = "what the column says",
    .meaning = "what they ran on, where the table names the accelerator only (a name of topologies/)" },
  { "source", LS_FIELD_STRING, offsetof (LsTableFacts, source), .required = true, .meaning = "who says so" },
  { NULL },
};

static const LsField by_architecture_fields[] = {
  { "architectures", LS_FIELD_STRING, offsetof (LsArchitectureDefaults, architectures), .required = true,
    .meaning = "which accelerators (with commas): names of files in topologies/nccl, tpu" },
  { "defaults", LS_FIELD_SETTINGS, offsetof (LsArchitectureDefaults, settings), .required = true,
    .fields = ls_strategy_fields, .element_size = sizeof (LsStrategy), .table = "strategy",
    .meaning = "keys of a strategy as the program has them there, over its other defaults" },
  { "source", LS_FIELD_STRING, offsetof (LsArchitectureDefaults, source), .required = true,
    .meaning = "who says so" },
  { NULL },
};

static const LsField own_fields[] = {
  LS_FIELDS_HEADER (LsSoftwareSpec),
  { "based_on", LS_FIELD_STRING, offsetof (LsSoftwareSpec, based_on), .default_text = "nothing",
    .meaning = "another file of this folder, whose keys hold where this one has none (but for dp_kinds, "
               "architectures, package and tables)" },
  { "program", LS_FIELD_STRING, offsetof (LsSoftwareSpec, program), .required = true,
    .meaning = "its name as one would say it" },
  { "vendor", LS_FIELD_STRING, offsetof (LsSoftwareSpec, vendor), .default_text = "not said",
    .meaning = "who makes it" },
  { "release", LS_FIELD_STRING, offsetof (LsSoftwareSpec, release), .default_text = "not said",
    .meaning = "of which release the file speaks" },
  { "package", LS_FIELD_STRING, offsetof (LsSoftwareSpec, package), .default_text = "none",
    .meaning
    = "a package of it and its first version that the file speaks of, as in \"megatron-bridge 0.4\": "
      "a checkout of it that says its version runs the file of that, or the last one before" },
  { "emit", LS_FIELD_STRING, offsetof (LsSoftwareSpec, emit), .default_text = "none",
    .meaning = "what --emit calls it; what that refuses is illegal with --for" },
  { "dp_kinds", LS_FIELD_STRING, offsetof (LsSoftwareSpec, dp_kinds), .default_text = "none",
    .meaning = "ways to be data parallel that it has, as values of dp_kind with commas: --software-each "
               "tries it for these; a file without them is of a release" },
  { "architectures", LS_FIELD_STRING, offsetof (LsSoftwareSpec, architectures),
    .default_text = "any that no other file names",
    .meaning = "and only on accelerators of one of these (with commas): names of files in topologies/nccl, "
               "tpu" },
  { "runs_on", LS_FIELD_STRING, offsetof (LsSoftwareSpec, runs_on), .default_text = "not said",
    .meaning
    = "accelerators that it runs on, as far as the file speaks of it (with commas): gpu, tpu, names of "
      "files in topologies/nccl; a result on others has a note" },
  { "experts", LS_FIELD_STRING, offsetof (LsSoftwareSpec, experts), .default_text = "as simulated",
    .meaning
    = "how it runs experts, where that is not how they are simulated; a result with experts has a note" },
  { "runs_like", LS_FIELD_STRING, offsetof (LsSoftwareSpec, runs_like),
    .default_text = "as the file whose dp_kinds has the job's",
    .meaning = "whose measured runs tell how far off a prediction may be; jobs are compared with those of "
               "the same words" },
  { "defaults", LS_FIELD_OBJECT, offsetof (LsSoftwareSpec, defaults), .fields = ls_strategy_fields,
    .table = "strategy", .default_text = "those of Lockstep",
    .meaning = "keys of a strategy, as the program has them if nobody says anything" },
  { "by_architecture", LS_FIELD_ARRAY, offsetof (LsSoftwareSpec, by_architecture),
    .fields = by_architecture_fields, .element_size = sizeof (LsArchitectureDefaults), .default_text = "none",
    .meaning = "defaults that it has on some accelerators only" },
  { "headroom", LS_FIELD_ARRAY, offsetof (LsSoftwareSpec, headroom), .fields = headroom_fields,
    .element_size = sizeof (LsHeadroomItem), .default_text = "none",
    .meaning = "memory that it takes besides what is simulated" },
  { "lacks", LS_FIELD_ARRAY, offsetof (LsSoftwareSpec, lacks), .fields = lacking_fields,
    .element_size = sizeof (LsLacking), .default_text = "nothing that is known",
    .meaning = "ways to run a job that it does not have; a result that has one has a note" },
  { "misses", LS_FIELD_ARRAY, offsetof (LsSoftwareSpec, misses), .fields = missing_fields,
    .blank = &missing_blank, .element_size = sizeof (LsMissing), .default_text = "nothing that is known",
    .meaning = "what it does in some jobs that is not simulated; a result of such a job has a warning" },
  { "tables", LS_FIELD_ARRAY, offsetof (LsSoftwareSpec, tables), .fields = table_fields,
    .element_size = sizeof (LsTableFacts), .default_text = "none",
    .meaning = "published tables of its runs, and what `lockstep validate` has to know of them besides their "
               "columns" },
};

static const LsEnumName interleaved_p2p[] = {
  { "batched", LS_P2P_BATCHED },
  { "overlapped", LS_P2P_OVERLAPPED },
  { "auto", LS_P2P_AUTO },
  { NULL },
};

static const LsField p2p_field = { "p2p_interleaved",
                                   LS_FIELD_ENUM,
                                   offsetof (LsSoftwareSpec, p2p_interleaved),
                                   .names = interleaved_p2p,
                                   .default_text = "as defaults",
                                   .meaning = "p2p with vpp above 1" };

#define N_OWN G_N_ELEMENTS (own_fields)

const LsField *
ls_software_fields (void)
{
  static LsField fields[N_OWN + 3];
  static gsize is_made;
  if (!ls_once_enter (&is_made))
    return fields;
  memcpy (fields, own_fields, sizeof own_fields);
  fields[N_OWN] = p2p_field;
  fields[N_OWN + 1] = (LsField) { "ranges",
                                  LS_FIELD_OBJECT,
                                  offsetof (LsSoftwareSpec, ranges),
                                  .fields = ls_ranges_fields (),
                                  .table = "file of ranges",
                                  .default_text = "those of a sweep",
                                  .meaning = "values that a sweep for it tries" };
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
  return ls_json_doc_diag (doc, ls_json_doc_at (doc, "emit"), LS_JSON_AT_VALUE, diags, NULL,
                           "expected one of %s; got \"%s\"", known, s->emit);
}

/* A row without the column, or a job without the key, would never meet it. */
static bool
check_conditions (const LsJsonDoc *doc, const char *list, const char *besides, LsDiagList *diags)
{
  const cJSON *all = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), list), *one, *condition;
  bool ok = true;
  cJSON_ArrayForEach (one, all)
  {
    cJSON_ArrayForEach (condition, ls_json_at (one, "when"))
    {
      const char *key = condition->string ? condition->string : "";
      if (ls_field_find (ls_model_fields, key) || ls_field_find (ls_strategy_fields, key)
          || g_strcmp0 (key, besides) == 0)
        continue;
      ls_json_doc_diag (doc, condition, LS_JSON_AT_KEY, diags, NULL,
                        "expected a key of a model or a strategy%s%s", besides ? ", or " : "",
                        besides ? besides : "");
      ok = false;
    }
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

static void
drop_list (const LsField *fields, GArray **list)
{
  for (guint i = 0; *list && i < (*list)->len; i++)
    ls_fields_clear (fields, (*list)->data + i * g_array_get_element_size (*list));
  g_clear_pointer (list, g_array_unref);
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
  g_clear_pointer (&s->dp_kinds, g_free);
  g_clear_pointer (&s->architectures, g_free);
  g_clear_pointer (&s->package, g_free);
  drop_list (table_fields, &s->tables);
  drop_said (ls_json_at (root, "defaults"), s->by_architecture);
  if (cJSON_HasObjectItem (root, "headroom"))
    drop_list (headroom_fields, &s->headroom);
  if (cJSON_HasObjectItem (root, "lacks"))
    drop_list (lacking_fields, &s->lacks);
  if (cJSON_HasObjectItem (root, "misses"))
    drop_list (missing_fields, &s->misses);
  if (cJSON_HasObjectItem (root, "ranges"))
    ls_ranges_clear (&s->ranges);
}

static void
init (LsSoftwareSpec *s)
{
  *s = (LsSoftwareSpec) { .p2p_interleaved = LS_P2P_AUTO };
  ls_strategy_init (&s->defaults);
}

static bool
read_over_bases (const LsJsonDoc *doc, guint n_bases, LsSoftwareSpec *ret_software, LsDiagList *diags)
{
  const cJSON *root = ls_json_doc_root (doc), *base = ls_json_at (root, "based_on");
  LsSoftwareSpec s;
  init (&s);
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
  return g_strdup (cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (root, key)));
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
