// Forwards to the reference twins whatever has no SIMD version yet.
#include <cstring>
#include "kernels/dropout.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/layer_norm.h"
#include "kernels/loss.h"
#include "kernels/reduce.h"
#include "kernels/softmax.h"
#include "kernels/update.h"
#include "kernels/vector.h"

namespace echelon::kernels {
void elementwise(std::span<const EwStep> program, std::span<const float* const> in, float* out, std::size_t n) {
  return ref_elementwise(program, in, out, n);
}
double sum(const float* x, std::size_t n) { return ref_sum(x, n); }
double dot(const float* x, const float* y, std::size_t n) { return ref_dot(x, y, n); }
double squared_norm(const float* x, std::size_t n) { return ref_squared_norm(x, n); }
float max_abs(const float* x, std::size_t n) { return ref_max_abs(x, n); }
bool all_finite(const float* x, std::size_t n) { return ref_all_finite(x, n); }
void column_sum(const float* x, std::size_t rows, std::size_t cols, float* out) {
  return ref_column_sum(x, rows, cols, out);
}
void add_row_bias(float* y, const float* bias, std::size_t rows, std::size_t cols, bool relu) {
  return ref_add_row_bias(y, bias, rows, cols, relu);
}
void channel_sum(const float* x, Layout layout, ImageExtents e, float* out) {
  return ref_channel_sum(x, layout, e, out);
}
void add_channel_bias(float* y, Layout layout, ImageExtents e, const float* bias, bool relu) {
  return ref_add_channel_bias(y, layout, e, bias, relu);
}
void add(float* dst, const float* a, const float* b, std::size_t n) { return ref_add(dst, a, b, n); }
void scale(float* dst, const float* src, float c, std::size_t n) { return ref_scale(dst, src, c, n); }
void axpy(float* dst, float c, const float* x, std::size_t n) { return ref_axpy(dst, c, x, n); }
void lerp(float* dst, const float* a, const float* b, float t, std::size_t n) { return ref_lerp(dst, a, b, t, n); }
void sgd(const SgdSettings& s, float* w, const float* g, std::size_t n) { return ref_sgd(s, w, g, n); }
void momentum(const SgdSettings& s, float* w, const float* g, float* velocity, std::size_t n) {
  return ref_momentum(s, w, g, velocity, n);
}
void nesterov(const SgdSettings& s, float* w, const float* g, float* velocity, std::size_t n) {
  return ref_nesterov(s, w, g, velocity, n);
}
void lars(const SgdSettings& s, double trust, float* w, const float* g, float* velocity, std::size_t n) {
  return ref_lars(s, trust, w, g, velocity, n);
}
void adagrad(const AdagradSettings& s, float* w, const float* g, float* square_sum, std::size_t n) {
  return ref_adagrad(s, w, g, square_sum, n);
}
void adadelta(const AdadeltaSettings& s, float* w, const float* g, float* square_avg, float* delta_avg, std::size_t n) {
  return ref_adadelta(s, w, g, square_avg, delta_avg, n);
}
void rmsprop(const RmspropSettings& s, float* w, const float* g, float* square_avg, float* velocity, std::size_t n) {
  return ref_rmsprop(s, w, g, square_avg, velocity, n);
}
void adam(const AdamSettings& s, float* w, const float* g, float* m, float* v, std::size_t n) {
  return ref_adam(s, w, g, m, v, n);
}
void adamw(const AdamSettings& s, float* w, const float* g, float* m, float* v, std::size_t n) {
  return ref_adamw(s, w, g, m, v, n);
}
void lamb_direction(const AdamSettings& s, const float* w, const float* g, float* m, float* v, float* direction,
                    std::size_t n) {
  return ref_lamb_direction(s, w, g, m, v, direction, n);
}
void lamb_apply(double lr_times_trust, float* w, const float* direction, std::size_t n) {
  return ref_lamb_apply(lr_times_trust, w, direction, n);
}
ClassLoss cross_entropy(const float* logits, const std::int32_t* targets, std::size_t rows, std::size_t cols,
                        float smoothing, float* row_loss) {
  return ref_cross_entropy(logits, targets, rows, cols, smoothing, row_loss);
}
ClassLoss cross_entropy_grad(const float* logits, const std::int32_t* targets, std::size_t rows, std::size_t cols,
                             float smoothing, float scale, float* dlogits, float* row_loss) {
  return ref_cross_entropy_grad(logits, targets, rows, cols, smoothing, scale, dlogits, row_loss);
}
double mse(const float* x, const float* t, std::size_t n) { return ref_mse(x, t, n); }
double l1(const float* x, const float* t, std::size_t n) { return ref_l1(x, t, n); }
double huber(const float* x, const float* t, float delta, std::size_t n) { return ref_huber(x, t, delta, n); }
double bce_with_logits(const float* x, const float* t, std::size_t n) { return ref_bce_with_logits(x, t, n); }
void mse_grad(const float* x, const float* t, float scale, float* dx, std::size_t n) {
  return ref_mse_grad(x, t, scale, dx, n);
}
void l1_grad(const float* x, const float* t, float scale, float* dx, std::size_t n) {
  return ref_l1_grad(x, t, scale, dx, n);
}
void huber_grad(const float* x, const float* t, float delta, float scale, float* dx, std::size_t n) {
  return ref_huber_grad(x, t, delta, scale, dx, n);
}
void bce_with_logits_grad(const float* x, const float* t, float scale, float* dx, std::size_t n) {
  return ref_bce_with_logits_grad(x, t, scale, dx, n);
}
void softmax(const float* x, float* y, std::size_t rows, std::size_t cols) { return ref_softmax(x, y, rows, cols); }
void softmax_grad(const float* y, const float* dy, float* dx, std::size_t rows, std::size_t cols) {
  return ref_softmax_grad(y, dy, dx, rows, cols);
}
void log_softmax(const float* x, float* y, std::size_t rows, std::size_t cols) {
  return ref_log_softmax(x, y, rows, cols);
}
void log_softmax_grad(const float* y, const float* dy, float* dx, std::size_t rows, std::size_t cols) {
  return ref_log_softmax_grad(y, dy, dx, rows, cols);
}
void layer_norm(const float* x, const float* gamma, const float* beta, float eps, float* y, float* mean, float* rstd,
                std::size_t rows, std::size_t cols) {
  return ref_layer_norm(x, gamma, beta, eps, y, mean, rstd, rows, cols);
}
void layer_norm_grad(const float* x, const float* gamma, const float* mean, const float* rstd, const float* dy,
                     float* dx, float* dgamma, float* dbeta, std::size_t rows, std::size_t cols) {
  return ref_layer_norm_grad(x, gamma, mean, rstd, dy, dx, dgamma, dbeta, rows, cols);
}
std::int64_t check_ids(std::span<const std::int32_t> ids, std::size_t vocabulary) {
  return ref_check_ids(ids, vocabulary);
}
void embedding(const float* table, std::span<const std::int32_t> ids, float* out, std::size_t dim) {
  return ref_embedding(table, ids, out, dim);
}
void embedding_grad(std::span<const std::int32_t> ids, const float* dy, float* dtable, std::size_t dim) {
  return ref_embedding_grad(ids, dy, dtable, dim);
}
void dropout(const Stream& stream, float p, const float* x, float* y, std::size_t n) {
  return ref_dropout(stream, p, x, y, n);
}
void fill_uniform(const Stream& stream, std::uint64_t offset, std::span<float> out) {
  return ref_fill_uniform(stream, offset, out);
}
void fill_normal(const Stream& stream, std::uint64_t offset, std::span<float> out) {
  return ref_fill_normal(stream, offset, out);
}
void fill(float* dst, float value, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dst[i] = value;
}
void copy(float* dst, const float* src, std::size_t n) {
  if (dst != src && n) std::memmove(dst, src, n * sizeof(float));
}
void add_into(float* dst, const float* src, std::size_t n) { ref_add(dst, dst, src, n); }
std::int64_t check_targets(const std::int32_t* targets, std::size_t rows, std::size_t classes) {
  for (std::size_t r = 0; r < rows; ++r)
    if (targets[r] >= 0 && static_cast<std::size_t>(targets[r]) >= classes) return static_cast<std::int64_t>(r);
  return -1;
}
std::string_view name_of(Ew op) {
  static constexpr std::string_view names[ew_ops] = {"add",        "sub",
                                                     "mul",        "div",
                                                     "max",        "min",
                                                     "greater",    "neg",
                                                     "abs",        "sign",
                                                     "square",     "sqrt",
                                                     "exp",        "log",
                                                     "scale",      "offset",
                                                     "clamp",      "relu",
                                                     "leaky_relu", "gelu",
                                                     "sigmoid",    "tanh",
                                                     "softplus",   "elu",
                                                     "relu_grad",  "leaky_relu_grad",
                                                     "gelu_grad",  "sigmoid_grad",
                                                     "tanh_grad",  "softplus_grad",
                                                     "elu_grad"};
  return names[static_cast<int>(op)];
}
bool is_valid(std::span<const EwStep> program, std::size_t inputs) {
  if (program.empty() || program.size() > max_ew_steps || inputs == 0 || inputs > max_ew_inputs) return false;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto known = static_cast<int>(inputs + i);
    const EwStep& step = program[i];
    if (step.a < 0 || step.a >= known) return false;
    if (arity(step.op) == 2 && (step.b < 0 || step.b >= known)) return false;
  }
  return true;
}
}  // namespace echelon::kernels
