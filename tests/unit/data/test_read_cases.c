/* Pins the columns of a file of measured runs, and that every wrong cell is
 * reported. */
#include "ls_test.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "data/measured/read_cases.h"

#define HEADER                                                                                               \
  "id,split,cluster,gpus,layers,hidden,heads,kv_heads,ffn,vocab,seq,mlp,attention,dtype,"                    \
  "grad_dtype,global_batch,micro_batch,tp,pp,vpp,dp,cp,ep,zero,sp,recompute,schedule,"                       \
  "dp_kind,dp_overlap,tp_overlap,p2p,iteration_s,source,caveat\n"

static void
a_row_becomes_a_model_and_a_strategy (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) cases = ls_read_cases (
      "c.csv",
      HEADER "x-1,pool,some-cluster,128,24,2048,16,4,8192,50000,1024,swiglu,flash,bf16,fp32,96,2,4,8,3,4,1,1,"
             "3@2,1,selective,interleaved-1f1b,fsdp1,1,0,batched,1.25,\"paper, table 2\",\n",
      false, diags);
  if (!LS_CHECK (cases != NULL && cases->len == 1))
    return;
  const LsCase *c = g_ptr_array_index (cases, 0);
  LS_CHECK_STR (c->id, "x-1");
  LS_CHECK_STR (c->cluster, "some-cluster");
  LS_CHECK_STR (c->source, "paper, table 2");
  LS_CHECK_DOUBLE (c->measured_s, ==, 1.25);
  LS_CHECK_INT (c->model.n_layers, ==, 24);
  LS_CHECK_INT (c->model.head_dim, ==, 128);
  LS_CHECK_INT (c->model.n_kv_heads, ==, 4);
  LS_CHECK_INT (c->model.mlp, ==, LS_MLP_SWIGLU);
  LS_CHECK_INT (c->model.attention, ==, LS_ATTENTION_FLASH);
  LS_CHECK_INT (c->strategy.gpus, ==, 128);
  LS_CHECK_INT (c->strategy.vpp, ==, 3);
  LS_CHECK_INT (c->strategy.zero_stage, ==, 3);
  LS_CHECK_INT (c->strategy.data.zero_group, ==, 2);
  LS_CHECK (c->strategy.sp && c->strategy.data.overlap && !c->strategy.mp.tp_overlap);
  LS_CHECK_INT (c->strategy.recompute, ==, LS_RECOMPUTE_SELECTIVE);
  LS_CHECK_INT (c->strategy.dp_kind, ==, LS_DP_FSDP1);
  LS_CHECK_INT (c->strategy.mp.p2p, ==, LS_P2P_BATCHED);
  LS_CHECK_INT (c->strategy.dtype, ==, LS_DTYPE_BF16);
  LS_CHECK_INT (c->strategy.opt.grad_dtype, ==, LS_DTYPE_FP32);
  LS_CHECK_STR (c->strategy.schedule, "interleaved-1f1b");
}

/* The torchao table says "8xH100": its authors' are not a DGX's. Other tables of that software, and other
 * machines, stay. */
static void
a_table_may_have_run_elsewhere_than_its_column_says (void)
{
  static const char row[]
      = "%s,pool,%s,8,32,4096,32,8,14336,128256,8192,swiglu,flash,bf16,fp32,8,1,1,1,1,8,1,1,3,0,selective,"
        "none,fsdp2,1,0,none,1.3,%s,,torchtitan-2025-03-compile\n";
  g_autofree char *header = g_strdup (HEADER);
  g_strchomp (header);
  g_autoptr (GString) csv = g_string_new (header);
  g_string_append (csv, ",software\n");
  g_string_append_printf (csv, row, "a", "dgx-h100", "torchao training benchmarks");
  g_string_append_printf (csv, row, "b", "dgx-b200", "torchao training benchmarks");
  g_string_append_printf (csv, row, "c", "dgx-h100", "some paper");
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) cases = ls_read_cases ("c.csv", csv->str, false, diags);
  if (!LS_CHECK (cases != NULL && cases->len == 3))
    return;
  static const char *const expected[] = { "grand-teton-h100-96g", "dgx-b200", "dgx-h100" };
  for (guint i = 0; i < G_N_ELEMENTS (expected); i++)
    LS_CHECK_STR (((const LsCase *) g_ptr_array_index (cases, i))->cluster, expected[i]);
}

/* What no column of NeMo AutoModel's table says: its configurations of two models checkpoint each block, that
 * of the third does not; all deal experts out in turn. */
static void
a_table_may_not_say_that_it_recomputes (void)
{
  static const char row[]
      = "%s,pool,dgx-h100,8,%u,%u,32,4,,151936,4096,swiglu,flash,bf16,fp32,512,4,1,1,1,8,1,8,3,0,,"
        "none,fsdp2,1,0,none,20,NeMo AutoModel performance summary,,%u,8,768,nemo-automodel-2025\n";
  g_autofree char *header = g_strdup (HEADER);
  g_strchomp (header);
  g_autoptr (GString) csv = g_string_new (header);
  g_string_append (csv, ",experts,top_k,moe_ffn,software\n");
  g_string_append_printf (csv, row, "a", 48, 2048, 128);
  g_string_append_printf (csv, row, "b", 24, 2880, 32);
  g_string_append_printf (csv, row, "c", 36, 2880, 128);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) cases = ls_read_cases ("c.csv", csv->str, false, diags);
  if (!LS_CHECK (cases != NULL && cases->len == 3))
    return;
  for (guint i = 0; i < 3; i++) {
    const LsCase *c = g_ptr_array_index (cases, i);
    bool is_checkpointed = i < 2;
    LS_CHECK_INT (c->strategy.recompute, ==, is_checkpointed ? LS_RECOMPUTE_FULL : LS_RECOMPUTE_NONE);
    LS_CHECK_INT (c->strategy.zero_stage, ==, is_checkpointed ? 2 : 3);
    LS_CHECK_INT (c->strategy.experts.dispatcher, ==, LS_DISPATCHER_DEEPEP);
    LS_CHECK_STR (c->strategy.experts.load, "round-robin");
    LS_CHECK (!c->strategy.opt.grad_norm);
  }
  LS_CHECK_INT (((const LsCase *) g_ptr_array_index (cases, 0))->model.head_dim, ==, 128);
}

static void
check_says (const char *report, const char *what)
{
  ls_check_impl (strstr (report, what) != NULL, __FILE__, __LINE__, "\"%s\" in:\n%s", what, report);
}

static void
every_wrong_cell_is_reported (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) cases
      = ls_read_cases ("c.csv",
                       HEADER "x,,c,0,24,2048,15,16,8192,50000,1024,silu,flash,int4,fp32,96,2,4,8,3,4,1,1,"
                              "4,2,selective,1f1b,dpp,1,0,sent,-1,,\n"
                              "x,,c,8,24,2048,16,16,8192,50000,1024,gelu,flash,bf16,bf16,96,2,1,1,1,8,1,1,"
                              "1@8,0,none,none,megatron,1,0,none,1,,\n",
                       false, diags);
  LS_CHECK (cases == NULL);
  LS_CHECK_INT (ls_diag_list_n (diags), ==, 11);
  g_autofree char *report = ls_diag_list_format (diags);
  check_says (report, "c.csv:2:6: error: /x/gpus: expected a whole number from 1 to ");
  check_says (
      report,
      "/x/mlp: expected one of \"gelu\", \"relu2\", \"swiglu\", \"geglu\", \"quick-geglu\"; got \"silu\"");
  check_says (report,
              "/x/dtype: expected one of \"fp16\", \"bf16\", \"fp8\", \"nvfp4\", \"fp32\"; got \"int4\"");
  check_says (report, "/x/zero: expected 0 to 3, auto, or STAGE@GROUP");
  check_says (report, "/x/sp: expected 0 or 1; got \"2\"");
  check_says (report, "/x/dp_kind: expected one of \"none\", \"ps\", \"ddp\"");
  check_says (report, "/x/p2p: expected one of \"none\", \"batched\"");
  check_says (report, "/x/iteration_s: expected a number from 1e-09 to 1000000000; got \"-1\"");
  check_says (report, "/x/heads: expected a divisor of hidden 2048; got 15");
  check_says (report, "/x/kv_heads: expected a divisor of heads 15; got 16");
  check_says (report, "c.csv:3:1: error: /x/id: duplicate id \"x\"");
}

/* A mistyped cell must not cost hours; the limits are those of the data files. */
static void
cells_have_the_limits_of_the_data_files (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) cases = ls_read_cases (
      "c.csv",
      HEADER
      "x,,c,8,65537,2097152,16,5,8388608,33554432,268435456,gelu,flash,bf16,bf16,2147483648,1,1,1,1,8,1,1,"
      "1,0,none,none,megatron,1,0,none,1e10,,\n",
      false, diags);
  LS_CHECK (cases == NULL);
  g_autofree char *report = ls_diag_list_format (diags);
  check_says (report, "/x/layers: expected a whole number from 1 to 65536; got \"65537\"");
  check_says (report, "/x/hidden: expected a whole number from 1 to 1048576; got \"2097152\"");
  check_says (report, "/x/ffn: expected a whole number from 1 to 4194304; got \"8388608\"");
  check_says (report, "/x/vocab: expected a whole number from 1 to 16777216; got \"33554432\"");
  check_says (report, "/x/seq: expected a whole number from 1 to 134217728; got \"268435456\"");
  check_says (report, "/x/global_batch: expected a whole number from 1 to 1073741824; got \"2147483648\"");
  check_says (report, "/x/iteration_s: expected a number from 1e-09 to 1000000000; got \"1e10\"");
  LS_CHECK_INT (ls_diag_list_n (diags), ==, 7);
}

static void
a_table_without_rows_is_refused (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) cases = ls_read_cases ("c.csv", HEADER, false, diags);
  LS_CHECK (cases == NULL);
  g_autofree char *report = ls_diag_list_format (diags);
  check_says (report, "c.csv:1:1: error: expected a row for each measured run below the header; got none");
}

static void
missing_columns_are_named (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) cases = ls_read_cases ("c.csv", "id,cluster\nx,y\n", false, diags);
  LS_CHECK (cases == NULL);
  LS_CHECK_INT (ls_diag_list_n (diags), ==, 9);
  g_autofree char *report = ls_diag_list_format (diags);
  check_says (report, "c.csv:1:1: error: expected a column \"gpus\"; got none");
}

/* Cells that are empty or not there are as a run has them by default, and as a file of a model has. */
static void
most_cells_may_be_left_out (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) cases
      = ls_read_cases ("c.csv",
                       "id,gpus,layers,hidden,heads,vocab,seq,mlp,global_batch,tp,ep,sp,vpp,iteration_s\n"
                       "x,8,2,512,4,1000,128,gelu,8,2,,,,1\n",
                       false, diags);
  LsStrategy blank;
  ls_strategy_init (&blank);
  if (LS_CHECK (cases && cases->len == 1)) {
    const LsCase *c = g_ptr_array_index (cases, 0);
    LS_CHECK_INT (c->model.n_kv_heads, ==, 4);
    LS_CHECK_INT (c->model.ffn, ==, 2048);
    LS_CHECK (!c->model.dropout);
    LS_CHECK_INT (c->strategy.tp, ==, 2);
    LS_CHECK_INT (c->strategy.ep, ==, blank.ep);
    LS_CHECK_INT (c->strategy.vpp, ==, blank.vpp);
    LS_CHECK_INT (c->strategy.dp, ==, blank.dp);
    LS_CHECK_INT (c->strategy.sp, ==, blank.sp);
    LS_CHECK_INT (c->strategy.dtype, ==, blank.dtype);
    LS_CHECK_INT (c->strategy.micro_batch, ==, blank.micro_batch);
    LS_CHECK (!g_hash_table_contains (c->said, "ep") && g_hash_table_contains (c->said, "tp"));
  }
  ls_strategy_clear (&blank);
}

/* Row by row: the wrong ones stay with their first complaint; if all are wrong, the table is refused with all
 * that is. */
static void
wrong_rows_leave_the_others_alone (void)
{
#define REST                                                                                                 \
  ",1,24,2048,16,4,8192,50000,1024,swiglu,flash,%s,fp32,1,1,1,1,1,1,1,1,0,0,none,none,none,1,0,none,%s,,\n"
  g_autofree char *path = NULL;
  int file = g_file_open_tmp ("ls-cases-XXXXXX", &path, NULL);
  g_autofree char *good = g_strdup_printf (HEADER "a,,c" REST "b/1,,c" REST "c,," REST "d,,c" REST, "bf16",
                                           "1", "int4", "1", "bf16", "1", "bf16", "x");
  g_autofree char *bad = g_strdup_printf (HEADER "b,,c" REST "c,," REST, "int4", "x", "bf16", "x");
#undef REST
  g_autoptr (LsDiagList) diags = ls_diag_list_new (), strict = ls_diag_list_new (),
                         none = ls_diag_list_new ();
  g_file_set_contents (path, good, -1, NULL);
  g_autoptr (GPtrArray) cases = ls_read_cases (path, NULL, true, diags);
  if (LS_CHECK (cases && cases->len == 4 && ls_diag_list_n (diags) == 0)) {
    const LsCase *const *c = (const LsCase *const *) cases->pdata;
    LS_CHECK (!c[0]->wrong && g_str_equal (c[3]->id, "d") && isnan (c[3]->measured_s));
    LS_CHECK_STR (c[1]->wrong,
                  "dtype: expected one of \"fp16\", \"bf16\", \"fp8\", \"nvfp4\", \"fp32\"; got \"int4\"");
    LS_CHECK (!c[2]->wrong && g_str_equal (c[2]->cluster, "")); /* its hardware may tell */
    LS_CHECK (g_str_has_prefix (c[3]->wrong, "iteration_s: expected a number"));
  }
  g_autoptr (GPtrArray) all = ls_read_cases (path, NULL, false, strict);
  LS_CHECK (!all && ls_diag_list_n (strict) == 2);
  g_file_set_contents (path, bad, -1, NULL);
  g_autoptr (GPtrArray) nothing = ls_read_cases (path, NULL, true, none);
  LS_CHECK (!nothing && ls_diag_list_n (none) == 3);
  g_unlink (path);
  g_close (file, NULL);
}

static void
the_published_rows_are_read (void)
{
  const char *dir = ls_test_shared_data ();
  if (!dir)
    return;
  g_autofree char *path = g_build_filename (dir, "runs", "cases.csv", NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) cases = ls_read_cases (path, NULL, false, diags);
  g_autofree char *report = ls_diag_list_format (diags);
  LS_CHECK_STR (report, "");
  LS_CHECK (cases && cases->len == 671);
}

/* Of the header of the other tests, with one column more, which a row may leave empty. */
static void
memory_may_be_measured_too (void)
{
  g_autofree char *header = g_strndup (HEADER, strlen (HEADER) - 1);
  g_autofree char *text
      = g_strconcat (header, ",allocated_gib\n",
                     "x-1,pool,c,1,24,2048,16,4,8192,50000,1024,swiglu,flash,bf16,fp32,1,1,1,1,1,1,1,1,"
                     "0,0,none,none,none,1,0,none,1.25,,,61.5\n"
                     "x-2,pool,c,1,24,2048,16,4,8192,50000,1024,swiglu,flash,bf16,fp32,1,1,1,1,1,1,1,1,"
                     "0,0,none,none,none,1,0,none,1.25,,,\n",
                     NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) cases = ls_read_cases ("c.csv", text, false, diags);
  static const double gib[] = { 61.5, 0 };
  for (guint i = 0; LS_CHECK (cases && cases->len == 2) && i < 2; i++) {
    const LsCase *c = g_ptr_array_index (cases, i);
    LS_CHECK (!c->wrong);
    LS_CHECK_DOUBLE (c->allocated_gib, ==, gib[i]);
  }
}

/* A row with columns of its own, named and filled as given. */
static GPtrArray *
parse_with (const char *columns, const char *cells, const char *ffn, LsDiagList *diags)
{
  g_autofree char *header = g_strndup (HEADER, strlen (HEADER) - 1);
  g_autofree char *text = g_strconcat (
      header, ",", columns, "\n", "x-1,pool,c,8,24,2048,16,4,", ffn,
      ",50000,1024,swiglu,flash,bf16,fp32,8,1,1,1,1,8,1,1,1,0,none,none,megatron,1,0,none,1.25,,,", cells,
      "\n", NULL);
  return ls_read_cases ("c.csv", text, false, diags);
}

static void
check_refused (const char *columns, const char *cells, const char *ffn, const char *why)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) cases = parse_with (columns, cells, ffn, diags);
  g_autofree char *report = ls_diag_list_format (diags);
  LS_CHECK (cases == NULL);
  check_says (report, why);
}

static void
models_may_have_experts_and_what_else_columns_say (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) cases = parse_with (
      "experts,top_k,moe_ffn,shared_ffn,tied_embeddings,apex_norm,head_dim", "64,4,768,,1,1,64", "", diags);
  if (!LS_CHECK (cases && cases->len == 1))
    return;
  const LsModel *m = &((LsCase *) g_ptr_array_index (cases, 0))->model;
  LS_CHECK (m->moe.n_experts == 64 && m->moe.top_k == 4 && m->moe.expert_ffn == 768 && m->ffn == 768
            && m->moe.every == 1 && m->moe.shared_ffn == 0);
  LS_CHECK (m->tied_embeddings && m->head_dim == 64 && m->norm == LS_NORM_RMSNORM);
  LS_CHECK (((LsCase *) g_ptr_array_index (cases, 0))->strategy.use.apex_norm);
  check_refused ("experts", "64", "8192",
                 "expected with it columns top_k, of at most as many, and expert_ffn; got 0 and 0");
  check_refused ("experts,top_k,expert_ffn", "64,65,768", "8192", "expected with it columns top_k");
  check_refused ("apex_norm", "maybe", "8192", "expected 0 or 1; got \"maybe\"");
}

/* As from the folder of the table, wherever it is read from; what is not there stays as it is. */
static void
files_are_found_beside_the_table (void)
{
  g_autofree char *folder = g_dir_make_tmp ("ls-cases-XXXXXX", NULL);
  g_autofree char *table = g_build_filename (folder, "c.csv", NULL),
                  *model = g_build_filename (folder, "own.json", NULL);
  g_file_set_contents (model,
                       "{\"schema\": \"lockstep.model/1\", \"name\": \"own\", \"source\": \"a test\", "
                       "\"extends\": \"gpt-1.7b\", \"layers\": 3}",
                       -1, NULL);
  static const char columns[]
      = "id,cluster,model,gpus,attention,dtype,grad_dtype,global_batch,micro_batch,tp,pp,vpp,dp,cp,ep,"
        "zero,sp,recompute,schedule,dp_kind,dp_overlap,tp_overlap,p2p,iteration_s\n";
  static const char cells[] = "1,flash,bf16,fp32,1,1,1,1,1,1,1,1,0,0,none,none,none,1,0,none,1.25\n";
  g_autofree char *text = g_strconcat (columns, "a,./own.json,./own.json:layers=2,", cells,
                                       "b,./none.json,./own.json,", cells, NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) cases = ls_read_cases (table, text, false, diags);
  g_autofree char *report = ls_diag_list_format (diags);
  LS_CHECK_STR (report, "");
  if (LS_CHECK (cases && cases->len == 2)) {
    const LsCase *const *c = (const LsCase *const *) cases->pdata;
    LS_CHECK (g_str_has_prefix (c[0]->cluster, folder) && g_str_has_suffix (c[0]->cluster, "own.json"));
    LS_CHECK_STR (c[1]->cluster, "./none.json");
    LS_CHECK_INT (c[0]->model.n_layers, ==, 2);
    LS_CHECK_INT (c[1]->model.n_layers, ==, 3);
  }
  g_unlink (model);
  g_rmdir (folder);
}

LS_TEST_SUITE (LS_TEST (models_may_have_experts_and_what_else_columns_say),
               LS_TEST (a_row_becomes_a_model_and_a_strategy),
               LS_TEST (a_table_may_have_run_elsewhere_than_its_column_says),
               LS_TEST (a_table_may_not_say_that_it_recomputes), LS_TEST (every_wrong_cell_is_reported),
               LS_TEST (cells_have_the_limits_of_the_data_files), LS_TEST (a_table_without_rows_is_refused),
               LS_TEST (missing_columns_are_named), LS_TEST (most_cells_may_be_left_out),
               LS_TEST (files_are_found_beside_the_table), LS_TEST (memory_may_be_measured_too),
               LS_TEST (wrong_rows_leave_the_others_alone), LS_TEST (the_published_rows_are_read))
