/* ask/profile/profile_step.h — a profiled step as a program that can be replayed: what ran, on which
 * stream, when the host issued it, and for what it waited.
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
#ifndef LS_ASK_PROFILE_PROFILE_STEP_H
#define LS_ASK_PROFILE_PROFILE_STEP_H

#include "ask/profile/measured_step.h"
#include "plan/plan.h"

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
