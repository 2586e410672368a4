/* Pins how strategies and the software that they run are read. */
#include "ls_test.h"

#include <glib/gstdio.h>

#include <string.h>

#include "data/jobs/read_software.h"
#include "data/jobs/job_files.h"

/* Pins: the knobs of a strategy mean the same in a file and as flags. */

static void
a_file_sets_the_knobs (void)
{
  static const char text[]
      = "{\"schema\":\"lockstep.strategy/1\",\"name\":\"t\",\"source\":\"test\",\"tp\":8,\"pp\":4,\"vpp\":2,\"sp\":true,"
        "\"zero\":\"3@16\",\"dp_kind\":\"fsdp2\",\"p2p\":\"overlapped\",\"schedule\":\"interleaved-1f1b\","
        "\"micro_batch\":2,\"global_batch\":512,\"recompute\":\"selective\",\"attention\":\"unfused\",\"dtype\":\"fp16\","
        "\"grad_dtype\":\"fp32\",\"grad_norm\":false,\"bucket_bytes\":\"25MiB\",\"layers_per_chunk\":[1,2,2,2,2,2,2,1]}";
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "t.json", diags);
  LsStrategy s;
  if (!LS_CHECK (doc && ls_strategy_read (doc, &s, diags)))
    return;
  LS_CHECK (s.tp == 8 && s.pp == 4 && s.vpp == 2 && s.sp);
  LS_CHECK (s.zero_stage == 3 && s.data.zero_group == 16);
  LS_CHECK (s.dp_kind == LS_DP_FSDP2 && s.mp.p2p == LS_P2P_OVERLAPPED
            && s.recompute == LS_RECOMPUTE_SELECTIVE);
  LS_CHECK (s.use.attention == LS_ATTENTION_UNFUSED && s.dtype == LS_DTYPE_FP16
            && s.opt.grad_dtype == LS_DTYPE_FP32);
  LS_CHECK_STR (s.schedule, "interleaved-1f1b");
  LS_CHECK (s.micro_batch == 2 && s.global_batch == 512 && !s.opt.grad_norm);
  LS_CHECK_INT (s.data.bucket_bytes, ==, 25 << 20);
  LS_CHECK (s.layout.n_layers_per_chunk == 8 && s.layout.layers_per_chunk[0] == 1
            && s.layout.layers_per_chunk[1] == 2);
  LS_CHECK (s.data.overlap && !s.mp.tp_overlap && s.cp == 1 && s.dp == 0); /* defaults */
  ls_strategy_clear (&s);
}

static bool
set (LsStrategy *s, const char *name, const char *text)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  return ls_field_set_text (ls_strategy_fields, s, name, text, diags);
}

static void
flags_set_the_knobs (void)
{
  LsStrategy s;
  ls_strategy_init (&s);
  LS_CHECK (set (&s, "micro-batch", "4") && s.micro_batch == 4);
  LS_CHECK (set (&s, "zero", "1") && s.zero_stage == 1 && s.data.zero_group == 0);
  LS_CHECK (set (&s, "zero", "2@8") && s.zero_stage == 2 && s.data.zero_group == 8);
  LS_CHECK (set (&s, "zero", "0") && s.zero_stage == 0 && s.data.zero_group == 0);
  LS_CHECK (set (&s, "sp", "1") && s.sp);
  LS_CHECK (set (&s, "dp-overlap", "0") && !s.data.overlap);
  LS_CHECK (set (&s, "dp-kind", "xla-fsdp") && s.dp_kind == LS_DP_XLA_FSDP);
  LS_CHECK (set (&s, "grad-dtype", "fp32") && s.opt.grad_dtype == LS_DTYPE_FP32);
  LS_CHECK (set (&s, "layers-per-chunk", "3,4,3") && s.layout.n_layers_per_chunk == 3
            && s.layout.layers_per_chunk[1] == 4);
  LS_CHECK (set (&s, "layers-per-chunk", "4x13, 3x3") && s.layout.n_layers_per_chunk == 16
            && s.layout.layers_per_chunk[12] == 4 && s.layout.layers_per_chunk[13] == 3);
  LS_CHECK (!set (&s, "layers-per-chunk", "4x") && !set (&s, "layers-per-chunk", "x4")
            && !set (&s, "layers-per-chunk", "4x0"));
  LS_CHECK (!set (&s, "layers-per-chunk", "4x13x2") && !set (&s, "layers-per-chunk", "1x1048576,1")
            && s.layout.n_layers_per_chunk == 16);
  LS_CHECK (set (&s, "layers-per-chunk", "balanced") && !s.layout.layers_per_chunk
            && s.layout.layer_rule == LS_LAYER_RULE_BALANCED);
  LS_CHECK (set (&s, "layers-per-chunk", "weights") && !s.layout.layers_per_chunk
            && s.layout.layer_rule == LS_LAYER_RULE_WEIGHTS);
  LS_CHECK (set (&s, "layers-per-chunk", "2,1x2") && s.layout.n_layers_per_chunk == 3
            && s.layout.layer_rule == LS_LAYER_RULE_AUTO);
  LS_CHECK (set (&s, "layers-per-chunk", "auto") && !s.layout.layers_per_chunk
            && s.layout.n_layers_per_chunk == 0 && s.layout.layer_rule == LS_LAYER_RULE_AUTO);
  LS_CHECK (set (&s, "recompute-stages", "1x3,2") && s.memory.n_recompute_stages == 4
            && s.memory.recompute_stages[3] == 2);
  LS_CHECK (set (&s, "schedule", "zb-h1"));
  LS_CHECK_STR (s.schedule, "zb-h1");
  LS_CHECK (!set (&s, "zero", "4") && !set (&s, "zero", "1@0") && !set (&s, "zero", "1@")
            && !set (&s, "zero", "@8"));
  LS_CHECK (!set (&s, "tp", "0") && !set (&s, "tp", "1.5") && !set (&s, "dtype", "int8"));
  LS_CHECK (!set (&s, "name", "x") && !set (&s, "schema", "x")); /* of files only */
  LS_CHECK_INT (s.zero_stage, ==, 0);
  ls_strategy_clear (&s);
}

static char *
chunks_of_one (guint n)
{
  GString *list = g_string_new ("1");
  for (guint i = 1; i < n; i++)
    g_string_append (list, ",1");
  return g_string_free (list, FALSE);
}

static void
chunks_are_limited (void)
{
  g_autofree char *chunks = chunks_of_one (4097);
  g_autofree char *text
      = g_strdup_printf ("{\"schema\":\"lockstep.strategy/1\",\"name\":\"t\",\"source\":\"test\","
                         "\"layers_per_chunk\":[%s]}",
                         chunks);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), "t.json", diags);
  LsStrategy s;
  LS_CHECK (doc && !ls_strategy_read (doc, &s, diags));
  g_autofree char *said = ls_diag_list_format (diags);
  LS_CHECK (g_str_has_prefix (
      said, "t.json:1:79: error: /layers_per_chunk: expected at most 4096 chunks; got 4097\n"));
}

/* Every flag that the command line promises exists. */
static void
no_knob_is_missing (void)
{
  static const char *const flags[] = {
    "gpus",
    "tp",
    "pp",
    "dp",
    "cp",
    "ep",
    "vpp",
    "sp",
    "zero",
    "dp-kind",
    "dp-overlap",
    "tp-overlap",
    "tp-async",
    "p2p",
    "schedule",
    "micro-batch",
    "global-batch",
    "seq",
    "recompute",
    "attention",
    "dtype",
    "grad-dtype",
    "layers-per-chunk",
    "grad-norm",
  };
  for (size_t i = 0; i < G_N_ELEMENTS (flags); i++)
    ls_check_impl (ls_field_find (ls_strategy_fields, flags[i]) != NULL, __FILE__, __LINE__, "no --%s",
                   flags[i]);
}

/* What prints a knob and what reads it agree. */
static void
names_read_back (void)
{
  LsStrategy s;
  ls_strategy_init (&s);
  for (int k = LS_DP_NONE; k <= LS_DP_XLA_FSDP; k++)
    LS_CHECK (set (&s, "dp-kind", ls_dp_kind_name (k)) && s.dp_kind == k);
  for (int k = LS_P2P_NONE; k <= LS_P2P_OVERLAPPED; k++)
    LS_CHECK (set (&s, "p2p", ls_enum_name (ls_p2p_names, k)) && s.mp.p2p == k);
  for (int k = LS_RECOMPUTE_NONE; k <= LS_RECOMPUTE_FULL; k++)
    LS_CHECK (set (&s, "recompute", ls_recompute_names[k].name) && s.recompute == k);
  ls_strategy_clear (&s);
}

/* Pins what a file of software takes from the one that it is based on, and that circles and wrong facts are
 * refused. */

#define HEAD(name_)                                                                                          \
  "{\"schema\":\"lockstep.software/1\",\"name\":\"" name_ "\",\"source\":\"s\",\"program\":\"" name_ "\""

static void
write_file (const char *folder, const char *name, const char *text)
{
  g_autofree char *path = g_build_filename (folder, name, NULL);
  LS_CHECK (g_file_set_contents (path, text, -1, NULL));
}

static void
remove_files (const char *const *files, const char *root, const char *folder)
{
  g_autofree char *between = g_path_get_dirname (folder);
  for (guint i = 0; files[i]; i += 2) {
    g_autofree char *path = g_build_filename (folder, files[i], NULL);
    g_unlink (path);
  }
  LS_CHECK (g_rmdir (folder) == 0 && g_rmdir (between) == 0 && g_rmdir (root) == 0);
}

/* Loads NAME.json from a folder of files as given; NULL-terminated pairs of name and text. */
static bool
load (const char *const *files, const char *name, LsSoftwareSpec *ret, char **ret_report)
{
  g_autofree char *root = g_dir_make_tmp ("lockstep-XXXXXX", NULL),
                  *folder = g_build_filename (root, "strategies", "software", NULL);
  g_autofree char *before = g_strdup (g_getenv ("LS_DATA_DIR"));
  g_mkdir_with_parents (folder, 0700);
  for (guint i = 0; files[i]; i += 2)
    write_file (folder, files[i], files[i + 1]);
  g_setenv ("LS_DATA_DIR", root, TRUE);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  bool ok = ls_software_load (name, ret, diags);
  *ret_report = ls_diag_list_format (diags);
  g_setenv ("LS_DATA_DIR", before, TRUE);
  remove_files (files, root, folder);
  return ok;
}

static const char *const family[] = {
  "old.json",
  HEAD (
      "old") ",\"vendor\":\"v\",\"release\":\"1\",\"dp_kinds\":\"ddp\",\"runs_like\":\"a loop of our own\",\"defaults\":{\"apex_norm\":true,\"tp_async\":false},"
             "\"headroom\":[{\"what\":\"a\",\"size\":\"1GiB\",\"source\":\"s\"}],\"tables\":[{\"of\":\"*\",\"source\":\"s\"}]}",
  "new.json",
  HEAD (
      "new") ",\"based_on\":\"old\",\"release\":\"2\",\"defaults\":{\"tp_async\":true,\"batch_sync\":true}}",
  "newest.json",
  HEAD ("newest") ",\"based_on\":\"new\",\"headroom\":[{\"what\":\"b\",\"size\":\"2GiB\",\"source\":\"s\"}]}",
  NULL,
};

static void
a_file_says_what_differs_from_its_base (void)
{
  LsSoftwareSpec s;
  g_autofree char *report = NULL;
  if (!LS_CHECK (load (family, "newest", &s, &report)))
    return;
  LS_CHECK_STR (s.name, "newest");
  LS_CHECK_STR (s.release, "2");
  LS_CHECK_STR (s.vendor, "v");
  LS_CHECK_STR (s.defaults.program.software, "newest");
  LS_CHECK (s.defaults.use.apex_norm && s.defaults.mp.tp_async && s.defaults.launch.batch_sync);
  LS_CHECK_STR (s.runs_like, "a loop of our own");
  LS_CHECK (s.dp_kinds == NULL && s.tables == NULL);
  LS_CHECK (s.headroom->len == 1
            && g_array_index (s.headroom, LsHeadroomItem, 0).bytes == (uint64_t) 2 << 30);
  ls_software_clear (&s);
}

static void
check_refused (const char *const *files, const char *name, const char *why)
{
  LsSoftwareSpec s;
  g_autofree char *report = NULL;
  LS_CHECK (!load (files, name, &s, &report));
  ls_check_impl (strstr (report, why) != NULL, __FILE__, __LINE__, "\"%s\" in:\n%s", why, report);
}

static void
circles_and_wrong_facts_are_refused (void)
{
  const char *const circle[]
      = { "a.json", HEAD ("a") ",\"based_on\":\"b\"}", "b.json", HEAD ("b") ",\"based_on\":\"a\"}", NULL };
  const char *const nobody[] = { "a.json", HEAD ("a") ",\"based_on\":\"b\"}", NULL };
  const char *const key[]
      = { "a.json",
          HEAD ("a") ",\"tables\":[{\"of\":\"*\",\"source\":\"s\",\"strategy\":{\"atention\":\"flash\"}}]}",
          NULL };
  const char *const value[]
      = { "a.json", HEAD ("a") ",\"tables\":[{\"of\":\"*\",\"source\":\"s\",\"model\":{\"vocab\":-1}}]}",
          NULL };
  const char *const list[]
      = { "a.json", HEAD ("a") ",\"tables\":[{\"of\":\"*\",\"source\":\"s\",\"when\":{\"gpus\":[8]}}]}",
          NULL };
  check_refused (circle, "a", "expected at most 8 files, each based on the next; got more, or a circle");
  check_refused (nobody, "a", "no software is named \"b\"");
  check_refused (key, "a", "unknown key; did you mean \"attention\"?");
  check_refused (value, "a", "expected a whole number from 1 to 16777216; got");
  check_refused (list, "a", "expected a string; got an array");
}

LS_TEST_SUITE (LS_TEST (a_file_sets_the_knobs), LS_TEST (flags_set_the_knobs), LS_TEST (chunks_are_limited),
               LS_TEST (no_knob_is_missing), LS_TEST (names_read_back),
               LS_TEST (a_file_says_what_differs_from_its_base),
               LS_TEST (circles_and_wrong_facts_are_refused))
