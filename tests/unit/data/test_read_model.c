/* Pins the models that ship: each has the size that its source publishes; and which are the decoder of another. */
#include "layer_laws.h"
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "data/datadir.h"
#include "data/jobs/job_files.h"

/* Narayanan et al. 2021 Table 1 (Figure 13 for 162.2B), Korthikanti et al. 2022
 * Table 3, Llama 3 checkpoints (8,030,261,248; 70,553,706,496; 405,853,388,800); of models with
 * experts the checkpoints, and what a token meets: Mixtral 8x7B, Qwen3-30B-A3B, DeepSeek-V3
 * (46,702,792,704, 30,532,122,624, 671,026,419,200, of which 58 * 256 are biases of the
 * router that no gradient changes); 141 B and 39 B of Mixtral 8x22B, 235 B and
 * 22 B of Qwen3, 236 B and 21 B of DeepSeek-V2 as announced. */
static const struct {
  const char *name;
  double params;
  double half_digit;                /* of the last one printed; 0: exact */
  double active, active_half_digit; /* 0: all */
} published[] = {
  { "gpt-1.7b", 1.7e9, 0.05e9 },
  { "gpt-3.6b", 3.6e9, 0.05e9 },
  { "gpt-7.5b", 7.5e9, 0.05e9 },
  { "gpt-18.4b", 18.4e9, 0.05e9 },
  { "gpt-39.1b", 39.1e9, 0.05e9 },
  { "gpt-76.1b", 76.1e9, 0.05e9 },
  { "gpt-145.6b", 145.6e9, 0.05e9 },
  { "gpt-162b", 162.2e9, 0.05e9 },
  { "gpt-310.1b", 310.1e9, 0.05e9 },
  { "gpt-529.6b", 529.6e9, 0.05e9 },
  { "gpt-1008b", 1008.0e9, 0.05e9 },
  { "gpt-22b", 22e9, 0.5e9 },
  { "gpt3-175b", 175e9, 0.5e9 },
  { "llama3.1-8b", 8030261248, 0 },
  { "llama3.1-70b", 70553706496, 0 },
  { "llama3.1-405b", 405853388800, 0 },
  { "mixtral-8x7b", 46702792704, 0, 12879925248, 0 },
  { "mixtral-8x22b", 141e9, 0.5e9, 39e9, 0.5e9 },
  { "qwen3-30b-a3b", 30532122624, 0, 3353032704, 0 },
  { "qwen3-235b-a22b", 235e9, 0.5e9, 22e9, 0.5e9 },
  { "deepseek-v2", 236e9, 0.5e9, 21e9, 0.5e9 },
  { "deepseek-v3", 671026419200 - 58 * 256, 0, 37552282624, 0 },
  /* what is active is published without the embedding */
  { "deepseek-v4-flash", 284e9, 0.5e9, 13e9 + 129280 * 4096, 0.5e9 },
  { "deepseek-v4-pro", 1.6e12, 0.05e12, 49e9 + 129280 * 7168, 0.5e9 },
};

static void
check (const LsModel *m, guint i)
{
  double params = (double) ls_model_params (m, m->vocab),
         active = (double) ls_model_active_params (m, m->vocab);
  LS_CHECK_STR (m->name, published[i].name);
  LS_CHECK_DOUBLE (fabs (params - published[i].params), <=, published[i].half_digit);
  if (published[i].active > 0)
    LS_CHECK_DOUBLE (fabs (active - published[i].active), <=, published[i].active_half_digit);
  else
    LS_CHECK_DOUBLE (active, ==, params);
}

static void
sizes_are_as_published (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (published); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsModel m;
    if (!LS_CHECK (ls_model_load (published[i].name, &m, NULL, diags)))
      continue;
    check (&m, i);
    ls_model_clear (&m);
  }
}

/* A new model gets a row above. */
static void
every_model_has_a_published_size (void)
{
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_MODELS);
  for (guint i = 0; i < entries->len; i++) {
    const char *name = ((const LsDataEntry *) entries->pdata[i])->name;
    guint k = 0;
    while (k < G_N_ELEMENTS (published) && strcmp (published[k].name, name) != 0)
      k++;
    if (!LS_CHECK (k < G_N_ELEMENTS (published)))
      g_printerr ("# %s has no row\n", name);
  }
  LS_CHECK_INT (entries->len, ==, G_N_ELEMENTS (published));
}

/* Of a model that sees what reads text is simulated, which who asks by name must be able to tell. */
static void
decoders_are_told_from_whole_models (void)
{
  static const struct {
    const char *name;
    bool is_whole, is_decoder;
  } cases[] = {
    { "Qwen/Qwen2-7B", true, false },
    { "Qwen/Qwen2.5-VL-7B-Instruct", false, true },
    { "llava-hf/llava-1.5-7b-hf", false, true },
    { "xtuner/Qwen3VLDense8BConfig", false, true },
    { "nobody/knows-it", false, false },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsModel m = { 0 };
    bool is_decoder, is_there = ls_model_of_name (cases[i].name, &m, &is_decoder);
    LS_CHECK ((is_there && !is_decoder) == cases[i].is_whole);
    LS_CHECK ((is_there && is_decoder) == cases[i].is_decoder);
    ls_model_clear (&m);
  }
}

static void
init_switched (LsStrategy *s, bool is_cut)
{
  ls_strategy_init (s);
  s->gpus = s->global_batch = 8;
  s->tp = is_cut ? 2 : 1;
  s->sp = is_cut;
}

static bool
may_be_cut (const LsModel *m)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsStrategy s;
  init_switched (&s, true);
  bool may = ls_strategy_resolve (&s, m, 8, 8, diags);
  ls_strategy_clear (&s);
  return may;
}

/* Pins what a key of a model that is on or off owes: where it may be on, a step computes what the model counts and
 * ends with the memory that it began with, recomputed or not, cut over ranks of tp or not, whose weights add up. */
static void
each_switch_keeps_the_laws (void)
{
#define MIXER ",mixer_heads=8,mixer_head_dim=64,layer_pattern=MA,mixer="
  static const char *const bases[] = {
    "gpt-1.7b:layers=4,attention=flash",
    "gpt-1.7b:layers=4,attention=flash,window=256",
    "llama3.1-8b:layers=4",
    "mixtral-8x7b:layers=4",
    "deepseek-v3:layers=4",
    "llama3.1-8b:layers=4" MIXER "kda",
    "llama3.1-8b:layers=4" MIXER "mamba1",
    "llama3.1-8b:layers=4" MIXER "linear",
    "llama3.1-8b:layers=4" MIXER "delta",
  };
  guint n_kept = 0;
  for (const LsField *f = ls_model_fields; f->key; f++)
    for (guint i = 0; i < 4 * G_N_ELEMENTS (bases) && f->kind == LS_FIELD_BOOL; i++) {
      g_autoptr (LsDiagList) diags = ls_diag_list_new ();
      g_autofree char *name = g_strconcat (bases[i / 4], ",", f->key, "=true", NULL);
      LsModel m;
      LsStrategy s;
      bool is_cut = i / 2 % 2;
      if (!ls_model_load (name, &m, NULL, diags))
        continue;
      if (is_cut && !may_be_cut (&m)) {
        ls_model_clear (&m);
        continue;
      }
      init_switched (&s, is_cut);
      s.recompute = i % 2 ? LS_RECOMPUTE_FULL : LS_RECOMPUTE_NONE;
      bool is_kept = keeps_the_laws (&m, &s) && (!is_cut || ranks_add_up (&m));
      ls_check_impl (is_kept, __FILE__, __LINE__, "%s", name);
      n_kept += is_kept;
      ls_model_clear (&m);
    }
  LS_CHECK_INT (n_kept, >, 200);
}

LS_TEST_SUITE (LS_TEST (each_switch_keeps_the_laws), LS_TEST (sizes_are_as_published),
               LS_TEST (every_model_has_a_published_size), LS_TEST (decoders_are_told_from_whole_models))
