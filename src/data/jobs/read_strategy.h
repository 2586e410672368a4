/* data/jobs/read_strategy.h — strategies/NAME.json: the knobs of a run. The same table
 * sets them from flags: ls_field_set_text (ls_strategy_fields, s, "tp", "8", ...). */
#ifndef LS_DATA_JOBS_READ_STRATEGY_H
#define LS_DATA_JOBS_READ_STRATEGY_H

#include "data/text/field.h"
#include "strategy/strategy.h"

extern const LsField ls_strategy_fields[]; /* strategy_fields.c */

/* By name or path; keys that the file leaves out keep the defaults of
 * ls_strategy_init(). On success the caller clears *ret_strategy; on failure it is
 * untouched and diags says why (LS_ERROR_INPUT). */
bool ls_strategy_load (const char *name, LsStrategy *ret_strategy, LsDiagList *diags);
/* The program that a strategy file names, newly allocated, or NULL; false: there is no such file, with
 * diagnostics. */
bool ls_strategy_find_software (const char *name, char **ret_software, LsDiagList *diags);
/* Over `base`, which has the values of the keys that the file lacks; *ret_strategy: deep. said: NULL, or a
 * set to which the keys that it has are added (static strings). */
bool ls_strategy_load_over (const char *name, const LsStrategy *base, LsStrategy *ret_strategy,
                            GHashTable *said, LsDiagList *diags);
bool ls_strategy_read (const LsJsonDoc *doc, LsStrategy *ret_strategy, LsDiagList *diags);
bool ls_strategy_read_over (const LsJsonDoc *doc, const LsStrategy *base, LsStrategy *ret_strategy,
                            GHashTable *said, LsDiagList *diags);

#endif
