#include "checks.h"

#include <cmath>
#include <cstdio>

#include "failure.h"

namespace kb {

void
Checks::expect_close (const std::string &what, const std::vector<double> &out, const std::vector<double> &reference,
                      double allowed)
{
  double error = 0, norm = 0;
  for (size_t i = 0; i < reference.size (); i++) {
    error += (out[i] - reference[i]) * (out[i] - reference[i]);
    norm += reference[i] * reference[i];
  }
  double relative = norm > 0 ? std::sqrt (error / norm) : std::sqrt (error);
  bool passes = relative <= allowed && (norm > 0 || allowed == 0); /* false for NaN, and where all was zero that should not be */
  fprintf (stderr, "check %-36s %s  error %.2e, allowed %.1e\n", what.c_str (), passes ? "ok" : "FAILED", relative, allowed);
  if (!passes)
    why_[what] = format ("its check \"%s\" failed: error %.2e, allowed %.1e", what.c_str (), relative, allowed);
}

void
Checks::run (const std::vector<std::string> &kernels, const std::function<void ()> &check)
{
  try {
    check ();
  } catch (const Failure &failure) {
    require_device ("a check");
    for (const std::string &kernel : kernels) {
      fprintf (stderr, "check %-36s FAILED  %s\n", kernel.c_str (), failure.what ());
      why_[kernel] = std::string ("its check could not run: ") + failure.what ();
    }
  }
}

/* "gemm forward bf16" is of the kernel "gemm forward" too; "dropout mask" of "dropout",
 * "dropout-bwd" is not. */
static bool
is_of (const std::string &check, const std::string &kernel)
{
  return check.compare (0, kernel.size (), kernel) == 0 && (check.size () == kernel.size () || check[kernel.size ()] == ' ');
}

std::string
Checks::objection (const std::vector<std::string> &kernels) const
{
  for (const std::string &kernel : kernels)
    for (const auto &why : why_)
      if (is_of (why.first, kernel))
        return why.second;
  return "";
}

std::string
Checks::objection (const Row &row) const
{
  return objection (kernels_of (row));
}

/* Rows of products are called by their pass, or by what they multiply. */
static std::string
product_of (const Row &row)
{
  static const char *const passes[] = { "forward", "dgrad", "wgrad16", "wgrad" };
  bool is_nn = row.note.find ("layout=NN") != std::string::npos, is_nt = row.note.find ("layout=NT") != std::string::npos;
  for (const char *pass : passes)
    if (row.name == pass)
      return pass;
  bool accumulates = row.note.find ("fp32-accumulate") != std::string::npos;
  return is_nn ? "dgrad" : !is_nt ? "forward" : accumulates ? "wgrad" : "wgrad16";
}

/* Kernels that go by the name of what they are used for. */
static const struct {
  const char *use, *kernel;
} uses[] = {
  { "attention-dropout", "dropout" },         { "attention-dropout-bwd", "dropout-bwd" },
  { "bias-dropout-add-bwd", "dropout-bwd" },  { "row-bias-grad", "bias-grad" },
  { "fc1-bias-grad", "bias-grad" },           { "qkv-bias-grad", "bias-grad" },
  { "qkv-bias", "bias-add" },                 { "context-transpose", "copy" },
  { "qkv-grad-concat", "copy" },
};

std::vector<std::string>
kernels_of (const Row &row)
{
  bool is_attention = row.name.find ("flash-attention") == 0;
  if (is_attention && row.implementation != "own")
    return {}; /* checked by its shape, where it is timed */
  if (is_attention)
    return { "attention " + row.dtype + (row.name == "flash-attention-bwd" ? " bwd" : " fwd") };
  if (row.note.find ("operands=interleaved") != std::string::npos)
    return { "gemm interleaved" };
  if (row.flops > 0)
    return { "gemm " + product_of (row) + " " + row.dtype };
  for (const auto &u : uses)
    if (row.name == u.use)
      return { u.kernel };
  return { row.name };
}

}
