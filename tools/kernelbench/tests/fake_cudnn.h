/* tests/fake_cudnn.h — descriptors of the made-up cuDNN (fake_cudnn.cpp). */
#ifndef LS_KERNELBENCH_TESTS_FAKE_CUDNN_H
#define LS_KERNELBENCH_TESTS_FAKE_CUDNN_H

#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "../cudnn_names.h"

namespace kb {

struct Descriptor {
  CudnnKind kind;
  bool is_final = false;
  std::map<CudnnName, std::vector<char>> values;
  Descriptor *graph = nullptr; /* of a configuration: for which, and the how manieth proposal */
  int index = 0;

  bool has (CudnnName name) const { return values.count (name) > 0; }
  template <typename T> std::vector<T> all (CudnnName name) const
  {
    auto found = values.find (name);
    if (found == values.end ())
      return {};
    std::vector<T> out (found->second.size () / sizeof (T));
    memcpy (out.data (), found->second.data (), found->second.size ());
    return out;
  }
  template <typename T> T one (CudnnName name) const { return all<T> (name).at (0); }
  Descriptor *at (CudnnName name) const { return has (name) ? one<Descriptor *> (name) : nullptr; }
  bool is_set (CudnnName name) const { return has (name) && one<char> (name); }
};

using Sizes = std::vector<int64_t>;

inline Sizes sizes_of (const Descriptor *tensor) { return tensor->all<int64_t> (CudnnName::TENSOR_DIMENSIONS); }
inline int64_t id_of (const Descriptor *tensor) { return tensor->one<int64_t> (CudnnName::TENSOR_UNIQUE_ID); }
inline CudnnData type_of (const Descriptor *tensor) { return tensor->one<CudnnData> (CudnnName::TENSOR_DATA_TYPE); }

inline int64_t
product (const Sizes &sizes)
{
  int64_t n = 1;
  for (int64_t size : sizes)
    n *= size;
  return n;
}

/* Tensors of an operation: inputs, then the output. */
std::vector<Descriptor *> tensors_of (const Descriptor &operation);
/* Computes a finalized operation graph in double precision; what lies in memory is rounded as its type is. memory: an address for each
 * id of a tensor that is not virtual. */
void compute_graph (const Descriptor &graph, const std::map<int64_t, void *> &memory);

}

#endif
