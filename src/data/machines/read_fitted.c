#include "data/machines/machines.h"

#include "analysis/conformal.h"
#include "analysis/interval.h"

#define SPEC(member) offsetof (LsClusterSpec, member)

static const LsField left_out_trait[] = { { "", LS_FIELD_STRING, 0, .required = true, .max = 64 }, { NULL } };
#define MOST(key_, member, max_, meaning_)                                                                   \
  {                                                                                                          \
    key_, LS_FIELD_DOUBLE, SPEC (fitted.runs.member), .above = true, .max = (max_),                          \
                                                      .default_text = "not known", .meaning = (meaning_)     \
  }
static const LsField left_out_fields[] = {
  { "runs", LS_FIELD_UINT, SPEC (fitted.runs.n), .required = true, .min = 1,
    .meaning = "how many, of different jobs" },
  { "file", LS_FIELD_STRING, SPEC (fitted.runs.file), .required = true, .meaning = "where they were read" },
  { "low", LS_FIELD_DOUBLE, SPEC (fitted.runs.low), .above = true, .max = 1000,
    .default_text = "none: too few runs",
    .meaning = "measured step over that predicted by a fit to the other runs: where the interval begins "
               "(`src/analysis/own_runs.h`)" },
  { "high", LS_FIELD_DOUBLE, SPEC (fitted.runs.high), .above = true, .max = 1000,
    .default_text = "none: too few runs", .meaning = "where it ends" },
  { "architecture", LS_FIELD_STRING, SPEC (fitted.runs.architecture), .default_text = "not known",
    .meaning = "of their GPUs" },
  MOST ("lowest_mfu", lowest_mfu, 10, "the lowest MFU that the fit predicts for one of them"),
  MOST ("gpus", gpus, 1e9, "the most GPUs of one of them"),
  MOST ("tp", tp, 1e9, "their highest degree of tensor parallelism"),
  MOST ("params", params, 1e18, "parameters of their largest model"),
  MOST ("fabric", fabric, 1e15, "bytes/s of the NICs per GPU, the least of those on several nodes"),
  { "traits", LS_FIELD_ARRAY, SPEC (fitted.runs.traits), .fields = left_out_trait,
    .element_size = sizeof (char *), .default_text = "not known",
    .meaning = "what they have: aspect and word, as \"format bf16\" (`src/analysis/likeness.h`)" },
  { NULL },
};

#define FACTOR(key_, member, meaning_)                                                                       \
  {                                                                                                          \
    key_, LS_FIELD_DOUBLE, SPEC (fitted.member), .above = true, .max = 10, .default_text = "1",              \
                                                 .meaning = (meaning_)                                       \
  }
const LsField ls_fitted_fields[] = {
  FACTOR ("compute", compute, "rate of arithmetic, times that of the GPU's calibration"),
  FACTOR ("overlap", overlap, "what moving data cost a kernel beside them, times that of the NCCL file"),
  FACTOR ("intra_node", intra_node,
          "rate inside a node, times that of the NCCL file and the links' efficiency (at most 1)"),
  FACTOR ("inter_node", inter_node, "rate between nodes, likewise"),
  { "host_launch", LS_FIELD_TIME, SPEC (fitted.host_launch), .above = true, .max = (double) LS_S,
    .default_text = "10us", .meaning = "what issuing a kernel costs the host, unless `--host-launch` says" },
  { "left_out", LS_FIELD_OBJECT, 0, .fields = left_out_fields, .default_text = "none",
    .meaning = "how far the runs were off, left out one at a time: the interval around a job's step" },
  { "provenance", LS_FIELD_SOURCES, .default_text = "none",
    .meaning = "what they were fitted to, and how well" },
  { NULL },
};

bool
ls_fitted_finish (const LsJsonDoc *doc, const LsFitted *fitted, LsDiagList *diags)
{
  const LsFittedRuns *r = &fitted->runs;
  const cJSON *left_out = cJSON_GetObjectItemCaseSensitive (
      cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "fitted"), "left_out");
  guint least = ls_conformal_least (LS_INTERVAL_LEVEL), n_before = ls_diag_list_n (diags);
  bool has_low = r->low > 0, has_high = r->high > 0;
  if (has_low != has_high || (left_out && has_low != (r->n >= least)))
    ls_json_doc_diag (doc, left_out, LS_JSON_AT_VALUE, diags, NULL,
                      "expected both \"low\" and \"high\" of %u runs or more, of fewer neither", least);
  if (r->low > r->high && has_high)
    ls_json_doc_diag (doc, cJSON_GetObjectItemCaseSensitive (left_out, "high"), LS_JSON_AT_VALUE, diags, NULL,
                      "expected at least \"low\"");
  return ls_diag_list_n (diags) == n_before;
}
