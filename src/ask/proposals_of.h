/* ask/proposals_of.h — what proposals of each kind share (private to proposals.c and proposals_kernels.c). */
#ifndef LS_ASK_PROPOSALS_OF_H
#define LS_ASK_PROPOSALS_OF_H

#include "ask/proposals.h"

typedef struct {
  const LsJobSpec *spec;
  const LsJobResult *r;
  const LsStrategy *s; /* resolved */
  const char *idea, *cost;
  bool needs_more;
  GPtrArray *changes; /* LsChange */
} Proposals;

/* A change without settings yet, which the proposals own. */
LsChange *propose (Proposals *p);
/* A change of one knob. */
void propose_one (Proposals *p, const char *key, const char *value);
/* All values of a field with names but the job's own and those below first, which are "as by default". */
void propose_names (Proposals *p, const char *key, int own, int first);

/* Kernels and number formats. */
void propose_attention (Proposals *p);
void propose_attention_kernels (Proposals *p); /* those that the accelerator was measured with */
void propose_kernels (Proposals *p);           /* lists that the program can run in the place of its own */
void propose_dtypes (Proposals *p);
void propose_grad_dtypes (Proposals *p);
void propose_fp8 (Proposals *p);
void propose_grad_fusion (Proposals *p);

#endif
