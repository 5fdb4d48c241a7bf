#include "kernels/onednn.h"

#include "base/error.h"

extern "C" void omp_set_num_threads(int);  // of the OpenMP library that oneDNN uses

namespace echelon::kernels::onednn {

void one_thread() { omp_set_num_threads(1); }

dnnl::engine cpu() { return dnnl::engine(dnnl::engine::kind::cpu, 0); }

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

dnnl::memory::desc activation(const Shape& shape, Layout layout) {
  invariant(layout != Layout::batch8, "oneDNN knows no batch8");
  const auto tag = layout == Layout::plain ? dnnl::memory::format_tag::nchw : dnnl::memory::format_tag::nChw8c;
  return {{shape[0], shape[1], shape[2], shape[3]}, dnnl::memory::data_type::f32, tag};
}

Call::Call(const dnnl::engine& engine, dnnl::primitive primitive,
           const std::vector<std::pair<int, std::pair<dnnl::memory::desc, const void*>>>& arguments)
    : engine_(engine), primitive_(std::move(primitive)), stream_(engine) {
  for (const auto& [name, argument] : arguments) {
    if (argument.first.get_size() == 0) continue;  // an empty scratchpad
    memory_.emplace_back(argument.first, engine, const_cast<void*>(argument.second));
    arguments_.push_back({name, memory_.back().get()});
  }
}

void Call::operator()() const {
  one_thread();
  const auto status =
      dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
  if (status != dnnl_success) fail("oneDNN could not run a kernel (status {})", static_cast<int>(status));
}

}  // namespace echelon::kernels::onednn
