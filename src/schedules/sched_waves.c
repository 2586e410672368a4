/* schedules/sched_waves.c — schedules whose chunks go down the ranks and back, or both ways at once:
 * Hanayo, ZB-V, DualPipeV, DualPipe, Chimera.
 *
 * Hanayo: waves.
 *
 * Each of p ranks holds 2 w chunks of w waves: the model goes down the ranks, back up,
 * down again and so on, one replica, 2 w p stages. The forwards of all micro-batches pass
 * wave by wave, then the backwards. In units of a forward, with F = B and n = max (m, p),
 * a stage that is the s-th of wave j (0 <= s < 2 p) runs micro-batch k
 *
 *     F at 2 n j + s + 2 k,    B at 2 n (2 w - 1 - j) + 2 p - 1 - s + 2 k
 *
 * On every rank these times never meet (chunks on the way down and on the way up have
 * different parity), and from its first to its last action in each phase there is no gap.
 * Each rank executes its actions in the order of these times; backwards are split into I
 * and, right after it, W, so that the gradient goes on before W.
 *
 * With chunk times and m >= p, the step takes
 *
 *     2 w m (F + I + W) + 2 (p - 1) max (F, I)
 *
 * (I = B and W = 0 if backwards are not split; exact where I >= F or W = 0, else less).
 * Rank r keeps up to 2 w m - (p - 1 - r) chunk activations: with m = p about as many as
 * 1F1B's first rank. With a group size N (p <= N) this is done for N micro-batches at a
 * time, each group's forwards filling what the backwards before leave idle: 2 w N chunks
 * at most, and as long if F = I + W, but longer if not.
 *
 *     p = 2, w = 1, m = 2; stage.micro-batch, B for I W
 *     rank 0   F0.0 F0.1 F3.0 B3.0 F3.1 B3.1 B0.0 B0.1
 *     rank 1   F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 B2.1 B1.1
 *
 * Deviation: the authors' code was not found. The order here is derived from the paper's
 * figures; the time formula was found by executing an independent implementation (ELF).
 *
 * Reference: Liu et al., Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced
 * Large Model Training Efficiency, SC 2023. */
#include "schedules/sched_impl.h"

static uint32_t
n_chunks_hanayo (const LsSchedShape *shape)
{
  if (shape->waves)
    return 2 * shape->waves;
  return shape->vpp ? shape->vpp : 2;
}

static const char *
refusal_hanayo (const LsSchedShape *shape)
{
  if (shape->vpp % 2 != 0)
    return "vpp must be even: a wave has two chunks";
  if (shape->waves && shape->vpp && shape->vpp != 2 * shape->waves)
    return "vpp must be twice the waves";
  if (shape->group && shape->group < shape->pp)
    return "the micro-batch group must not be smaller than pp";
  return NULL;
}

static void
add_group (const LsSchedShape *shape, uint32_t rank, uint64_t begin, uint32_t first_mb, uint32_t n_mb,
           GArray *slots)
{
  uint32_t pp = shape->pp, n = n_chunks_hanayo (shape);
  uint64_t wave = 2 * (uint64_t) MAX (n_mb, pp);

  for (uint32_t chunk = 0; chunk < n; chunk++) {
    uint32_t j = chunk / 2;
    uint32_t s = chunk % 2 == 0 ? rank : 2 * pp - 1 - rank;
    for (uint32_t k = 0; k < n_mb; k++) {
      ls_sched_slot_add (slots, begin + wave * j + s + 2 * k, LS_ACTION_F, chunk, first_mb + k);
      ls_sched_slot_add (slots, begin + wave * (n - 1 - j) + 2 * pp - 1 - s + 2 * k, LS_ACTION_B, chunk,
                         first_mb + k);
    }
  }
}

static void
order_hanayo (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  uint32_t m = shape->n_micro_batches;
  uint32_t group = shape->group ? MIN (shape->group, m) : m;

  g_autoptr (GArray) slots = g_array_new (FALSE, FALSE, sizeof (LsSchedSlot));
  for (uint32_t first_mb = 0; first_mb < m; first_mb += group)
    add_group (shape, rank, (uint64_t) first_mb * 2 * n_chunks_hanayo (shape), first_mb,
               MIN (group, m - first_mb), slots);
  ls_sched_append_slots (slots, true, actions);
}

const LsSched ls_sched_hanayo = {
  .name = "hanayo",
  .knobs = LS_SCHED_GROUP | LS_SCHED_WAVES,
  .placement = LS_PLACE_WAVE,
  .is_split = true,
  .refusal = refusal_hanayo,
  .n_chunks = n_chunks_hanayo,
  .order = order_hanayo,
};

/* ZB-V, the fixed order for F = I = W.
 *
 * Each of p ranks holds two chunks of a V: the model goes down the ranks and back, so
 * rank 0 has the first and the last, and the last rank's turn costs no communication. On
 * rank r, with chunks 0 and 1:
 *
 *     warm-up    2 (p - r) - 1 times F0; r times F1 F0; p - r times F1 I1 W1
 *     steady     F0 I0 W0 F1 I1 W1 while forwards are left (F0 may be used up)
 *     cool-down  r times I0 I1; p - r times I0 W0; the W1 and then the W0 that are left
 *
 * for max (2 p - 1, m) micro-batches; what belongs to those above m is left out. Every
 * rank holds at most 2 p chunk activations (held until W): those of p micro-batches, as
 * 1F1B's first rank. With chunk times W <= F <= I and m >= 2 p - 1 the span (a rank's last
 * end less its first start, the largest) is
 *
 *     2 m (F + I + W) + 2 (p - 1)(I - W),
 *
 * no idle time at all if they are equal (found by executing the order; not in the paper).
 *
 *     p = 2, m = 2; stage.micro-batch
 *     rank 0   F0.0 F0.1 F3.0 I3.0 W3.0 F3.1 I3.1 W3.1 I0.0 W0.0 I0.1 W0.1
 *     rank 1   F1.0 F2.0 F1.1 F2.1 I2.0 W2.0 I1.0 W1.0 I2.1 W2.1 I1.1 W1.1
 *
 * Deviation: the order does not look at the times; zbv-auto does.
 *
 * Reference: Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024;
 * orders checked against PyTorch's ScheduleZBVZeroBubble. */

typedef struct {
  uint32_t n_micro_batches; /* that exist */
  uint32_t next[2][4];      /* [chunk][LsActionType] micro-batch */
  GArray *actions;
} Emit;

static void
emit (Emit *e, LsActionType type, uint32_t chunk)
{
  uint32_t mb = e->next[chunk][type]++;
  if (mb < e->n_micro_batches)
    ls_sched_append (e->actions, type, chunk, mb);
}

static void
emit_backward (Emit *e, uint32_t chunk)
{
  emit (e, LS_ACTION_I, chunk);
  emit (e, LS_ACTION_W, chunk);
}

static void
warm_up (Emit *e, uint32_t pp, uint32_t rank)
{
  for (uint32_t i = 0; i < 2 * (pp - rank) - 1; i++)
    emit (e, LS_ACTION_F, 0);
  for (uint32_t i = 0; i < rank; i++) {
    emit (e, LS_ACTION_F, 1);
    emit (e, LS_ACTION_F, 0);
  }
  for (uint32_t i = 0; i < pp - rank; i++) {
    emit (e, LS_ACTION_F, 1);
    emit_backward (e, 1);
  }
}

static void
cool_down (Emit *e, uint32_t pp, uint32_t rank)
{
  for (uint32_t i = 0; i < rank; i++) {
    emit (e, LS_ACTION_I, 0);
    emit (e, LS_ACTION_I, 1);
  }
  for (uint32_t i = 0; i < pp - rank; i++)
    emit_backward (e, 0);
  for (uint32_t chunk = 2; chunk-- > 0;)
    while (e->next[chunk][LS_ACTION_W] < e->next[chunk][LS_ACTION_I])
      emit (e, LS_ACTION_W, chunk);
}

static void
zbv_order (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  uint32_t n = MAX (2 * shape->pp - 1, shape->n_micro_batches);
  Emit e = { .n_micro_batches = shape->n_micro_batches, .actions = actions };

  warm_up (&e, shape->pp, rank);
  while (e.next[1][LS_ACTION_F] < e.next[0][LS_ACTION_F] || e.next[0][LS_ACTION_F] < n) {
    if (e.next[0][LS_ACTION_F] < n)
      emit (&e, LS_ACTION_F, 0);
    emit_backward (&e, 0);
    emit (&e, LS_ACTION_F, 1);
    emit_backward (&e, 1);
  }
  cool_down (&e, shape->pp, rank);
}

const LsSched ls_sched_zbv = {
  .name = "zbv",
  .placement = LS_PLACE_WAVE,
  .is_split = true,
  .chunks = LS_CHUNKS_TWO,
  .n_chunks = ls_sched_two_chunks,
  .order = zbv_order,
};

/* --- DualPipeV -------------------------------------------------------------------------------------- */

/* DualPipeV ("cut in half"), and DualPipe's eight steps, which are the same.
 *
 * Each of p ranks holds two chunks of a V of 2 p stages. A forward of one chunk and a
 * backward of the other are executed as one pair, so that the communication of each
 * (expert parallelism's all-to-all) hides behind the computation of the other. With
 * q = p - 1 - r, on rank r, F0 a forward of chunk 0, (F0;B1) a pair, W the oldest weight
 * gradient that was put off (of whichever chunk):
 *
 *     1  2 q times           F0
 *     2  r + 1 times         F0 F1
 *     3  q times             I1 W F1
 *     4  m - 2 p + r + 1     (F0;B1) (F1;B0)   the last rank's first pair as F0, B1
 *     5  q times             B1 (F1;B0)
 *     6  r + 1 times         B1 B0             the second half of these as I alone
 *     7  q times             W I0
 *     8  r + 1 times         W
 *
 * In step 6 there are 2 (r + 1) backwards, and the last r + 1 of them put W off. Step 4
 * wants m >= 2 p. A rank holds at most 2 p + 1 chunk activations (to the end of B, or
 * of W), on half as many ranks as DualPipe for as many stages.
 *
 * With F = I, B = I + W and PP = 2 p stages, the most that a rank is idle is
 * (PP/2 - 1)(FB + B - 3 W), FB the time of a pair. Where I < F the executed order gives
 * (PP/2 - 1)(FB + F + I - 2 W); where I > F there is no closed form.
 *
 *     p = 2, m = 4; stage.micro-batch
 *     rank 0   F0.0 F0.1 F0.2 F3.0 I3.0 W3.0 F3.1 (F0.3;B3.1) (F3.2;B0.0) B3.2 (F3.3;B0.1) B3.3 I0.2 W0.2
 *              I0.3 W0.3
 *     rank 1   F1.0 F2.0 F1.1 F2.1 F1.2 B2.0 (F2.2;B1.0) (F1.3;B2.1) (F2.3;B1.1) B2.2 B1.2 I2.3 I1.3 W2.3
 *              W1.3
 *
 * Reference: DeepSeek-AI, DualPipe (github.com/deepseek-ai/DualPipe, dualpipev.py); the
 * cut in half is Sea AI Lab's (Qi et al. 2025). Orders checked against PyTorch's
 * ScheduleDualPipeV. */

typedef struct {
  uint32_t first_chunk; /* which of the rank's two is the steps' chunk 0 */
  uint32_t n_f[2], n_b[2];
  GQueue put_off; /* LsAction *, the weight gradients to come; owned */
  GArray *actions;
} Steps;

static void
forward (Steps *s, uint32_t side)
{
  ls_sched_append (s->actions, LS_ACTION_F, side ^ s->first_chunk, s->n_f[side]++);
}

static void
backward (Steps *s, uint32_t side, bool puts_off)
{
  uint32_t chunk = side ^ s->first_chunk, mb = s->n_b[side]++;
  ls_sched_append (s->actions, puts_off ? LS_ACTION_I : LS_ACTION_B, chunk, mb);
  if (puts_off) {
    LsAction w = { .mb = mb, .chunk = (uint16_t) chunk, .type = LS_ACTION_W };
    g_queue_push_tail (&s->put_off, g_memdup2 (&w, sizeof w));
  }
}

static void
weights (Steps *s)
{
  g_autofree LsAction *w = g_queue_pop_head (&s->put_off);
  g_array_append_val (s->actions, *w);
}

/* A forward of one side with a backward of the other. */
static void
pair (Steps *s, uint32_t forward_side)
{
  forward (s, forward_side);
  g_array_index (s->actions, LsAction, s->actions->len - 1).is_paired = true;
  backward (s, !forward_side, false);
}

static void
steps_1_to_3 (Steps *s, uint32_t n_after, uint32_t n_before)
{
  for (uint32_t i = 0; i < 2 * n_after; i++)
    forward (s, 0);
  for (uint32_t i = 0; i < n_before + 1; i++) {
    forward (s, 0);
    forward (s, 1);
  }
  for (uint32_t i = 0; i < n_after; i++) {
    backward (s, 1, true);
    weights (s);
    forward (s, 1);
  }
}

static void
steps_4_and_5 (Steps *s, uint32_t n_after, uint32_t n_pairs)
{
  for (uint32_t i = 0; i < n_pairs; i++) {
    if (i == 0 && n_after == 0) {
      forward (s, 0);
      backward (s, 1, false);
    } else {
      pair (s, 0);
    }
    pair (s, 1);
  }
  for (uint32_t i = 0; i < n_after; i++) {
    backward (s, 1, false);
    pair (s, 1);
  }
}

static void
steps_6_to_8 (Steps *s, uint32_t n_after, uint32_t n_before)
{
  uint32_t n = n_before + 1;
  for (uint32_t i = 0; i < 2 * n; i++)
    backward (s, i % 2 == 0, i >= n);
  for (uint32_t i = 0; i < n_after; i++) {
    weights (s);
    backward (s, 0, true);
  }
  while (!g_queue_is_empty (&s->put_off))
    weights (s);
}

/* DualPipe's eight steps on one rank. */
static void
sched_append_dualpipe (uint32_t n_places, uint32_t place, uint32_t n_micro_batches, uint32_t first_chunk,
                       GArray *actions)
{
  uint32_t n_after = n_places - 1 - place;
  Steps s = { .first_chunk = first_chunk, .put_off = G_QUEUE_INIT, .actions = actions };

  steps_1_to_3 (&s, n_after, place);
  steps_4_and_5 (&s, n_after, n_micro_batches - 2 * n_places + place + 1);
  steps_6_to_8 (&s, n_after, place);
}

static const char *
refusal_dualpipev (const LsSchedShape *shape)
{
  return shape->n_micro_batches < 2 * shape->pp ? "there must be at least 2 pp micro-batches" : NULL;
}

static void
order_dualpipev (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  sched_append_dualpipe (shape->pp, rank, shape->n_micro_batches, 0, actions);
}

const LsSched ls_sched_dualpipev = {
  .name = "dualpipev",
  .placement = LS_PLACE_WAVE,
  .is_split = true,
  .always_pairs = true,
  .chunks = LS_CHUNKS_TWO,
  .refusal = refusal_dualpipev,
  .n_chunks = ls_sched_two_chunks,
  .order = order_dualpipev,
};

/* --- dualPipe ------------------------------------------------------------------------------------ */

/* Two replicas of the model run through p ranks in opposite directions, each with half of
 * the micro-batches: rank r holds stage r of the one (chunk 0) and stage p - 1 - r of the
 * other (chunk 1). A forward of one direction and a backward of the other are executed as
 * one pair, so that the communication of each hides behind the computation of the other.
 *
 * Ranks r and p - 1 - r mirror each other. With h = min (r, p - 1 - r), the side of the
 * direction that starts nearer as chunk 0 and m/2 micro-batches per direction, the order
 * is that of place h of p/2 in DualPipeV (which has the eight steps).
 * p and m must be even, and m >= 2 p.
 *
 * A rank holds at most p + 1 micro-batches' activations, and two stages' parameters. With
 * F = I, B = I + W, the most that a rank is idle is (p/2 - 1)(FB + B - 3 W), FB the time
 * of a pair; where I < F, (p/2 - 1)(FB + F + I - 2 W); where I > F it is more than the
 * latter and less than the former, and only the order tells.
 *
 *     p = 2, m = 4; direction:stage.micro-batch
 *     rank 0   F0:0.0 F1:1.0 F0:0.1 B1:1.0 (F1:1.1;B0:0.0) B1:1.1 I0:0.1 W0:0.1
 *     rank 1   F1:0.0 F0:1.0 F1:0.1 B0:1.0 (F0:1.1;B1:0.0) B0:1.1 I1:0.1 W1:0.1
 *
 * Reference: DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 3.2.1; orders
 * checked against github.com/deepseek-ai/DualPipe. */

static const char *
refusal_dualpipe (const LsSchedShape *shape)
{
  if (shape->pp % 2 != 0)
    return "pp must be even: ranks mirror each other";
  if (shape->n_micro_batches % 2 != 0)
    return "the number of micro-batches must be even: half of them go in each direction";
  return refusal_dualpipev (shape);
}

static void
order_dualpipe (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  uint32_t is_mirrored = rank >= shape->pp / 2;
  uint32_t place = is_mirrored ? shape->pp - 1 - rank : rank;
  sched_append_dualpipe (shape->pp / 2, place, shape->n_micro_batches / 2, is_mirrored, actions);
}

const LsSched ls_sched_dualpipe = {
  .name = "dualpipe",
  .placement = LS_PLACE_PIPES,
  .is_split = true,
  .always_pairs = true,
  .chunks = LS_CHUNKS_ONE,
  .refusal = refusal_dualpipe,
  .n_chunks = ls_sched_two_chunks,
  .order = order_dualpipe,
};

/* Chimera.
 *
 * K = 2 f replicas of the model run through D ranks, f in each direction; the i-th pipes
 * start D/f ranks apart (schedules/sched.h, "pipes"). Micro-batches come in units of D,
 * D/K for each pipe. In units of a forward, with F = B, stage s of a pipe runs its k-th
 * micro-batch of a unit
 *
 *     F at s + 2 k,    B at 2 D - 1 - s + 2 k,
 *
 * each unit 2 D after the one before. On every rank these times never meet (the two
 * directions have different parity, because D is even) and over units they tile: only
 * the first and last D/f - 2 are idle. Each rank executes its actions in the order of
 * these times; how long it takes with B = 2 F follows from the order.
 *
 * With N micro-batches, a multiple of D, and F = B the step takes 2 N + D/f - 2 forwards;
 * with N = D, f = 1 and B = 2 F it takes 3 N + 2 (D - 2). Ranks keep the activations of at
 * most D/2 + 1 (the middle) to D (the ends) micro-batches for f = 1 and N = D, and
 * K stages' parameters.
 *
 *     D = 4, N = 4; pipe:stage.micro-batch
 *     rank 0   F0:0.0 F0:0.1 F1:3.0 B1:3.0 F1:3.1 B1:3.1 B0:0.0 B0:0.1
 *     rank 1   F0:1.0 F1:2.0 F0:1.1 F1:2.1 B1:2.0 B0:1.0 B1:2.1 B0:1.1
 *
 * Units are joined as in the paper's direct concatenation; its doubled forwards and
 * halved backwards are not here.
 *
 * Reference: Li and Hoefler, Chimera: Efficiently Training Large-Scale Neural Networks
 * with Bidirectional Pipelines, SC 2021. */

static uint32_t
n_pipes (const LsSchedShape *shape)
{
  return shape->pipes ? shape->pipes : 2;
}

static const char *
chimera_refusal (const LsSchedShape *shape)
{
  uint32_t pipes = n_pipes (shape);
  if (shape->pp % 2 != 0)
    return "pp must be even: the two directions meet in different halves of the time";
  if (pipes % 2 != 0)
    return "pipes must be even: as many go up as go down";
  if (shape->pp / 2 % (pipes / 2) != 0)
    return "half the pipes must divide half of pp";
  if (shape->n_micro_batches % pipes != 0)
    return "the number of micro-batches must be a multiple of the pipes";
  return NULL;
}

static void
chimera_order (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  uint32_t pp = shape->pp, pipes = n_pipes (shape);
  uint32_t per_pipe = shape->n_micro_batches / pipes, per_unit = pp / pipes;

  g_autoptr (GArray) slots = g_array_new (FALSE, FALSE, sizeof (LsSchedSlot));
  for (uint32_t chunk = 0; chunk < pipes; chunk++) {
    uint32_t stage = ls_place (LS_PLACE_PIPES, pp, pipes, rank, chunk).stage;
    for (uint32_t mb = 0; mb < per_pipe; mb++) {
      uint64_t begin = (uint64_t) (mb / per_unit) * 2 * pp + mb % per_unit * 2;
      ls_sched_slot_add (slots, begin + stage, LS_ACTION_F, chunk, mb);
      ls_sched_slot_add (slots, begin + 2 * pp - 1 - stage, LS_ACTION_B, chunk, mb);
    }
  }
  ls_sched_append_slots (slots, false, actions);
}

const LsSched ls_sched_chimera = {
  .name = "chimera",
  .knobs = LS_SCHED_PIPES,
  .placement = LS_PLACE_PIPES,
  .chunks = LS_CHUNKS_ONE,
  .refusal = chimera_refusal,
  .n_chunks = n_pipes,
  .order = chimera_order,
};
