#include "plan/mesh.h"

#include <glib.h>
#include <string.h>

#include "base/gcd.h"

const char *const ls_dim_names[LS_N_DIMS] = { "tp", "cp", "ep", "dp", "pp" };

/* --- orders ---------------------------------------------------------------------------------------- */

/* The digits of the number in the base of factorials are places among the dimensions that are left (Lehmer's
 * code; Knuth, TAOCP 7.2.1.2). */
void
ls_rank_order_dims (LsRankOrder order, LsDim ret_dims[LS_N_DIMS])
{
  static const uint32_t factorial[LS_N_DIMS] = { 24, 6, 2, 1, 1 };
  g_assert (order < LS_N_RANK_ORDERS);
  uint32_t used = 0;
  for (int i = 0; order == 0 && i < LS_N_DIMS; i++)
    ret_dims[i] = (LsDim) i;
  if (order == 0)
    return;
  for (int i = 0; i < LS_N_DIMS; i++) {
    uint32_t place = order / factorial[i] % (uint32_t) (LS_N_DIMS - i), dim = 0;
    for (;; dim++)
      if (!(used & 1u << dim) && place-- == 0)
        break;
    ret_dims[i] = (LsDim) dim;
    used |= 1u << dim;
  }
}

static LsRankOrder
order_of (const LsDim dims[LS_N_DIMS])
{
  for (LsRankOrder order = 0;; order++) {
    LsDim known[LS_N_DIMS];
    ls_rank_order_dims (order, known);
    if (memcmp (known, dims, sizeof known) == 0)
      return order;
  }
}

static int
dim_of (const char *name)
{
  for (int d = 0; d < LS_N_DIMS; d++)
    if (g_ascii_strcasecmp (name, ls_dim_names[d]) == 0)
      return d;
  return -1;
}

bool
ls_rank_order_parse (const char *text, LsRankOrder *ret_order, uint32_t *ret_named)
{
  g_auto (GStrv) parts = g_strsplit (text, "-", -1);
  LsDim dims[LS_N_DIMS];
  uint32_t n = 0, named = 0;
  for (char **part = parts; *part; part++) {
    int dim = dim_of (*part);
    if (dim < 0 || (named & 1u << dim))
      return false;
    named |= 1u << dim;
    dims[n++] = (LsDim) dim;
  }
  if (n == 0)
    return false;
  for (int d = 0; d < LS_N_DIMS; d++)
    if (!(named & 1u << d))
      dims[n++] = (LsDim) d;
  *ret_order = order_of (dims);
  *ret_named = named;
  return true;
}

char *
ls_rank_order_text (LsRankOrder order)
{
  LsDim dims[LS_N_DIMS];
  ls_rank_order_dims (order, dims);
  const char *names[LS_N_DIMS + 1] = { NULL };
  for (int i = 0; i < LS_N_DIMS; i++)
    names[i] = ls_dim_names[dims[i]];
  return g_strjoinv ("-", (char **) names);
}

/* --- numbers --------------------------------------------------------------------------------------- */

/* What a dimension counts in the number of a rank: its index is rank / stride % degree. */
typedef struct {
  uint32_t degree[LS_N_DIMS], stride[LS_N_DIMS];
} LsMeshDigits;

/* Of experts: those that divide the ranks for them; ep and etp must be there. */
static LsMeshDigits
digits_of (const LsMesh *m, bool of_experts)
{
  LsMeshDigits d = { .degree = { m->tp, m->cp, 1, m->dp, m->pp } };
  if (of_experts) {
    g_assert (m->ep > 0 && m->etp > 0);
    d = (LsMeshDigits) { .degree = { m->etp, 1, m->ep, m->tp * m->cp * m->dp / (m->ep * m->etp), m->pp } };
  }
  LsDim dims[LS_N_DIMS];
  ls_rank_order_dims (m->order, dims);
  uint32_t stride = 1;
  for (int i = 0; i < LS_N_DIMS; i++) {
    d.stride[dims[i]] = stride;
    stride *= d.degree[dims[i]];
  }
  return d;
}

static uint32_t
index_of (const LsMeshDigits *d, LsDim dim, uint32_t rank)
{
  return rank / d->stride[dim] % d->degree[dim];
}

uint32_t
ls_mesh_rank (const LsMesh *m, LsCoord at)
{
  const LsMeshDigits d = digits_of (m, false);
  g_assert (at.tp < m->tp && at.cp < m->cp && at.dp < m->dp && at.pp < m->pp);
  return at.tp * d.stride[LS_DIM_TP] + at.cp * d.stride[LS_DIM_CP] + at.dp * d.stride[LS_DIM_DP]
      + at.pp * d.stride[LS_DIM_PP];
}

LsCoord
ls_mesh_coord (const LsMesh *m, uint32_t rank)
{
  const LsMeshDigits d = digits_of (m, false);
  g_assert (rank < ls_mesh_n_ranks (m));
  return (LsCoord) { .tp = index_of (&d, LS_DIM_TP, rank),
                     .cp = index_of (&d, LS_DIM_CP, rank),
                     .dp = index_of (&d, LS_DIM_DP, rank),
                     .pp = index_of (&d, LS_DIM_PP, rank) };
}

uint32_t
ls_mesh_expert_rank (const LsMesh *m, LsExpertCoord at)
{
  const LsMeshDigits d = digits_of (m, true);
  return at.etp * d.stride[LS_DIM_TP] + at.ep * d.stride[LS_DIM_EP] + at.edp * d.stride[LS_DIM_DP]
      + at.pp * d.stride[LS_DIM_PP];
}

LsExpertCoord
ls_mesh_expert_coord (const LsMesh *m, uint32_t rank)
{
  const LsMeshDigits d = digits_of (m, true);
  return (LsExpertCoord) { .etp = index_of (&d, LS_DIM_TP, rank),
                           .ep = index_of (&d, LS_DIM_EP, rank),
                           .edp = index_of (&d, LS_DIM_DP, rank),
                           .pp = index_of (&d, LS_DIM_PP, rank) };
}

bool
ls_mesh_has_one_pipeline (const LsMesh *m)
{
  return m->pp == 1 || digits_of (m, false).stride[LS_DIM_PP] == digits_of (m, true).stride[LS_DIM_PP];
}

/* Strides count where there is more than one. */
static bool
has_same_strides (const LsMesh *a, const LsMesh *b, bool of_experts)
{
  const LsMeshDigits of_a = digits_of (a, of_experts), of_b = digits_of (b, of_experts);
  for (int d = 0; d < LS_N_DIMS; d++)
    if (of_a.degree[d] > 1 && of_a.stride[d] != of_b.stride[d])
      return false;
  return true;
}

bool
ls_mesh_is_alike (const LsMesh *a, const LsMesh *b)
{
  return has_same_strides (a, b, false) && (a->ep == 0 || a->etp == 0 || has_same_strides (a, b, true));
}

/* --- copies ---------------------------------------------------------------------------------------- */

LsCoord
ls_mesh_at_copy (const LsMesh *m, LsCoord at, uint32_t copy)
{
  const LsMeshDigits d = digits_of (m, false);
  bool is_dp_first = m->cp > 1 && m->dp > 1 && d.stride[LS_DIM_DP] < d.stride[LS_DIM_CP];
  at.cp = is_dp_first ? copy / m->dp : copy % m->cp;
  at.dp = is_dp_first ? copy % m->dp : copy / m->cp;
  return at;
}

/* ---- communicators and neighbours by the rules of a mesh ---- */

/* What a rank is by its number alone. Of pipes: with f each way, p/f ranks apart, rank r has the stages s = r
 * and s = -1 - r modulo p/f; the ranks that agree in them have all their stages in common. */
typedef enum {
  DIGIT_TP,
  DIGIT_CP,
  DIGIT_DP,
  DIGIT_PP,
  DIGIT_ETP,
  DIGIT_EP,
  DIGIT_EDP,
  DIGIT_RUN,    /* of neighbours among those with the same parameters */
  DIGIT_IN_RUN, /* the place there                                    */
  DIGIT_END,    /* of the stages with an embedding or a head          */
  DIGIT_STAGES, /* which stages, of pipes                             */
  DIGIT_TURN,   /* which of the ranks with these                      */
  N_DIGITS
} Digit;

#define BIT(digit)   (1u << DIGIT_##digit)
#define STAGE_DIGITS (BIT (TP) | BIT (CP) | BIT (DP) | BIT (PP))

/* By slot: what tells communicators apart, and their members; whose exposed time it is, in one stage and in
 * several. */
static const struct {
  uint32_t group, member;
  uint8_t axis, axis_of_stages; /* LsAxis */
  bool spans_stages;
} spans[LS_SLOT_PREV] = {
  [LS_SLOT_TP] = { BIT (CP) | BIT (DP) | BIT (PP), BIT (TP), LS_AXIS_TP, LS_AXIS_TP },
  [LS_SLOT_CP] = { BIT (TP) | BIT (DP) | BIT (PP), BIT (CP), LS_AXIS_CP, LS_AXIS_CP },
  [LS_SLOT_DP] = { BIT (TP) | BIT (PP), BIT (CP) | BIT (DP), LS_AXIS_DP, LS_AXIS_DP },
  [LS_SLOT_SHARD] = { BIT (TP) | BIT (PP) | BIT (RUN), BIT (IN_RUN), LS_AXIS_DP, LS_AXIS_DP },
  [LS_SLOT_REPLICA] = { BIT (TP) | BIT (PP) | BIT (IN_RUN), BIT (RUN), LS_AXIS_DP, LS_AXIS_DP },
  [LS_SLOT_ETP] = { BIT (EP) | BIT (EDP) | BIT (PP), BIT (ETP), LS_AXIS_TP, LS_AXIS_TP },
  [LS_SLOT_EP] = { BIT (ETP) | BIT (EDP) | BIT (PP), BIT (EP), LS_AXIS_EP, LS_AXIS_EP },
  [LS_SLOT_EDP] = { BIT (ETP) | BIT (EP) | BIT (PP), BIT (EDP), LS_AXIS_DP, LS_AXIS_DP },
  [LS_SLOT_EMBEDDING] = { BIT (TP) | BIT (CP) | BIT (DP), BIT (END), LS_AXIS_TP, LS_AXIS_PP, true },
  [LS_SLOT_PIPES]
  = { BIT (TP) | BIT (CP) | BIT (DP) | BIT (STAGES), BIT (TURN), LS_AXIS_DP, LS_AXIS_DP, true },
  [LS_SLOT_TP_CP] = { BIT (DP) | BIT (PP), BIT (TP) | BIT (CP), LS_AXIS_TP, LS_AXIS_TP },
  [LS_SLOT_STAGE] = { BIT (PP), BIT (TP) | BIT (CP) | BIT (DP), LS_AXIS_DP, LS_AXIS_DP },
  [LS_SLOT_MODEL] = { BIT (CP) | BIT (DP), BIT (TP) | BIT (PP), LS_AXIS_TP, LS_AXIS_PP, true },
  [LS_SLOT_WORLD] = { 0, STAGE_DIGITS, LS_AXIS_DP, LS_AXIS_PP, true },
};

/* A digit, and what it counts for in a number. */
typedef struct {
  Digit digit;
  uint32_t weight;
} Place;

typedef struct {
  Place places[4];
  uint32_t n_places, n; /* numbers */
} Number;

/* How far the i-th is from the first, where each digit is a dimension: digits whose strides follow on each
 * other are one step. */
typedef struct {
  uint32_t n;
  struct {
    uint32_t degree, stride;
  } step[4];
} Steps;

typedef struct {
  bool is_bound;
  uint32_t first; /* communicator */
  Number group, member;
  Steps to_group;       /* to the first member of a communicator, if `each` is NULL */
  LsCommunicator like;  /* all of them, but for the first member                    */
  LsCommunicator *each; /* [group.n]; NULL: they lie alike                          */
} BoundSlot;

struct LsMeshBinding {
  LsMesh mesh;
  uint32_t degree[N_DIGITS], stride[N_DIGITS];
  uint32_t period;                     /* of stages in pipes */
  uint32_t copies_of_cp, copies_of_dp; /* by which they count in the number of a copy */
  BoundSlot slots[LS_SLOT_PREV];
};

/* --- digits ----------------------------------------------------------------------------- */

/* Those of the mesh: the index in a dimension. */
static uint32_t
digit_at (const LsMeshBinding *b, Digit digit, uint32_t rank)
{
  return rank / b->stride[digit] % b->degree[digit];
}

static uint32_t
copy_of (const LsMeshBinding *b, uint32_t rank)
{
  return digit_at (b, DIGIT_CP, rank) * b->copies_of_cp + digit_at (b, DIGIT_DP, rank) * b->copies_of_dp;
}

/* UINT32_MAX: it has none. */
static uint32_t
digit_of (const LsMeshBinding *b, Digit digit, uint32_t rank)
{
  uint32_t pp;
  switch (digit) {
  case DIGIT_RUN:
    return copy_of (b, rank) / b->mesh.shard;
  case DIGIT_IN_RUN:
    return copy_of (b, rank) % b->mesh.shard;
  case DIGIT_END:
    pp = digit_at (b, DIGIT_PP, rank);
    if (b->mesh.split > 0 && pp == b->mesh.split)
      return 1;
    return pp == 0 ? 0 : pp == b->mesh.pp - 1 ? b->degree[DIGIT_END] - 1 : UINT32_MAX;
  case DIGIT_STAGES:
    pp = digit_at (b, DIGIT_PP, rank) % b->period;
    return MIN (pp, b->period - 1 - pp);
  case DIGIT_TURN:
    pp = digit_at (b, DIGIT_PP, rank);
    return 2 * (pp / b->period) + (pp % b->period >= b->period / 2);
  default:
    return digit_at (b, digit, rank);
  }
}

static void
set_digit (LsMeshBinding *b, Digit digit, uint32_t degree, uint32_t stride)
{
  b->degree[digit] = degree;
  b->stride[digit] = stride;
}

/* Those of a division of the ranks, by its dimensions; N_DIGITS: there is none. */
static void
set_dims (LsMeshBinding *b, const LsMeshDigits *d, const Digit digit[LS_N_DIMS])
{
  for (int dim = 0; dim < LS_N_DIMS; dim++)
    if (digit[dim] != N_DIGITS)
      set_digit (b, digit[dim], d->degree[dim], d->stride[dim]);
}

/* Runs follow each other as their first ranks do. */
static void
set_runs (LsMeshBinding *b, const LsMesh *m)
{
  uint32_t n = m->cp * m->dp;
  LsCoord first = { 0 };
  set_digit (b, DIGIT_IN_RUN, m->shard, ls_mesh_rank (m, ls_mesh_at_copy (m, first, n > 1)));
  set_digit (b, DIGIT_RUN, n / m->shard,
             ls_mesh_rank (m, ls_mesh_at_copy (m, first, m->shard < n ? m->shard : 0)));
}

static LsMeshBinding *
digits_new (LsArena *arena, const LsMesh *m)
{
  static const Digit dims[] = { DIGIT_TP, DIGIT_CP, N_DIGITS, DIGIT_DP, DIGIT_PP },
                     of_experts[] = { DIGIT_ETP, N_DIGITS, DIGIT_EP, DIGIT_EDP, N_DIGITS };
  LsMeshBinding *b = ls_arena_new_array (arena, LsMeshBinding, 1);
  *b = (LsMeshBinding) { .mesh = *m };
  const LsMeshDigits d = digits_of (m, false);
  set_dims (b, &d, dims);
  bool is_dp_first = b->stride[DIGIT_DP] < b->stride[DIGIT_CP];
  b->copies_of_cp = is_dp_first ? m->dp : 1;
  b->copies_of_dp = is_dp_first ? 1 : m->cp;
  if (m->ep > 0 && m->etp > 0) {
    const LsMeshDigits e = digits_of (m, true);
    set_dims (b, &e, of_experts);
  }
  if (m->shard > 0)
    set_runs (b, m);
  b->period = m->pipes > 0 ? m->pp / (m->pipes / 2) : m->pp;
  set_digit (b, DIGIT_END, MIN (m->pp, 2) + (m->split > 0), (m->pp - 1) * b->stride[DIGIT_PP]);
  set_digit (b, DIGIT_STAGES, b->period / 2, b->stride[DIGIT_PP]);
  set_digit (b, DIGIT_TURN, m->pipes, b->stride[DIGIT_PP]);
  return b;
}

/* --- numbers ------------------------------------------------------------------------------- */

/* Of these digits, in the order of ranks: the one of the shortest stride counts 1. */
static Number
number_of_digits (const LsMeshBinding *b, uint32_t digits)
{
  Number number = { .n = 1 };
  while (digits) {
    Digit next = N_DIGITS;
    for (Digit d = 0; d < N_DIGITS; d++)
      if ((digits >> d & 1) && (next == N_DIGITS || b->stride[d] < b->stride[next]))
        next = d;
    digits &= ~(1u << next);
    if (b->degree[next] == 1)
      continue;
    number.places[number.n_places++] = (Place) { next, number.n };
    number.n *= b->degree[next];
  }
  return number;
}

static uint32_t
number_of (const LsMeshBinding *b, const Number *number, uint32_t rank)
{
  uint32_t sum = 0;
  for (uint32_t i = 0; i < number->n_places; i++) {
    uint32_t digit = digit_of (b, number->places[i].digit, rank);
    if (digit == UINT32_MAX)
      return UINT32_MAX;
    sum += digit * number->places[i].weight;
  }
  return sum;
}

static Steps
steps_of (const LsMeshBinding *b, const Number *number)
{
  Steps steps = { 0 };
  for (uint32_t p = 0; p < number->n_places; p++) {
    uint32_t degree = b->degree[number->places[p].digit], stride = b->stride[number->places[p].digit];
    bool follows = steps.n > 0 && stride == steps.step[steps.n - 1].degree * steps.step[steps.n - 1].stride;
    if (follows)
      steps.step[steps.n - 1].degree *= degree;
    else {
      steps.step[steps.n].degree = degree;
      steps.step[steps.n++].stride = stride;
    }
  }
  return steps;
}

static uint32_t
offset_of (const Steps *steps, uint32_t i)
{
  uint32_t sum = 0;
  for (uint32_t p = 0; p + 1 < steps->n; p++) {
    sum += i % steps->step[p].degree * steps->step[p].stride;
    i /= steps->step[p].degree;
  }
  return steps->n > 0 ? sum + i * steps->step[steps->n - 1].stride : 0;
}

/* --- bindings ------------------------------------------------------------------------------- */

uint32_t
ls_mesh_binding_comm (const LsMeshBinding *b, uint32_t rank, LsSlot slot, uint32_t *ret_member)
{
  const BoundSlot *s = &b->slots[slot];
  *ret_member = s->is_bound ? number_of (b, &s->member, rank) : UINT32_MAX;
  return *ret_member != UINT32_MAX ? s->first + number_of (b, &s->group, rank) : UINT32_MAX;
}

LsCommRun
ls_plan_comm_run (const LsPlan *plan, uint32_t id)
{
  if (plan->comms)
    return (LsCommRun) { .first = plan->comms[id], .n = 1 };
  const BoundSlot *s = plan->by_mesh->slots;
  while (!s->is_bound || id - s->first >= s->group.n)
    s++;
  uint32_t i = id - s->first;
  if (s->each)
    return (LsCommRun) { .first = s->each[i], .n = 1 };
  LsCommRun run = { .first = s->like, .n = 1 };
  run.first.first = offset_of (&s->to_group, i);
  if (s->to_group.n > 0) {
    run.n = s->to_group.step[0].degree - i % s->to_group.step[0].degree;
    run.stride = s->to_group.step[0].stride;
  }
  return run;
}

LsCommunicator
ls_plan_communicator (const LsPlan *plan, uint32_t id)
{
  return ls_plan_comm_run (plan, id).first;
}

uint32_t
ls_mesh_binding_peer (const LsMeshBinding *b, uint32_t rank, uint32_t peer)
{
  uint32_t pp = b->mesh.pp, at = digit_at (b, DIGIT_PP, rank);
  uint32_t before = at == 0 ? pp - 1 : at - 1, behind = at == pp - 1 ? 0 : at + 1,
           other = peer == 0 ? before : behind;
  return pp > 1 ? rank - at * b->stride[DIGIT_PP] + other * b->stride[DIGIT_PP] : UINT32_MAX;
}

uint32_t
ls_mesh_binding_comms (const LsMeshBinding *b, LsSlot slot, uint32_t *ret_first)
{
  *ret_first = b->slots[slot].first;
  return b->slots[slot].is_bound ? b->slots[slot].group.n : 0;
}

bool
ls_mesh_binding_is_same (const LsMeshBinding *a, const LsMeshBinding *b)
{
  bool is_same = memcmp (a->degree, b->degree, sizeof a->degree) == 0
      && memcmp (a->stride, b->stride, sizeof a->stride) == 0 && a->period == b->period
      && a->copies_of_cp == b->copies_of_cp && a->copies_of_dp == b->copies_of_dp
      && a->mesh.shard == b->mesh.shard && a->mesh.split == b->mesh.split;
  for (int s = 0; s < LS_SLOT_PREV && is_same; s++)
    is_same = a->slots[s].is_bound == b->slots[s].is_bound && a->slots[s].first == b->slots[s].first;
  return is_same;
}

uint32_t
ls_mesh_binding_stages (const LsMeshBinding *b)
{
  return b->mesh.pp;
}

uint32_t
ls_mesh_binding_stage (const LsMeshBinding *b, uint32_t rank)
{
  return digit_at (b, DIGIT_PP, rank);
}

uint32_t
ls_mesh_binding_first_of_stage (const LsMeshBinding *b, uint32_t stage)
{
  return stage * b->stride[DIGIT_PP];
}

uint32_t
ls_mesh_binding_end_of_stage (const LsMeshBinding *b, uint32_t rank)
{
  uint32_t n = b->mesh.pp > 1 ? b->stride[DIGIT_PP] : ls_mesh_n_ranks (&b->mesh);
  return rank - rank % n + n;
}

/* A stride divides the ranks, so a common multiple of two is no more than they are. */
uint32_t
ls_mesh_binding_repeats (const LsMeshBinding *b, uint32_t *ret_block)
{
  uint32_t unit = b->stride[DIGIT_DP];
  *ret_block = unit * b->degree[DIGIT_DP];
  if (b->slots[LS_SLOT_EP].is_bound || b->slots[LS_SLOT_ETP].is_bound || b->slots[LS_SLOT_EDP].is_bound)
    unit = b->degree[DIGIT_EDP] > 1 ? ls_lcm (unit, b->stride[DIGIT_EDP]) : *ret_block;
  if ((b->slots[LS_SLOT_SHARD].is_bound || b->slots[LS_SLOT_REPLICA].is_bound) && b->degree[DIGIT_RUN] > 1)
    unit = ls_lcm (unit, b->stride[DIGIT_RUN]);
  return unit;
}

LsBinding
ls_plan_binding (const LsPlan *plan, uint32_t rank)
{
  if (plan->bindings)
    return plan->bindings[rank];
  LsBinding b = { .role = ls_plan_role (plan, rank) };
  memset (b.comm, 0xff, sizeof b.comm);
  memset (b.member, 0xff, sizeof b.member);
  for (int s = 0; s < LS_SLOT_PREV; s++)
    b.comm[s] = ls_mesh_binding_comm (plan->by_mesh, rank, (LsSlot) s, &b.member[s]);
  for (uint32_t p = 0; p < 2; p++)
    b.peer[p] = ls_mesh_binding_peer (plan->by_mesh, rank, p);
  return b;
}

LsBinding *
ls_plan_bindings (const LsPlan *plan, LsArena *arena)
{
  LsBinding *bindings = ls_arena_new_array (arena, LsBinding, MAX (1, plan->n_ranks));
  for (uint32_t r = 0; r < plan->n_ranks; r++)
    bindings[r] = ls_plan_binding (plan, r);
  return bindings;
}

/* Communicators from `first` on. Returns how many. */
static uint32_t
bind_slot (LsMeshBinding *b, LsSlot slot, uint32_t first)
{
  BoundSlot *s = &b->slots[slot];
  *s = (BoundSlot) { .first = first,
                     .group = number_of_digits (b, spans[slot].group),
                     .member = number_of_digits (b, spans[slot].member) };
  s->is_bound = s->member.n > 1;
  return s->is_bound ? s->group.n : 0;
}

/* All communicators of dimensions lie alike: they share one table. */
static void
list_dimensions (LsPlan *plan, BoundSlot *s)
{
  const Steps to_member = steps_of (plan->by_mesh, &s->member);
  s->to_group = steps_of (plan->by_mesh, &s->group);
  s->like.offsets = ls_arena_new_array (plan->arena, uint32_t, s->member.n);
  for (uint32_t i = 0; i < s->member.n; i++)
    s->like.offsets[i] = offset_of (&to_member, i);
}

/* Those that lie like the one before them share its table. */
static void
list_each (LsPlan *plan, BoundSlot *s)
{
  uint32_t n = s->member.n;
  s->each = ls_arena_new_array (plan->arena, LsCommunicator, s->group.n);
  g_autofree uint32_t *ranks = g_new (uint32_t, (gsize) s->group.n * n);
  for (uint32_t r = 0; r < plan->n_ranks; r++) {
    uint32_t member = number_of (plan->by_mesh, &s->member, r);
    if (member != UINT32_MAX)
      ranks[(gsize) number_of (plan->by_mesh, &s->group, r) * n + member] = r;
  }
  for (uint32_t i = 0; i < s->group.n; i++) {
    LsCommunicator *c = &s->each[i];
    *c = s->like;
    uint32_t *offsets = &ranks[(gsize) i * n];
    c->first = offsets[0];
    for (uint32_t k = n; k-- > 0;)
      offsets[k] -= c->first;
    bool is_as_before = i > 0 && memcmp (c[-1].offsets, offsets, n * sizeof *offsets) == 0;
    c->offsets = is_as_before
        ? c[-1].offsets
        : memcpy (ls_arena_new_array (plan->arena, uint32_t, n), offsets, n * sizeof *offsets);
  }
}

static void
list_members (LsPlan *plan, LsSlot slot)
{
  BoundSlot *s = &plan->by_mesh->slots[slot];
  uint32_t uneven = BIT (RUN) | BIT (IN_RUN) | BIT (STAGES) | BIT (TURN)
      | (plan->by_mesh->mesh.split > 0 ? BIT (END) : 0);
  bool has_dimensions = !((spans[slot].group | spans[slot].member) & uneven);
  bool has_stages = plan->by_mesh->mesh.pp > 1;
  s->like = (LsCommunicator) { .axis = (LsAxis) (has_stages ? spans[slot].axis_of_stages : spans[slot].axis),
                               .spans_stages = has_stages && spans[slot].spans_stages,
                               .n_ranks = s->member.n };
  if (has_dimensions)
    list_dimensions (plan, s);
  else
    list_each (plan, s);
}

void
ls_plan_bind_mesh (LsPlan *plan, const LsMesh *mesh, uint32_t slots)
{
  g_assert (mesh->shard > 0 || !(slots & (LS_SLOT_BIT (LS_SLOT_SHARD) | LS_SLOT_BIT (LS_SLOT_REPLICA))));
  g_assert (mesh->pipes > 0 || !(slots & LS_SLOT_BIT (LS_SLOT_PIPES)));
  g_assert ((mesh->ep > 0 && mesh->etp > 0)
            || !(slots & (LS_SLOT_BIT (LS_SLOT_EP) | LS_SLOT_BIT (LS_SLOT_ETP) | LS_SLOT_BIT (LS_SLOT_EDP))));
  plan->n_ranks = ls_mesh_n_ranks (mesh);
  LsMeshBinding *b = plan->by_mesh = digits_new (plan->arena, mesh);
  plan->role_of_rank = NULL;
  plan->gpu_of_rank = NULL;
  plan->n_comms = 0;
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (slots & LS_SLOT_BIT (s))
      plan->n_comms += bind_slot (b, (LsSlot) s, plan->n_comms);
  plan->comms = NULL;
  for (int s = 0; s < LS_SLOT_PREV; s++)
    if (b->slots[s].is_bound)
      list_members (plan, (LsSlot) s);
}
