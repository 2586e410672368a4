#include "cudnn_attention.h"

#include <algorithm>
#include <set>

#include "compare.h"

namespace kb {

/* One for the program: to make one takes long. */
static void *
handle_on (cudaStream_t stream)
{
  static void *handle;
  if (!handle) {
    void *made = nullptr;
    cudnn ().require (cudnn ().create (&made), "cudnnCreate");
    handle = made;
  }
  cudnn ().require (cudnn ().set_stream (handle, stream), "cudnnSetStream");
  return handle;
}

static CudnnPlan
make_plan (cudaStream_t stream, const AttentionShape &shape, bool is_backward)
{
  size_t version = cudnn ().version ();
  CudnnTarget target;
  target.handle = handle_on (stream);
  return CudnnPlan (is_backward ? sdpa_backward (shape, version) : sdpa_forward (shape, version), target);
}

CudnnAttention::CudnnAttention (cudaStream_t stream, const AttentionShape &s, bool is_backward, const AttentionOperands &o)
  : stream_ (stream), plan_ (make_plan (stream, s, is_backward)), delta_ (is_backward ? s.sequences * s.heads * s.seq : 0),
    dq_sum_ (delta_.size () * s.d), workspace_ (plan_.workspace_bytes ())
{
  std::map<int64_t, void *> memory = { { SDPA_Q, o.q }, { SDPA_K, o.k }, { SDPA_V, o.v }, { SDPA_OUT, o.out }, { SDPA_LSE, o.lse } };
  if (is_backward)
    memory.insert ({ { SDPA_DOUT, o.dout }, { SDPA_DQ, o.dq }, { SDPA_DK, o.dk }, { SDPA_DV, o.dv }, { SDPA_DELTA, delta_.get () },
                     { SDPA_DQ_SUM, dq_sum_.get () } });
  plan_.bind (memory, workspace_.get ());
}

void
CudnnAttention::run ()
{
  if (dq_sum_.size () > 0 && !sdpa_zeroes_dq_sum (cudnn ().version ()))
    KB_CHECK (cudaMemsetAsync (dq_sum_.get (), 0, dq_sum_.size () * sizeof (float), stream_));
  plan_.run ();
}

/* --- against the reference ----------------------------------------------------------------- */

using T = __nv_bfloat16;

/* Of the same kind: as many heads of queries share one of keys. */
static AttentionShape
small_shape (const AttentionShape &s)
{
  size_t n_kv = std::min<size_t> (s.kv_heads, 2);
  return { 1, 256, n_kv * (s.heads / s.kv_heads), n_kv, s.d, s.is_causal };
}

static std::string
check_name (const AttentionShape &s, bool is_backward)
{
  return format ("attention cudnn bf16 %s d=%zu causal=%d heads-per-kv=%zu", is_backward ? "bwd" : "fwd", s.d, s.is_causal, s.heads / s.kv_heads);
}

/* As ours are compared, with the same tolerances: P and dS are rounded to 16 bits here too. */
static void
compare (Checks &checks, cudaStream_t stream, const std::string &name, const AttentionShape &s, bool is_backward)
{
  size_t n = s.sequences * s.seq * s.heads * s.d, n_kv = s.sequences * s.seq * s.kv_heads * s.d;
  Buffer<T> q = random_normal<T> (stream, n, 360), k = random_normal<T> (stream, n_kv, 361), v = random_normal<T> (stream, n_kv, 362);
  Buffer<T> dout = random_normal<T> (stream, n, 363), out = poisoned<T> (n), dq = poisoned<T> (n), dk = poisoned<T> (n_kv), dv = poisoned<T> (n_kv);
  Buffer<float> lse = poisoned<float> (s.sequences * s.heads * s.seq);
  AttentionReference r = attention_reference (s, download (stream, q), download (stream, k), download (stream, v), download (stream, dout));
  AttentionOperands o = { q.get (), k.get (), v.get (), out.get (), lse.get (), dout.get (), dq.get (), dk.get (), dv.get () };
  auto expect = [&] (const char *what, const auto &got, const Vector &reference, double times) {
    checks.expect_close (name + " " + what, download (stream, got), reference, times * bf16_tolerance ());
  };

  CudnnAttention (stream, s, false, o).run ();
  KB_CHECK (cudaStreamSynchronize (stream));
  expect ("out", out, r.out, 2);
  expect ("lse", lse, r.lse, 1);
  if (!is_backward)
    return;
  CudnnAttention (stream, s, true, o).run ();
  KB_CHECK (cudaStreamSynchronize (stream));
  expect ("dq", dq, r.dq, 3);
  expect ("dk", dk, r.dk, 3);
  expect ("dv", dv, r.dv, 3);
}

std::string
cudnn_attention_objection (Checks &checks, cudaStream_t stream, const AttentionShape &shape, bool is_backward)
{
  static std::set<std::string> seen;
  std::string name = check_name (shape, is_backward);
  if (seen.insert (name).second)
    checks.run ({ name }, [&] { compare (checks, stream, name, small_shape (shape), is_backward); });
  return checks.objection (std::vector<std::string> { name });
}

}
