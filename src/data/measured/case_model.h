/* data/measured/case_model.h — the model of a row of measured runs: named in the column `model`, or told
 * by its dimensions; and what a published table had that its columns do not say (private).
 *
 * See data/measured/read_cases.h. */
#ifndef LS_DATA_MEASURED_CASE_MODEL_H
#define LS_DATA_MEASURED_CASE_MODEL_H

#include "data/jobs/read_software.h"
#include "data/text/csv.h"
#include "model/model.h"
#include "strategy/strategy.h"

/* The columns of a table that say models, and the models that its rows name. */
typedef struct {
  int column;           /* `model`; -1: the table has none           */
  GArray *dimensions;   /* LsCsvField of LsModel                     */
  GArray *architecture; /* what the kind of MLP tells without them   */
  GHashTable *named;    /* name -> LsModel                           */
} CaseModels;

/* Diagnostics for columns that a table without `model` lacks. Clear it in either case. */
void case_models_init (CaseModels *models, const LsCsv *csv, LsDiagList *diags);
void case_models_clear (CaseModels *models);

/* The model of a row. A named one is as its file says; a dimension that the row states otherwise is a
 * diagnostic, but for `seq`, which is the job's and goes to s->seq. Else the row's dimensions, `facts` (of
 * LsTableFacts, NULL: none) put over them, and what follows from the kind of MLP. m was zero. */
void case_model_read (const LsCsv *csv, guint row, const CaseModels *models, const GArray *facts, LsModel *m,
                      LsStrategy *s, LsDiagList *diags);

/* What the runs of a published table had that its columns do not say (LsTableFacts of their software),
 * put over a row of it. */

/* A row is told by what its columns say, never by its id. */

/* Whether the row, which has a column `source`, is of the table, and of those rows of it that the facts hold
 * for. */
bool ls_table_facts_hold (const LsTableFacts *facts, const LsCsv *csv, guint row);

/* said: gains the keys of what the facts say. */
void ls_table_facts_set_strategy (const LsTableFacts *facts, LsStrategy *strategy, GHashTable *said);

#endif
