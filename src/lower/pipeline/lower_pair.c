/* lower/pipeline/lower_pair.c — a forward and a backward side by side: pieces of the two alternate
 * (lower/layers/lower_pieces.h has the order and the reason). */
#include "lower/layers/lower_pieces.h"
#include "lower/pipeline/lower_pipe.h"

/* One of the two. */
typedef struct {
  Pipe *p;
  const LsAction *action;
  const GArray *pieces;
  guint next;
} Lane;

static Lane
lane_of (Pipe *p, const LsAction *a)
{
  DpPass pass = pipe_open_action (p, a);
  return (Lane) { p, a, segment_pieces (p->l, &pass), 0 };
}

static bool
is_next (const Lane *x, PieceKind kind)
{
  return x->next < x->pieces->len && g_array_index (x->pieces, Piece, x->next).kind == kind;
}

static void
add_next (Lane *x)
{
  pipe_add (x->p, g_array_index (x->pieces, Piece, x->next++).segment, x->action->mb, x->action->chunk);
}

static void
add_if (Lane *x, PieceKind kind)
{
  if (is_next (x, kind))
    add_next (x);
}

/* But for weight gradients at the end. */
static void
add_rest (Lane *x)
{
  while (x->next < x->pieces->len && !(is_next (x, PIECE_WEIGHTS) && x->next + 1 == x->pieces->len))
    add_next (x);
}

static void
alternate (Lane *f, Lane *b)
{
  add_if (b, PIECE_COMPUTE);
  while (is_next (b, PIECE_EXCHANGE) && f->next + 1 < f->pieces->len) {
    add_next (b);
    add_if (b, PIECE_WEIGHTS);
    add_if (f, PIECE_COMPUTE);
    add_if (b, PIECE_COMPUTE);
    add_if (f, PIECE_EXCHANGE);
  }
  add_rest (b);
  add_rest (f);
}

Pair
pipe_open_pair (Pipe *p, const LsAction *first, const LsAction *second)
{
  bool is_forward = first->type == LS_ACTION_F;
  Lane f = lane_of (p, is_forward ? first : second), b = lane_of (p, is_forward ? second : first);
  alternate (&f, &b);
  return (Pair) { f.action, b.action, b.pieces, b.next };
}

void
pipe_close_pair (Pipe *p, Pair *pair)
{
  for (; pair->first < pair->rest->len; pair->first++)
    pipe_add (p, g_array_index (pair->rest, Piece, pair->first).segment, pair->backward->mb,
              pair->backward->chunk);
  pipe_close_action (p, pair->forward);
  pipe_close_action (p, pair->backward);
}

void
pipe_add_pair (Pipe *p, const LsAction *first, const LsAction *second)
{
  Pair pair = pipe_open_pair (p, first, second);
  pipe_close_pair (p, &pair);
}
