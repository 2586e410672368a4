/* show/tell_import.h — what a launch file says, as text or JSON. */
#ifndef LS_SHOW_TELL_IMPORT_H
#define LS_SHOW_TELL_IMPORT_H

#include "data/launch/import.h"

/* Newly allocated; end in a newline. */
char *ls_import_to_text (const LsImport *import);
char *ls_import_to_json (const LsImport *import);

#endif
