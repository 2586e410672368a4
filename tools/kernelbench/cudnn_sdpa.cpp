#include "cudnn_sdpa.h"

#include <cmath>
#include <limits>

#include "failure.h"

namespace kb {

using Tensor = CudnnGraph::Tensor;
using P = CudnnPointwise;

static constexpr size_t key_tile = 128; /* up to 9.15 a backward needs a padding mask for other lengths */

/* Facts of cudnn-frontend's checks (node/sdpa_support_surface.h and the node of the backward). */
static void
require_support (const AttentionShape &s, size_t version)
{
  if (version == 91000 || version == 91001)
    throw Failure ("attention of cuDNN 9.10.0 and 9.10.1 is known to be wrong: take 9.10.2 or newer");
  if (s.seq % key_tile != 0)
    throw Failure ("cuDNN is asked for sequences in multiples of 128 tokens only");
  if (s.d % 8 != 0 || s.d > 128)
    throw Failure ("attention of cuDNN takes heads of a width up to 128, a multiple of 8");
}

namespace {

/* The tensors that both directions have. */
class Sdpa {
public:
  Sdpa (const AttentionShape &shape, size_t version)
    : graph (std::make_unique<CudnnGraph> ()), g (*graph), b ((int64_t) shape.sequences), n ((int64_t) shape.seq),
      h ((int64_t) shape.heads), h_kv ((int64_t) shape.kv_heads), d ((int64_t) shape.d), is_causal (shape.is_causal),
      masked (version < 91000 ? std::numeric_limits<float>::lowest () : -std::numeric_limits<float>::infinity ())
  {
    require_support (shape, version);
  }

  std::unique_ptr<CudnnGraph> graph;

  CudnnSizes scores () const { return { b, h, n, n }; }
  CudnnSizes rows () const { return { b, h, n, 1 }; }
  CudnnSizes queries () const { return { b, h, n, d }; }
  Tensor of_queries (int64_t id) { return g.memory (id, queries (), { n * h * d, d, h * d, 1 }, CudnnData::BFLOAT16); }
  Tensor of_keys (int64_t id) { return g.memory (id, { b, h_kv, n, d }, { n * h_kv * d, d, h_kv * d, 1 }, CudnnData::BFLOAT16); }
  Tensor of_keys_transposed (int64_t id) { return g.memory (id, { b, h_kv, d, n }, { n * h_kv * d, d, 1, h_kv * d }, CudnnData::BFLOAT16); }
  Tensor of_rows (int64_t id) { return g.memory (id, rows (), dense_strides (rows ()), CudnnData::FLOAT); }

  Tensor apply (P how, Tensor x)
  {
    Tensor y = g.temporary (x.sizes);
    g.pointwise (how, x, y);
    return y;
  }
  Tensor apply (P how, Tensor x, Tensor other)
  {
    Tensor y = g.temporary (x.sizes);
    g.pointwise (how, x, other, y);
    return y;
  }
  Tensor product (Tensor a, Tensor other, const CudnnSizes &sizes)
  {
    Tensor y = g.temporary (sizes);
    g.matmul (a, other, y);
    return y;
  }
  Tensor row_reduction (CudnnReduction how, Tensor x)
  {
    Tensor y = g.temporary (rows ());
    g.reduce (how, x, y);
    return y;
  }
  Tensor scale () { return g.number (1 / std::sqrt ((float) d)); }

  /* A query sees itself and what is before it. */
  Tensor mask (Tensor x)
  {
    if (!is_causal)
      return x;
    Tensor query = g.index (x, 2), key = g.index (x, 3), y = g.temporary (x.sizes);
    Tensor sees = g.compare (P::CMP_GE, query, key);
    g.select (sees, x, g.number (masked), y);
    return y;
  }

  /* Scores, or their gradients, with rows for keys, rounded for the product to come. */
  Tensor transposed (Tensor x)
  {
    Tensor y = g.temporary (scores (), { h * n * n, n * n, 1, n }, CudnnData::BFLOAT16);
    g.reshape (x, y);
    return y;
  }

  /* By heads of the queries; those that share a head of the keys are added up. */
  void product_by_keys (Tensor x, Tensor other, Tensor gradient)
  {
    if (h == h_kv) {
      g.matmul (x, other, gradient);
      return;
    }
    Tensor by_query_head = g.temporary (queries (), CudnnData::BFLOAT16);
    g.matmul (x, other, by_query_head);
    g.reduce (CudnnReduction::ADD, by_query_head, gradient);
  }

private:
  CudnnGraph &g;
  int64_t b, n, h, h_kv, d;
  bool is_causal;
  float masked;
};

}

std::unique_ptr<CudnnGraph>
sdpa_forward (const AttentionShape &shape, size_t version)
{
  Sdpa s (shape, version);
  CudnnGraph &g = *s.graph;
  Tensor q = s.of_queries (SDPA_Q), k = s.of_keys_transposed (SDPA_K), v = s.of_keys (SDPA_V);
  Tensor out = s.of_queries (SDPA_OUT), lse = s.of_rows (SDPA_LSE);

  Tensor scores = s.mask (s.apply (P::MUL, s.product (q, k, s.scores ()), s.scale ()));
  Tensor top = s.row_reduction (CudnnReduction::MAX, scores);
  Tensor exponential = s.apply (P::EXP, s.apply (P::SUB, scores, top));
  Tensor sum = s.row_reduction (CudnnReduction::ADD, exponential);
  g.pointwise (P::ADD, top, s.apply (P::LOG, sum), lse);
  Tensor softmax = g.temporary (s.scores (), CudnnData::BFLOAT16);
  g.pointwise (P::DIV, exponential, sum, softmax);
  g.matmul (softmax, v, out);
  return std::move (s.graph);
}

/* With P = softmax, delta = sum (dout * out) of each row: dV = P^T dout, dS = P * (dout V^T - delta) / sqrt (d), dK = dS^T Q,
 * dQ = dS K (Dao 2023, "FlashAttention-2", section 3.2). */
std::unique_ptr<CudnnGraph>
sdpa_backward (const AttentionShape &shape, size_t version)
{
  Sdpa s (shape, version);
  CudnnGraph &g = *s.graph;
  Tensor q = s.of_queries (SDPA_Q), k = s.of_keys_transposed (SDPA_K), v = s.of_keys_transposed (SDPA_V);
  Tensor out = s.of_queries (SDPA_OUT), dout = s.of_queries (SDPA_DOUT), lse = s.of_rows (SDPA_LSE), delta = s.of_rows (SDPA_DELTA);
  Tensor dq = s.of_queries (SDPA_DQ), dk = s.of_keys (SDPA_DK), dv = s.of_keys (SDPA_DV), scale = s.scale ();
  Tensor dq_sum = g.memory (SDPA_DQ_SUM, s.queries (), dense_strides (s.queries ()), CudnnData::FLOAT);

  Tensor sums = s.row_reduction (CudnnReduction::ADD, s.apply (P::MUL, dout, out));
  g.pointwise (P::MUL, sums, g.number (1), delta); /* where a dropout's scale would be */

  Tensor scores = s.apply (P::MUL, s.product (q, k, s.scores ()), scale);
  Tensor softmax = s.apply (P::EXP, s.mask (s.apply (P::SUB, scores, lse)));
  s.product_by_keys (s.transposed (softmax), dout, dv);

  Tensor gradient = s.apply (P::MUL, s.apply (P::SUB, s.product (dout, v, s.scores ()), delta), softmax);
  Tensor dscores = s.apply (P::MUL, gradient, scale);
  s.product_by_keys (s.transposed (dscores), q, dk);

  int64_t kv = (int64_t) shape.kv_heads, d = (int64_t) shape.d, n = (int64_t) shape.seq;
  Tensor keys = g.temporary ({ (int64_t) shape.sequences, kv, n, d }, { n * kv * d, d, kv * d, 1 }, CudnnData::BFLOAT16);
  g.reshape (k, keys);
  g.matmul (dscores, keys, dq_sum);
  g.pointwise (P::IDENTITY, dq_sum, dq);
  return std::move (s.graph);
}

}
