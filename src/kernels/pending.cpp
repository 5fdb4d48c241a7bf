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
std::int64_t check_targets(const std::int32_t* targets, std::size_t rows, std::size_t classes) {
  for (std::size_t r = 0; r < rows; ++r)
    if (targets[r] >= 0 && static_cast<std::size_t>(targets[r]) >= classes) return static_cast<std::int64_t>(r);
  return -1;
}
}  // namespace echelon::kernels
