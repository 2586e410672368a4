/* data/machines/read_access.h — topologies/calib/access-NAME.json: how fast kernels of one accelerator are by
 * how they touch memory (LsAccess), for kernels that are listed one by one as a framework launches them. */
#ifndef LS_DATA_MACHINES_READ_ACCESS_H
#define LS_DATA_MACHINES_READ_ACCESS_H

#include "compute/cost.h"
#include "data/text/field.h"

typedef struct {
  char *name, *source;
  LsTime gap; /* of each launch, what is the gap between two kernels of a full queue; 0: not known */
  LsAccessFit fit[LS_N_ACCESSES];
} LsAccessFile;

extern const LsField ls_access_fields[];

void ls_access_file_clear (LsAccessFile *file);
/* Access kinds that the file leaves out go at the bandwidth, not fitted. On success the caller clears
 * *ret_file; on failure it is untouched and diags says why (LS_ERROR_INPUT). */
bool ls_access_read (const LsJsonDoc *doc, LsAccessFile *ret_file, LsDiagList *diags);

/* By name or path, into the calibration of a GPU; NULL: at the bandwidth. Where the calibration holds a gap
 * that was measured, it takes the place of the file's; a file that does not say its gap keeps its launches.
 * Diagnostics as above. */
bool ls_access_load (const char *name, LsCalibration *calibration, LsDiagList *diags);

/* What of each launch in that file is the gap of a queue; 0: it does not say, or NULL was named. */
bool ls_access_gap (const char *name, LsTime *ret_gap, LsDiagList *diags);

#endif
