/* show/write_sharing.h — what jobs on one cluster take from each other, for people and for programs. */
#ifndef LS_SHOW_WRITE_SHARING_H
#define LS_SHOW_WRITE_SHARING_H

#include "ask/sharing.h"

/* Newly allocated, ending in a newline. top: contested links shown; 0: all. JSON has all; CSV a row for each
 * job. */
char *ls_sharing_to_text (const LsSharing *s, guint top);
char *ls_sharing_to_json (const LsSharing *s);
char *ls_sharing_to_csv (const LsSharing *s);

#endif
