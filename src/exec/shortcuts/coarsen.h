/* exec/shortcuts/coarsen.h — segments that nothing disturbs, in one piece; and what is known of such a frame
 * (private). */
#ifndef LS_EXEC_SHORTCUTS_COARSEN_H
#define LS_EXEC_SHORTCUTS_COARSEN_H

#include "exec/extras.h"

void coarsen_init (Run *x); /* after the ranks */
void coarsen_clear (Run *x);
uint64_t coarsen_count (const Run *x); /* frames that ran in one piece */

/* ---- a profile: for coarsen.c and coarsen_replay.c ---- */

/* How far ahead the host was. */
#define LEAD_IDLE   (-1) /* not at all: everything was idle when the first op was issued */
#define LEAD_ENOUGH LS_TIME_NEVER
#define LEAD_NEVER  (-2)

/* A span: of the profile, by number; or of before. */
typedef uint32_t Ref;
#define REF_NONE         LS_SPAN_NONE
#define REF_HOST         (LS_SPAN_NONE - 1) /* what held the host up                        */
#define REF_COMPUTE      (LS_SPAN_NONE - 2) /* the tail of the compute stream, and its kind  */
#define REF_JOINED       (LS_SPAN_NONE - 3) /* the same, as a dependency of another stream   */
#define REF_UNKNOWN      (LS_SPAN_NONE - 4)
#define IS_INTERNAL(ref) ((ref) < REF_UNKNOWN)

typedef struct {
  LsTime at;
  Ref span;
  uint8_t stream, kind;
} StreamEnd;

typedef struct {
  LsTime at;
  Ref span;
  uint8_t slot;
} SlotEnd;

typedef struct {
  LsTime at;
  Ref span;
  uint16_t op;
} Recorded;

typedef struct {
  LsTime at;
  Call *call;
  uint32_t comm;
} CallEnd;

/* Times count from where the frame begins. */
typedef struct Profile Profile;
struct Profile {
  Profile *next;
  LsTime lead;
  LsTime end; /* of all, and of the compute stream */
  LsTime gpu_free;
  LsTime *ends; /* [n_ops] in order of time */
  uint32_t n_streams, n_slots, n_records, n_calls, n_spans;
  StreamEnd *streams;
  SlotEnd *slots;
  Recorded *records;
  CallEnd *calls;
  LsSpan *spans; /* .cause is a Ref */
};

/* The oldest open frame of the rank, all at once; it begins at that time. */
void profile_replay (Run *x, Rank *r, const Profile *p, LsTime begin);

#endif
