// Low rank: of a matrix M the factors P and Q with M ~ P Q^T, by one step of subspace iteration from where the last
// call ended (PowerSGD, Vogels et al. 2019; Konecny et al. 2016 send a low-rank update up a slow link): P =
// orthonormal(M Q), Q = M^T P. What is no matrix, or would not become smaller, is sent as it is. Meant with error
// feedback. Bytes: for every piece P (rows x rank) and Q (columns x rank), or the numbers themselves; float32.

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "codec/codecs.h"
#include "codec/wire.h"
#include "kernels/gemm.h"
#include "tensor/buffer.h"

namespace echelon::codecs {

namespace {

class LowRank : public Codec {
 public:
  LowRank(const std::vector<CodecPiece>& pieces, std::size_t rank, bool warm) : rank_(rank), warm_(warm) {
    std::size_t most_rows = 0, most_columns = 0, most_scratch = 0;
    for (const CodecPiece& piece : pieces) {
      if (piece.size == 0) continue;
      const std::size_t columns = piece.size / piece.rows;
      Part part{.begin = numbers_, .rows = piece.rows, .columns = columns};
      part.whole = rank * (piece.rows + columns) >= piece.size;
      numbers_ += piece.size;
      bytes_ += (part.whole ? piece.size : rank * (piece.rows + columns)) * sizeof(float);
      if (!part.whole) {
        part.q = start_.size();
        start_.resize(start_.size() + rank * columns);
        most_rows = std::max(most_rows, part.rows);
        most_columns = std::max(most_columns, columns);
        for (const kernels::Gemm& g : {left(part), right(part), product(part, 1, 0), product(part, 1, 1)})
          most_scratch = std::max(most_scratch, kernels::gemm_scratch(g));
      }
      parts_.push_back(part);
    }
    for (std::size_t i = 0; i < start_.size(); ++i) start_[i] = fresh(i);
    p_ = Buffer(most_rows * rank * sizeof(float));
    q_ = Buffer(most_columns * rank * sizeof(float));
    scratch_ = Buffer(most_scratch);
  }
  Traits traits() const override { return {}; }
  std::size_t most_bytes() const override { return bytes_; }

  std::size_t encode(std::span<const float> values, const CodecStep&, std::span<std::byte> out) override {
    invariant(values.size() == numbers_ && out.size() >= bytes_, "a codec encodes the run that it was made for");
    std::byte* at = out.data();
    const auto write = [&](const float* from, std::size_t count) {
      std::memcpy(at, from, count * sizeof(float));
      at += count * sizeof(float);
    };
    for (const Part& part : parts_) {
      const float* m = values.data() + part.begin;
      if (part.whole) {
        write(m, part.rows * part.columns);
        continue;
      }
      float *p = p_.as<float>().data(), *q = start_.data() + part.q;
      refresh(part);
      kernels::gemm(left(part), m, stride(part.columns), q, stride(rank_), p, stride(rank_), scratch_.data());
      orthonormalise(p, part.rows);
      kernels::gemm(right(part), m, stride(part.columns), p, stride(rank_), q, stride(rank_), scratch_.data());
      write(p, part.rows * rank_);
      write(q, part.columns * rank_);
      if (!warm_)
        for (std::size_t i = 0; i < part.columns * rank_; ++i) q[i] = fresh(part.q + i);
    }
    return bytes_;
  }
  void add(std::span<const std::byte> bytes, float scale, std::span<float> out) const override {
    read(bytes, scale, 1, out);
  }
  void decode(std::span<const std::byte> bytes, std::span<float> out) const override { read(bytes, 1, 0, out); }
  std::vector<State> state() override {
    if (!warm_) return {};
    return {{"low_rank", std::as_writable_bytes(std::span(start_))}};
  }

 private:
  struct Part {
    std::size_t begin = 0, rows = 1, columns = 0, q = 0;  // q: where its Q is in start_
    bool whole = true;
  };
  static std::int64_t stride(std::size_t n) { return static_cast<std::int64_t>(n); }
  kernels::Gemm left(const Part& part) const {
    return {.m = stride(part.rows), .n = stride(rank_), .k = stride(part.columns)};
  }
  kernels::Gemm right(const Part& part) const {
    return {.trans_a = true, .m = stride(part.columns), .n = stride(rank_), .k = stride(part.rows)};
  }
  kernels::Gemm product(const Part& part, float alpha, float beta) const {
    return {.trans_b = true,
            .m = stride(part.rows),
            .n = stride(part.columns),
            .k = stride(rank_),
            .alpha = alpha,
            .beta = beta};
  }

  // The first Q is drawn, the same for every sender.
  static float fresh(std::size_t i) { return Stream({.seed = 0, .layer = stream_layer("low rank")}).normal(i); }

  // A direction that has died away (the matrix was zero) or was spoilt would never come back.
  void refresh(const Part& part) {
    float* q = start_.data() + part.q;
    for (std::size_t k = 0; k < rank_; ++k) {
      float largest = 0;
      bool finite = true;
      for (std::size_t i = 0; i < part.columns; ++i) {
        const float size = std::abs(q[i * rank_ + k]);
        finite = finite && std::isfinite(size);
        largest = std::max(largest, size);
      }
      if (largest < 1e-18f || !finite)
        for (std::size_t i = 0; i < part.columns; ++i) q[i * rank_ + k] = fresh(part.q + i * rank_ + k);
    }
  }

  // The columns of p made orthogonal and of length one (Gram-Schmidt, twice); those that add nothing become zero.
  void orthonormalise(float* p, std::size_t rows) {
    for (std::size_t k = 0; k < rank_; ++k) {
      double before = 0;
      for (std::size_t i = 0; i < rows; ++i) before += static_cast<double>(p[i * rank_ + k]) * p[i * rank_ + k];
      for (int time = 0; time < 2; ++time)
        for (std::size_t other = 0; other < k; ++other) {
          double dot = 0;
          for (std::size_t i = 0; i < rows; ++i) dot += static_cast<double>(p[i * rank_ + k]) * p[i * rank_ + other];
          for (std::size_t i = 0; i < rows; ++i) p[i * rank_ + k] -= static_cast<float>(dot) * p[i * rank_ + other];
        }
      double after = 0;
      for (std::size_t i = 0; i < rows; ++i) after += static_cast<double>(p[i * rank_ + k]) * p[i * rank_ + k];
      const double factor = after > 1e-10 * before && after > 1e-60 ? 1 / std::sqrt(after) : 0;
      for (std::size_t i = 0; i < rows; ++i)
        p[i * rank_ + k] = factor == 0 ? 0 : static_cast<float>(p[i * rank_ + k] * factor);
    }
  }

  void read(std::span<const std::byte> bytes, float scale, float keep, std::span<float> out) const {
    invariant(out.size() == numbers_, "a codec decodes the run that it was made for");
    if (bytes.size() != bytes_) fail("{} numbers came encoded in {} bytes, not in {}", numbers_, bytes.size(), bytes_);
    const std::byte* at = bytes.data();
    const auto take = [&](float* to, std::size_t count) {
      std::memcpy(to, at, count * sizeof(float));
      at += count * sizeof(float);
    };
    for (const Part& part : parts_) {
      float *to = out.data() + part.begin, *p = p_.as<float>().data(), *q = q_.as<float>().data();
      if (part.whole) {
        for (std::size_t i = 0; i < part.rows * part.columns; ++i, at += sizeof(float))
          to[i] = keep == 0 ? get<float>(at) : to[i] + scale * get<float>(at);
        continue;
      }
      take(p, part.rows * rank_);
      take(q, part.columns * rank_);
      kernels::gemm(product(part, scale, keep), p, stride(rank_), q, stride(rank_), to, stride(part.columns),
                    scratch_.data());
    }
  }

  std::size_t rank_, numbers_ = 0, bytes_ = 0;
  bool warm_;
  std::vector<Part> parts_;
  std::vector<float> start_;  // every part's Q, where the next call begins
  mutable Buffer p_, q_, scratch_;
};

}  // namespace

CodecMaker low_rank(OptionReader& options) {
  const auto rank = static_cast<std::size_t>(options.integer("rank", 4, 1, 1024));
  const bool warm = options.flag("warm_start", true);
  return [=](const std::vector<CodecPiece>& pieces) { return std::make_unique<LowRank>(pieces, rank, warm); };
}

}  // namespace echelon::codecs
