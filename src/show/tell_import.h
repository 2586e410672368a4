/* show/tell_import.h — what a launch file says, as text or JSON. */
#ifndef LS_SHOW_TELL_IMPORT_H
#define LS_SHOW_TELL_IMPORT_H

#include "ask/profile/import_profile.h"
#include "data/jobs/imported.h"
#include "data/text/json_out.h"

/* Newly allocated; end in a newline. */
char *ls_import_to_text (const LsImported *import);
char *ls_import_to_json (const LsImported *import);

/* --- what was found in profiles that become a trace, as text ---------------- */

/* replayed: the step of its replay on that cluster; 0: there was none. Newly allocated. */
char *ls_profile_import_to_text (const LsProfileImport *import, LsTime replayed, const char *cluster);

#endif
