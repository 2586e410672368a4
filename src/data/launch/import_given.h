/* data/launch/import_given.h — what is given behind the name of a launch file: what it leaves open, or says
 * otherwise (private to launch/). */
#ifndef LS_DATA_LAUNCH_IMPORT_GIVEN_H
#define LS_DATA_LAUNCH_IMPORT_GIVEN_H

#include "data/launch/import_reader.h"

/* Sets the keys of ours among "vocab=50257" (char *) before a file is read, so that rules know them; no
 * reader changes them. The others are variables for the reader: ImportGiven, owned by the array. A malformed
 * value is LS_ERROR_USAGE. What has a colon in front, ":tp=2", is not told, and dropped if malformed. */
GArray *import_take_given (LsImport *import, const GPtrArray *changes, LsDiagList *diags);

/* Whether the reader had use for all variables; LS_ERROR_USAGE. */
bool import_check_given (const ImportFiles *files, LsDiagList *diags);

#endif
