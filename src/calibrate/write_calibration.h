/* calibrate/write_calibration.h — a calibration as topologies/calib/NAME.json: coefficients with
 * their sources, what they come from, and measured kernels. */
#ifndef LS_CALIBRATE_WRITE_CALIBRATION_H
#define LS_CALIBRATE_WRITE_CALIBRATION_H

#include "calibrate/fit_report.h"
#include "compute/measured.h"

/* A file that went into it. */
typedef struct {
  const char *file; /* without its folder                                  */
  const char *sha256;
  const char *gpu, *driver, *cuda, *date; /* NULL: the file does not say     */
  guint n_rows, n_used;
} LsProvenanceFile;

typedef struct {
  const char *command;            /* that makes it again, without the folders of files */
  const char *version;            /* of Lockstep                                       */
  const char *timing;             /* "burst" or "burst and sustained"                  */
  GArray *files;                  /* LsProvenanceFile                                  */
  const char *base, *base_sha256; /* the calibration that was there; NULL: none */
  const LsFitReport *report;      /* what of it was kept, and what replaced      */
} LsFitProvenance;

typedef struct {
  const LsCalibration *calibration;
  char *const *slot_source;          /* LS_N_ENTRIES of them; NULL: the entry is left out */
  const LsFitProvenance *provenance; /* NULL: none */
  /* keys of LsCalibration.around, each with its source behind it; ends with NULL; NULL: none */
  char *const *around_source;
} LsCalibrationFile;

/* Newly allocated: the file. Digits are those of LsKindFit after ls_fit_solve(): reading
 * gives the same figures. */
char *ls_calibration_to_json (const LsCalibrationFile *file);

#endif
