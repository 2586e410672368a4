/* ask/profile/profile_step.h — one step cut out of a profile, and as a program that can be replayed: what
 * ran, on which stream, when the host issued it, and for what it waited. */
#ifndef LS_ASK_PROFILE_PROFILE_STEP_H
#define LS_ASK_PROFILE_PROFILE_STEP_H

#include "analysis/reconcile.h"
#include "data/measured/read_kineto.h"
#include "plan/plan.h"

/* One step cut out of a profile.
 *
 * Which ops are the step's:
 *
 *   ProfilerStep#N   those whose launch lies in the annotation, which is on the host; of an op
 *                    without a launch its own start counts
 *   FROM:TO          those that start in that range, counted from the first event of the
 *                    trace that is a step, a kernel or a copy
 *   by periodicity   the sequence of kernel names repeats (all of it, with the shortest
 *                    period): those of one period, which begins behind the optimizer
 *
 * The step begins with its first op on the GPU and lasts to the first of the next step.
 * Without a next step it lasts to the end of its last op, which leaves out what the GPU waited
 * for after it; a range lasts as it says. Unless told which, it is the last that has a next one.
 *
 * The period: the shortest p with name[i] = name[i + p] throughout (Knuth, Morris, Pratt 1977),
 * which layers, that repeat too, do not have, and of which two fit. */

typedef struct {
  LsStepSide *side;   /* names are borrowed from the trace */
  char *what;         /* "ProfilerStep#12", "2500us:7500us" */
  bool is_open;       /* no next step: its end is that of its last op */
  GArray *chosen;     /* guint: its ops as places in the trace's, by start                       */
  int64_t start, end; /* of the step, in the trace's ns                                        */
  int64_t host_end;   /* where its annotation on the host ends; LS_KINETO_NONE: there is none  */
  int64_t
      next_launch; /* of the first op of the next step; LS_KINETO_NONE: there is none, or it is not known */
  int64_t thread;  /* that has the annotation; -1: not known                                */
} LsMeasuredStep;

/* which: NULL, "12", or "FROM:TO" with units. LS_ERROR_USAGE: not of these; LS_ERROR_INPUT:
 * no such step, none found, nothing in it. */
gboolean ls_measured_step_cut (const LsKineto *k, const char *which, LsMeasuredStep *ret_step,
                               GError **error);
void ls_measured_step_clear (LsMeasuredStep *step);
/* Whether `which` can be meant, before a file is read. */
gboolean ls_measured_step_check (const char *which, GError **error);

/* --- as a program ------------------------------------------------------------------------------------ */

/* A profiled step as a program that can be replayed.
 *
 * Streams. The one whose kernels take longest is the compute stream; communication goes to the stream of its
 * axis, copies to that of copies, others to what is left. A replay runs the kernels of a rank one at a time;
 * those of a stream that overlap a busier one are replayed as copies of their length, which run beside.
 *
 * What an op waited for. Besides its place in its stream:
 *
 *     told      a stream waited for an event, and the profile says of which streams (cuda_sync)
 *     inferred  from calls of cudaStreamWaitEvent without streams: communication that is launched next waits
 *               for what was launched before it on the compute stream; another op for the last communication
 *               of each stream that was launched before it. Without such calls: communication waits as said,
 *               and what an op started right behind (10 us) is what it waited for; an optimizer waits for
 * the
 *               communication that was launched before it
 *     none      is inferred that the times contradict: that had not ended when the op started
 *
 * Communication that nobody waited for is over before the next step begins.
 *
 * Why an op started when it did. L is the median time from launch to start of ops, but for communication,
 * that found their stream idle, or if none did the shortest of all, 20 us at most. An op was ready when all
 * it waits for had ended, and there L after its launch. It starts at the later of these, and up to 10 us
 * late: of one that the host was late with, that is the host's, of another the kernel's own (the gap of a
 * queue). What is left beyond is a wait that the profile does not explain; it is kept as one.
 *
 * Worked example. L is 5 us. A kernel ends at 100 us; the next was launched at 80 and starts at 101: it
 * takes 1 us more. One that was launched at 120 us and starts at 126: the host issues it at 126. One that
 * was launched at 30 us and starts at 180: it waits 80 us. */

typedef enum {
  LS_PROFILE_KERNEL,
  LS_PROFILE_BESIDE,     /* a copy, or what is replayed as one */
  LS_PROFILE_COLLECTIVE, /* by our network                      */
} LsProfileKind;

/* Times in ns from the first op of the step. */
typedef struct {
  const LsKinetoOp *op;
  int64_t start, end;
  int64_t launch;            /* LS_KINETO_NONE: not known         */
  int64_t ready;             /* when all that it waited for had ended                      */
  int64_t issue;             /* when a replay issues it; LS_KINETO_NONE: as soon as it can */
  int64_t wait;              /* that nothing explains, before it starts                    */
  int64_t beside;            /* of a kernel: for so long a collective by our network ran, too */
  uint8_t stream;            /* LsStream      */
  uint8_t kind;              /* LsProfileKind */
  uint8_t slot;              /* LsSlot, of a collective */
  bool is_hosts;             /* the host was late with it */
  guint first_wait, n_waits; /* of LsProfileStep.waits */
} LsProfileOp;

/* When the host waited for the GPU. */
typedef struct {
  int64_t start, end;
  guint before;     /* place in ops: issued before it */
  uint32_t streams; /* bits: for what was issued on these */
  int64_t resolved; /* when that had ended */
} LsProfileSync;

typedef struct {
  const LsKineto *profile; /* borrowed, as the cut is                         */
  const LsMeasuredStep *cut;
  GArray *ops;             /* LsProfileOp, in the order in which they were issued   */
  GArray *waits;           /* guint: places in ops                                 */
  GArray *syncs;           /* LsProfileSync                                         */
  int64_t length, latency; /* of the step; L */
  uint32_t joined;         /* bits of streams whose last op nobody waited for: the step ends behind it */
  guint n_told, n_inferred, n_shared; /* waits; streams beyond those that a replay has */
} LsProfileStep;

/* as_measured: communication takes the time that it took. slot_of: of each group of the profile the slot, or
 * LS_N_SLOTS where its communication cannot be ours. */
LsProfileStep *ls_profile_step_new (const LsKineto *k, const LsMeasuredStep *cut, const uint8_t *slot_of,
                                    bool as_measured);
void ls_profile_step_free (LsProfileStep *step); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsProfileStep, ls_profile_step_free)

/* Whether our network can move what the op moves: kind, bytes and group are known. */
bool ls_profile_is_known (const LsKinetoOp *op);

#endif
