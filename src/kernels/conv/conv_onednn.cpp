#include "kernels/conv/conv_onednn.h"

#include <memory>

#include "kernels/onednn.h"
#include "kernels/relayout.h"
#include "tensor/buffer.h"

namespace echelon::kernels {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto f32 = memory::data_type::f32;

// The descriptors that all three directions share.
struct Descs {
  memory::desc x, y, w_any, w_plain, bias;
  memory::dims stride, dilation, pad;

  Descs(const ConvShape& s, ConvLayouts layouts)
      : x(onednn::activation(s.in_shape(), layouts.in)),
        y(onednn::activation(s.out_shape(), layouts.out)),
        bias({s.out_c}, f32, Tag::x),
        stride{s.stride_h, s.stride_w},
        dilation{s.dilation_h - 1, s.dilation_w - 1},
        pad{s.pad_h, s.pad_w} {
    memory::dims dims{s.out_c, s.c / s.groups, s.kh, s.kw};
    if (s.groups > 1) dims = {s.groups, s.out_c / s.groups, s.c / s.groups, s.kh, s.kw};
    w_any = {dims, f32, Tag::any};
    w_plain = {dims, f32, s.groups > 1 ? Tag::goihw : Tag::oihw};
  }
  // Padding on the far side, so that the output size comes out as ours (oneDNN has no floor).
  memory::dims far_pad(const ConvShape& s) const {
    return {(s.out_h() - 1) * s.stride_h + s.dilation_h * (s.kh - 1) + 1 - s.h - s.pad_h,
            (s.out_w() - 1) * s.stride_w + s.dilation_w * (s.kw - 1) + 1 - s.w - s.pad_w};
  }
};

constexpr auto direct = dnnl::algorithm::convolution_direct;

dnnl::convolution_forward::primitive_desc forward_pd(const dnnl::engine& engine, const ConvShape& s,
                                                     ConvLayouts layouts, bool bias, bool relu) {
  onednn::one_thread();
  const Descs d(s, layouts);
  auto attr = onednn::user_scratchpad();
  if (relu) {
    dnnl::post_ops post;
    post.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
    attr.set_post_ops(post);
  }
  return {{dnnl::prop_kind::forward_training, direct, d.x, d.w_any, bias ? d.bias : memory::desc(), d.y, d.stride,
           d.dilation, d.pad, d.far_pad(s)},
          attr,
          engine};
}

dnnl::convolution_backward_data::primitive_desc backward_data_pd(const dnnl::engine& engine, const ConvShape& s,
                                                                 ConvLayouts layouts) {
  const auto hint = forward_pd(engine, s, layouts, false, false);
  const Descs d(s, layouts);
  return {
      {direct, d.x, d.w_any, d.y, d.stride, d.dilation, d.pad, d.far_pad(s)}, onednn::user_scratchpad(), engine, hint};
}

dnnl::convolution_backward_weights::primitive_desc backward_weights_pd(const dnnl::engine& engine, const ConvShape& s,
                                                                       ConvLayouts layouts, bool bias) {
  const auto hint = forward_pd(engine, s, layouts, bias, false);
  const Descs d(s, layouts);
  return {{direct, d.x, d.w_any, bias ? d.bias : memory::desc(), d.y, d.stride, d.dilation, d.pad, d.far_pad(s)},
          onednn::user_scratchpad(),
          engine,
          hint};
}

// Scratch is the weights in oneDNN's form, if that is not ours, then the primitive's own scratchpad.
struct Scratch {
  bool reorder = false;
  std::size_t weights = 0, total = 0;

  Scratch(const memory::desc& blocked, const memory::desc& plain, const memory::desc& scratchpad)
      : reorder(blocked != plain), weights(reorder ? aligned(blocked.get_size()) : 0) {
    total = weights + aligned(scratchpad.get_size());
  }
};

dnnl::reorder reorder_of(const dnnl::engine& engine, const memory::desc& from, const memory::desc& to) {
  return dnnl::reorder(dnnl::reorder::primitive_desc(engine, from, engine, to, onednn::user_scratchpad()));
}

std::size_t plain_bytes(const Shape& shape) {
  return aligned(static_cast<std::size_t>(shape.elements()) * sizeof(float));
}

// A convolution and the reorder of its weights, which runs before it (weights in) or after it (weights out).
std::function<void()> sequence(onednn::Call first, onednn::Call second) {
  if (!first) return second;
  if (!second) return first;
  return [both = std::make_shared<std::pair<onednn::Call, onednn::Call>>(std::move(first), std::move(second))] {
    both->first();
    both->second();
  };
}

// Where oneDNN has nothing but its reference (hundreds of times slower) for these layouts, what is not plain is made
// plain first, into the scratch, which it moves past what it took.
struct MadePlain {
  std::function<void()> relayout;  // empty if the tensor is plain already
  const float* plain;

  MadePlain(const Shape& shape, Layout from, const float* x, std::byte*& scratch) : plain(x) {
    if (from == Layout::plain) return;
    float* to = reinterpret_cast<float*>(scratch);
    plain = to;
    relayout = [shape, from, x, to] { kernels::relayout(shape, from, x, Layout::plain, to); };
    scratch += plain_bytes(shape);
  }
  static std::size_t bytes(const Shape& shape, Layout from) { return from == Layout::plain ? 0 : plain_bytes(shape); }
};

// Plain activations have a matrix product instead of the reference for every shape.
bool by_plain(const dnnl::convolution_backward_weights::primitive_desc& pd, ConvLayouts layouts) {
  return layouts != ConvLayouts{} && std::string_view(pd.impl_info_str()).starts_with("ref");
}

}  // namespace

std::size_t conv_onednn_forward_scratch(const ConvShape& s, ConvLayouts layouts) {
  const auto engine = onednn::cpu();
  std::size_t most = 0;
  for (const bool bias : {false, true}) {
    const auto pd = forward_pd(engine, s, layouts, bias, false);
    most = std::max(most, Scratch(pd.weights_desc(), Descs(s, layouts).w_plain, pd.scratchpad_desc()).total);
  }
  return most;
}

std::function<void()> make_conv_onednn_forward(const ConvShape& s, ConvLayouts layouts, const float* x, const float* w,
                                               const float* bias, bool relu, float* y, std::byte* scratch) {
  const auto engine = onednn::cpu();
  const auto pd = forward_pd(engine, s, layouts, bias != nullptr, relu);
  const Descs d(s, layouts);
  const Scratch plan(pd.weights_desc(), d.w_plain, pd.scratchpad_desc());
  onednn::Call reorder;
  if (plan.reorder)
    reorder = {engine,
               reorder_of(engine, d.w_plain, pd.weights_desc()),
               {{DNNL_ARG_FROM, {d.w_plain, w}}, {DNNL_ARG_TO, {pd.weights_desc(), scratch}}}};
  onednn::Call conv(engine, dnnl::convolution_forward(pd),
                    {{DNNL_ARG_SRC, {d.x, x}},
                     {DNNL_ARG_WEIGHTS, {pd.weights_desc(), plan.reorder ? static_cast<const void*>(scratch) : w}},
                     {DNNL_ARG_BIAS, {bias ? d.bias : memory::desc(), bias}},
                     {DNNL_ARG_DST, {d.y, y}},
                     {DNNL_ARG_SCRATCHPAD, {pd.scratchpad_desc(), scratch + plan.weights}}});
  return sequence(std::move(reorder), std::move(conv));
}

std::size_t conv_onednn_backward_data_scratch(const ConvShape& s, ConvLayouts layouts) {
  if (layouts.in != layouts.out)
    return plain_bytes(s.out_shape()) + conv_onednn_backward_data_scratch(s, ConvLayouts{});
  const auto engine = onednn::cpu();
  const auto pd = backward_data_pd(engine, s, layouts);
  return Scratch(pd.weights_desc(), Descs(s, layouts).w_plain, pd.scratchpad_desc()).total;
}

std::function<void()> make_conv_onednn_backward_data(const ConvShape& s, ConvLayouts layouts, const float* dy,
                                                     const float* w, float* dx, std::byte* scratch) {
  if (layouts.in != layouts.out) {  // plain dx from channel8 dy: oneDNN has only its slow reference for that
    const MadePlain out(s.out_shape(), layouts.out, dy, scratch);
    return [out, conv = make_conv_onednn_backward_data(s, {}, out.plain, w, dx, scratch)] { out.relayout(), conv(); };
  }
  const auto engine = onednn::cpu();
  const auto pd = backward_data_pd(engine, s, layouts);
  const Descs d(s, layouts);
  const Scratch plan(pd.weights_desc(), d.w_plain, pd.scratchpad_desc());
  onednn::Call reorder;
  if (plan.reorder)
    reorder = {engine,
               reorder_of(engine, d.w_plain, pd.weights_desc()),
               {{DNNL_ARG_FROM, {d.w_plain, w}}, {DNNL_ARG_TO, {pd.weights_desc(), scratch}}}};
  onednn::Call conv(engine, dnnl::convolution_backward_data(pd),
                    {{DNNL_ARG_DIFF_DST, {d.y, dy}},
                     {DNNL_ARG_WEIGHTS, {pd.weights_desc(), plan.reorder ? static_cast<const void*>(scratch) : w}},
                     {DNNL_ARG_DIFF_SRC, {d.x, dx}},
                     {DNNL_ARG_SCRATCHPAD, {pd.scratchpad_desc(), scratch + plan.weights}}});
  return sequence(std::move(reorder), std::move(conv));
}

std::size_t conv_onednn_backward_weights_scratch(const ConvShape& s, ConvLayouts layouts) {
  const auto engine = onednn::cpu();
  std::size_t most = 0;
  for (const bool bias : {false, true}) {
    const auto pd = backward_weights_pd(engine, s, layouts, bias);
    const std::size_t bytes =
        by_plain(pd, layouts)
            ? MadePlain::bytes(s.in_shape(), layouts.in) + MadePlain::bytes(s.out_shape(), layouts.out) +
                  conv_onednn_backward_weights_scratch(s, ConvLayouts{})
            : Scratch(pd.diff_weights_desc(), Descs(s, layouts).w_plain, pd.scratchpad_desc()).total;
    most = std::max(most, bytes);
  }
  return most;
}

std::function<void()> make_conv_onednn_backward_weights(const ConvShape& s, ConvLayouts layouts, const float* x,
                                                        const float* dy, float* dw, float* db, std::byte* scratch) {
  const auto engine = onednn::cpu();
  const auto pd = backward_weights_pd(engine, s, layouts, db != nullptr);
  if (by_plain(pd, layouts)) {
    const MadePlain in(s.in_shape(), layouts.in, x, scratch), out(s.out_shape(), layouts.out, dy, scratch);
    return [in, out, conv = make_conv_onednn_backward_weights(s, {}, in.plain, out.plain, dw, db, scratch)] {
      if (in.relayout) in.relayout();
      if (out.relayout) out.relayout();
      conv();
    };
  }
  const Descs d(s, layouts);
  const Scratch plan(pd.diff_weights_desc(), d.w_plain, pd.scratchpad_desc());
  onednn::Call conv(engine, dnnl::convolution_backward_weights(pd),
                    {{DNNL_ARG_SRC, {d.x, x}},
                     {DNNL_ARG_DIFF_DST, {d.y, dy}},
                     {DNNL_ARG_DIFF_WEIGHTS, {pd.diff_weights_desc(), plan.reorder ? static_cast<void*>(scratch) : dw}},
                     {DNNL_ARG_DIFF_BIAS, {db ? d.bias : memory::desc(), db}},
                     {DNNL_ARG_SCRATCHPAD, {pd.scratchpad_desc(), scratch + plan.weights}}});
  onednn::Call reorder;
  if (plan.reorder)
    reorder = {engine,
               reorder_of(engine, pd.diff_weights_desc(), d.w_plain),
               {{DNNL_ARG_FROM, {pd.diff_weights_desc(), scratch}}, {DNNL_ARG_TO, {d.w_plain, dw}}}};
  return sequence(std::move(conv), std::move(reorder));
}

}  // namespace echelon::kernels
