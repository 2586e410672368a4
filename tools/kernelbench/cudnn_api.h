/* tools/kernelbench/cudnn_api.h — cuDNN's backend API, from a library that is loaded at run time.
 *
 * Everything that goes wrong is a Failure with the library's own words. Host code. */
#ifndef LS_KERNELBENCH_CUDNN_API_H
#define LS_KERNELBENCH_CUDNN_API_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#include "cudnn_names.h"

namespace kb {

/* The prototypes are those of cudnn_graph.h; ints are cudnnStatus_t, 0 for success. */
struct CudnnApi {
  size_t (*version) () = nullptr; /* 91900 is 9.19.0 */
  const char *(*error_string) (int) = nullptr;
  void (*last_error) (char *, size_t) = nullptr;
  int (*create) (void **handle) = nullptr;
  int (*destroy) (void *handle) = nullptr;
  int (*set_stream) (void *handle, cudaStream_t) = nullptr;
  int (*create_descriptor) (int kind, void **) = nullptr;
  int (*destroy_descriptor) (void *) = nullptr;
  int (*set_attribute) (void *, int name, int type, int64_t n, const void *) = nullptr;
  int (*get_attribute) (void *, int name, int type, int64_t n, int64_t *ret_n, void *) = nullptr;
  int (*finalize) (void *) = nullptr;
  int (*execute) (void *handle, void *plan, void *pack) = nullptr;

  /* Throws unless `status` is success: "what: CUDNN_STATUS_...: why". */
  void require (int status, const std::string &what) const;
};

/* Loads libcudnn.so.9 at the first call. Throws a Failure if it is absent, lacks a function, or is too old for attention. */
const CudnnApi &cudnn ();

/* A descriptor, which this object owns. */
class CudnnDescriptor {
public:
  explicit CudnnDescriptor (CudnnKind kind);
  CudnnDescriptor (CudnnDescriptor &&other) noexcept : at_ (std::exchange (other.at_, nullptr)) {}
  ~CudnnDescriptor ();

  void *get () const { return at_; }
  void set (CudnnName name, CudnnType type, int64_t n, const void *values);
  void set (CudnnName name, const CudnnDescriptor &value);
  void set (CudnnName name, int64_t value);
  void set (CudnnName name, bool value);
  template <typename Enum> void set_enum (CudnnName name, CudnnType type, Enum value)
  {
    int number = static_cast<int> (value);
    set (name, type, 1, &number);
  }
  void finalize (const std::string &what);

private:
  void *at_ = nullptr;
};

}

#endif
