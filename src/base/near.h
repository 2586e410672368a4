/* base/near.h — which files a user may be shown, as he named them or what lies next to them.
 *
 * Problem. A file of somebody else may name any other one by its path: what it extends, an accelerator, a
 * script that it sources. A mistake in that is shown with its line, which may be the first of a key or a
 * password that the file's author cannot read but its reader can, and hands on.
 *
 * Near is what lies in the folder of a file that the user named, or below it, and the data of Lockstep. Of
 * all else no diagnostic quotes anything (base/diag.h); with --confine it is not even read
 * (data/text/read_file.h). Symbolic links are followed first. By any threads at once, for the whole process;
 * what was near stays so. */
#ifndef LS_BASE_NEAR_H
#define LS_BASE_NEAR_H

#include <stdbool.h>

/* A file, with changes behind it, or a folder that the user named, if there is such. */
void ls_near_add (const char *path);
/* Also where nobody has named anything yet, and of what is no file. */
bool ls_is_near (const char *path);

#endif
