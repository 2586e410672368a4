#include "cudnn_api.h"

#include <dlfcn.h>

#include "failure.h"

namespace kb {

static constexpr size_t first_version = 90000; /* the numbers are those of cuDNN 9 */

static void *
open_library ()
{
  for (const char *name : { "libcudnn.so.9", "libcudnn_graph.so.9" })
    if (void *library = dlopen (name, RTLD_NOW))
      return library;
  throw Failure ("libcudnn.so.9 is not found: install cuDNN 9, or name its folder in LD_LIBRARY_PATH");
}

template <typename F> static void
find (void *library, const char *name, F *ret)
{
  *ret = reinterpret_cast<F> (dlsym (library, name));
  if (!*ret)
    throw Failure (std::string ("libcudnn.so.9 has no ") + name);
}

/* 91900 is 9.19.0; before 9, 8902 was 8.9.2. */
static std::string
version_text (size_t version)
{
  size_t major = version < first_version ? version / 1000 : version / 10000, minor = version / 100 % (version < first_version ? 10 : 100);
  return std::to_string (major) + "." + std::to_string (minor) + "." + std::to_string (version % 100);
}

static CudnnApi
load ()
{
  CudnnApi api;
  void *library = open_library ();
  find (library, "cudnnGetVersion", &api.version);
  if (api.version () < first_version)
    throw Failure ("cuDNN " + version_text (api.version ()) + " is too old: attention needs 9.0");
  find (library, "cudnnGetErrorString", &api.error_string);
  find (library, "cudnnGetLastErrorString", &api.last_error);
  find (library, "cudnnCreate", &api.create);
  find (library, "cudnnDestroy", &api.destroy);
  find (library, "cudnnSetStream", &api.set_stream);
  find (library, "cudnnBackendCreateDescriptor", &api.create_descriptor);
  find (library, "cudnnBackendDestroyDescriptor", &api.destroy_descriptor);
  find (library, "cudnnBackendSetAttribute", &api.set_attribute);
  find (library, "cudnnBackendGetAttribute", &api.get_attribute);
  find (library, "cudnnBackendFinalize", &api.finalize);
  find (library, "cudnnBackendExecute", &api.execute);
  return api;
}

const CudnnApi &
cudnn ()
{
  static const CudnnApi api = load (); /* tried again by the next call if it throws */
  return api;
}

void
CudnnApi::require (int status, const std::string &what) const
{
  if (status == 0)
    return;
  char why[512] = "";
  last_error (why, sizeof why);
  std::string text = what + ": " + error_string (status);
  throw Failure (why[0] ? text + ": " + why : text);
}

CudnnDescriptor::CudnnDescriptor (CudnnKind kind)
{
  cudnn ().require (cudnn ().create_descriptor ((int) kind, &at_), "cudnnBackendCreateDescriptor");
}

CudnnDescriptor::~CudnnDescriptor ()
{
  if (at_)
    cudnn ().destroy_descriptor (at_);
}

void
CudnnDescriptor::set (CudnnName name, CudnnType type, int64_t n, const void *values)
{
  cudnn ().require (cudnn ().set_attribute (at_, (int) name, (int) type, n, values),
                    "attribute " + std::to_string ((int) name) + " of a cuDNN descriptor");
}

void
CudnnDescriptor::set (CudnnName name, const CudnnDescriptor &value)
{
  set (name, CudnnType::BACKEND_DESCRIPTOR, 1, &value.at_);
}

void
CudnnDescriptor::set (CudnnName name, int64_t value)
{
  set (name, CudnnType::INT64, 1, &value);
}

void
CudnnDescriptor::set (CudnnName name, bool value)
{
  set (name, CudnnType::BOOLEAN, 1, &value);
}

void
CudnnDescriptor::finalize (const std::string &what)
{
  cudnn ().require (cudnn ().finalize (at_), what);
}

}
