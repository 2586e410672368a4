/* analysis/headroom.h — memory that is to stay free: what takes it is in no category of what is simulated.
 *
 *     capacity = HBM - what the accelerator's file reserves for the CUDA context
 *     needed + headroom <= capacity: it fits and leaves the headroom */
#ifndef LS_ANALYSIS_HEADROOM_H
#define LS_ANALYSIS_HEADROOM_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
  char *what, *source; /* owned */
  uint64_t bytes;
} LsHeadroomPart;

typedef struct {
  uint64_t bytes;
  bool is_asked; /* the user wants it left (--headroom, --for): what does not leave it, does not fit */
  char *program; /* whose it is; NULL: nobody's */
  GArray *parts; /* LsHeadroomPart; NULL: none  */
} LsHeadroom;

void ls_headroom_clear (LsHeadroom *h); /* NULL allowed */
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (LsHeadroom, ls_headroom_clear)

/* Whether it is left. */
bool ls_headroom_is_left (const LsHeadroom *h, uint64_t needed_bytes, uint64_t capacity_bytes);

/* "6.60 GiB for Megatron-LM: allocator 4.80, NCCL 1.00, CUDA context 0.80": newly allocated. */
char *ls_headroom_text (const LsHeadroom *h);

#endif
