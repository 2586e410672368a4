/* Pins that a job which is written for a program and read again is the same job, and that one row of the
 * program's table does both. */
#include "ls_test.h"

#include <string.h>

#include "data/jobs/emit.h"
#include "data/jobs/job_files.h"
#include "data/jobs/read_software.h"
#include "data/jobs/imported.h"
#include "data/launch/program/program_map.h"
#include "data/text/field.h"
#include "import_check.h"
#include "random_job.h"
#include "strategy/shard.h"
#include "strategy/strategy.h"

/* Layers are compared as they lie, whether by a rule or a list. */
static void
add_layers (GString *out, const LsStrategy *s, const LsModel *m)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree uint32_t *layers = g_new0 (uint32_t, s->pp * s->vpp);
  LS_CHECK (ls_chunk_layers (s, m, layers, diags));
  for (guint i = 0; i < s->pp * s->vpp; i++)
    g_string_append_printf (out, "chunk %u: %u\n", i, layers[i]);
}

/* What makes no difference beside what the strategy knows of: the stage of FSDP2, whose shards are kept or not
 * by reshard_after_forward; which micro-batches reduce gradients if there is one; and a flush behind all. */
static bool
is_said_elsewhere (const LsStrategy *s, const char *key)
{
  bool has_one = s->global_batch <= s->dp * s->micro_batch;
  bool is_flushed_once = s->mp.pipeline_batch == 0 || s->mp.pipeline_batch * s->dp >= s->global_batch;
  return (strcmp (key, "pipeline_batch") == 0 && is_flushed_once)
      || (strcmp (key, "zero") == 0 && s->dp_kind == LS_DP_FSDP2) || strcmp (key, "recompute_layers") == 0
      || (strcmp (key, "grad_sync") == 0 && has_one);
}

/* The choices of a user that make a difference, as one text. */
static char *
choices_of (const LsStrategy *s, const LsModel *m)
{
  GString *out = g_string_new (NULL);
  add_layers (out, s, m);
  uint32_t all = (m->n_layers + s->pp * s->vpp - 1) / (s->pp * s->vpp);
  g_string_append_printf (out, "groups of %u\n", s->data.zero_group);
  if (s->recompute == LS_RECOMPUTE_FULL)
    g_string_append_printf (out, "recomputed layers %u\n", MIN (s->memory.recompute_layers - 1, all - 1) + 1);
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    bool is_layers = strcmp (f->key, "layers_per_chunk") == 0;
    g_autofree char *value = f->file_only || is_layers || f->set_only || f->of_program
            || ls_strategy_idle (s, m, f->key) || is_said_elsewhere (s, f->key)
        ? NULL
        : ls_field_text (f, s, NULL);
    if (value)
      g_string_append_printf (out, "%s=%s\n", f->key, value);
  }
  return g_string_free (out, FALSE);
}

static bool
resolve (LsStrategy *s, const LsModel *m, guint gpus)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  bool ok = ls_strategy_resolve (s, m, gpus, 8, diags) && ls_strategy_balance (s, m, NULL, NULL);
  g_autofree char *text = ls_diag_list_format (diags);
  ls_check_impl (ok, __FILE__, __LINE__, "%s", text);
  return ok;
}

typedef char *TextOf (const char *fragment, const LsModel *m, const LsStrategy *s);

/* A fragment as its user has it: in a script that launches it. */
static char *
script_of_megatron (const char *fragment, const LsModel *m, const LsStrategy *s)
{
  guint gpus = s->gpus;
  return g_strdup_printf ("%s\nG=%u\ntorchrun --nproc_per_node $G --nnodes 1 pretrain_gpt.py \\\n"
                          "  ${MEGATRON_ARGS[@]}\n",
                          fragment, gpus);
}

/* A configuration is whole. */
static char *
text_of_whole (const char *fragment, const LsModel *m, const LsStrategy *s)
{
  return g_strdup_printf ("%s", fragment);
}

static bool
model_is_same (const LsImported *import, const LsModel *m, guint64 seed)
{
  for (const LsField *f = ls_model_fields; f->key; f++) {
    g_autofree char *said = f->file_only ? NULL : ls_import_value (import->model, ls_model_fields, f->key),
                    *value = said ? ls_field_text (f, m, NULL) : NULL;
    if (said && g_strcmp0 (said, value) != 0) {
      ls_check_impl (false, __FILE__, __LINE__, "seed %" G_GUINT64_FORMAT ": model %s: %s, was %s", seed,
                     f->key, said, value ? value : "not there");
      return false;
    }
  }
  return true;
}

/* Nothing is told but that a fragment names no model. */
static bool
is_known_whole (const LsImported *import)
{
  for (guint i = 0; i < import->remarks->len; i++) {
    const LsRemark *r = &g_array_index (import->remarks, LsRemark, i);
    if (r->kind == LS_REMARK_OPTION && !option_find (import->table, r->text + strspn (r->text, "-")))
      return false;
    if (r->kind == LS_REMARK_UNKNOWN && !g_str_has_prefix (r->text, "model.name")
        && !g_str_has_prefix (r->text, "the model:") && !g_str_has_prefix (r->text, "how long a sequence is"))
      return false;
  }
  return ls_import_n_remarks (import, LS_REMARK_CONFLICT) == 0;
}

/* The lines of a that b has not. */
static char *
lines_without (const char *a, const char *b)
{
  g_auto (GStrv) lines = g_strsplit (a, "\n", -1), others = g_strsplit (b, "\n", -1);
  GString *out = g_string_new (NULL);
  for (char **line = lines; *line; line++)
    if (!g_strv_contains ((const char *const *) others, *line))
      g_string_append_printf (out, " %s", *line);
  return g_string_free (out, FALSE);
}

/* Fills in what the files of a program do not say, as its users do. */
typedef void Complete (const LsImported *import, const LsStrategy *was, LsStrategy *again);

/* The model's code says degrees and kernels, and what it recomputes if that is not all. */
static void
complete_deepspeed (const LsImported *import, const LsStrategy *was, LsStrategy *again)
{
  static const char *const keys[] = { "tp",
                                      "sp",
                                      "pp",
                                      "cp",
                                      "cp_kind",
                                      "cp_balance",
                                      "ep",
                                      "etp",
                                      "seq",
                                      "p2p",
                                      "tp_overlap",
                                      "tp_overlap_kind",
                                      "expert_capacity",
                                      "expert_padding",
                                      "attention",
                                      "schedule",
                                      "bf16_first",
                                      "bf16_last",
                                      "recompute_stages" };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  again->seq = was->seq;
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    g_autofree char *value = ls_field_text (ls_field_find (ls_strategy_fields, keys[i]), was, NULL);
    if (value && !ls_json_doc_at (import->strategy, keys[i]))
      LS_CHECK (ls_field_set_text (ls_strategy_fields, again, keys[i], value, diags));
  }
  again->gpus *= again->tp * again->pp * again->cp; /* its ranks are copies of what the code cuts up */
  again->data.grad_sync = was->data.grad_sync;
  if (was->recompute == LS_RECOMPUTE_SELECTIVE || again->recompute == LS_RECOMPUTE_FULL) {
    again->recompute = was->recompute;
    again->memory.recompute_parts = was->memory.recompute_parts;
    again->memory.recompute_method = was->memory.recompute_method;
    again->memory.recompute_layers = was->memory.recompute_layers;
  }
}

static void
check_again (Complete *complete, const LsModel *m, const LsStrategy *s, const LsStrategy *defaults,
             const char *script, guint64 seed)
{
  LsImported import;
  LsStrategy again;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!read_text (script, &import))
    return;
  ls_strategy_copy (&again, defaults);
  bool ok = ls_fields_read_file (ls_strategy_fields, "strategy", import.strategy, &again, diags);
  if (complete)
    complete (&import, s, &again);
  ok = ok && resolve (&again, m, s->gpus) && model_is_same (&import, m, seed);
  g_autofree char *before = choices_of (s, m), *after = choices_of (&again, m);
  g_autofree char *was = lines_without (before, after), *is = lines_without (after, before);
  ls_import_refuse (&import, LS_REMARK_UNKNOWN, LS_ERROR_INPUT, "", diags);
  ls_import_refuse (&import, LS_REMARK_CONFLICT, LS_ERROR_INPUT, "", diags);
  g_autofree char *told = ls_diag_list_format (diags);
  ls_check_impl (ok && strcmp (before, after) == 0 && is_known_whole (&import), __FILE__, __LINE__,
                 "seed %" G_GUINT64_FORMAT ": was%s; is%s; %s\n%s", seed, was, is, told, script);
  ls_strategy_clear (&again);
  ls_import_clear (&import);
}

/* What a program always has, so that more of what is drawn can be written for it. */
typedef void Favour (GRand *rand, LsStrategy *s);

static void
favour_torchtitan (GRand *rand, LsStrategy *s)
{
  s->dp_kind = LS_DP_FSDP2;
  s->zero_stage = LS_ZERO_AUTO;
  s->data.zero_group = g_rand_boolean (rand) && s->data.zero_group > 0 ? s->data.zero_group : 0;
  s->sp = s->tp > 1;
  s->opt.grad_dtype = LS_DTYPE_FP32;
  s->dtype = g_rand_boolean (rand) ? LS_DTYPE_BF16 : s->dtype;
  s->fp8.recipe = LS_FP8_CURRENT;
  s->memory.recompute_parts = LS_RECOMPUTE_OP;
  s->memory.recompute_method = LS_RECOMPUTE_UNIFORM;
  s->memory.recompute_layers = 1;
  s->data.layers_per_unit = 1;
  s->data.forward_prefetch = s->data.backward_prefetch_units = 0;
  s->mp.tp_overlap_kind = LS_TP_OVERLAP_RING;
  s->use.attention = LS_ATTENTION_FLASH;
  s->opt.grad_norm = true;
  s->opt.post_validation = s->memory.partition_activations = s->memory.offload_activations = false;
}

static void
favour_deepspeed (GRand *rand, LsStrategy *s)
{
  s->dp_kind = LS_DP_DEEPSPEED;
  s->zero_stage = (uint32_t) g_rand_int_range (rand, 0, s->pp > 1 ? 2 : 4);
  s->data.zero_group = 0;
  s->vpp = 1;
  s->mp.cp_kind = LS_CP_ULYSSES;
  s->dtype = g_rand_boolean (rand) ? LS_DTYPE_BF16 : LS_DTYPE_FP16;
  s->opt.post_validation = false;
  s->memory.offload_activations = s->memory.offload_activations && s->recompute == LS_RECOMPUTE_FULL;
}

/* --- jobs of every kind ---------------------------------------------------------------------------- */

/* Of the program's table as often as of all but those that no program has an option for. */
static const LsField *
draw_field (GRand *rand, const OptionTable *table)
{
  static const char *const without[] = { "nccl_env",   "bucket_all_reduce", "bucket_late", "ends_apart",
                                         "hook_calls", "gather_calls",      "host_python", NULL };
  g_autoptr (GPtrArray) fields = g_ptr_array_new ();
  for (const LsField *f = ls_strategy_fields; f->key; f++)
    if (!g_strv_contains (without, f->key))
      g_ptr_array_add (fields, (gpointer) f);
  if (g_rand_boolean (rand))
    return fields->pdata[g_rand_int_range (rand, 0, (gint32) fields->len)];
  const OptionRow *row;
  do
    row = &table->rows[g_rand_int_range (rand, 0, (gint32) table->n)];
  while (row->kind != OPTION_STRATEGY);
  return ls_field_find (ls_strategy_fields, row->key);
}

/* Any value of any knob that is a word, a truth or a number. How tokens fall on experts, and which GPU
 * each rank has, is said to no program. */
static void
draw_knob (GRand *rand, const OptionTable *table, LsStrategy *s)
{
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  const LsField *f = draw_field (rand, table);
  guint n_names = 0;
  static const char *const fixed[]
      = { "gpus", "tp", "pp", "vpp", "dp", "dp_kind", "cp", "expert_load", "placement", NULL };
  if (f->file_only || f->set_only || f->of_program || g_strv_contains (fixed, f->key))
    return;
  while (f->names && f->names[n_names].name)
    n_names++;
  const char *numbers[] = { "0", "1", "2", f->kind == LS_FIELD_UINT64 ? "70000000" : "4" };
  const char *text = n_names > 0 ? f->names[g_rand_int_range (rand, 0, (gint32) n_names)].name
                                 : numbers[g_rand_int_range (rand, 0, 4)];
  ls_field_set_text (ls_strategy_fields, s, f->key, text, none);
}

static void
draw_knobs (GRand *rand, const OptionTable *table, const LsModel *m, LsStrategy *s)
{
  for (gint n = g_rand_int_range (rand, 0, 4); n > 0; n--)
    draw_knob (rand, table, s);
  if (m->moe.n_experts > 0 && s->dp > 1)
    s->ep = pick (rand, 2, (uint32_t[]) { 1, 2 });
  s->lora.rank = 0;
  if (s->dtype == LS_DTYPE_FP32 || (s->dtype == LS_DTYPE_FP16 && g_rand_boolean (rand)))
    s->dtype = (int) pick (rand, 2, (uint32_t[]) { LS_DTYPE_FP8, LS_DTYPE_BF16 });
}

/* Over the defaults of the program, whose releases differ in what no option says. */
static bool
draw_job (GRand *rand, const LsStrategy *defaults, const OptionTable *table, Favour *favour, LsModel *m,
          LsStrategy *s)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  *m = small_model (rand);
  random_strategy (rand, s);
  if (g_rand_boolean (rand)) {
    random_kind (rand, m);
    draw_knobs (rand, table, m, s);
  }
  s->use.grad_fusion = defaults->use.grad_fusion;
  s->memory.cuda_allocator = defaults->memory.cuda_allocator;
  s->memory.recompute_flash = defaults->memory.recompute_flash;
  if (g_rand_boolean (rand))
    s->opt.grad_dtype = LS_DTYPE_FP32;
  if (favour && g_rand_boolean (rand))
    favour (rand, s);
  if (s->vpp == 1)
    s->mp.p2p = s->pp > 1 ? LS_P2P_BATCHED : s->mp.p2p;
  if (!ls_strategy_resolve (s, m, s->gpus, 8, diags) || !ls_strategy_balance (s, m, NULL, NULL))
    return false;
  m->seq = s->seq;
  return true;
}

static void
check_written (const char *target, const OptionTable *table, Favour *favour, Complete *complete,
               TextOf *text_of)
{
  guint n = ls_test_cases (200, 3000), n_read = 0;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsSoftwareSpec software;
  if (!LS_CHECK (ls_software_load (target, &software, diags)))
    return;
  for (guint64 seed = 1; seed <= n; seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed ((guint32) seed);
    LsModel m;
    LsStrategy s;
    bool ok = draw_job (rand, &software.defaults, table, favour, &m, &s);
    const LsEmitJob job = { .model = &m, .strategy = &s, .title = "small" };
    g_autofree char *notes = NULL, *fragment = ok ? ls_emit (&job, target, &notes, NULL) : NULL;
    g_autofree char *script = fragment ? text_of (fragment, &m, &s) : NULL;
    if (script) {
      check_again (complete, &m, &s, &software.defaults, script, seed);
      n_read++;
    }
    ls_strategy_clear (&s);
  }
  g_print ("%s: %u of %u jobs are written\n", target, n_read, n);
  ls_check_impl (n_read >= n / 60, __FILE__, __LINE__, "only %u of %u jobs can be written for %s", n_read, n,
                 target);
  ls_software_clear (&software);
}

/* --- one row, both directions ---------------------------------------------------------------------- */

#define ROWS 600

/* A row with another name: jobs that had the option say that name, and what was written before is no longer
 * read by this row. */
static void
check_renamed (const OptionTable *table, guint i, OptionSyntax syntax, const LsModel *m, const LsStrategy *s)
{
  OptionRow rows[ROWS];
  g_autoptr (GString) before = g_string_new (NULL), after = g_string_new (NULL);
  const OptionTable renamed = { rows, table->n, .map = table->map };
  memcpy (rows, table->rows, table->n * sizeof *rows);
  rows[i].option = "another.name";
  option_write (table, syntax, m, s, before);
  option_write (&renamed, syntax, m, s, after);
  const char *name = table->rows[i].option,
             *last = syntax == OPTION_ARGUMENTS ? name
      : strrchr (name, '.')                     ? strrchr (name, '.') + 1
                                                : name;
  const OptionRow *row = option_find (&renamed, name);
  ls_check_impl (strstr (before->str, last) && !strstr (before->str, "another")
                     && strstr (after->str, "another") && row != &rows[i]
                     && (!row || row->kind == OPTION_IGNORED || row->key == NULL),
                 __FILE__, __LINE__, "%s: written or read by another row\n%s", name, after->str);
}

/* Each row of a key, of random jobs that have it, and it is the row that reads its name; n_expected rows: the
 * others are of older names. */
static void
check_rows (const char *program, const OptionTable *table, OptionSyntax syntax, Favour *favour,
            guint n_expected)
{
  bool is_seen[ROWS] = { false };
  guint n_rows = 0, n_seen = 0;
  g_assert (table->n <= ROWS);
  for (guint64 seed = 1; seed <= 6000; seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed ((guint32) seed);
    LsModel m;
    LsStrategy s, defaults;
    ls_strategy_init (&defaults);
    bool ok = draw_job (rand, &defaults, table, favour, &m, &s);
    for (guint i = 0; i < table->n && ok; i++) {
      const OptionRow *row = &table->rows[i];
      g_autofree char *value
          = is_seen[i] || row->kind > OPTION_STRATEGY ? NULL : option_value (table, row, &m, &s);
      if (!value)
        continue;
      is_seen[i] = true;
      LS_CHECK (option_find (table, row->option) == row);
      check_renamed (table, i, syntax, &m, &s);
    }
    ls_strategy_clear (&s);
  }
  for (guint i = 0; i < table->n; i++) {
    n_rows += table->rows[i].kind <= OPTION_STRATEGY;
    n_seen += is_seen[i];
  }
  ls_check_impl (n_seen >= n_expected, __FILE__, __LINE__, "%s: %u of %u rows of keys are written", program,
                 n_seen, n_rows);
}

/* --- programs -------------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  Favour *favour;
  Complete *complete;
  TextOf *text_of;
  const OptionTable *table; /* NULL: of the map of that name */
  OptionSyntax syntax;
  guint n_rows; /* of keys that are written */
} programs[] = {
  { "megatron", NULL, NULL, script_of_megatron, NULL, OPTION_ARGUMENTS, 50 },
  { "torchtitan", favour_torchtitan, NULL, text_of_whole, NULL, OPTION_TOML, 7 },
  { "deepspeed", favour_deepspeed, complete_deepspeed, text_of_whole, NULL, OPTION_JSON, 10 },
};

static const OptionTable *
table_of (guint i)
{
  return programs[i].table ? programs[i].table : program_table_find (programs[i].name);
}

static void
a_row_writes_what_it_reads (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (programs); i++)
    check_rows (programs[i].name, table_of (i), programs[i].syntax, programs[i].favour, programs[i].n_rows);
}

static void
what_is_written_is_the_same_job (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (programs); i++)
    check_written (programs[i].name, table_of (i), programs[i].favour, programs[i].complete,
                   programs[i].text_of);
}

/* Each that --emit takes is here. */
static void
all_programs_are_tried (void)
{
  for (const char *const *target = ls_emit_targets (); *target; target++) {
    guint i = 0;
    while (i < G_N_ELEMENTS (programs) && strcmp (programs[i].name, *target) != 0)
      i++;
    ls_check_impl (i < G_N_ELEMENTS (programs), __FILE__, __LINE__, "%s is not tried", *target);
  }
}

LS_TEST_SUITE (LS_TEST (all_programs_are_tried), LS_TEST (a_row_writes_what_it_reads),
               LS_TEST (what_is_written_is_the_same_job))
