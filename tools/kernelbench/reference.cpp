#include "reference.h"

#include <algorithm>

namespace kb {

double
gelu (double z)
{
  return 0.5 * z * (1 + std::tanh (std::sqrt (2 / M_PI) * (z + 0.044715 * z * z * z)));
}

double
gelu_slope (double z)
{
  return (gelu (z + 1e-5) - gelu (z - 1e-5)) / 2e-5;
}

static double
sigmoid (double z)
{
  return 1 / (1 + std::exp (-z));
}

double
swiglu (double gate, double up)
{
  return gate * sigmoid (gate) * up;
}

void
swiglu_bwd (double gate, double up, double dy, double *ret_dgate, double *ret_dup)
{
  double s = sigmoid (gate);
  *ret_dgate = dy * up * s * (1 + gate * (1 - s));
  *ret_dup = dy * gate * s;
}

/* One row of either norm: mean is 0 and dbeta null for RMSNorm. */
static void
norm_row_bwd (const double *x, const double *dy, const Vector &gamma, size_t h, double mean, double rstd, double *dx,
              Vector *dgamma, Vector *dbeta)
{
  double g_sum = 0, gz_sum = 0;
  for (size_t i = 0; i < h; i++) {
    double z = (x[i] - mean) * rstd, g = gamma[i] * dy[i];
    (*dgamma)[i] += dy[i] * z;
    if (dbeta)
      (*dbeta)[i] += dy[i];
    g_sum += dbeta ? g : 0;
    gz_sum += g * z;
  }
  for (size_t i = 0; i < h; i++) {
    double z = (x[i] - mean) * rstd;
    dx[i] = rstd * (gamma[i] * dy[i] - g_sum / (double) h - z * gz_sum / (double) h);
  }
}

NormReference
layernorm_reference (const Vector &x, const Vector &dy, const Vector &gamma, const Vector &beta, size_t rows,
                     size_t cols, double epsilon)
{
  NormReference r = { Vector (x.size ()), Vector (x.size ()), Vector (cols), Vector (cols), Vector (rows), Vector (rows) };
  for (size_t row = 0; row < rows; row++) {
    const double *from = &x[row * cols];
    double sum = 0, squares = 0;
    for (size_t i = 0; i < cols; i++)
      sum += from[i];
    double mean = r.mean[row] = sum / (double) cols;
    for (size_t i = 0; i < cols; i++)
      squares += (from[i] - mean) * (from[i] - mean);
    double rstd = r.rstd[row] = 1 / std::sqrt (squares / (double) cols + epsilon);
    for (size_t i = 0; i < cols; i++)
      r.y[row * cols + i] = (from[i] - mean) * rstd * gamma[i] + beta[i];
    norm_row_bwd (from, &dy[row * cols], gamma, cols, mean, rstd, &r.dx[row * cols], &r.dgamma, &r.dbeta);
  }
  return r;
}

NormReference
rmsnorm_reference (const Vector &x, const Vector &dy, const Vector &gamma, size_t rows, size_t cols, double epsilon)
{
  NormReference r = { Vector (x.size ()), Vector (x.size ()), Vector (cols), {}, {}, Vector (rows) };
  for (size_t row = 0; row < rows; row++) {
    const double *from = &x[row * cols];
    double squares = 0;
    for (size_t i = 0; i < cols; i++)
      squares += from[i] * from[i];
    double rstd = r.rstd[row] = 1 / std::sqrt (squares / (double) cols + epsilon);
    for (size_t i = 0; i < cols; i++)
      r.y[row * cols + i] = from[i] * rstd * gamma[i];
    norm_row_bwd (from, &dy[row * cols], gamma, cols, 0, rstd, &r.dx[row * cols], &r.dgamma, nullptr);
  }
  return r;
}

Vector
causal_softmax_reference (const Vector &x, size_t cols, double scale)
{
  Vector y (x.size (), 0);
  for (size_t row = 0; row < x.size () / cols; row++) {
    size_t first = row * cols, n = row % cols + 1;
    double top = *std::max_element (&x[first], &x[first] + n), sum = 0;
    for (size_t i = first; i < first + n; i++)
      sum += y[i] = std::exp (scale * (x[i] - top));
    for (size_t i = first; i < first + n; i++)
      y[i] /= sum;
  }
  return y;
}

Vector
causal_softmax_bwd_reference (const Vector &dy, const Vector &y, size_t cols, double scale)
{
  Vector dx (y.size (), 0);
  for (size_t row = 0; row < y.size () / cols; row++) {
    size_t first = row * cols, n = row % cols + 1;
    double sum = 0;
    for (size_t i = first; i < first + n; i++)
      sum += dy[i] * y[i];
    for (size_t i = first; i < first + n; i++)
      dx[i] = scale * y[i] * (dy[i] - sum);
  }
  return dx;
}

Vector
rope_reference (const Vector &x, size_t seq, size_t heads, size_t d, double base, int sign)
{
  Vector y (x.size ());
  for (size_t row = 0; row < x.size () / d; row++) {
    double position = (double) (row / heads % seq);
    for (size_t i = 0; i < d / 2; i++) {
      double angle = sign * position * std::pow (base, -2.0 * (double) i / (double) d);
      double a = x[row * d + i], b = x[row * d + i + d / 2];
      y[row * d + i] = a * std::cos (angle) - b * std::sin (angle);
      y[row * d + i + d / 2] = b * std::cos (angle) + a * std::sin (angle);
    }
  }
  return y;
}

/* The query row of one head, its probabilities p and their gradients. */
static void
attend (const AttentionShape &s, size_t sequence, size_t head, size_t t, const Vector &q, const Vector &k,
        const Vector &v, const Vector &dout, AttentionReference *r)
{
  size_t n = s.is_causal ? t + 1 : s.seq, kv_head = head / (s.heads / s.kv_heads), d = s.d;
  size_t at_q = ((sequence * s.seq + t) * s.heads + head) * d;
  auto at_kv = [&] (size_t j) { return ((sequence * s.seq + j) * s.kv_heads + kv_head) * d; };
  double scale = 1 / std::sqrt ((double) d), top = -INFINITY, sum = 0, dot = 0;
  Vector p (n), dp (n, 0);

  for (size_t j = 0; j < n; j++) {
    for (size_t i = 0; i < d; i++)
      p[j] += scale * q[at_q + i] * k[at_kv (j) + i];
    top = std::max (top, p[j]);
  }
  for (double &x : p)
    sum += x = std::exp (x - top);
  r->lse[(sequence * s.heads + head) * s.seq + t] = top + std::log (sum);
  for (size_t j = 0; j < n; j++) {
    p[j] /= sum;
    for (size_t i = 0; i < d; i++) {
      r->out[at_q + i] += p[j] * v[at_kv (j) + i];
      r->dv[at_kv (j) + i] += p[j] * dout[at_q + i];
      dp[j] += dout[at_q + i] * v[at_kv (j) + i];
    }
    dot += p[j] * dp[j];
  }
  for (size_t j = 0; j < n; j++)
    for (size_t i = 0; i < d; i++) {
      double ds = scale * p[j] * (dp[j] - dot);
      r->dq[at_q + i] += ds * k[at_kv (j) + i];
      r->dk[at_kv (j) + i] += ds * q[at_q + i];
    }
}

AttentionReference
attention_reference (const AttentionShape &s, const Vector &q, const Vector &k, const Vector &v, const Vector &dout)
{
  AttentionReference r = { Vector (q.size ()), Vector (s.sequences * s.heads * s.seq), Vector (q.size ()),
                           Vector (k.size ()), Vector (v.size ()) };
  for (size_t sequence = 0; sequence < s.sequences; sequence++)
    for (size_t head = 0; head < s.heads; head++)
      for (size_t t = 0; t < s.seq; t++)
        attend (s, sequence, head, t, q, k, v, dout, &r);
  return r;
}

CrossEntropyReference
cross_entropy_reference (const Vector &x, const std::vector<int> &target, size_t cols)
{
  size_t rows = target.size ();
  CrossEntropyReference r = { Vector (rows), Vector (x.size ()) };
  for (size_t row = 0; row < rows; row++) {
    const double *from = &x[row * cols];
    double top = *std::max_element (from, from + cols), sum = 0;
    for (size_t i = 0; i < cols; i++)
      sum += std::exp (from[i] - top);
    r.loss[row] = top + std::log (sum) - from[target[row]];
    for (size_t i = 0; i < cols; i++)
      r.dx[row * cols + i] = (std::exp (from[i] - top) / sum - (i == (size_t) target[row])) / (double) rows;
  }
  return r;
}

Vector
embedding_grad_reference (const Vector &dy, const std::vector<int> &ids, size_t n_words, size_t cols)
{
  Vector grad (n_words * cols, 0);
  for (size_t row = 0; row < ids.size (); row++)
    for (size_t i = 0; i < cols; i++)
      grad[(size_t) ids[row] * cols + i] += dy[row * cols + i];
  return grad;
}

Vector
permute_reference (const Vector &x, const std::vector<int> &source, size_t cols)
{
  Vector y;
  for (int token : source)
    y.insert (y.end (), x.begin () + (long) ((size_t) token * cols), x.begin () + (long) (((size_t) token + 1) * cols));
  return y;
}

Vector
unpermute_reference (const Vector &y, const std::vector<int> &place, const Vector &weight, size_t k, size_t cols)
{
  Vector x (place.size () / k * cols, 0);
  for (size_t slot = 0; slot < place.size (); slot++)
    for (size_t i = 0; i < cols; i++)
      x[slot / k * cols + i] += weight[slot] * y[(size_t) place[slot] * cols + i];
  return x;
}

void
route (const std::vector<int> &expert, size_t k, int n_experts, std::vector<int> *ret_source, std::vector<int> *ret_place)
{
  ret_source->clear ();
  ret_place->assign (expert.size (), 0);
  for (int e = 0; e < n_experts; e++)
    for (size_t slot = 0; slot < expert.size (); slot++)
      if (expert[slot] == e) {
        (*ret_place)[slot] = (int) ret_source->size ();
        ret_source->push_back ((int) (slot / k));
      }
}

void
adam_reference (const AdamReference &a, const Vector &grad, Vector *weight, Vector *m, Vector *v)
{
  for (size_t i = 0; i < grad.size (); i++) {
    double &w = (*weight)[i], &m1 = (*m)[i], &m2 = (*v)[i];
    m1 = a.beta1 * m1 + (1 - a.beta1) * grad[i];
    m2 = a.beta2 * m2 + (1 - a.beta2) * grad[i] * grad[i];
    double direction = m1 / (1 - std::pow (a.beta1, a.step)) / (std::sqrt (m2 / (1 - std::pow (a.beta2, a.step))) + a.epsilon);
    w -= a.rate * (direction + a.decay * w);
  }
}

/* Ten rounds on a counter, the key stepped by two Weyl constants. */
void
philox (uint32_t counter[4], uint64_t seed)
{
  uint32_t key0 = (uint32_t) seed, key1 = (uint32_t) (seed >> 32);
  for (int round = 0; round < 10; round++) {
    uint64_t p = 0xD2511F53ull * counter[0], q = 0xCD9E8D57ull * counter[2];
    uint32_t next0 = (uint32_t) (q >> 32) ^ counter[1] ^ key0, next2 = (uint32_t) (p >> 32) ^ counter[3] ^ key1;
    counter[0] = next0;
    counter[1] = (uint32_t) q;
    counter[2] = next2;
    counter[3] = (uint32_t) p;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

/* cuRAND maps a word w to (w + 1/2) / 2^32, rounded to fp32, and puts the call in the
 * low, the sequence in the high counter words. */
bool
is_kept (size_t i, size_t n_threads, float p, uint64_t seed)
{
  size_t group = i / 4;
  uint32_t word[4] = { (uint32_t) (group / n_threads), 0, (uint32_t) (group % n_threads), 0 };
  philox (word, seed);
  float uniform = std::fma ((float) word[i % 4], 0x1p-32f, 0x1p-33f);
  return uniform < 1 - p;
}

}
