/* data/measured/read_profile.h — measured kernels of one file, for calibration.
 *
 * Four formats, told apart by what they hold:
 *   profile  JSON of tools/kernelbench (lockstep.kernelbench/1): GPU, date, rows, failures
 *   CSV      of tools/kernelbench (group, name, shape, dtype, bytes, flops, time_us)
 *   spans    CSV of a step that kernelbench ran (--plan): start_us, end_us and what ran
 *   table    of others: data/measured/read_kernels.h
 *
 * Of kernelbench's groups `gemm-isolated`, `gemm-batched`, `attention`, `streams`,
 * `operators` and `shapes` are kernels alone on a cool GPU, `gemm-sustained` are GEMMs on a hot one,
 * `context` has the streams of a layer as they are inside of it. The other groups are no kernels alone;
 * these, names that the simulator does not know, and batches with interleaved operands are passed over and
 * counted, and so are rows that were disturbed whenever they were measured (heat, other processes).
 * Isolated times contain the two events around the kernel: what these cost, where the profile says it
 * (`event-pair` of the group `host`), is taken off. Hold-out is that of
 * data/measured/read_kernels.h: "n,k" for GEMMs, "heads,kv_heads,head_dim" for attention,
 * "rows,columns" for streams. */
#ifndef LS_DATA_MEASURED_READ_PROFILE_H
#define LS_DATA_MEASURED_READ_PROFILE_H

#include "data/measured/read_kernels.h"
#include "data/text/csv.h"
#include "data/text/field.h"

extern const LsField ls_profile_file_fields[]; /* of lockstep.kernelbench/1 */

/* A row that is of no kernel alone; texts are interned. */
typedef struct {
  const char *group, *name, *note;
  double time_s, bytes;
} LsProfileFact;

typedef struct {
  char *path;
  bool is_ours;               /* of tools/kernelbench                             */
  char *gpu;                  /* what the driver calls it; NULL: the file does not say */
  char *driver, *cuda, *date; /* NULL: the file does not say              */
  uint32_t n_sm;              /* 0: the file does not say                         */
  char *schema;               /* of JSON, with what it lists: rows as they stand, what failed */
  GArray *rows, *failed;
  char *sha256;          /* of the file                                      */
  guint n_rows;          /* in the file                                      */
  guint n_passed;        /* of them passed over                              */
  guint n_disturbed;     /* of these, because they were disturbed            */
  guint n_beside;        /* spans of a plan that were not alone              */
  guint n_own_attention; /* of kernelbench's own flash attention, which no job runs */
  guint n_failed;        /* kernels that could not be measured               */
  double events_s;       /* what two events cost; taken off isolated times   */
  GArray *kernels;       /* LsTimedKernel, on a cool GPU                     */
  GArray *sustained;     /* LsTimedKernel, on a hot one                      */
  GArray *in_layer;      /* LsTimedKernel: streams in the midst of a layer; counted as passed over too */
  /* LsProfileFact, of the groups `host`, `copies`, `slowdown` and `context`; counted as passed over too */
  GArray *facts;
  LsJsonDoc *doc; /* one of these two, to say where a row stands      */
  LsCsv *csv;
} LsProfile;

/* `gpu`: rows of a table with a column of that name that are for others are passed over.
 * NULL, with located diagnostics (LS_ERROR_INPUT): the file is missing or damaged, a size,
 * number format or time is wrong. Free with ls_profile_free(). */
LsProfile *ls_profile_load (const char *path, const char *gpu, LsDiagList *diags);
/* The same from memory; `path` stands for the file in diagnostics. */
LsProfile *ls_profile_parse (const char *path, const char *text, size_t n, const char *gpu,
                             LsDiagList *diags);
void ls_profile_free (LsProfile *profile); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsProfile, ls_profile_free)

/* A diagnostic (LS_ERROR_INPUT) at that key of a row, LsTimedKernel.row; "time_us" is its time, however the
 * file calls it. */
void ls_profile_error (const LsProfile *profile, guint row, const char *key, LsDiagList *diags,
                       const char *format, ...) G_GNUC_PRINTF (5, 6);

/* --- what it says besides its kernels, by group and name of its rows ------- */

/* The last row of that name, the largest of its sizes; NULL: there is none. */
const LsProfileFact *ls_profile_fact (const LsProfile *profile, const char *group, const char *name);
/* "ratio=1.08" of a row's note; NaN: it is not there. */
double ls_profile_noted (const LsProfileFact *fact, const char *key);
/* Whether the note has that word: "variant=default". */
bool ls_profile_has_word (const LsProfileFact *fact, const char *word);
/* Mean of a value of the notes over the rows of a name that have it; NaN: there are none. */
double ls_profile_mean_noted (const LsProfile *profile, const char *group, const char *name, const char *key);

#endif
