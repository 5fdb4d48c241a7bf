// The three layouts differ only in where the elements of eight lanes lie and whether the lanes are one channel or
// eight, so all run on the same sweeps over *runs* of contiguous floats:
//   channel8  a group is eight channels, one a lane; its runs are the N planes of the block
//   batch8    a group is one channel; its runs are the planes of the blocks of eight samples, lanes past N idle
//   plain     a group is one channel; its runs are its N planes, the last vector of a run perhaps not full
// The statistics are sums of (x - c) and (x - c)^2, where c is the mean of the first run. That run is a fraction 1/r
// of the data, so c is at most sqrt(r) standard deviations from the mean, and nothing that matters cancels.
#include "kernels/norm/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm/batch_norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd/lanes8-inl.h"

// What the kernels of all targets share; defined once.
#ifndef ECHELON_KERNELS_BATCH_NORM_ONCE
#define ECHELON_KERNELS_BATCH_NORM_ONCE
namespace echelon::kernels::normalisation {

struct Runs {
  std::int64_t count, step, floats;  // number of runs, distance between them, length of one
  std::int64_t idle_from = 8;        // batch8: in the last run, lanes from here on are nobody's
};

// Per lane: what the element-wise passes need of a channel.
struct Lanes {
  float mean[8], scale[8], beta[8];
  float a[8], b[8], c[8];  // backward: dx = a * dy + b * (x - mean) + c
};

struct Sums {
  double first[8], second[8];
};

enum class Mask { none, from_y, from_x };  // how the backward pass finds out where the relu let the gradient through

}  // namespace echelon::kernels::normalisation
#endif

HWY_BEFORE_NAMESPACE();
namespace echelon::kernels::normalisation::HWY_NAMESPACE {
using namespace lanes8::HWY_NAMESPACE;

// Calls act(strand, offset, floats in memory, floats that count) for every eight lanes of a run. Strand 0..3 says
// which of four independent accumulators to use.
template <class Act>
HWY_INLINE void sweep(std::int64_t from, std::int64_t floats, std::int64_t valid, const Act& act) {
  std::int64_t i = 0;
  if (valid == 8)
    for (; i + 32 <= floats; i += 32) {
      act(0, from + i, 8, 8);
      act(1, from + i + 8, 8, 8);
      act(2, from + i + 16, 8, 8);
      act(3, from + i + 24, 8, 8);
    }
  for (; i + 8 <= floats; i += 8) act(0, from + i, 8, valid);
  if (i < floats) act(0, from + i, floats - i, floats - i);
}

// Two sums of products over all runs: floats within a stretch of vectors, doubles between stretches.
template <class Terms>
HWY_INLINE void sum_runs(const Runs& r, const Terms& terms, Sums& sums) {
  std::fill_n(sums.first, 8, 0.0);
  std::fill_n(sums.second, 8, 0.0);
  F8 first[4], second[4];
  const auto clear = [&]() HWY_ATTR {
    for (int k = 0; k < 4; ++k) first[k] = second[k] = F8::set(0.0f);
  };
  const auto flush = [&]() HWY_ATTR {
    float a[8], b[8];
    ((first[0] + first[1]) + (first[2] + first[3])).store(a);
    ((second[0] + second[1]) + (second[2] + second[3])).store(b);
    for (int lane = 0; lane < 8; ++lane) sums.first[lane] += a[lane], sums.second[lane] += b[lane];
    clear();
  };
  clear();
  constexpr std::int64_t stretch = 8192;
  for (std::int64_t run = 0, since = 0; run < r.count; ++run) {
    const std::int64_t valid = run == r.count - 1 ? r.idle_from : 8;
    for (std::int64_t i = 0; i < r.floats; i += stretch) {
      const std::int64_t floats = std::min(stretch, r.floats - i);
      sweep(run * r.step + i, floats, valid,
            [&](int k, std::int64_t at, std::int64_t in_memory, std::int64_t counting)
                HWY_ATTR { terms(at, in_memory, counting, first[k], second[k]); });
      if ((since += floats) >= stretch) flush(), since = 0;
    }
  }
  flush();
}

void statistics(const Runs& r, const float* x, const float* center8, Sums& sums) {
  const F8 center = F8::load(center8);
  sum_runs(
      r,
      [&](std::int64_t at, std::int64_t in_memory, std::int64_t valid, F8& sum, F8& squares) HWY_ATTR {
        const F8 v = (F8::load(x + at, in_memory) - center).first(valid);
        sum = sum + v;
        squares = mul_add(v, v, squares);
      },
      sums);
}

template <bool residual, bool with_relu>
void normalise_as(const Runs& r, const Lanes& lanes, const float* x, const float* add, float* y) {
  const F8 mean = F8::load(lanes.mean), scale = F8::load(lanes.scale), beta = F8::load(lanes.beta);
  for (std::int64_t run = 0; run < r.count; ++run)
    sweep(run * r.step, r.floats, 8, [&](int, std::int64_t at, std::int64_t in_memory, std::int64_t) HWY_ATTR {
      F8 v = mul_add(F8::load(x + at, in_memory) - mean, scale, beta);
      if constexpr (residual) v = v + F8::load(add + at, in_memory);
      if constexpr (with_relu) v = relu(v);
      v.store(y + at, in_memory);
    });
}

void normalise(const Runs& r, const Lanes& lanes, const float* x, const float* residual, bool relu, float* y) {
  if (residual)
    relu ? normalise_as<true, true>(r, lanes, x, residual, y) : normalise_as<true, false>(r, lanes, x, residual, y);
  else
    relu ? normalise_as<false, true>(r, lanes, x, residual, y) : normalise_as<false, false>(r, lanes, x, residual, y);
}

// dy where the relu let it through. The mask from x repeats the forward pass's arithmetic, hence its exact signs.
template <Mask mask>
HWY_INLINE F8 through(F8 dy, F8 from_mean, F8 scale, F8 beta, const float* y, std::int64_t at, std::int64_t in_memory) {
  if constexpr (mask == Mask::from_y) return where_positive(F8::load(y + at, in_memory), dy);
  if constexpr (mask == Mask::from_x) return where_positive(mul_add(from_mean, scale, beta), dy);
  return dy;
}

template <Mask mask>
void gradient_sums_as(const Runs& r, const Lanes& lanes, const float* x, const float* dy, const float* y,
                      float* d_residual, Sums& sums) {
  const F8 mean = F8::load(lanes.mean), scale = F8::load(lanes.scale), beta = F8::load(lanes.beta);
  sum_runs(
      r,
      [&](std::int64_t at, std::int64_t in_memory, std::int64_t valid, F8& sum, F8& dot) HWY_ATTR {
        const F8 from_mean = (F8::load(x + at, in_memory) - mean).first(valid);
        const F8 g = through<mask>(F8::load(dy + at, in_memory), from_mean, scale, beta, y, at, in_memory).first(valid);
        if (d_residual) g.store(d_residual + at, in_memory);
        sum = sum + g;
        dot = mul_add(g, from_mean, dot);
      },
      sums);
}

template <Mask mask>
void gradient_as(const Runs& r, const Lanes& lanes, const float* x, const float* dy, const float* y, float* dx) {
  const F8 mean = F8::load(lanes.mean), scale = F8::load(lanes.scale), beta = F8::load(lanes.beta);
  const F8 a = F8::load(lanes.a), b = F8::load(lanes.b), c = F8::load(lanes.c);
  for (std::int64_t run = 0; run < r.count; ++run)
    sweep(run * r.step, r.floats, 8, [&](int, std::int64_t at, std::int64_t in_memory, std::int64_t) HWY_ATTR {
      const F8 from_mean = F8::load(x + at, in_memory) - mean;
      const F8 g = through<mask>(F8::load(dy + at, in_memory), from_mean, scale, beta, y, at, in_memory);
      mul_add(a, g, mul_add(b, from_mean, c)).store(dx + at, in_memory);
    });
}

void gradient_sums(const Runs& r, const Lanes& lanes, Mask mask, const float* x, const float* dy, const float* y,
                   float* d_residual, Sums& sums) {
  switch (mask) {
    case Mask::none: return gradient_sums_as<Mask::none>(r, lanes, x, dy, y, d_residual, sums);
    case Mask::from_y: return gradient_sums_as<Mask::from_y>(r, lanes, x, dy, y, d_residual, sums);
    case Mask::from_x: return gradient_sums_as<Mask::from_x>(r, lanes, x, dy, y, d_residual, sums);
  }
}

void gradient(const Runs& r, const Lanes& lanes, Mask mask, const float* x, const float* dy, const float* y,
              float* dx) {
  switch (mask) {
    case Mask::none: return gradient_as<Mask::none>(r, lanes, x, dy, y, dx);
    case Mask::from_y: return gradient_as<Mask::from_y>(r, lanes, x, dy, y, dx);
    case Mask::from_x: return gradient_as<Mask::from_x>(r, lanes, x, dy, y, dx);
  }
}

}  // namespace echelon::kernels::normalisation::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echelon::kernels {
namespace normalisation {
namespace {
HWY_EXPORT(statistics);
HWY_EXPORT(normalise);
HWY_EXPORT(gradient_sums);
HWY_EXPORT(gradient);

// How a layout falls into groups of eight lanes.
struct Groups {
  std::int64_t count, step;  // groups, and the distance between their first runs
  int channels;              // of a group: 8, or 1 that all lanes share
  Runs runs;

  Groups(const BatchNormShape& s, Layout layout) {
    const std::int64_t plane = s.pixels * (layout == Layout::plain ? 1 : 8);
    channels = layout == Layout::channel8 ? 8 : 1;
    count = s.c / channels, step = plane;
    runs = {layout == Layout::batch8 ? (s.n + 7) / 8 : s.n, count * plane, plane};
    if (layout == Layout::batch8 && s.n % 8 != 0) runs.idle_from = s.n % 8;
    invariant(layout != Layout::channel8 || s.c % 8 == 0, "channel8 fits the channels");
  }
  int channel(int lane) const { return channels == 8 ? lane : 0; }

  // Sums over the elements of each channel, still one value a lane.
  void fold(double (&v)[8]) const {
    if (channels == 8) return;
    const double all = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
    std::fill_n(v, 8, all);
  }
};

}  // namespace
}  // namespace normalisation

using namespace normalisation;

void batch_norm_forward(const BatchNormShape& s, Layout layout, const BatchNormForward& args) {
  const Groups groups(s, layout);
  const double count = static_cast<double>(s.n * s.pixels);
  for (std::int64_t g = 0; g < groups.count; ++g) {
    const float* x = args.x + g * groups.step;
    Runs first = groups.runs;
    first.count = 1;
    if (groups.runs.count > 1) first.idle_from = 8;
    const double in_first = static_cast<double>(groups.channels == 8       ? s.pixels
                                                : layout == Layout::batch8 ? s.pixels * first.idle_from
                                                                           : s.pixels);
    Sums sums;
    float center[8] = {};
    HWY_DYNAMIC_DISPATCH(statistics)(first, x, center, sums);
    groups.fold(sums.first);
    for (int lane = 0; lane < 8; ++lane) center[lane] = static_cast<float>(sums.first[lane] / in_first);
    HWY_DYNAMIC_DISPATCH(statistics)(groups.runs, x, center, sums);
    groups.fold(sums.first);
    groups.fold(sums.second);
    Lanes lanes;
    for (int lane = 0; lane < 8; ++lane) {
      const std::int64_t c = g * groups.channels + groups.channel(lane);
      const double shift = sums.first[lane] / count;
      const double variance = std::max(0.0, sums.second[lane] / count - shift * shift);
      const double rstd = 1 / std::sqrt(variance + static_cast<double>(args.eps));
      args.mean[c] = lanes.mean[lane] = static_cast<float>(center[lane] + shift);
      args.rstd[c] = static_cast<float>(rstd);
      if (args.variance) args.variance[c] = static_cast<float>(variance);
      lanes.scale[lane] = args.rstd[c] * args.gamma[c];
      lanes.beta[lane] = args.beta[c];
    }
    HWY_DYNAMIC_DISPATCH(normalise)
    (groups.runs, lanes, x, args.residual ? args.residual + g * groups.step : nullptr, args.relu,
     args.y + g * groups.step);
  }
}

void batch_norm_inference(const BatchNormShape& s, Layout layout, const BatchNormInference& args) {
  const Groups groups(s, layout);
  for (std::int64_t g = 0; g < groups.count; ++g) {
    Lanes lanes;
    for (int lane = 0; lane < 8; ++lane) {
      const std::int64_t c = g * groups.channels + groups.channel(lane);
      lanes.mean[lane] = args.mean[c];
      lanes.scale[lane] =
          static_cast<float>(args.gamma[c] / std::sqrt(static_cast<double>(args.variance[c]) + args.eps));
      lanes.beta[lane] = args.beta[c];
    }
    const std::int64_t at = g * groups.step;
    HWY_DYNAMIC_DISPATCH(normalise)
    (groups.runs, lanes, args.x + at, args.residual ? args.residual + at : nullptr, args.relu, args.y + at);
  }
}

void batch_norm_backward(const BatchNormShape& s, Layout layout, const BatchNormBackward& args) {
  const Groups groups(s, layout);
  const double count = static_cast<double>(s.n * s.pixels);
  const Mask mask = !args.relu ? Mask::none : args.y ? Mask::from_y : Mask::from_x;
  for (std::int64_t g = 0; g < groups.count; ++g) {
    const std::int64_t at = g * groups.step;
    Lanes lanes;
    for (int lane = 0; lane < 8; ++lane) {
      const std::int64_t c = g * groups.channels + groups.channel(lane);
      lanes.mean[lane] = args.mean[c];
      lanes.scale[lane] = args.rstd[c] * args.gamma[c];
      lanes.beta[lane] = args.beta[c];
    }
    const float* y = args.y ? args.y + at : nullptr;
    float* d_residual = args.d_residual ? args.d_residual + at : nullptr;
    Sums sums;
    HWY_DYNAMIC_DISPATCH(gradient_sums)
    (groups.runs, lanes, mask, args.x + at, args.dy + at, y, d_residual, sums);
    groups.fold(sums.first);
    groups.fold(sums.second);
    for (int lane = 0; lane < 8; ++lane) {
      const std::int64_t c = g * groups.channels + groups.channel(lane);
      const double rstd = args.rstd[c], a = args.gamma[c] * rstd;
      args.dbeta[c] = static_cast<float>(sums.first[lane]);
      args.dgamma[c] = static_cast<float>(sums.second[lane] * rstd);
      lanes.a[lane] = static_cast<float>(a);
      lanes.b[lane] = static_cast<float>(-a * rstd * rstd * sums.second[lane] / count);
      lanes.c[lane] = static_cast<float>(-a * sums.first[lane] / count);
    }
    // d_residual, once written, is dy with the relu already applied.
    HWY_DYNAMIC_DISPATCH(gradient)
    (groups.runs, lanes, d_residual ? Mask::none : mask, args.x + at, d_residual ? d_residual : args.dy + at, y,
     args.dx + at);
  }
}

}  // namespace echelon::kernels
#endif
