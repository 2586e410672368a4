/* show/tell_profile_import.h — what was found in profiles that become a trace, as text. */
#ifndef LS_SHOW_TELL_PROFILE_IMPORT_H
#define LS_SHOW_TELL_PROFILE_IMPORT_H

#include "ask/import_profile.h"

/* replayed: the step of its replay on that cluster; 0: there was none. Newly allocated. */
char *ls_profile_import_to_text (const LsProfileImport *import, LsTime replayed, const char *cluster);

#endif
