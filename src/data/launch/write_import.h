/* data/launch/write_import.h — what a launch file said, written by the field tables of our files. */
#ifndef LS_DATA_LAUNCH_WRITE_IMPORT_H
#define LS_DATA_LAUNCH_WRITE_IMPORT_H

#include "data/launch/import.h"
#include "data/text/json_out.h"

/* The members of an object: the keys that are set. */
void ls_import_write_model (const LsImport *import, LsJsonOut *w);
void ls_import_write_strategy (const LsImport *import, LsJsonOut *w);

/* What is asked of one key, as the text of its flag; NULL: it is not set. Newly allocated. */
char *ls_import_model_value (const LsImport *import, const char *key);
char *ls_import_strategy_value (const LsImport *import, const char *key);

#endif
