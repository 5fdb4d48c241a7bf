#pragma once
// The little that Echelon needs around oneDNN: descriptors for our layouts, and a primitive bound to its memory.
// Internal to kernels/.
//
// oneDNN splits its work over the OpenMP team of the calling thread, at creation (it plans for the team's size) and at
// execution. A core is our unit of compute, so both are done with a team of one: `one_thread()` is called before
// either. That setting belongs to the calling thread and costs a few nanoseconds; with a team of one oneDNN calls the
// kernel directly, without entering an OpenMP region.

#include <dnnl.hpp>

#include <cstddef>
#include <utility>
#include <vector>

#include "tensor/layout.h"

namespace echelon::kernels::onednn {

void one_thread();
dnnl::engine cpu();
dnnl::primitive_attr user_scratchpad();  // the caller, not oneDNN, provides temporary memory

// A float [N, C, H, W] activation in `plain` or `channel8`.
dnnl::memory::desc activation(const Shape& shape, Layout layout);

// A primitive with all its arguments, ready to run. Memory stays the caller's.
class Call {
 public:
  Call() = default;
  Call(const dnnl::engine& engine, dnnl::primitive primitive,
       const std::vector<std::pair<int, std::pair<dnnl::memory::desc, const void*>>>& arguments);
  void operator()() const;
  explicit operator bool() const { return !arguments_.empty(); }

 private:
  dnnl::engine engine_;  // oneDNN's objects refer to it but do not keep it
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memory_;
  std::vector<dnnl_exec_arg_t> arguments_;  // for the C interface: the C++ one builds a map on every call
};

}  // namespace echelon::kernels::onednn
