/* data/measured/table_facts.h — what the runs of a published table had that its columns do not say
 * (LsTableFacts of their software), put over a row of it.
 *
 * A row is told by what its columns say, never by its id. */
#ifndef LS_DATA_MEASURED_TABLE_FACTS_H
#define LS_DATA_MEASURED_TABLE_FACTS_H

#include "data/jobs/read_software.h"
#include "data/text/csv.h"
#include "model/model.h"

/* Whether the row, which has a column `source`, is of the table, and of those rows of it that the facts hold
 * for. */
bool ls_table_facts_hold (const LsTableFacts *facts, const LsCsv *csv, guint row);

void ls_table_facts_set_model (const LsTableFacts *facts, LsModel *model);
void ls_table_facts_set_strategy (const LsTableFacts *facts, LsStrategy *strategy);

#endif
