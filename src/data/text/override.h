/* data/text/override.h — a data file with some of its values changed on the spot:
 *
 *     dgx-h100:nodes=16,fabric.oversubscription=4,node.nics.link.bandwidth=25GB/s
 *     ./my-model.json:layers=2
 *
 * stands for the file with these keys set. A key is the way to it, with dots; in an array a number. What is
 * missing on the way is added. A value is JSON (a number, true, [1,2], {"a":1}, "text") or else a string
 * without its quotes; commas inside brackets and quotes do not end it. null takes a key away. A key that is
 * changed twice is an error. A key may go on after the name of another file (gpu, calibration, nccl):
 * dgx-h100:gpu.reserved=2GiB is dgx-h100:gpu="h100:reserved=2GiB". The result is checked like any file of its
 * kind. */
#ifndef LS_DATA_TEXT_OVERRIDE_H
#define LS_DATA_TEXT_OVERRIDE_H

#include "data/text/json_doc.h"

/* Where the changes begin in such a name, or behind JSON in its place: behind the colon; NULL if it has
 * none. */
const char *ls_override_find (const char *name);
/* The name without them, newly allocated. */
char *ls_override_bare (const char *name);

/* The document with the changes made, or NULL and diagnostics (LS_ERROR_INPUT). Takes doc;
 * frees it. changes: what ls_override_find() found. */
LsJsonDoc *ls_override_apply (LsJsonDoc *doc, const char *changes, LsDiagList *diags);

/* The name of a file with these changes; of a key that the name changes already, these hold. Newly
 * allocated. */
char *ls_override_add (const char *name, const char *changes);

/* Whether one of these changes (NULL: none) is of the key of that change, or of one above or below it. */
bool ls_override_meets (const char *changes, const char *change);

/* Whether no change undoes an earlier one; else a diagnostic (LS_ERROR_INPUT) of the file `name`, which may
 * be NULL. */
bool ls_override_check (const char *name, const char *changes, LsDiagList *diags);

/* "a=1,b=[2,3]" as "a=1" and "b=[2,3]": char *, owned by the array; ends at what is no change. */
GPtrArray *ls_override_split (const char *changes);

/* Whether a name (NULL: none) has a change that begins so and has that part. */
bool ls_override_changes (const char *name, const char *prefix, const char *part);

/* "dgx-h100" as "dgx-h100:nodes=16" if that is how it was asked for: what to call the
 * result. own is freed. */
char *ls_override_name (char *own, const char *asked);

#endif
