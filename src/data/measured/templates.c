/* data/measured/templates.c — tables of measurements to fill in. */
#include "data/measured/read_cases.h"

#include <string.h>

#include "data/jobs/job_files.h"
#include "data/text/csv.h"

/* A column, its cell in the example, and what it means; NULL: what the knob of that key means. */
typedef struct {
  const char *name, *cell, *meaning;
} Column;

typedef struct {
  const char *name;
  const char *const *head; /* lines above the columns, NULL at the end */
  const Column *columns;   /* name NULL at the end                     */
} Template;

static const char *const runs_head[] = {
  "Measured training runs, a row each.",
  "Read by: lockstep validate FILE.csv, and lockstep calibrate --runs FILE.csv --cluster NAME (two rows or",
  "more, of one cluster).",
  "The row is an example: put yours in its place. Columns may stand in any order.",
  NULL,
};
static const Column runs_columns[] = {
  { "id", "8b-tp2", "a name of your own, different in each row" },
  { "cluster", "dgx-h100",
    "a name (lockstep list clusters) or a file; empty: as --cluster says, or as hardware" },
  { "model", "llama3.1-8b",
    "a name (lockstep list models) or a file; without, columns layers, hidden, heads, kv_heads, ffn, "
    "vocab, seq, mlp" },
  { "software", "megatron",
    "the program that ran (lockstep list software): empty cells are as that has them; or empty" },
  { "gpus", "8", "ranks" },
  { "seq", "8192", "tokens of one sequence; empty: as the model has it" },
  { "global_batch", "128", NULL },
  { "micro_batch", "1",
    "sequences of one micro-batch; this column and all below but iteration_s may be empty, or absent" },
  { "dtype", "bf16", NULL },
  { "tp", "2", NULL },
  { "pp", "1", NULL },
  { "vpp", "1", NULL },
  { "dp", "4", NULL },
  { "cp", "1", NULL },
  { "ep", "1", NULL },
  { "sp", "1", NULL },
  { "schedule", "none", "of a pipeline (lockstep schedule --help); none with pp 1" },
  { "attention", "flash", NULL },
  { "grad_dtype", "fp32", NULL },
  { "zero", "1", NULL },
  { "recompute", "none", NULL },
  { "dp_kind", "megatron", NULL },
  { "dp_overlap", "1", NULL },
  { "tp_overlap", "0", NULL },
  { "p2p", "none", NULL },
  { "iteration_s", "13.0", "measured: seconds of one step, without a profiler, the median of many" },
  { NULL },
};

static const char *const nccl_head[] = {
  "Measured collectives, a row each.",
  "Read by: lockstep calibrate --nccl FILE.csv --cluster NAME, and lockstep collective --compare FILE.csv",
  "The row is an example: put yours in its place, several sizes for each operation and number of ranks.",
  "Outputs of nccl-tests are read as they are and need no table.",
  NULL,
};
static const Column nccl_columns[] = {
  { "cluster", "dgx-h100", "a name (lockstep list clusters); empty: not known" },
  { "op", "all-reduce", "all-reduce, all-gather, reduce-scatter, broadcast, reduce, all-to-all, p2p" },
  { "gpus", "8", "ranks" },
  { "nodes", "1", "nodes that they are spread over evenly" },
  { "size_bytes", "1073741824", "the whole array, as nccl-tests counts" },
  { "time_us", "4100", "of one call, out of place, in microseconds" },
  { NULL },
};

static const char *const kernels_head[] = {
  "Measured kernels, matrix products here, a row each.",
  "Read by: lockstep calibrate FILE.csv --gpu NAME, lockstep kernel --from FILE.csv --gpu NAME",
  "The row is an example: put yours in its place, many shapes. Attention and streaming kernels have columns",
  "of their own, in a file of their own: see formats/kernel-tables.md in the manual. tools/kernelbench",
  "measures all of them.",
  NULL,
};
static const Column kernels_columns[] = {
  { "m", "8192", "rows of the result: tokens" },
  { "n", "8192", "columns of the result" },
  { "k", "8192", "inner dimension" },
  { "dtype", "bf16", "number format: fp32, tf32, fp16, bf16, fp8" },
  { "latency_us", "1620", "measured: microseconds of one kernel" },
  { NULL },
};

static const Template templates[] = {
  { "runs", runs_head, runs_columns },
  { "nccl", nccl_head, nccl_columns },
  { "kernels", kernels_head, kernels_columns },
};

/* ": fp16, bf16": what a knob may be. */
static void
append_choices (GString *out, const LsField *f)
{
  const LsEnumName *names = f->kind == LS_FIELD_ENUM ? f->names : NULL;
  for (const LsEnumName *n = names; n && n->name; n++)
    if (ls_enum_is_first (names, n))
      g_string_append_printf (out, "%s%s", n == names ? ": " : ", ", n->name);
  if (f->kind == LS_FIELD_BOOL)
    g_string_append (out, ": 0, 1");
}

static void
append_comment (GString *out, const Column *c)
{
  g_string_append_printf (out, "# %-13s ", c->name);
  if (c->meaning) {
    g_string_append_printf (out, "%s\n", c->meaning);
    return;
  }
  const LsField *knob = ls_field_find (ls_strategy_fields, c->name);
  g_string_append (out, knob->meaning);
  append_choices (out, knob);
  g_string_append_c (out, '\n');
}

static char *
text_of (const Template *t)
{
  GString *out = g_string_new (NULL);
  for (const char *const *line = t->head; *line; line++)
    g_string_append_printf (out, "# %s\n", *line);
  g_string_append (out, "#\n");
  for (const Column *c = t->columns; c->name; c++)
    append_comment (out, c);
  for (const Column *c = t->columns; c->name; c++)
    g_string_append_printf (out, "%s%s", c == t->columns ? "" : ",", c->name);
  g_string_append_c (out, '\n');
  for (const Column *c = t->columns; c->name; c++) {
    g_string_append (out, c == t->columns ? "" : ",");
    ls_csv_append (out, c->cell);
  }
  return g_string_free (g_string_append_c (out, '\n'), FALSE);
}

char *
ls_template_text (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (templates); i++)
    if (strcmp (templates[i].name, name) == 0)
      return text_of (&templates[i]);
  return NULL;
}
