/* Pins what other programs are told, and what they are spared: a knob that a program cannot
 * express is refused by name, one that it can is in the fragment. */
#include "ls_test.h"

#include <string.h>

#include "data/jobs/emit.h"
#include "data/jobs/job_files.h"
#include "data/text/field.h"
#include "expected_cases.h"
#include "import_check.h"
#include "lower/lower.h"

static const LsModel dense = {
  .name = (char *) "dense",
  .n_layers = 8,
  .hidden = 1024,
  .n_heads = 16,
  .n_kv_heads = 4,
  .head_dim = 64,
  .ffn = 4096,
  .vocab = 5000,
  .seq = 512,
  .mlp = LS_MLP_SWIGLU,
  .norm = LS_NORM_RMSNORM,
  .position = LS_POSITION_ROPE,
  .attention = LS_ATTENTION_FLASH,
};

typedef enum { DENSE, EXPERTS, LATENT, WINDOWED } Kind;

static LsModel
model_of (Kind kind)
{
  LsModel m = dense;
  if (kind == WINDOWED)
    m.attn.window = 128;
  if (kind == LATENT) {
    m.n_kv_heads = m.n_heads;
    m.latent.kv_lora = 128;
    m.latent.rope_dim = m.v_dim = 32;
  }
  if (kind != EXPERTS)
    return m;
  m.moe.n_experts = 8;
  m.moe.top_k = 2;
  m.moe.expert_ffn = 512;
  m.moe.shared_ffn = 256;
  m.moe.every = 1;
  return m;
}

/* "tp=2 sp=1": keys of a strategy. */
static bool
resolve (LsStrategy *s, const LsModel *m, const char *knobs)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_auto (GStrv) pairs = g_strsplit (knobs, " ", -1);
  ls_strategy_init (s);
  s->gpus = 16;
  for (char **pair = pairs; *pair && **pair; pair++) {
    char *value = strchr (*pair, '=');
    *value++ = '\0';
    ls_field_set_text (ls_strategy_fields, s, *pair, value, diags);
  }
  if (ls_strategy_resolve (s, m, 16, 8, diags))
    LS_CHECK (ls_strategy_balance (s, m, NULL, NULL));
  g_autofree char *text = ls_diag_list_format (diags);
  ls_check_impl (ls_diag_list_n (diags) == 0, __FILE__, __LINE__, "\"%s\": %s", knobs, text);
  return ls_diag_list_n (diags) == 0;
}

/* "PROGRAM MODEL KNOBS": the fragment with its notes; NULL: it is refused. */
static gpointer
emit (const LsExpectedCase *c, const char *option, char **said)
{
  static const char *const models[] = { "dense", "experts", "latent", "windowed", NULL };
  g_autofree char *asked = ls_case_text (&g_array_index (c->files, LsCaseFile, 0), option), *notes = NULL;
  g_auto (GStrv) words = g_strsplit (g_strstrip (asked), " ", 3);
  g_autoptr (GError) error = NULL;
  LsStrategy s;
  LsModel m = dense;
  Kind kind = DENSE;
  char *all = NULL;
  while (models[kind] && strcmp (models[kind], words[1]) != 0)
    kind++;
  m = model_of (kind);
  if (ls_check_impl (models[kind] != NULL, __FILE__, __LINE__, "%s: no such model", asked)
      && resolve (&s, &m, words[2] ? words[2] : "")) {
    const LsEmitJob job = { .model = &m, .strategy = &s, .title = "a job" };
    g_autofree char *text = ls_emit (&job, words[0], &notes, &error);
    LS_CHECK (text || g_error_matches (error, LS_ERROR, LS_ERROR_UNSUPPORTED));
    all = text ? g_strconcat (text, notes, NULL) : NULL;
    ls_strategy_clear (&s);
  }
  *said = g_strdup (error ? error->message : "");
  return all;
}

/* "line TEXT": the last words of a line; "part TEXT". NULL: it is there. */
static char *
contradiction (gconstpointer result, const char *what)
{
  const char *all = result;
  bool is_line = g_str_has_prefix (what, "line "), is_part = g_str_has_prefix (what, "part ");
  g_autofree char *text
      = g_strconcat (is_line || is_part ? what + strlen ("line ") : "?", is_line ? "\n" : "", NULL);
  const char *at = is_line || is_part ? strstr (all, text) : NULL;
  while (at && is_line && at > all && at[-1] != ' ' && at[-1] != '\n')
    at = strstr (at + 1, text);
  return at ? NULL : g_strdup (all);
}

static void
knobs_are_said_or_refused (void)
{
  static const LsCaseKind kind = { emit, contradiction, g_free };
  ls_cases_run ("emit", &kind, 10);
}

static void
unknown_programs_are_refused (void)
{
  g_autoptr (GError) error = NULL;
  LS_CHECK (!ls_emit_check_target ("nemo", &error));
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_USAGE)
            && strstr (error->message, "megatron, torchtitan, deepspeed"));
  for (const char *const *name = ls_emit_targets (); *name; name++)
    LS_CHECK (ls_emit_check_target (*name, NULL));
}

/* A file's order has no name that another program knows. */
static void
an_order_of_its_own_is_refused (void)
{
  LsStrategy s;
  g_autofree char *notes = NULL;
  g_autoptr (GError) error = NULL;
  if (!resolve (&s, &dense, "pp=2"))
    return;
  const LsEmitJob job = { .model = &dense, .strategy = &s, .order = "order.csv", .title = "a job" };
  LS_CHECK (!ls_emit (&job, "megatron", &notes, &error) && strstr (error->message, "error: --order: "));
  ls_strategy_clear (&s);
}

/* --- what is written is read ----------------------------------------------------------------------- */

/* Of published models; open: what the program's file does not say, but its profile, or who reads it. */
#define TITAN "dp-kind=fsdp2 grad-dtype=fp32 p2p=batched "
static const struct {
  const char *target, *model, *knobs, *open;
} round_trips[] = {
  { "torchtitan", "llama3/8B", TITAN "tp=2 sp=1 recompute=full", "" },
  { "torchtitan", "llama3/70B", TITAN "zero=3@8 seq=4096 pp=2", "" },
  { "torchtitan", "qwen3/30B-A3B", TITAN "ep=8 grouped-gemm=1 dispatcher=deepep", "grouped-gemm=1" },
  { "torchtitan", "deepseek_v3/671B", TITAN "ep=8 grouped-gemm=1", "grouped-gemm=1" },
  { "torchtitan", "llama3/8B", TITAN "kernels=torchtitan-2025-03-compile", "" },
  { "megatron", "llama3/8B", "tp=2 sp=1 pp=2 zero=1 grad-dtype=fp32", "" },
  { "megatron", "qwen3/30B-A3B", "ep=8 dispatcher=deepep recompute=full zero=1", "" },
  { "megatron", "deepseek_v3/671B", "ep=8 tp=2 sp=1 etp=1 pp=2 layers-per-chunk=31,30", "" },
  { "megatron", "gpt2-xl", "cp=2 cp-kind=ring dtype=fp16 grad-norm=0", "" },
  { "megatron", "gpt_oss/20b", "tp=2 sp=1 dp-kind=fsdp2 zero=2 recompute=selective recompute-parts=norm",
    "" },
  { "deepspeed", "llama3/8B", "dp-kind=deepspeed zero=3 offload=parameters micro-batch=2", "seq=8192" },
  { "deepspeed", "llama3/8B", "dp-kind=deepspeed zero=1 dtype=fp16 tp=2", "seq=8192 tp=2" },
};

/* All of a strategy; of a model those that are said, whose sequences are the strategy's. */
static void
check_keys (const LsField *fields, const void *written, const void *read, const char *what)
{
  for (const LsField *f = fields; f->key; f++) {
    g_autofree char *one = ls_field_text (f, written, NULL), *other = ls_field_text (f, read, NULL);
    bool is_said = fields == ls_strategy_fields || other;
    if (f->file_only || !is_said || strcmp (f->key, "software") == 0
        || (fields == ls_model_fields && strcmp (f->key, "seq") == 0))
      continue;
    ls_check_impl (g_strcmp0 (one, other) == 0, __FILE__, __LINE__, "%s: %s is %s; it was %s", what, f->key,
                   other, one);
  }
}

/* The job of a fragment, with what is said beside it. */
static void
check_read_back (const char *fragment, const char *open, const LsModel *m, const LsStrategy *s)
{
  LsImported import;
  LsStrategy read;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_auto (GStrv) pairs = g_strsplit (open, " ", -1);
  if (!read_text (fragment, &import))
    return;
  LS_CHECK_INT (ls_import_n_remarks (&import, LS_REMARK_CONFLICT), ==, 0);
  bool is_whole = !strstr (open, "seq="); /* DeepSpeed's says nothing of the model */
  LsModel model = { 0 };
  LS_CHECK (ls_strategy_read (import.strategy, &read, diags));
  LS_CHECK_INT (ls_model_read (import.model, &model, NULL, diags), ==, is_whole);
  read.gpus = s->gpus;
  read.use.vocab_multiple = s->use.vocab_multiple;
  read.seq = read.seq > 0 ? read.seq : model.seq;
  for (char **pair = pairs; *pair && **pair; pair++) {
    char *value = strchr (*pair, '=');
    *value++ = '\0';
    ls_field_set_text (ls_strategy_fields, &read, *pair, value, diags);
  }
  LS_CHECK (ls_strategy_resolve (&read, m, 16, 8, diags) && ls_strategy_balance (&read, m, NULL, NULL));
  check_keys (ls_strategy_fields, s, &read, fragment);
  if (is_whole)
    check_keys (ls_model_fields, m, &model, fragment);
  ls_model_clear (&model);
  ls_strategy_clear (&read);
  ls_import_clear (&import);
}

static void
what_is_written_is_read_back (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (round_trips); i++) {
    LsModel m;
    bool is_decoder;
    LsStrategy s;
    g_autofree char *notes = NULL;
    g_autoptr (GError) error = NULL;
    if (!LS_CHECK (ls_model_of_name (round_trips[i].model, &m, &is_decoder)))
      continue;
    if (resolve (&s, &m, round_trips[i].knobs)) {
      const LsEmitJob job = { .model = &m, .strategy = &s, .title = "a job" };
      g_autofree char *text = ls_emit (&job, round_trips[i].target, &notes, &error);
      ls_check_impl (text != NULL, __FILE__, __LINE__, "%s: %s", round_trips[i].knobs,
                     error ? error->message : "");
      if (text)
        check_read_back (text, round_trips[i].open, &m, &s);
    }
    ls_strategy_clear (&s);
    ls_model_clear (&m);
  }
}

LS_TEST_SUITE (LS_TEST (knobs_are_said_or_refused), LS_TEST (what_is_written_is_read_back),
               LS_TEST (unknown_programs_are_refused), LS_TEST (an_order_of_its_own_is_refused))
