/* data/traces/trace_json.h — a plan as a file: lockstep.trace/1, documented in
 * src/manual/formats/trace.md. What is written is read back as the same plan, so that its
 * replay gives the same bytes. */
#ifndef LS_DATA_TRACES_TRACE_JSON_H
#define LS_DATA_TRACES_TRACE_JSON_H

#include "data/text/field.h"
#include "model/model.h"
#include "plan/mesh.h"
#include "plan/plan.h"
#include "strategy/strategy.h"

typedef struct {
  char *name, *source;
  LsPlan *plan;   /* checked by ls_plan_check()                                  */
  LsMesh mesh;    /* all degrees 0: the file lists its ranks                     */
  bool has_model; /* and then a strategy; without, what needs them is not known  */
  LsModel model;
  LsStrategy strategy; /* its degrees are those of the mesh; without model, only they count */
} LsTrace;

void ls_trace_free (LsTrace *trace); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsTrace, ls_trace_free)

/* By name or path; with dp > 0 for that many data-parallel replicas: more or fewer
 * ranks of the same roles, and as many more sequences. NULL and diagnostics on
 * failure: LS_ERROR_INPUT, LS_ERROR_LIMIT (more than 2^20 ranks), LS_ERROR_CONFLICT
 * (dp where nothing is reduced over dp, or ranks are listed). */
LsTrace *ls_trace_load (const char *name, uint32_t dp, LsDiagList *diags);
LsTrace *ls_trace_read (const LsJsonDoc *doc, uint32_t dp, LsDiagList *diags);

/* What a trace says besides its plan. */
typedef struct {
  const char *name, *source;
  const LsMesh *mesh;         /* by which ranks were bound; NULL or another: they are listed */
  const LsModel *model;       /* NULL: not known */
  const LsStrategy *strategy; /* resolved; NULL with model */
  /* Says nothing of LsOp.has_margin, and nothing of ranks: not to be read back, but to be compared. */
  bool no_margins, no_ranks;
} LsTraceHead;

/* Newly allocated JSON text. LS_ERROR_UNSUPPORTED if the plan has what the file
 * cannot say exactly. */
char *ls_trace_format (const LsPlan *plan, const LsTraceHead *head, GError **error);

#endif
