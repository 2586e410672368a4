/* analysis/likeness.h — in what a job may be unlike the runs that its interval rests on.
 *
 * A run has traits: words, such as the number format, and figures, such as how many GPUs. A job is unlike a
 * set of runs in an aspect if none of them has its word, or if its figure lies beyond all of theirs: more
 * GPUs, a slower fabric, a larger model, a larger share of kernels that nobody measured. A faster fabric or
 * fewer GPUs are not unlike: there is less to go wrong there. Of a smaller model less is arithmetic: that an
 * interval knows by its MFU. */
#ifndef LS_ANALYSIS_LIKENESS_H
#define LS_ANALYSIS_LIKENESS_H

#include <glib.h>
#include <stdbool.h>

typedef enum {
  LS_ASPECT_ARCHITECTURE, /* of the GPUs: "ampere"                                                 */
  LS_ASPECT_FORMAT,       /* of the matrix products: "bf16"                                        */
  LS_ASPECT_NODE,         /* what joins its GPUs: "nvlink", "pcie", "ici", "listed"                */
  LS_ASPECT_BACKEND,      /* of data parallelism: "fsdp2"                                          */
  LS_ASPECT_SCHEDULE,     /* of the pipeline: "1f1b"                                               */
  LS_ASPECT_CONTEXT,      /* context parallelism: "on"                                             */
  LS_ASPECT_OFFLOAD,      /* to the host or to drives: "on"                                        */
  LS_ASPECT_EXPERTS,      /* a mixture of experts: "on"                                            */
  LS_ASPECT_TRANSPORT,    /* between nodes, if not by RDMA with GPUDirect: "tcp", "host-memory"    */
  LS_N_WORD_ASPECTS,
  LS_ASPECT_GPUS = LS_N_WORD_ASPECTS, /* how many                                                  */
  LS_ASPECT_FABRIC,  /* bytes/s of the NICs per GPU, of jobs on several nodes                 */
  LS_ASPECT_GUESSED, /* share of kernel time by data sheets and stated guesses                */
  LS_ASPECT_TENSOR,  /* degree of tensor parallelism                                          */
  LS_ASPECT_PARAMS,  /* parameters of the model                                               */
  LS_N_ASPECTS
} LsAspect;

#define LS_N_FIGURE_ASPECTS (LS_N_ASPECTS - LS_N_WORD_ASPECTS)

/* word: static or interned, by aspect; NULL: there is none, which is like all. figure: by aspect less
 * LS_N_WORD_ASPECTS; 0: the same. */
typedef struct {
  const char *word[LS_N_WORD_ASPECTS];
  double figure[LS_N_FIGURE_ASPECTS];
  const char *chip, *chips; /* what its accelerators are called, one and several; static */
} LsTraits;

const char *ls_aspect_key (LsAspect aspect); /* for programs: "architecture"; static */

/* Of figures of an aspect: is a more extreme than b? 0 is not, and nothing is more extreme than 0 there. */
bool ls_aspect_is_beyond (LsAspect aspect, double a, double b);

/* How far it is from one figure to another: the logarithm of their ratio, of shares their difference; >=
 * 0. */
double ls_aspect_distance (LsAspect aspect, double a, double b);

/* "is on GPUs of architecture volta": what none of the runs does. extreme: the furthest figure that they
 * have. Newly allocated. */
char *ls_aspect_words (LsAspect aspect, const LsTraits *traits, double extreme);

#endif
