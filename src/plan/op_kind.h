/* plan/op_kind.h — the kinds of ops: one row each.
 *
 * A row says what is true of a kind wherever it is asked: where it runs, what its time is, which members of
 * LsOp mean something to it, what a trace assumes that gives no more, and what is wrong with one. Rooms ask
 * the row and not the kind, so that a new kind is a row here, another in exec/replay/op_begin.c (what begins
 * it), and whatever it alone needs. A room that has something of its own for each kind keeps a table with
 * LS_N_OP_KINDS rows, asserted where it stands. */
#ifndef LS_PLAN_OP_KIND_H
#define LS_PLAN_OP_KIND_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/enum_name.h"

typedef enum {
  LS_OP_KERNEL,     /* a GPU kernel of the given shape                              */
  LS_OP_COLLECTIVE, /* one call on the communicator of a slot                       */
  LS_OP_P2P,        /* one group of sends and receives (ncclGroup)                  */
  LS_OP_COPY,       /* host to device or back; copy engine, no SMs                  */
  LS_OP_RECORD,     /* record event (event, mb, chunk) on a stream: no duration     */
  LS_OP_WAIT,       /* the stream waits for that event                              */
  LS_OP_HOST_SYNC,  /* the host waits for the op's dependencies                     */
  LS_OP_HOST_DELAY, /* the host is busy for `recorded`                              */
  LS_N_OP_KINDS
} LsOpKind;

/* What takes its time. */
typedef enum {
  LS_TAKES_NOTHING, /* it is over as soon as it may begin                                        */
  LS_TAKES_GPU,     /* one at a time: `recorded`, or what a kernel of its shape takes            */
  LS_TAKES_ENGINE,  /* a copy engine: `recorded`, or what the way to its memory allows           */
  LS_TAKES_NETWORK, /* what the network allows, once those that take part are there; it has SMs  */
  LS_TAKES_HOST,    /* the host, which issues nothing until it is over; it stands in no stream   */
} LsOpTakes;

/* Members of LsOp, and keys of traces, that mean something to some kinds only. */
enum {
  LS_HAS_KERNEL = 1 << 0,
  LS_HAS_RECORDED = 1 << 1,
  LS_HAS_BESIDE = 1 << 2,
  LS_HAS_REPEAT = 1 << 3,
  LS_HAS_GRAPH = 1 << 4, /* is_in_graph */
  LS_HAS_CALL = 1 << 5,  /* slot, coll, algorithm, parts, max_ctas, has_margin, is_light, root */
  LS_HAS_BYTES = 1 << 6,
  LS_HAS_DIRECTION = 1 << 7, /* direction */
  LS_HAS_EVENT = 1 << 8,
  LS_HAS_TRANSFERS = 1 << 9,
};

/* Where a copy goes: LsOp.direction. Its bytes are LsOp.bytes. */
typedef enum {
  LS_COPY_TO_DEVICE, /* from the memory of the host's CPU     */
  LS_COPY_TO_HOST,
  LS_COPY_FROM_NVME, /* past the CPU, as GPUDirect Storage is */
  LS_COPY_TO_NVME,
  LS_COPY_IN_HOST, /* traffic of the CPU in that memory     */
  LS_N_COPY_DIRECTIONS
} LsCopyDirection;

/* What is at the other end of its engine: the memory of the host's CPU, or its drives. */
typedef enum { LS_COPY_BY_HOST, LS_COPY_BY_NVME } LsCopyWay;

typedef struct {
  const char *calls; /* of a rank, all together */
  uint8_t way;       /* LsCopyWay               */
  bool is_out;       /* goes there, not from there */
  bool is_in_host;   /* passes neither the way there nor the HBM: work of the CPU */
} LsCopyRow;

extern const LsCopyRow ls_copies[LS_N_COPY_DIRECTIONS];
extern const LsEnumName ls_copy_names[LS_N_COPY_DIRECTIONS + 1]; /* in traces */

struct LsPlan;
struct LsOp;

typedef struct {
  uint8_t takes;             /* LsOpTakes                                          */
  bool host_waits;           /* the host goes on once what it depends on is over   */
  bool records;              /* its event is there, and not waited for             */
  uint16_t has;              /* LS_HAS_ of all that mean something                 */
  uint16_t needs;            /* one of these must be given; 0: nothing must        */
  const char *lacking;       /* what is said where none is; NULL with `needs` 0   */
  uint8_t stream, tag, host; /* LsStream, LsTag, LsHostCost that a trace assumes */
  /* What is wrong with what it alone has, newly allocated; NULL: nothing. The member may be NULL. */
  char *(*fault) (const struct LsPlan *plan, const struct LsOp *op);
} LsOpKindRow;

extern const LsOpKindRow ls_op_kinds[LS_N_OP_KINDS];
extern const LsEnumName ls_op_kind_names[LS_N_OP_KINDS + 1]; /* in traces */

static inline bool
ls_op_takes (uint8_t kind, LsOpTakes what)
{
  return ls_op_kinds[kind].takes == what;
}

/* Holds up the host, and with it all that is issued later. */
static inline bool
ls_op_is_of_host (uint8_t kind)
{
  return ls_op_takes (kind, LS_TAKES_HOST);
}

static inline bool
ls_op_is_communication (uint8_t kind)
{
  return ls_op_takes (kind, LS_TAKES_NETWORK);
}

/* Takes time on the device. */
static inline bool
ls_op_has_span (uint8_t kind)
{
  return !ls_op_takes (kind, LS_TAKES_NOTHING) && !ls_op_takes (kind, LS_TAKES_HOST);
}

/* Which of these (LS_HAS_) mean something to it. */
static inline unsigned
ls_op_has (uint8_t kind, unsigned members)
{
  return ls_op_kinds[kind].has & members;
}

#endif
