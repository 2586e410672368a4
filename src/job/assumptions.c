#include "job/assumptions.h"

#include <string.h>

#include "base/list.h"
#include "base/printable.h"
#include "data/jobs/job_files.h"
#include "data/text/override.h"
#include "job/job_from.h"
#include "job/knobs.h"
#include "cluster/cluster.h"
#include "job/job_steps.h"
#include "model/operators.h"
#include "strategy/shard.h"

typedef struct {
  const LsJobSpec *spec;
  const LsModel *model;
  const LsStrategy *s; /* resolved */
  const char *(*chosen) (const char *knob, gconstpointer data);
  gconstpointer data;
  bool takes_dp; /* of a replay: another --dp */
} Job;

/* A kind of row: value NULL says that such a job has none. */
typedef struct {
  const char *key;
  const char *knob;                /* of the strategy, which gives another value */
  char *(*value) (const Job *j);   /* newly allocated; NULL: that of the knob */
  const char *words;               /* with %s for the value; NULL: not in the sentence */
  const char *otherwise;           /* whence, where nobody says anything; NULL: the textbook */
  char *(*derived) (const Job *j); /* the same, newly allocated; NULL: otherwise */
  bool is_brief;                   /* in the sentence only where nobody says it */
  const char *unit;                /* of what is typed, where the value is in another one */
  bool is_usual;                   /* what is not set is said in words of the knob */
  bool (*is_quiet) (const Job *j); /* whether it is not in the sentence of such a job; NULL: never */
} Row;

/* --- values ---------------------------------------------------------------------------------------- */

/* Of a replay some are said besides; where its ranks are, only its file does. */
static char *
knob_text (const Job *j, const char *key)
{
  if (j->spec->trace && strcmp (key, "placement") == 0 && !ls_job_says (j->spec, key))
    return g_strdup ("as in its file");
  bool is_besides = j->spec->trace && ls_job_says (j->spec, key);
  return ls_field_text (ls_field_find (ls_strategy_fields, key), is_besides ? &j->spec->strategy : j->s,
                        NULL);
}

static char *
tokens (const Job *j)
{
  return g_strdup_printf ("%" G_GUINT64_FORMAT, (guint64) j->s->global_batch * j->s->seq);
}

static char *
batch_rule (const Job *j)
{
  return g_strdup_printf ("a batch of %u: a micro-batch for each copy%s", j->s->global_batch,
                          j->s->pp > 1 ? " and stage" : "");
}

/* FSDP's shards are their own masters: in fp32, where it casts what it gathers, or as narrow as that. */
static bool
has_shards (const Job *j, bool are_narrow)
{
  return ls_dp_traits (j->s->dp_kind)->is_fsdp && j->s->zero_stage > 0
      && j->s->data.narrow_shards == are_narrow;
}

static bool
is_wide (const Job *j)
{
  return j->s->dtype == LS_DTYPE_FP32 || j->s->dtype == LS_DTYPE_TF32;
}

/* Weights that the optimizer steps on itself have its format; those that are frozen never. */
static char *
format_of_parameters (const Job *j)
{
  LsDtype dtype = (LsDtype) j->s->dtype;
  bool is_scaled = ls_dtype_is_scaled (dtype);
  const char *between = ls_dtype_name (is_scaled ? LS_DTYPE_BF16 : dtype),
             *narrow = is_scaled && j->s->fp8.params ? ls_dtype_name (dtype) : between;
  if (is_wide (j))
    return g_strdup ("fp32");
  g_autofree char *learned = j->s->opt.master == LS_MASTER_WEIGHTS ? g_strdup ("fp32")
      : has_shards (j, false) ? g_strdup_printf ("fp32 shards, gathered in %s", narrow)
                              : g_strdup (j->s->lora.rank > 0 ? between : narrow);
  return j->s->lora.rank == 0
      ? g_steal_pointer (&learned)
      : g_strdup_printf ("%s%s frozen, adapters %s", j->s->lora.qlora ? "nf4 in linear layers, " : "", narrow,
                         learned);
}

/* Where products are in fp8, --dtype does not decide it. */
static char *
parameters_of (const Job *j, bool are_fp8)
{
  LsDtype dtype = (LsDtype) j->s->dtype;
  bool is_scaled = ls_dtype_is_scaled (dtype);
  if (are_fp8 != (is_scaled && dtype != LS_DTYPE_NVFP4))
    return NULL;
  g_autofree char *format = format_of_parameters (j);
  return is_scaled ? g_strdup_printf ("%s, products in %s", format, ls_dtype_name (dtype))
                   : g_steal_pointer (&format);
}

static char *
parameters (const Job *j)
{
  return parameters_of (j, false);
}

static char *
scaled_parameters (const Job *j)
{
  return parameters_of (j, true);
}

static char *
gradients (const Job *j)
{
  LsDtype reduced = (LsDtype) j->s->opt.grad_dtype,
          kept = has_shards (j, false) && !ls_dp_traits (j->s->dp_kind)->cuts_operators ? LS_DTYPE_FP32
      : has_shards (j, true) ? ls_strategy_weights (j->s)
                             : reduced;
  return kept == reduced
      ? g_strdup (ls_dtype_name (reduced))
      : g_strdup_printf ("%s shards, reduced in %s", ls_dtype_name (kept), ls_dtype_name (reduced));
}

static char *
masters (const Job *j)
{
  bool has_own = has_shards (j, j->s->data.narrow_shards) || j->s->opt.master == LS_MASTER_WEIGHTS;
  return has_own || is_wide (j) ? g_strdup ("none but the weights") : knob_text (j, "master");
}

static char *
backend (const Job *j)
{
  return j->s->dp_kind == LS_DP_NONE ? NULL : g_strdup (ls_dp_kind_name (j->s->dp_kind));
}

/* Those of experts are not modelled (strategy/rules.txt, notes). */
static char *
adapters (const Job *j)
{
  const char *modules = j->s->lora.modules;
  bool has_all = !modules || g_str_equal (modules, "all-linear"), has_experts = j->model->moe.n_experts > 0;
  return j->s->lora.rank == 0
      ? NULL
      : g_strdup_printf ("of rank %u on %s", j->s->lora.rank,
                         !has_all          ? modules
                             : has_experts ? "all linear layers but of MLPs and experts"
                                           : "all linear layers");
}

/* Adam's; others' files say what they keep. */
static char *
moments (const Job *j)
{
  LsAdamStates of = ls_strategy_adam (j->s);
  if (has_shards (j, true))
    of.moment = of.variance = ls_strategy_weights (j->s);
  const char *first = ls_dtype_name (of.moment), *second = ls_dtype_name (of.variance);
  return j->s->opt.kind          ? NULL
      : of.moment == of.variance ? g_strdup (first)
                                 : g_strdup_printf ("%s, %s", first, second);
}

/* Of a file of others, what it leaves to its class cannot be told apart from what it says. */
static char *
of_model (const Job *j)
{
  bool is_theirs = j->model->source && g_str_has_prefix (j->model->source, LS_HF_SOURCE);
  return g_strdup (is_theirs ? "the model's file or class" : "the model's");
}

static char *
of_attention (const Job *j)
{
  return j->model->lacks_attention ? g_strdup ("the model's file has none") : of_model (j);
}

static bool
has_whole_sequences (const Job *j)
{
  return !j->s->docs.lengths || strcmp (j->s->docs.lengths, "whole") == 0;
}

static uint64_t
padded_vocabulary (const Job *j)
{
  return ls_model_padded_vocab (j->model, j->s->use.vocab_multiple, j->s->tp);
}

static char *
vocabulary (const Job *j)
{
  return g_strdup_printf ("%" G_GUINT64_FORMAT, (guint64) padded_vocabulary (j));
}

static bool
has_whole_vocabulary (const Job *j)
{
  return padded_vocabulary (j) == j->model->vocab;
}

static char *
software (const Job *j)
{
  return g_strdup (j->s->program.software);
}

/* Of a cluster's file of several nodes all are used. */
static char *
gpus_rule (const Job *j)
{
  return g_strdup (j->s->gpus > j->s->tp * j->s->pp * j->s->cp ? "all of the cluster's file"
                                                               : "one copy of the model");
}

static bool
has_one_stage (const Job *j)
{
  return j->s->pp == 1;
}

/* Of several chunks with as many layers each. */
static char *
even_layers (const Job *j)
{
  const uint32_t n = j->s->pp * j->s->vpp, of_each = j->model->n_layers / n;
  bool is_even = n > 1 && !j->s->layout.layers_per_chunk && of_each * n == j->model->n_layers;
  return is_even ? g_strdup_printf ("%ux%u", of_each, n) : NULL;
}

static char *
layers_rule (const Job *j)
{
  return g_strdup (j->s->layout.layers_are_found ? "balanced by what they cost"
                                                 : "embedding and head count as one each");
}

/* Of others: embedding and head count as a layer each, or they were balanced. */
static char *
uneven_layers (const Job *j)
{
  const uint32_t n = j->s->pp * j->s->vpp, of_each = (j->model->n_layers + 2) / n;
  if (n == 1)
    return NULL;
  if (j->s->layout.layers_per_chunk || j->model->n_layers % n == 0)
    return knob_text (j, "layers_per_chunk");
  return n == 2 ? g_strdup_printf ("%ux2", of_each - 1)
                : g_strdup_printf ("%u,%ux%u,%u", of_each - 1, of_each, n - 2, of_each - 1);
}

static char *
expert_degree (const Job *j)
{
  return j->model->moe.n_experts > 0 ? knob_text (j, "etp") : NULL;
}

static const Row rows[] = {
  { "gpus", "gpus", NULL, "--gpus %s", NULL, gpus_rule, true },
  { "seq", "seq", NULL, "sequences of %s", NULL, of_model },
  { "tokens", "global_batch", tokens, "%s tokens a step", NULL, batch_rule, .unit = "sequences" },
  { "micro_batch", "micro_batch", NULL, "micro-batch %s", "by default", NULL, true },
  { "zero", "zero", NULL, "ZeRO %s", "by default", NULL, true },
  { "recompute", "recompute", NULL, "recomputation %s", "by default", NULL, true },
  { "dp_kind", "dp_kind", backend, "gradients reduced as by %s", "by --zero and the accelerator" },
  { "dtype", "dtype" },
  { "parameters", "dtype", parameters, "parameters %s" },
  { "parameters", "fp8_params", scaled_parameters, "parameters %s" },
  { "gradients", "grad_dtype", gradients, "gradients %s" },
  { "masters", "master", masters, "masters %s" },
  { "moments", "moment_dtype", moments },
  { "optimizer", "optimizer", NULL, "optimizer %s" },
  { "lora", "lora_modules", adapters, "adapters %s", "by default" },
  { "attention", "attention", NULL, "attention %s", NULL, of_attention },
  { "lengths", "lengths", NULL, "documents of %s", .is_quiet = has_whole_sequences },
  { "lengths_draw", "lengths_draw", NULL, "drawn %s", "by default", NULL, true },
  { "lengths_seed", "lengths_seed", NULL, "seed %s", "by default", NULL, true },
  { "lengths_balance", "lengths_balance", NULL, "balance %s", "by default", NULL, true },
  { "expert_load", "expert_load", NULL, "load of experts %s", .is_usual = true },
  { "vocabulary", "vocab_multiple", vocabulary, "vocabulary padded to %s", .unit = "what it is a multiple of",
    .is_quiet = has_whole_vocabulary },
  { "attention_kernel", "attention_kernel", NULL, "attention kernel %s",
    "as the accelerator's file times attention" },
  { "fp8_recipe", "fp8_recipe", NULL, "fp8 recipe %s", NULL, NULL, true },
  { "bucket_params", "bucket_params", NULL, "buckets of %s gradients", NULL, NULL, true, .is_usual = true },
  { "bucket_bytes", "bucket_bytes", NULL, "buckets of gradients %s", NULL, NULL, true, .is_usual = true },
  { "reduce_bucket", "reduce_bucket", NULL, "buckets of %s gradients", NULL, NULL, true, .is_usual = true },
  { "tp_overlap", "tp_overlap", NULL, "tp-overlap", NULL, NULL, true },
  { "cp_kind", "cp_kind", NULL, "context parallelism by %s", NULL, NULL, true },
  { "cp_balance", "cp_balance", NULL, "cp-balance", NULL, NULL, true },
  { "dp_overlap", "dp_overlap", NULL, "dp-overlap", NULL, NULL, true },
  { "gather_overlap", "gather_overlap", NULL, "gather-overlap", NULL, NULL, true, .is_usual = true },
  { "grad_norm", "grad_norm", NULL, NULL, NULL, NULL, true },
  { "schedule", "schedule", NULL, "schedule %s", NULL, NULL, true, .is_quiet = has_one_stage },
  { "layers_per_chunk", "layers_per_chunk", even_layers, NULL, "evenly by default" },
  { "layers_per_chunk", "layers_per_chunk", uneven_layers, "layers of chunks %s", NULL, layers_rule, true },
  { "p2p", "p2p", NULL, "p2p %s", NULL, NULL, true },
  { "dispatcher", "dispatcher", NULL, "dispatcher %s", NULL, NULL, true },
  { "etp", "etp", expert_degree, "etp %s", "as tp", NULL, true },
  { "offload_to", "offload_to", NULL, "offload to %s", NULL, NULL, true },
  { "bucket_view", "bucket_view", NULL, "bucket views", NULL, NULL, true },
  { "software", NULL, software, "software %s", "none was named" },
};

/* --- whence ---------------------------------------------------------------------------------------- */

/* Whether the program that was named has it by default, on that accelerator too, and it is so. */
static bool
is_of_software (const Job *j, const LsField *knob)
{
  const LsSoftwareSpec *named = j->spec->software;
  LsStrategy blank;
  ls_strategy_init (&blank);
  g_autofree char *its = named ? ls_knob_of_program (knob, j->s, &named->defaults) : NULL,
                  *usual = ls_field_text (knob, &blank, NULL), *own = ls_field_text (knob, j->s, NULL);
  bool is_other = knob->kind == LS_FIELD_ENUM && g_strcmp0 (its, own) != 0;
  return its && !is_other && g_strcmp0 (its, usual) != 0;
}

#define INFERRED "inferred from the launch file"

/* Whether no word of the files says it but what they come to: "software megatron: its options are ...". */
static bool
is_inferred (const LsImported *from, const char *key)
{
  g_autofree char *head = g_strconcat (key, " ", NULL);
  for (guint i = 0; i < from->remarks->len; i++) {
    const LsRemark *r = &g_array_index (from->remarks, LsRemark, i);
    if (r->kind == LS_REMARK_INFERRED && g_str_has_prefix (r->text, head))
      return true;
  }
  return false;
}

static char *
whence_software (const Job *j)
{
  bool is_guess = j->spec->software_is_from && is_inferred (j->spec->from, "software");
  return g_strdup (is_guess                                 ? INFERRED
                       : j->spec->software_is_from          ? "the launch file's"
                       : j->spec->software                  ? "given"
                       : j->spec->strategy.program.software ? "the strategy file's"
                                                            : "none was named");
}

static bool
has_said (const Job *j, const char *knob)
{
  return j->spec->said && g_hash_table_contains (j->spec->said, knob);
}

/* How large a job is, other options than --gpus say too. */
static bool
is_given (const Job *j, const char *knob)
{
  const LsJobSpec *spec = j->spec;
  bool has_size = spec->n_nodes > 0 || spec->slice[0] > 0 || has_said (j, "dp");
  return (has_size && !spec->trace && strcmp (knob, "gpus") == 0) || has_said (j, knob);
}

/* How large a replay is, where its copies are given. */
static bool
follows_dp (const Job *j, const char *knob)
{
  bool is_size = knob && (strcmp (knob, "gpus") == 0 || strcmp (knob, "global_batch") == 0);
  return is_size && j->spec->trace && has_said (j, "dp");
}

/* A word of the files, a rule of their program, or what was given behind their name. */
static char *
whence_from (const LsImported *from, const char *knob)
{
  bool is_rule
      = ls_import_remark (from, LS_REMARK_BY_RULE, knob) || ls_import_remark (from, LS_REMARK_OF_JOB, knob);
  if (ls_import_remark (from, LS_REMARK_GIVEN, knob))
    return g_strdup ("given");
  if (is_inferred (from, knob))
    return g_strdup (INFERRED);
  return is_rule ? g_strdup_printf ("a rule of %s", from->program) : g_strdup ("the launch file's");
}

/* Whence it is that somebody says it, newly allocated; NULL: nobody does. */
static char *
whence_said (const Job *j, const Row *row)
{
  const char *chosen = j->chosen ? j->chosen (row->knob ? row->knob : row->key, j->data) : NULL;
  if (chosen)
    return g_strdup (chosen);
  if (j->spec->trace && !(row->knob && is_given (j, row->knob)))
    return g_strdup (follows_dp (j, row->knob) ? "the trace's with such dp" : "the trace's");
  if (!row->knob)
    return whence_software (j);
  bool has_given_way = j->spec->given_up && g_hash_table_contains (j->spec->given_up, row->knob);
  const LsImported *from = has_given_way ? NULL : j->spec->from;
  bool is_files = from && ls_json_doc_at (from->strategy, row->knob)
      && !ls_import_remark (from, LS_REMARK_GIVEN, row->knob); /* another word for it, too */
  if (is_files || (from && ls_job_has_from (j->spec, ls_field_find (ls_strategy_fields, row->knob), j->s)))
    return row->value == parameters && j->s->lora.rank > 0 ? g_strdup ("assumed by the launch file's dtype")
                                                           : whence_from (from, row->knob);
  return is_given (j, row->knob) ? g_strdup ("given") : NULL;
}

static char *
whence_unsaid (const Job *j, const Row *row)
{
  const LsField *knob = ls_field_find (ls_strategy_fields, row->knob);
  if (row->value == vocabulary && has_whole_vocabulary (j) && j->spec->from
      && is_inferred (j->spec->from, "vocab"))
    return g_strdup (INFERRED);
  if (is_of_software (j, knob))
    return g_strdup_printf ("%s's default", j->spec->software->program);
  if (strcmp (row->knob, "seq") == 0 && j->spec->from && ls_json_doc_at (j->spec->from->model, "seq"))
    return g_strdup ("the launch file's");
  if (strcmp (row->knob, "attention") == 0 && j->s->use.attention != (int) j->model->attention)
    return g_strdup ("the accelerator has no other");
  return row->derived  ? row->derived (j)
      : row->otherwise ? g_strdup (row->otherwise)
                       : g_strdup (j->spec->software ? "by default" : "textbook");
}

/* Whether a replay may have another value. */
static bool
is_open (const Job *j, const LsField *knob)
{
  return knob && ls_knob_goes_with_trace (knob) && (j->takes_dp || strcmp (knob->key, "dp") != 0);
}

/* Whether that value is refused, or comes to its own, also where its way to be data parallel follows, and the
 * stage of ZeRO. */
static bool
is_refused (const Job *j, const LsField *f, const char *value)
{
  bool is_legal = false;
  for (int follows = 0; follows < 2 && !is_legal; follows++) {
    LsStrategy tried;
    g_autoptr (LsDiagList) unheard = ls_diag_list_new_counting ();
    ls_strategy_copy (&tried, j->s);
    if (follows) { /* and with it what else it decides */
      LsStrategy plain;
      ls_strategy_init (&plain);
      tried.dp_kind = LS_DP_AUTO;
      tried.zero_stage = LS_ZERO_AUTO;
      tried.data = plain.data;
      ls_strategy_clear (&plain);
    }
    is_legal = ls_field_value_set (f, &tried, value)
        && ls_strategy_resolve (&tried, j->model, j->s->gpus, j->s->gpus, unheard);
    g_autofree char *other = ls_field_text (f, &tried, NULL), *own = ls_field_text (f, j->s, NULL);
    is_legal = is_legal && g_strcmp0 (other, own) != 0;
    ls_strategy_clear (&tried);
  }
  return !is_legal;
}

/* Whether a switch or a choice can be nothing else in such a job. */
static bool
has_no_other (const Job *j, const LsField *f)
{
  g_autofree char *own = ls_field_text (f, j->s, NULL);
  if (f->kind == LS_FIELD_BOOL)
    return is_refused (j, f, g_strcmp0 (own, "true") == 0 ? "0" : "1");
  bool is_alone = f->kind == LS_FIELD_ENUM;
  for (const LsEnumName *n = f->names; is_alone && n->name; n++)
    is_alone = g_strcmp0 (n->name, own) == 0 || !ls_enum_is_first (f->names, n) || is_refused (j, f, n->name);
  return is_alone;
}

/* Of what is on or off the other. What a trace has fixed, another trace has otherwise. */
static char *
instead_of (const Job *j, const Row *row)
{
  const char *key = follows_dp (j, row->knob) ? "dp"
      : row->value && row->knob               ? ls_strategy_decided_by (j->s, j->model, row->knob)
                                              : row->knob;
  const LsField *knob = key ? ls_field_find (ls_strategy_fields, key) : NULL;
  bool is_size = follows_dp (j, row->knob);
  const char *export = j->spec->trace && !is_size && !is_open (j, knob) ? "lockstep trace export " : "",
             *unit = is_size ? NULL : row->unit;
  if (!knob)
    return g_strconcat (export, "--software NAME", NULL);
  const char *argument = strcmp (key, "narrow_shards") != 0 ? ls_field_argument (knob)
      : j->s->data.narrow_shards                            ? "0"
                                                            : "1";
  g_autofree char *own = argument ? NULL : knob_text (j, row->knob),
                  *option = ls_field_option (knob,
                                             argument                               ? argument
                                                 : own && strcmp (own, "true") == 0 ? "false"
                                                                                    : "true");
  return g_strconcat (export, option, unit ? " (" : NULL, unit, ")", NULL);
}

/* --- the list -------------------------------------------------------------------------------------- */

GArray *
ls_assumptions_empty (void)
{
  return ls_list_new (sizeof (LsAssumption), ls_clear_4_texts);
}

/* "sequences of 131,072": numbers in groups of three digits, but not of an option; "no tp-overlap", whether
 * it is a switch or a number of them. */
static char *
in_words (const char *words, const char *value)
{
  if (words && !strstr (words, "%s"))
    return g_strconcat (ls_is_one_of (value, "false 0 none") ? "no " : "", words, NULL);
  g_autoptr (GString) grouped = g_string_new (value);
  bool is_number
      = strspn (value, "0123456789") == strlen (value) && !g_str_has_prefix (words ? words : "", "--");
  for (gssize at = (gssize) grouped->len - 3; is_number && at > 0; at -= 3)
    g_string_insert_c (grouped, at, ',');
  g_auto (GStrv) around = g_strsplit (words ? words : "", "%s", 2);
  return !words ? NULL : g_strconcat (around[0], grouped->str, around[1], NULL);
}

/* What such a job has not, or has no effect in it, is no row. */
static void
add_row (GArray *all, const Job *j, const Row *row)
{
  bool is_idle = !row->value && j->model->name && ls_strategy_idle (j->s, j->model, row->knob);
  g_autofree char *value = is_idle ? NULL : row->value ? row->value (j) : knob_text (j, row->knob);
  if (!value && !is_idle && row->is_usual) /* what holds where nothing is set: "all but the last" */
    value = g_strdup (ls_field_default (ls_field_find (ls_strategy_fields, row->knob)));
  if (!value)
    return;
  char *said = whence_said (j, row), *why = said ? said : whence_unsaid (j, row),
       *instead = instead_of (j, row);
  bool is_quiet = (said && row->is_brief) || (row->is_quiet && row->is_quiet (j));
  char *words = is_quiet ? NULL : in_words (row->words, value);
  LsAssumption a = { .key = row->key,
                     .value = g_steal_pointer (&value),
                     .why = why,
                     .instead = instead,
                     .words = words,
                     .is_given = strcmp (why, "given") == 0 };
  g_array_append_val (all, a);
}

static bool
has_row (const char *knob)
{
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    if (g_strcmp0 (rows[i].knob, knob) == 0)
      return true;
  return false;
}

/* What the model's file, or the launch file, leaves to defaults of it. */
static void
add_model (GArray **all, const Job *j)
{
  const LsImported *from = j->spec->model ? NULL : j->spec->from;
  g_autoptr (GString) left = g_string_new (j->spec->model ? j->model->left_out : NULL);
  for (guint i = 0; from && i < from->remarks->len; i++) {
    const LsRemark *r = &g_array_index (from->remarks, LsRemark, i);
    if (r->kind != LS_REMARK_OF_MODEL)
      continue;
    const LsField *f = ls_field_find_value (ls_model_fields, r->key); /* lists of layers too */
    g_autofree char *value = f ? ls_field_text (f, j->model, NULL) : NULL;
    g_string_append_printf (left, "%s%s%s%s", left->len > 0 ? ", " : "", r->key, value ? " " : "",
                            value ? value : "");
  }
  if (left->len == 0)
    return;
  const char *name = from ? from->path : ls_json_is_given (j->spec->model) ? j->model->name : j->spec->model;
  g_autofree char *changed = ls_override_add (name, "KEY=VALUE"),
                  *instead = g_strconcat (from ? "--from " : "--model ", changed, NULL),
                  *rule = g_strconcat ("a rule of ", from ? from->program : "", NULL);
  ls_assumptions_add (all, "model", g_strdup (left->str), "of the model %s",
                      from ? rule : "its file has none", instead);
}

GArray *
ls_assumptions_new (const LsJobSpec *spec, const LsModel *model, const LsStrategy *strategy,
                    const char *(*chosen) (const char *knob, gconstpointer data), gconstpointer data)
{
  const Job j = { spec, model, strategy, chosen, data };
  GArray *all = ls_assumptions_empty ();
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    add_row (all, &j, &rows[i]);
  add_model (&all, &j);
  return all;
}

static bool
has_op_of (const LsPlan *plan, LsHostCost cost)
{
  for (uint32_t s = 0; s < plan->n_segments; s++)
    for (uint32_t o = 0; o < plan->segments[s].n_ops; o++)
      if (plan->segments[s].ops[o].host == (int) cost)
        return true;
  return false;
}

/* NULL also where the host is merely fast enough to hide what it pays. */
const char *
ls_job_host_idle (const LsJobResult *job, const LsField *f)
{
  if (job->strategy.launch.is_compiled)
    return "a step is one executable, whose ops the host does not issue";
  if (f->kind != LS_FIELD_TIME)
    return NULL;
  LsHostCost cost = (LsHostCost) ((f->offset - offsetof (LsStrategy, launch.host)) / sizeof (LsTime));
  if (has_op_of (job->plan, cost))
    return NULL;
  return cost == LS_HOST_BATCH ? "it needs --set batch_sync=1" : "the host makes no such call here";
}

/* What calls cost the host of that machine, by no option or by one, of those that it makes. */
static void
add_host (GArray *all, const LsJobSpec *spec, const LsJobResult *r, const LsHardware *hardware)
{
  const LsStrategy *s = &r->strategy;
  LsHostCosts costs = spec->options.host;
  ls_hardware_host (hardware, s, &costs);
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    const gsize of_first = offsetof (LsStrategy, launch.host), i = (f->offset - of_first) / sizeof (LsTime);
    if (f->offset < of_first || i >= LS_N_HOST_COSTS || ls_job_host_idle (r, f))
      continue;
    g_autofree char *instead = ls_field_option (f, ls_field_argument (f));
    ls_assumptions_add (&all, f->key, g_strdup_printf ("%.6fus", ls_time_to_s (costs.cost[i]) * 1e6), NULL,
                        s->launch.host[i] == LS_HOST_AUTO ? "by default, times the cluster's call_time"
                            : spec->trace && !ls_job_says (spec, f->key) ? "the trace's"
                                                                         : NULL,
                        instead);
  }
}

/* What only CUDA, or NCCL, has. */
static bool
is_of_other_chips (const LsHardware *hardware, const char *knob)
{
  static const char *const of_cuda[] = { "cuda_allocator",
                                         "memory_allocator",
                                         "dynamic_gemms",
                                         "batch_sync",
                                         "launch_blocking",
                                         "cuda_graphs",
                                         NULL };
  const LsInteriorTraits *t = ls_cluster_traits (&hardware->spec);
  return (t->runs_xla && g_strv_contains (of_cuda, knob))
      || (!t->has_nccl && (g_str_has_suffix (knob, "_max_ctas") || strcmp (knob, "nccl_env") == 0));
}

/* What to type stands in JSON alone, and in the sentence only what nobody gives. */
static void
add_brief (GArray **all, const char *key, char *value, const char *words, const char *why,
           const char *instead)
{
  ls_assumptions_add (all, key, value, why ? words : NULL, why, instead);
  g_array_index (*all, LsAssumption, (*all)->len - 1).says_instead = false;
}

char *
ls_cluster_change (const char *cluster, const LsClusterSpec *c, const char *path, const char *kind)
{
  g_autofree char *change = g_strconcat (path, "=", kind, NULL),
                  *changed = ls_override_add (ls_json_is_given (cluster) ? c->name : cluster, change);
  return g_strconcat ("--cluster ", changed, NULL);
}

bool
ls_cluster_is_changed (const char *cluster, const char *path)
{
  return ls_override_changes (cluster, path, "");
}

/* What a cluster's file says. */
typedef struct {
  bool holds;
  const char *key, *path, *kind, *words; /* path, kind: as it is typed, "gpu.reserved" and "SIZE" */
  char *value;                           /* owned */
  const char *option, *given;            /* which says another, and what it says; NULL: none does */
} FileRow;

/* Jobs that share a cluster have no options for it. */
static void
add_of_file (GArray **all, const LsJobSpec *spec, const LsClusterSpec *c, const FileRow *of, guint n)
{
  for (guint i = 0; i < n; i++) {
    g_autofree char *change = ls_cluster_change (spec->cluster, c, of[i].path, of[i].kind),
                    *value = of[i].value;
    bool is_given = of[i].given || ls_cluster_is_changed (spec->cluster, of[i].path);
    const char *file
        = g_str_has_prefix (of[i].path, "gpu.") ? "the accelerator's file" : "the cluster's file";
    if (of[i].holds)
      add_brief (all, of[i].key, g_steal_pointer (&value), of[i].words, is_given ? NULL : file,
                 of[i].option && !spec->of_nodes ? of[i].option : change);
  }
}

/* "h100", "h100 and a100": lists of kernels of all kinds of nodes; newly allocated. */
static char *
kernels_of_kinds (const LsClusterSpec *c, const char *first)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new (); /* borrowed */
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (c); k++) {
    const LsGpu *gpu = &ls_cluster_spec_of_kind (c, k)->gpu;
    const char *name = k == 0 ? first : gpu->calibration ? gpu->calibration : LS_ROOFLINE;
    if (!g_ptr_array_find_with_equal_func (names, name, g_str_equal, NULL))
      g_ptr_array_add (names, (gpointer) name);
  }
  g_ptr_array_add (names, NULL);
  return g_strjoinv (" and ", (char **) names->pdata);
}

void
ls_assumptions_add_times (GArray **all, const LsJobSpec *spec, const LsHardware *hardware, const LsPlan *plan,
                          uint32_t n_ranks)
{
  const LsClusterSpec *c = &hardware->spec;
  const char *kernels = hardware->calibration.name,
             *messages = ls_cluster_traits (c)->has_nccl ? hardware->nccl.name : NULL;
  const bool has_kernels = !plan || ls_plan_has_ops (plan, LS_TAKES_GPU, false),
             has_messages = n_ranks > 1 && (!plan || ls_plan_has_ops (plan, LS_TAKES_NETWORK, false));
  const FileRow of[] = {
    { has_kernels && kernels, "gpu_calibration", "gpu.calibration", "NAME", "times of kernels of %s",
      kernels ? kernels_of_kinds (c, kernels) : NULL, "--gpu-calibration NAME|FILE", spec->gpu_calibration },
    { has_messages && messages, "nccl", "gpu.nccl", "NAME", "messages of %s", g_strdup (messages),
      "--nccl NAME|FILE", spec->nccl },
    { n_ranks > 1 && has_kernels && c->gpu.clock_spread > 0, "clock_spread", "gpu.clock_spread", "S",
      "clock spread %s", g_strdup_printf ("%g", c->gpu.clock_spread) },
  };
  add_of_file (all, spec, c, of, G_N_ELEMENTS (of));
  if (has_kernels && c->gpu.left_out) {
    g_autofree char *instead = ls_cluster_change (spec->cluster, c, "gpu.KEY", "VALUE");
    ls_assumptions_add (all, "accelerator", g_strdup (c->gpu.left_out), "of the accelerator %s",
                        "its file has none", instead);
  }
}

/* What else a cluster's file says that some jobs rest on. */
static void
add_of_cluster (GArray *all, const LsJobSpec *spec, const LsJobResult *r, const LsClusterSpec *c)
{
  const FileRow of[] = {
    { c->gpu.reserved_bytes > 0, "context", "gpu.reserved", "SIZE", NULL,
      ls_format_bytes (c->gpu.reserved_bytes) },
    { r->strategy.memory.offload, "host_memory", "node.cpu.memory.bandwidth", "RATE", "host memory of %s",
      ls_format_rate (c->server.cpu_memory.bandwidth_bytes_per_s) },
  };
  add_of_file (&all, spec, c, of, G_N_ELEMENTS (of));
}

/* Whether an option was set that is no knob. */
static bool
is_asked (const LsJobSpec *spec, const char *key)
{
  for (guint i = 0; spec->settings && i < spec->settings->len; i += 2)
    if (g_str_equal (spec->settings->pdata[i], key))
      return true;
  return false;
}

/* How it is simulated, and memory counted. */
static void
add_views (GArray *all, const LsJobSpec *spec, const LsHardware *hardware)
{
  static const char *const keys[] = { "network", "steps", "memory_clock", "memory_allocator" };
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    const LsField *f = ls_field_find (ls_job_fields, keys[i]);
    if (is_of_other_chips (hardware, f->key))
      continue;
    g_autofree char *instead = ls_field_option (f, ls_field_argument (f));
    ls_assumptions_add (&all, f->key, ls_field_text (f, spec, NULL), NULL,
                        is_asked (spec, f->key) ? NULL : "by default", instead);
  }
}

GArray *
ls_assumptions_of_knobs (const LsJobSpec *spec, const LsJobResult *r, const LsHardware *hardware,
                         const char *(*chosen) (const char *knob, gconstpointer data), gconstpointer data)
{
  const Job j = { spec, &r->model, &r->strategy, chosen, data, r->takes_dp };
  GArray *all = ls_assumptions_empty ();
  for (const LsField *f = ls_strategy_fields; f->key; f++)
    if ((r->model.name || is_open (&j, f)) && !f->file_only && !has_row (f->key) && f->kind != LS_FIELD_TIME
        && !is_of_other_chips (hardware, f->key) && (ls_job_says (spec, f->key) || !has_no_other (&j, f)))
      add_row (
          all, &j,
          &(const Row) {
              .key = f->key, .knob = f->key, .otherwise = f->usual ? "by default" : NULL, .is_usual = true });
  add_host (all, spec, r, hardware);
  add_of_cluster (all, spec, r, &hardware->spec);
  add_views (all, spec, hardware);
  return all;
}

void
ls_assumptions_add (GArray **all, const char *key, char *value, const char *words, const char *why,
                    const char *instead)
{
  if (!*all)
    *all = ls_assumptions_empty ();
  LsAssumption a
      = { .key = key,
          .value = value,
          .why = g_strdup (why ? why : "given"),
          .instead = instead ? ls_printable (instead) : NULL, /* a cluster's name is a stranger's */
          .words = in_words (words, value),
          .is_given = !why,
          .says_instead = instead != NULL };
  g_array_append_val (*all, a);
}

void
ls_assumptions_add_unsaid (GArray **all, const char *cluster, const LsClusterSpec *c, bool has_fabric)
{
  static const char of_ecmp[] = "ways of ECMP by seed %s";
  const char *why_seed = c->network.seed > 0 ? "the cluster's file" : "by default";
  g_autofree char *seed = ls_cluster_change (cluster, c, "fabric.seed", "N");
  if (c->guessed) {
    g_autoptr (GString) guesses = g_string_new (NULL);
    for (guint i = 0; i < c->guessed->len; i++)
      g_string_append_printf (guesses, "%s%s", i > 0 ? "; " : "", g_array_index (c->guessed, char *, i));
    ls_assumptions_add (all, "guessed", g_strdup (guesses->str), "guessed: %s",
                        "not in the files that the cluster was made from",
                        "FILE:gpu=NAME, or what lockstep topology --from FILE -o writes, changed");
  }
  if (c->network.routing == LS_ROUTING_ECMP && has_fabric)
    ls_assumptions_add (all, "fabric_seed", g_strdup_printf ("%u", c->network.seed), of_ecmp,
                        ls_cluster_is_changed (cluster, "fabric.seed") ? NULL : why_seed, seed);
  for (guint i = 0; c->unsaid && i < c->unsaid->len; i++) {
    const LsUnsaid *unsaid = &g_array_index (c->unsaid, LsUnsaid, i);
    g_autofree char *words = g_strconcat (unsaid->path, " %s", NULL);
    if ((has_fabric && !ls_cluster_traits (c)->is_slice) || unsaid->is_in_node)
      add_brief (all, g_intern_string (unsaid->path), g_strdup (unsaid->value), words, "by default",
                 unsaid->instead);
  }
}

void
ls_assumptions_add_place (GArray **all, const char *cluster, const LsClusterSpec *c, bool is_given,
                          const char *command)
{
  ls_assumptions_add_unsaid (all, cluster, c, c->n_nodes > 1);
  const bool is_flat = c->torus.n_axes == 2;
  g_autofree char *changed_slice
      = ls_cluster_change (cluster, c, "node.torus.slice", is_flat ? "[A,B]" : "[A,B,C]"),
      *changed_segment = ls_cluster_change (cluster, c, "node.segment", "N"),
      *option = g_strconcat (command ? command : "", "--slice ", is_flat ? "AxB" : "AxBxC", NULL);
  char *chips = is_given || c->torus.is_given ? NULL : ls_slice_text (c),
       *trays = is_given ? NULL : ls_segment_text (c);
  if (chips)
    ls_assumptions_add (all, "slice", chips, "a slice of %s",
                        memcmp (c->torus.dims, c->torus.largest, sizeof c->torus.dims) == 0
                            ? "the largest"
                            : "by the number of chips",
                        command ? option : changed_slice);
  if (trays)
    ls_assumptions_add (all, "segment", trays, command && !*command ? NULL : "%s",
                        ls_cluster_is_changed (cluster, "node.segment") ? NULL : "by the number of GPUs",
                        command ? "--segment N" : changed_segment);
}

void
ls_assumptions_drop (GArray *all, const char *const *keys)
{
  for (guint i = all ? all->len : 0; i-- > 0;)
    if (g_strv_contains (keys, g_array_index (all, LsAssumption, i).key))
      g_array_remove_index (all, i);
}

void
ls_assumptions_drop_memory (LsJobResult *r)
{
  static const char *const keys[]
      = { "software", "headroom", "context", "memory_clock", "memory_allocator", NULL };
  ls_assumptions_drop (r->assumptions, keys + (r->strategy.program.software != NULL));
  ls_assumptions_drop (r->knobs, keys + 1);
}

static bool
has_same (const GArray *all, const LsAssumption *a)
{
  for (const LsAssumption *b = (gpointer) all->data, *end = b + all->len; b < end; b++)
    if (strcmp (a->key, b->key) == 0 && strcmp (a->value, b->value) == 0 && strcmp (a->why, b->why) == 0)
      return true;
  return false;
}

void
ls_assumptions_keep (GArray **shared, const GArray *own)
{
  if (!*shared)
    ls_assumptions_add_beside (shared, own, NULL);
  for (guint i = (*shared)->len; i-- > 0;)
    if (!has_same (own, &g_array_index (*shared, LsAssumption, i)))
      g_array_remove_index (*shared, i);
}

void
ls_assumptions_add_beside (GArray **all, const GArray *own, const GArray *other)
{
  if (!*all)
    *all = ls_assumptions_empty ();
  for (guint i = 0; own && i < own->len; i++) {
    LsAssumption a = g_array_index (own, LsAssumption, i);
    if (other && has_same (other, &a))
      continue;
    a.value = g_strdup (a.value);
    a.why = g_strdup (a.why);
    a.instead = g_strdup (a.instead);
    a.words = g_strdup (a.words);
    g_array_append_val (*all, a);
  }
}

char *
ls_assumptions_words (const GArray *all)
{
  g_autoptr (GString) out = g_string_new (NULL);
  for (guint i = 0; i < all->len; i++) {
    const LsAssumption *a = &g_array_index (all, LsAssumption, i);
    if (a->words)
      g_string_append_printf (out, "%s%s", out->len > 0 ? "; " : "", a->words);
  }
  return out->len > 0 ? g_string_free (g_steal_pointer (&out), FALSE) : NULL;
}

/* A line is broken where the next words would pass its end. */
static void
append_words (GString *out, gsize *line, const char *words)
{
  bool is_first = out->len == 0;
  if (!is_first && out->len - *line + strlen (words) + 2 > LS_ASSUMPTIONS_WIDTH) {
    g_string_append (out, ";\n  ");
    *line = out->len - 2;
  } else if (!is_first)
    g_string_append (out, "; ");
  else
    g_string_append (out, "rests on ");
  g_string_append (out, words);
}

/* The row behind it that is in the sentence; NULL: none. */
static const LsAssumption *
next_of (const GArray *assumptions, guint i)
{
  for (guint k = i + 1; k < assumptions->len; k++)
    if (g_array_index (assumptions, LsAssumption, k).words)
      return &g_array_index (assumptions, LsAssumption, k);
  return NULL;
}

/* Of those with one reason the last says it. */
char *
ls_assumptions_text (const GArray *assumptions)
{
  GString *out = assumptions ? g_string_new (NULL) : NULL;
  gsize line = 0;
  for (guint i = 0; assumptions && i < assumptions->len; i++) {
    const LsAssumption *a = &g_array_index (assumptions, LsAssumption, i), *next = next_of (assumptions, i);
    bool says_why = !a->is_given && (a->says_instead || !next || strcmp (next->why, a->why) != 0);
    g_autofree char *words = !says_why ? g_strdup (a->words)
        : a->says_instead              ? g_strdup_printf ("%s (%s; %s)", a->words, a->why, a->instead)
                                       : g_strdup_printf ("%s (%s)", a->words, a->why);
    if (a->words)
      append_words (out, &line, words);
  }
  return out ? g_string_free (out, FALSE) : NULL;
}
