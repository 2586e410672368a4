/* io/read_software.h — a training program: its defaults, what a sweep tries of it, what it takes of memory
 * besides what is simulated (strategies/software/NAME.json).
 *
 * What is legal there is not in the file: it is what the writer of its job accepts (io/emit.h). */
#ifndef LS_IO_READ_SOFTWARE_H
#define LS_IO_READ_SOFTWARE_H

#include "io/read_ranges.h"

/* Memory that no simulated category holds: a size, and a share of the accelerator's memory. */
typedef struct {
  char *what;       /* "NCCL" */
  uint64_t bytes;
  double percent;
  bool is_of_allocator; /* is simulated where the caching allocator is (LS_MEMORY_CACHING) */
  char *source;
} LsHeadroomItem;

typedef struct {
  char *name, *source;
  char *program, *vendor, *release; /* as one would say it: "Megatron-LM", "NVIDIA", "core 0.15" */
  char *emit;          /* io/emit.h; NULL: no job is written for it */
  char *dp_kinds;      /* "megatron,none": whose jobs are taken to be its own where nothing else is said; NULL: none */
  LsStrategy defaults; /* of the command line, with those of the program over them */
  int p2p_interleaved; /* LsP2p with vpp above 1, unless it is said */
  LsRanges ranges;     /* that a sweep tries */
  GArray *headroom;    /* LsHeadroomItem */
} LsSoftwareSpec;

const LsField *ls_software_fields (void); /* made once, then static */

/* LS_ERROR_INPUT. On success the caller clears *ret_software; on failure it is untouched. */
bool ls_software_load (const char *name, LsSoftwareSpec *ret_software, LsDiagList *diags);
bool ls_software_read (const LsJsonDoc *doc, LsSoftwareSpec *ret_software, LsDiagList *diags);
void ls_software_clear (LsSoftwareSpec *software); /* NULL allowed */

/* Whether jobs with that way to be data parallel (LsDpKind) are its own. */
bool ls_software_has_dp_kind (const LsSoftwareSpec *software, int dp_kind);

/* What is left to the program's choice in s, which need not be resolved. */
void ls_software_settle (const LsSoftwareSpec *software, LsStrategy *s);

#endif
