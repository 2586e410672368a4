/* Pins the ranges of a sweep: a file narrows them as flags do, what is set later overrides it, and
 * with several numbers of GPUs each has the degrees that it has alone, in the same order. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <string.h>

#include "data/jobs/job_files.h"
#include "sweep/space.h"

static void
set (LsSpace *space, const char *axis, const char *text)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_space_set (space, ls_space_axis (axis), text, diags));
}

static char *
values_text (const LsSpace *space, LsSpaceAxis axis)
{
  GString *out = g_string_new (NULL);
  for (guint i = 0; i < space->values[axis]->len; i++) {
    g_autofree char *value = ls_space_value_text (space, axis, i);
    g_string_append_printf (out, "%s%s", i > 0 ? "," : "", value);
  }
  return g_string_free (out, FALSE);
}

static void
check_axis (const LsSpace *space, const char *axis, const char *expected)
{
  g_autofree char *got = values_text (space, ls_space_axis (axis));
  LS_CHECK_STR (got, expected);
}

#define FILE_TEXT                                                                                                 \
  "{ \"schema\": \"lockstep.ranges/1\", \"x-why\": \"a note\", \"gpus\": [8, 4], \"tp\": [2, 1, 2],\n"            \
  "  \"schedule\": [\"zb-h1\", \"1f1b\"], \"sp\": [true], \"zero\": [1, 3, \"2@8\"], \"dp_kind\": [\"fsdp2\"],\n" \
  "  \"recompute\": [\"full\", \"none\"] }\n"

static bool
read_ranges (LsRanges *ret)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (FILE_TEXT, strlen (FILE_TEXT), "r.json", diags);
  return LS_CHECK (doc && ls_ranges_read (doc, ret, diags));
}

static void
a_file_narrows_as_flags_do (void)
{
  LsSpace space;
  LsRanges ranges;
  ls_space_init (&space);
  if (read_ranges (&ranges)) {
    set (&space, "vpp", "3"); /* not in the file: stays */
    set (&space, "tp", "16");
    ls_space_set_ranges (&space, &ranges);
    ls_ranges_clear (&ranges);
    set (&space, "recompute", "selective");
    check_axis (&space, "gpus", "8,4");
    check_axis (&space, "tp", "2,1");
    check_axis (&space, "schedule", "zb-h1,1f1b");
    check_axis (&space, "sp", "1");
    check_axis (&space, "zero", "1,3,2@8");
    check_axis (&space, "dp-kind", "fsdp2");
    check_axis (&space, "recompute", "selective");
    check_axis (&space, "vpp", "3");
    check_axis (&space, "pp", "");
  }
  ls_space_clear (&space);
}

/* Of an axis with a range of its own, and of one without; what is none is refused as it stands. */
static void
doublings_are_spelt_out (void)
{
  LsSpace space;
  ls_space_init (&space);
  set (&space, "tp", "1..8");
  set (&space, "micro-batch", "3..25,1,6");
  check_axis (&space, "tp", "1,2,4,8");
  check_axis (&space, "micro-batch", "3,6,12,24,1");
  LS_CHECK (ls_space_is_list (ls_space_axis ("etp"), "1..4"));
  LS_CHECK (!ls_space_is_list (ls_space_axis ("expert-load"), "1..4"));
  const char *const wrong[] = { "8..1", "0..8", "1..", "..8", "1..8..16", "1..99999999999" };
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LS_CHECK (!ls_space_set (&space, LS_SPACE_TP, wrong[i], diags));
  }
  ls_space_clear (&space);
}

static void
each_number_of_gpus_has_its_own_degrees (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  LsModel model;
  LsStrategy base;
  LsSpace space;
  if (!LS_CHECK (ls_model_load ("gpt-1.7b", &model, NULL, diags))) /* 24 layers */
    return;
  ls_strategy_init (&base);
  ls_space_init (&space);
  set (&space, "gpus", "16,12");
  set (&space, "global-batch", "8,12");
  LS_CHECK (ls_space_fill (&space, &model, &base, 8, false, &error));
  check_axis (&space, "tp", "1,2,4,8");
  check_axis (&space, "pp", "1,2,3,4,6,8,12,16");
  check_axis (&space, "micro-batch", "1,2,3,4,6,8,12");
  ls_space_clear (&space);
  ls_strategy_clear (&base);
  ls_model_clear (&model);
}

/* Context parallelism is an axis where a sequence is long, or attention half of all FLOPs, and leaves a rank 4,096
 * tokens; not of a model of which it is not modelled. */
static void
long_sequences_are_cut_over_ranks (void)
{
  static const struct {
    const char *seq, *gpus;
    uint32_t hidden, shared;
    const char *cp;
  } cases[] = {
    { "8192", "64", 4096, 0, "1" },
    { "16384", "64", 4096, 0, "1,2,4" },
    { "131072", "64", 4096, 0, "1,2,4,8,16,32" },
    { "1048576", "64", 4096, 0, "1,2,4,8,16,32,64" },
    { "32768", "12", 4096, 0, "1,2,3,4,6" },
    { "8192", "64", 256, 0, "1,2" },
    { "131072", "64", 4096, 1, "1" },
    { "2048,32768", "8", 4096, 0, "1,2,4,8" },
    { "1000", "8", 64, 0, "1" },
  };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    LsModel model;
    LsStrategy base;
    LsSpace space;
    if (!LS_CHECK (ls_model_load ("gpt-1.7b", &model, NULL, diags)))
      return;
    model.hidden = cases[i].hidden;
    model.halves.kv_shared_layers = cases[i].shared;
    ls_strategy_init (&base);
    ls_space_init (&space);
    set (&space, "gpus", cases[i].gpus);
    set (&space, "global-batch", "8");
    set (&space, "seq", cases[i].seq);
    LS_CHECK (ls_space_fill (&space, &model, &base, 8, false, &error));
    check_axis (&space, "cp", cases[i].cp);
    ls_space_clear (&space);
    ls_strategy_clear (&base);
    ls_model_clear (&model);
  }
}

/* Values of their own have commas; a word, a list and a text are values of a file. */
static void
layers_are_separated_by_slashes (void)
{
  static const char text[]
      = "{ \"schema\": \"lockstep.ranges/1\", \"layers_per_chunk\": [\"balanced\", [2, 1, 1], \"1x2,2\", [2, 1, 1]] }";
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsSpace space;
  LsRanges ranges;
  ls_space_init (&space);
  set (&space, "layers-per-chunk", "auto/4x13,3x3/4,4x12,3x3/7");
  check_axis (&space, "layers-per-chunk", "auto,4x13,3x3,7");
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "r.json", diags);
  if (LS_CHECK (doc && ls_ranges_read (doc, &ranges, diags))) {
    ls_space_set_ranges (&space, &ranges);
    ls_ranges_clear (&ranges);
    check_axis (&space, "layers-per-chunk", "balanced,2,1x2,1x2,2");
  }
  LS_CHECK (!ls_space_set (&space, ls_space_axis ("layers-per-chunk"), "auto/4y3", diags));
  ls_space_clear (&space);
}

/* Of 61 layers no number of chunks that GPUs come in divides them: powers of two do, with 2 layers a chunk. */
static void
chunks_that_never_come_out_even_have_a_range (void)
{
  g_autoptr (GError) error = NULL;
  const LsModel model = { .n_layers = 61, .n_heads = 64, .ffn = 256 };
  LsStrategy base;
  LsSpace space;
  ls_strategy_init (&base);
  ls_space_init (&space);
  set (&space, "gpus", "16");
  set (&space, "global-batch", "64");
  LS_CHECK (ls_space_fill (&space, &model, &base, 8, false, &error));
  check_axis (&space, "vpp", "1,2,4,8");
  ls_space_clear (&space);
  ls_strategy_clear (&base);
}

/* Of parts by themselves only those that layers of the model have; of parts that are asked for all. */
static void
parts_are_those_of_the_model (void)
{
  static const struct {
    const char *model, *set, *parts;
  } cases[] = {
    { "gpt-1.7b", NULL, "core,norm,norm,mlp" },
    { "mixtral-8x7b", NULL, "core,norm,norm,moe" },
    { "deepseek-v3", NULL, "core,norm,norm,mlp,norm,moe,norm,mla-up" },
    { "gpt-1.7b", "norm/moe", "norm,moe" },
  };
  static const char text[] = "{ \"schema\": \"lockstep.ranges/1\",\n"
                             "  \"recompute_parts\": [\"core\", \"norm\", \"norm,mlp\", \"norm,moe\", "
                             "\"norm,mla-up\"] }";
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "r.json", diags);
    g_autoptr (GError) error = NULL;
    LsModel model;
    LsStrategy base;
    LsSpace space;
    LsRanges ranges;
    if (!LS_CHECK (doc && ls_ranges_read (doc, &ranges, diags)
                   && ls_model_load (cases[i].model, &model, NULL, diags)))
      return;
    ls_strategy_init (&base);
    ls_space_init (&space);
    set (&space, "gpus", "8");
    set (&space, "global-batch", "8");
    if (cases[i].set)
      set (&space, "recompute-parts", cases[i].set);
    ls_space_add_range (&space, &ranges, space.parts_axis);
    LS_CHECK (ls_space_fill (&space, &model, &base, 8, false, &error));
    check_axis (&space, "recompute-parts", cases[i].parts);
    ls_space_clear (&space);
    ls_ranges_clear (&ranges);
    ls_strategy_clear (&base);
    ls_model_clear (&model);
  }
}

LS_TEST_SUITE (LS_TEST (layers_are_separated_by_slashes), LS_TEST (parts_are_those_of_the_model),
               LS_TEST (chunks_that_never_come_out_even_have_a_range), LS_TEST (a_file_narrows_as_flags_do),
               LS_TEST (doublings_are_spelt_out), LS_TEST (each_number_of_gpus_has_its_own_degrees),
               LS_TEST (long_sequences_are_cut_over_ranks))
