/* ask/whatif.h — which single change to a job makes it faster.
 *
 * Problem. A profile says where time goes, not what would help: what is hidden behind something
 * else gains nothing, and a cure may cost memory that is not there.
 *
 * Method. Every change of ask/whatif.h is made to the job alone, and the job is simulated: its
 * steady step, and the memory of its fullest rank. Its gain is in tokens per second, so that a
 * change of the batch counts for what it is:
 *
 *     gain = tokens/s with the change / tokens/s of the job - 1
 *
 * Worked example. A pipeline of 4 stages and 4 micro-batches has a bubble of 3/7 of its step; with
 * 8 micro-batches of half the size 3/11: where kernels are as efficient, --micro-batch gains
 * (4/7) / (8/11) = 0.786 of the time, 27 % more tokens per second.
 *
 * Deviations. Changes are not combined: gains do not add up. What is refused as illegal is kept
 * with its reason. Of a job in the order of a file, changes that need another order are not tried. */
#ifndef LS_ASK_WHATIF_H
#define LS_ASK_WHATIF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/parallel.h"
#include "job/knobs.h"

/* --- the single changes to a job that are worth trying ------------------------------------------- */

/* Problem. Which one thing should a user change to make a job faster, or to make it fit? There is one table
 * of ideas, each with what it costs beside time and memory. lockstep whatif simulates all that it proposes
 * (ask/whatif.h); what does not fit is advised from the same table (ask/memory_view.h).
 *
 * Worked example. To a job with tp 4, dp 8 and 1f1b on 2 stages "pipeline schedule" proposes {schedule
 * zb-h1}, {schedule interleaved-1f1b, vpp 2} and others; "layout" proposes {tp 8, dp 4}, {tp 2, dp 16} and
 * others.
 *
 * Deviation. What is proposed may be illegal for the job: resolving it says so. */

/* Proposed for the job of `spec`, which r is, prepared or run, always in the same sequence. A GPtrArray of
 * LsChange that frees them; none for a trace, which has fixed everything. Of a job whose pipeline runs in the
 * order of a file, none that would need another order. */
GPtrArray *ls_changes_propose (const LsJobSpec *spec, const LsJobResult *r);

/* --- which single change to a job makes it faster ------------------------------------------------ */

/* A change, simulated or refused. */
typedef struct {
  char *change;     /* options to append: "--schedule zb-h1"; NULL: none, the job itself */
  char *refused;    /* why it was not simulated; NULL: it was, and what follows holds    */
  char *cluster;    /* another one; NULL: the job's */
  GArray *rests_on; /* LsAssumption, where cluster is one; else NULL */
  const char *idea; /* static: what kind of change                                       */
  const char *cost; /* static: what it takes beside time and memory; NULL: nothing       */
  double step_time_s, tokens_per_s;
  double exposed_s, bubble_s; /* of the step, mean over ranks: LS_PART_EXPOSED_TP to _COPY; bubble */
  double gain;                /* share of tokens/s more than the job has                           */
  uint64_t needed_bytes, capacity_bytes; /* of the fullest rank                          */
  uint64_t short_bytes; /* of the capacity, less the headroom that is asked for; 0: it fits */
  bool fits;
  uint64_t lacking_bytes; /* where it fits: what is not left of a headroom that is not asked for */
  double usd_per_gpu_hour, usd_per_million_tokens; /* NAN: no price is known                     */
  guint number; /* in the order in which changes are proposed                        */
} LsWhatIfRow;

typedef struct {
  LsWhatIfRow now; /* the job as it is */
  GArray
      *rows; /* LsWhatIfRow: most gain first, then those that were refused; or as somebody else ranks them */
  const char *left_out; /* static: a sentence on changes that were not proposed, and why; NULL: all were */
  GArray *assumptions;  /* LsAssumption, of the job as it is; shared, counted; NULL: none are known */
  GArray *knobs;        /* likewise */
  guint n_untried;      /* changes that might make a job fit and were not simulated */
  bool mixes_programs;  /* rows are the job in other programs, not changes that may make it faster */
} LsWhatIf;

void ls_what_if_free (LsWhatIf *w); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsWhatIf, ls_what_if_free)

guint ls_what_if_n_fit (const LsWhatIf *w);

/* The job as it ran, as a row without a change. */
LsWhatIfRow ls_what_if_row (const LsJobResult *r);
/* Why a job is none, in a line. Newly allocated. */
char *ls_what_if_reason (const GError *error);

/* Makes each change (LsChange) to the job of `spec` alone and simulates it; their rows follow those of w, in
 * the same order. w->now: the job's own row. */
void ls_what_if_simulate (const LsJobSpec *spec, const GPtrArray *changes, guint n_threads,
                          const LsProgress *progress, LsWhatIf *w);

/* Whether an hour of all GPUs costs something else than now; false where a price is not known. */
bool ls_what_if_has_other_price (const LsWhatIf *w, const LsWhatIfRow *row);
/* Frees a row's texts and lists, but not the row. */
void ls_what_if_row_clear (gpointer row);
/* Adds what an hour of GPUs costs, of the job and of rows, and what rows on other clusters have otherwise
 * by default to what the job rests on; its sentence has those that a text shows. most: of those that do not
 * fit, and that do, with such a gain; NULL: all. */
void ls_what_if_assume_others (const LsJobSpec *spec, const LsWhatIf *w, double least_gain, const guint *most,
                               LsJobResult *r);
/* The same with the headroom, which decides whether it fits. words: as of ls_assumptions_add(). */
void ls_what_if_assume_headroom (const LsJobSpec *spec, const char *words, LsJobResult *r);

#define LS_LEAST_GAIN 5e-4 /* what is shown as 0.0 % is none */
#define LS_WHAT_IFS   5    /* changes that a summary shows  */

/* r: the job of `spec` as it ran; headroom and price are added to what it rests on. top: of a kind, that a
 * text shows; 0: all. n_threads 0: one per processor; the result is the same for any number.
 * LS_ERROR_UNSUPPORTED: a trace, of which nothing is left to change. */
LsWhatIf *ls_what_if_new (const LsJobSpec *spec, LsJobResult *r, guint top, guint n_threads,
                          const LsProgress *progress, GError **error);

/* The same job in each program (job/softwares.h) that has its way to be data parallel and runs on its
 * accelerator; one that cannot express it is refused. LS_ERROR_UNSUPPORTED: a trace, or no such program. */
LsWhatIf *ls_what_if_softwares (const LsJobSpec *spec, LsJobResult *r, guint n_threads,
                                const LsProgress *progress, GError **error);

#endif
