/* data/measured/read_kernels.h — measured kernels of one file, for calibration.
 *
 * Four formats, told apart by what they hold:
 *   profile  JSON of tools/kernelbench (lockstep.kernelbench/1): GPU, date, rows, failures
 *   CSV      of tools/kernelbench (group, name, shape, dtype, bytes, flops, time_us)
 *   spans    CSV of a step that kernelbench ran (--plan): start_us, end_us and what ran
 *   table    of others: shapes of kernels, one or several a row, with their times where it has them
 *
 * Of kernelbench's groups `gemm-isolated`, `gemm-batched`, `attention`, `streams`,
 * `operators` and `shapes` are kernels alone on a cool GPU, `gemm-sustained` are GEMMs on a hot one,
 * `context` has the streams of a layer as they are inside of it. The other groups are no kernels alone;
 * these, names that the simulator does not know, and batches with interleaved operands are passed over and
 * counted, and so are rows that were disturbed whenever they were measured (heat, other processes).
 * Isolated times contain the two events around the kernel: what these cost, where the profile says it
 * (`event-pair` of the group `host`), is taken off.
 *
 * Tables are told apart by their columns, which are found by name, in any order;
 * others are ignored:
 *   GEMM       m n k (or M N K), dtype (default fp16)
 *   attention  batch seq heads kv_heads head_dim, attn_dtype (default bf16), kv_dtype: causal,
 *              forward, timed with the rotation of Q and K and the copy into the KV
 *              cache before it (TensorRT-LLM's prefill)
 *   streaming  op (add, rmsnorm, silu_mul) tokens hidden bytes_min: vLLM's kernels
 *   layer      n_head n_kv_head n_embd n_expanded_embd use_gated_mlp num_tokens
 *              num_tensor_parallel_workers, and a time per operator: vidur's mlp.csv
 * Times: latency_ms, latency_us, us_median or time_us. A table with a column `gpu` may hold
 * several; its rows for another are passed over.
 *
 * Hold-out. A family is held out of fits if the md5 of its key, taken as a hexadecimal number, is 0 mod 5; a
 * half of them, if it is even. The key is "n,k" for GEMMs, "heads,kv_heads,head_dim" for attention,
 * "rows,columns" for streaming kernels. */
#ifndef LS_DATA_MEASURED_READ_KERNELS_H
#define LS_DATA_MEASURED_READ_KERNELS_H

#include <glib.h>

#include "base/diag.h"
#include "data/text/csv.h"
#include "data/text/field.h"
#include "model/kernel.h"

/* Whose kernel was timed: what training runs, or another implementation. */
typedef enum { LS_TIMED_USUAL, LS_TIMED_VLLM_RMSNORM, LS_TIMED_VLLM_SILU_MUL } LsTimedWhat;

typedef struct {
  LsKernel kernel; /* its name is static                                            */
  LsTimedWhat what;
  LsAttentionKernel attention; /* of flash attention: which implementation; AUTO: not said */
  double measured_s;           /* NaN: the table has no times                                 */
  double side_bytes;           /* traffic of another kernel that the timing includes          */
  bool has_host;               /* timed through a framework: a constant host time is in it    */
  bool lacks_dtype;            /* the table does not say it, and it is taken as usual there   */
  guint family;                /* 0 to 9: of its key (see above)                              */
  bool held_out;               /* by the usual rule; a calibration may hold out others        */
  guint row;                   /* of the file, from 0 below its header                        */
} LsTimedKernel;

/* All rows of the file, or of its text if that is not NULL, that are for `gpu` ("a100": the name of a
 * calibration); NULL, with located diagnostics (LS_ERROR_INPUT), if the columns are those of no known
 * table, a cell is wrong or no row is left. A GArray of LsTimedKernel. Rows in a format of which no
 * product is simulated by itself (fp8_block, fp4_block, int8), or with keys and values in another than the
 * rest (kv_dtype), are passed over and counted in `n_foreign`, which may be NULL, as ret_unread may: names of
 * columns that nothing reads (ls_csv_unread()). */
GArray *ls_read_kernels (const char *path, const char *text, const char *gpu, guint *n_foreign,
                         char **ret_unread, LsDiagList *diags);

/* The md5 of the key of a family mod 10: "4096,1024". */
guint ls_kernel_family (const char *key);
/* Sets `held_out` of each by the usual rule, or by that for a half. */
void ls_hold_kernels_out (GArray *kernels, bool holds_half);

/* --- one file, whatever its format ------------------------------------------------------------------ */

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

/* Of n bytes, or, text NULL, of the file of that path. `gpu`: rows of a table with a column of that name
 * that are for others are passed over. NULL, with located diagnostics (LS_ERROR_INPUT): the file is
 * missing or damaged, a size, number format or time is wrong. Free with ls_profile_free(). */
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
