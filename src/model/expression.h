/* model/expression.h — sizes of a job in words, as files of kernels give them: "s*b*h", "2*s*b*k + 2*s*b*q".
 *
 *     expression   product { + product }
 *     product      factor { * factor }
 *     factor       a number from 0 on, such as 2, 0.5 or 1e3, or a size
 *
 * Sizes are those of one rank:
 *
 *     s   tokens of a sequence           f   width of the MLP
 *     b   sequences of a micro-batch     V   words of the vocabulary
 *     h   hidden                         S   parameters that the rank's optimizer steps on
 *     q   width of Q, a d
 *     k   width of K, as of V
 *     a   heads of Q                     T   tensors that these are of
 *     d   width of a head
 *
 * and of latent attention:
 *
 *     r   rotated part of a head         v   width of V, of all heads
 *     n   what is not rotated of it      l   latent of K and V
 *
 * and of experts:
 *
 *     E   experts of a layer             O   those of the rank
 *     C   experts of a token             P   rows that these compute, with rows of zeros
 *
 * and of mixers (model/mixer.h), whose q is the inner width, k that of keys, a and d their heads:
 *
 *     N   states of a channel            c   tokens of a chunk
 *     g   groups of keys                 m   chunks of a sequence
 *
 * Example. With s 4096, b 2, h 1024: "0.5*s*b*h + 3" is 4194307. */
#ifndef LS_MODEL_EXPRESSION_H
#define LS_MODEL_EXPRESSION_H

#include <stdbool.h>

#include <glib.h>

#define LS_SIZE_LETTERS "sbhqkadfVSTrnvlECOPNgcm"

typedef enum {
  LS_SIZE_S,
  LS_SIZE_B,
  LS_SIZE_H,
  LS_SIZE_Q,
  LS_SIZE_K,
  LS_SIZE_A,
  LS_SIZE_D,
  LS_SIZE_F,
  LS_SIZE_V,
  LS_SIZE_SHARD,
  LS_SIZE_TENSORS,
  LS_SIZE_ROTATED,
  LS_SIZE_UNROTATED,
  LS_SIZE_VALUES,
  LS_SIZE_LATENT,
  LS_SIZE_EXPERTS,
  LS_SIZE_CHOICES,
  LS_SIZE_OWN_EXPERTS,
  LS_SIZE_EXPERT_ROWS,
  LS_SIZE_STATES,
  LS_SIZE_KEY_GROUPS,
  LS_SIZE_CHUNK,
  LS_SIZE_CHUNKS,
  LS_N_SIZES
} LsSize;

typedef struct {
  double at[LS_N_SIZES]; /* 0: there is none here */
  bool is_sent_once;     /* tokens go once to a rank, however many of its experts they have there */
  bool is_padded;        /* rows of experts are, where they arrive */
  bool is_normed;        /* heads of Q and K, by norms of their own */
  bool is_rotated;       /* Q and K are, in this layer */
  bool is_sharded;       /* sequences are cut over ranks of cp */
} LsSizes;

typedef struct LsExpression LsExpression;

/* NULL: *reterr_message, newly allocated, says what was expected and where. */
LsExpression *ls_expression_parse (const char *text, char **reterr_message);
void ls_expression_free (LsExpression *expression); /* NULL allowed */
/* A size that it names and that letters lack; '\0': there is none. */
char ls_expression_foreign_size (const LsExpression *expression, const char *letters);
double ls_expression_value (const LsExpression *expression, const LsSizes *sizes);

#endif
