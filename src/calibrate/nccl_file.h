/* calibrate/nccl_file.h — an NCCL file with some figures fitted anew. */
#ifndef LS_CALIBRATE_NCCL_FILE_H
#define LS_CALIBRATE_NCCL_FILE_H

#include "calibrate/calibrate_nccl.h"
#include "data/text/json_doc.h"

/* The base file with another name and source and these changes (LsNcclChange), each with `why` as its
 * source; all else as it was. Newly allocated. */
char *ls_nccl_rewrite (const LsJsonDoc *base, const char *name, const char *source, const GArray *changes,
                       const char *why);

#endif
