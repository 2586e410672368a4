#include "data/measured/read_residuals.h"

#include "data/datadir.h"

static const LsField residual_element[] = {
  { "", LS_FIELD_DOUBLE, 0, .min = -1, .max = 1 },
  { NULL },
};

#define TEXT(member, meaning_)                                                                               \
  {                                                                                                          \
#member, LS_FIELD_STRING, offsetof(LsResidualGroup, member), .required = true, .meaning = (meaning_)     \
  }

static const LsField trait_element[] = { { "", LS_FIELD_STRING, 0, .required = true, .max = 64 }, { NULL } };

#define FIGURE(aspect, key_, max_, meaning_)                                                                 \
  {                                                                                                          \
    key_, LS_FIELD_DOUBLE,                                                                                   \
        offsetof (LsResidualGroup, figures) + ((aspect) -LS_N_WORD_ASPECTS) * sizeof (double),               \
        .min = 0, .max = (max_), .default_text = "not known", .meaning = (meaning_)                          \
  }

static const LsEnumName aspect_names[] = {
  { "architecture", LS_ASPECT_ARCHITECTURE },
  { "format", LS_ASPECT_FORMAT },
  { "node", LS_ASPECT_NODE },
  { "backend", LS_ASPECT_BACKEND },
  { "schedule", LS_ASPECT_SCHEDULE },
  { "context", LS_ASPECT_CONTEXT },
  { "offload", LS_ASPECT_OFFLOAD },
  { "experts", LS_ASPECT_EXPERTS },
  { "transport", LS_ASPECT_TRANSPORT },
  { "gpus", LS_ASPECT_GPUS },
  { "fabric", LS_ASPECT_FABRIC },
  { "guessed", LS_ASPECT_GUESSED },
  { "tp", LS_ASPECT_TENSOR },
  { "params", LS_ASPECT_PARAMS },
  { NULL },
};

static const LsField stretch_fields[] = {
  { "aspect", LS_FIELD_ENUM, offsetof (LsStretch, aspect), .required = true, .names = aspect_names,
    .meaning = "in which a job may be unlike all runs with its software" },
  { "factor", LS_FIELD_DOUBLE, offsetof (LsStretch, factor), .required = true, .min = 1, .max = 1e6,
    .meaning = "how many times as wide its interval then is" },
  { "reach", LS_FIELD_DOUBLE, offsetof (LsStretch, reach), .min = 0, .max = 100,
    .default_text = "0: of a word",
    .meaning = "of a figure: how far beyond those of the runs it holds; ln of the ratio, of shares their "
               "difference" },
  { "n", LS_FIELD_UINT, offsetof (LsStretch, n), .required = true, .min = 2,
    .meaning = "words or figures of runs that were left out in turn to find it" },
  { NULL },
};

static const LsField group_fields[] = {
  TEXT (source, "paper or benchmark; all sources count alike"),
  TEXT (family, "which of its runs"),
  TEXT (architecture, "of their GPUs: name of a file in topologies/nccl, or tpu"),
  TEXT (software,
        "whose training loop ran them (runs_like of a file of software); jobs are compared with runs of the "
        "same"),
  { "n", LS_FIELD_UINT, offsetof (LsResidualGroup, n), .required = true, .min = 1, .meaning = "runs" },
  { "lowest_mfu", LS_FIELD_DOUBLE, offsetof (LsResidualGroup, lowest_mfu), .required = true, .min = 1e-4,
    .max = 1, .meaning = "the lowest MFU that was predicted for one of them" },
  FIGURE (LS_ASPECT_GPUS, "gpus", 1e9, "the most GPUs of one of them"),
  FIGURE (LS_ASPECT_FABRIC, "fabric", 1e15,
          "bytes/s of the NICs per GPU, the least of those on several nodes"),
  FIGURE (LS_ASPECT_GUESSED, "guessed", 1,
          "the largest share of kernel time by data sheets and stated guesses"),
  FIGURE (LS_ASPECT_TENSOR, "tp", 1e9, "the highest degree of tensor parallelism"),
  FIGURE (LS_ASPECT_PARAMS, "params", 1e18, "parameters of the largest model"),
  { "traits", LS_FIELD_ARRAY, offsetof (LsResidualGroup, traits), .fields = trait_element,
    .element_size = sizeof (char *), .default_text = "not known",
    .meaning = "what they have: aspect and word, as \"format bf16\" (analysis/interval.h)" },
  { "residuals", LS_FIELD_ARRAY, offsetof (LsResidualGroup, residuals), .required = true,
    .fields = residual_element, .element_size = sizeof (double),
    .meaning = "quantiles of MFU · ln (measured / predicted step), ascending" },
  { NULL },
};

const LsField ls_residuals_fields[] = {
  LS_FIELDS_HEADER (LsResiduals),
  { "provenance", LS_FIELD_SOURCES, .default_text = "none",
    .meaning = "the command that wrote the file, and what it was given" },
  { "stretches", LS_FIELD_ARRAY, offsetof (LsResiduals, stretches), .fields = stretch_fields,
    .element_size = sizeof (LsStretch), .default_text = "none",
    .meaning = "for jobs that are unlike all runs; without one of its aspect they have no interval" },
  { "groups", LS_FIELD_ARRAY, offsetof (LsResiduals, groups), .required = true, .fields = group_fields,
    .element_size = sizeof (LsResidualGroup), .meaning = "runs of one kind" },
  { NULL },
};

/* What keys by themselves do not show. */
static bool
check_group (const LsJsonDoc *doc, const LsResidualGroup *g, const cJSON *node, LsDiagList *diags)
{
  const cJSON *list = cJSON_GetObjectItemCaseSensitive (node, "residuals");
  bool is_sorted = true;
  for (guint k = 1; k < g->residuals->len; k++)
    is_sorted
        = is_sorted && g_array_index (g->residuals, double, k - 1) <= g_array_index (g->residuals, double, k);
  if (g->residuals->len > 0 && g->residuals->len <= g->n && is_sorted)
    return true;
  ls_json_doc_diag (doc, list, LS_JSON_AT_VALUE, diags,
                    "lockstep validate CASES.csv --residuals FILE.json writes such a file",
                    "expected 1 to n = %u numbers, ascending; got %u%s", g->n, g->residuals->len,
                    is_sorted ? "" : ", not ascending");
  return false;
}

static bool
check_groups (const LsJsonDoc *doc, const LsResiduals *r, LsDiagList *diags)
{
  const cJSON *node = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "groups")->child;
  bool ok = true;
  for (guint i = 0; i < r->groups->len; i++, node = node->next)
    ok = check_group (doc, &g_array_index (r->groups, LsResidualGroup, i), node, diags) && ok;
  return ok;
}

LsResiduals *
ls_residuals_read (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (LsResiduals) r = ls_residuals_new ();
  if (!ls_fields_read_file (ls_residuals_fields, "residuals", doc, r, diags) || !check_groups (doc, r, diags))
    return NULL;
  return g_steal_pointer (&r);
}

LsResiduals *
ls_residuals_load (const char *name, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CALIBRATIONS, name, diags);
  return doc ? ls_residuals_read (doc, diags) : NULL;
}

bool
ls_residuals_exist (const char *name)
{
  g_autofree char *message = NULL, *path = ls_data_find (LS_DATA_CALIBRATIONS, name, &message);
  return path && g_file_test (path, G_FILE_TEST_EXISTS);
}
