// Low rank: of a matrix M the factors P and Q with M ~ P Q^T, by one step of subspace iteration from where the last
// call ended (PowerSGD, Vogels et al. 2019; Konecny et al. 2016 send a low-rank update up a slow link): P =
// orthonormal(M Q), Q = M^T P. Senders that encode together sum M Q before it is made orthonormal, and M^T P
// afterwards: then P Q^T is of the sum of their matrices, in as many bytes as one's. What is no matrix, or would not
// become smaller, is sent as it is. Meant with error feedback. Bytes: for every piece the columns of P, one after the
// other, and those of Q, or the numbers themselves; float32.

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "codec/codecs.h"
#include "codec/kernels/few_vectors.h"
#include "codec/wire/wire.h"
#include "kernels/reduce.h"
#include "kernels/vector.h"
#include "tensor/buffer.h"

namespace echelon::codecs {

namespace {

class LowRank : public Codec {
 public:
  LowRank(const std::vector<CodecPiece>& pieces, std::size_t rank, bool warm) : rank_(rank), warm_(warm) {
    std::size_t most_rows = 0, most_columns = 0;
    for (const CodecPiece& piece : pieces) {
      if (piece.size == 0) continue;
      const std::size_t columns = piece.size / piece.rows;
      Part part{.begin = numbers_, .rows = piece.rows, .columns = columns};
      part.whole = rank * (piece.rows + columns) >= piece.size;
      numbers_ += piece.size;
      bytes_ += (part.whole ? piece.size : rank * (piece.rows + columns)) * sizeof(float);
      part.first = first_numbers_;
      first_numbers_ += part.whole ? piece.size : rank * piece.rows;
      if (!part.whole) {
        part.q = start_.size();
        start_.resize(start_.size() + rank * columns);
        most_rows = std::max(most_rows, part.rows);
        most_columns = std::max(most_columns, columns);
      }
      parts_.push_back(part);
    }
    for (std::size_t i = 0; i < start_.size(); ++i) start_[i] = fresh(i);
    p_ = Buffer(most_rows * rank * sizeof(float));
    q_ = Buffer(most_columns * rank * sizeof(float));
  }
  Traits traits() const override { return {.matrices = true}; }
  std::size_t most_bytes() const override { return bytes_; }

  std::size_t encode(std::span<const float> values, const CodecStep&, std::span<std::byte> out) override {
    return write(values, out, {}, {});
  }
  std::size_t encode_rest(std::span<float> values, const CodecStep&, std::span<std::byte> out) override {
    return write(values, out, {}, values);
  }
  std::size_t encode_sum(std::span<float> values, std::span<const float> more, const CodecStep&,
                         std::span<std::byte> out) override {
    invariant(values.size() == more.size(), "sums are of as many numbers");
    return write(values, out, more, values);
  }
  void add(std::span<const std::byte> bytes, float scale, std::span<float> out) const override {
    read(bytes, scale, 1, out);
  }
  void decode(std::span<const std::byte> bytes, std::span<float> out) const override { read(bytes, 1, 0, out); }

  Rounds rounds() const override { return {first_numbers_, start_.size()}; }
  // P = M Q of every matrix, and what is no matrix as it is.
  std::span<float> first_round(std::span<const float> values) override {
    invariant(values.size() == numbers_, "a codec encodes the run that it was made for");
    first_.resize(first_numbers_);
    for (const Part& part : parts_) {
      const float* m = values.data() + part.begin;
      float* to = first_.data() + part.first;
      if (part.whole) {
        kernels::copy(to, m, part.rows * part.columns);
        continue;
      }
      refresh(part);
      by_rows(part, [&](std::size_t i, const SomeRows& rows) {
        rows_by_vectors(rows, m + i * part.columns, start_.data() + part.q, to + i);
      });
    }
    return first_;
  }
  // The sum of all senders' P is the same for all, and so is what is made of it. Q = M^T P is each sender's own again.
  std::span<float> second_round(std::span<float> values) override {
    for (const Part& part : parts_) {
      float *m = values.data() + part.begin, *p = first_.data() + part.first, *q = start_.data() + part.q;
      if (!part.whole) {
        orthonormalise(p, part.rows);
        vectors_by_rows(all_of(part), m, p, q);
      }
      subtract(part, p, q, m);
    }
    return start_;
  }
  void decode_rounds(std::span<float> out) override {
    for (const Part& part : parts_) {
      float *to = out.data() + part.begin, *p = first_.data() + part.first;
      kernels::copy(to, p, part.whole ? part.rows * part.columns : 0);
      if (part.whole) continue;
      kernels::fill(to, 0, part.rows * part.columns);
      add_product(all_of(part), 1, p, start_.data() + part.q, to);
    }
    if (!warm_)
      for (std::size_t i = 0; i < start_.size(); ++i) start_[i] = fresh(i);
  }

  std::vector<State> state() override {
    if (!warm_) return {};
    return {{"low_rank", std::as_writable_bytes(std::span(start_))}};
  }

 private:
  struct Part {
    std::size_t begin = 0, rows = 1, columns = 0;
    std::size_t q = 0, first = 0;  // where its Q is in start_, and its P in first_
    bool whole = true;
  };
  SomeRows all_of(const Part& part) const {
    return {.rows = part.rows, .columns = part.columns, .all_rows = part.rows, .count = rank_};
  }
  // f(the first of a few rows, those rows): few enough for the nearest caches.
  template <class F>
  void by_rows(const Part& part, const F& f) const {
    const std::size_t some = std::max<std::size_t>(1, 4096 / part.columns);
    SomeRows rows = all_of(part);
    for (std::size_t i = 0; i < part.rows; i += some) {
      rows.rows = std::min(some, part.rows - i);
      f(i, rows);
    }
  }

  // `rest`, if not empty, is where the values can be written: `more` is added to them before, and what was sent is
  // taken off.
  std::size_t write(std::span<const float> values, std::span<std::byte> out, std::span<const float> more,
                    std::span<float> rest) {
    invariant(values.size() == numbers_ && out.size() >= bytes_, "a codec encodes the run that it was made for");
    std::byte* at = out.data();
    const auto put_floats = [&](const float* from, std::size_t count) {
      std::memcpy(at, from, count * sizeof(float));
      at += count * sizeof(float);
    };
    const auto prepare = [&](std::size_t begin, std::size_t count) {
      if (!more.empty()) kernels::add_into(rest.data() + begin, more.data() + begin, count);
    };
    for (const Part& part : parts_) {
      const float* m = values.data() + part.begin;
      if (part.whole) {
        prepare(part.begin, part.rows * part.columns);
        put_floats(m, part.rows * part.columns);
        if (!rest.empty()) subtract(part, nullptr, nullptr, rest.data() + part.begin);
        continue;
      }
      float *p = p_.as<float>().data(), *q = start_.data() + part.q;
      refresh(part);
      by_rows(part, [&](std::size_t i, const SomeRows& rows) {
        prepare(part.begin + i * part.columns, rows.rows * part.columns);
        rows_by_vectors(rows, m + i * part.columns, q, p + i);
      });
      orthonormalise(p, part.rows);
      vectors_by_rows(all_of(part), m, p, q);
      put_floats(p, part.rows * rank_);
      put_floats(q, part.columns * rank_);
      if (!rest.empty()) subtract(part, p, q, rest.data() + part.begin);
      if (!warm_)
        for (std::size_t i = 0; i < part.columns * rank_; ++i) q[i] = fresh(part.q + i);
    }
    return bytes_;
  }
  void subtract(const Part& part, const float* p, const float* q, float* m) const {
    if (part.whole)
      for (std::size_t i = 0; i < part.rows * part.columns; ++i) m[i] -= m[i];  // a NaN stays one
    else
      add_product(all_of(part), -1, p, q, m);
  }

  // The first Q is drawn, the same for every sender.
  static float fresh(std::size_t i) { return Stream({.seed = 0, .layer = stream_layer("low rank")}).normal(i); }

  // A direction that has died away (the matrix was zero) or was spoilt would never come back.
  void refresh(const Part& part) {
    for (std::size_t k = 0; k < rank_; ++k) {
      float* q = start_.data() + part.q + k * part.columns;
      const float largest = kernels::max_abs(q, part.columns);
      if (largest >= 1e-18f && std::isfinite(largest)) continue;
      for (std::size_t i = 0; i < part.columns; ++i) q[i] = fresh(part.q + k * part.columns + i);
    }
  }

  // The columns of P made orthogonal and of length one (Gram-Schmidt, twice); those that add nothing become zero.
  void orthonormalise(float* p, std::size_t rows) {
    for (std::size_t k = 0; k < rank_; ++k) {
      float* column = p + k * rows;
      const double before = kernels::squared_norm(column, rows);
      for (int time = 0; time < 2; ++time)
        for (std::size_t other = 0; other < k; ++other) {
          const double dot = kernels::dot(column, p + other * rows, rows);
          kernels::axpy(column, static_cast<float>(-dot), p + other * rows, rows);
        }
      const double after = kernels::squared_norm(column, rows);
      const double factor = after > 1e-10 * before && after > 1e-60 ? 1 / std::sqrt(after) : 0;
      if (factor == 0)
        kernels::fill(column, 0, rows);
      else
        kernels::scale(column, column, static_cast<float>(factor), rows);
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
      by_rows(part, [&](std::size_t i, const SomeRows& rows) {
        if (keep == 0) kernels::fill(to + i * part.columns, 0, rows.rows * part.columns);
        add_product(rows, scale, p + i, q, to + i * part.columns);
      });
    }
  }

  std::size_t rank_, numbers_ = 0, bytes_ = 0, first_numbers_ = 0;
  bool warm_;
  std::vector<Part> parts_;
  std::vector<float> start_;  // every part's Q, where the next call begins
  std::vector<float> first_;  // every part's P, or its numbers, between the rounds of senders that encode together
  mutable Buffer p_, q_;
};

CodecMaker make_low_rank(OptionReader& options) {
  const auto rank = static_cast<std::size_t>(options.integer("rank", 4, 1, 1024));
  const bool warm = options.flag("warm_start", true);
  return [=](const std::vector<CodecPiece>& pieces) { return std::make_unique<LowRank>(pieces, rank, warm); };
}

}  // namespace

CodecPart low_rank() {
  return codec_part({"low_rank",
                     "two thin factors of each matrix",
                     {{"rank", "4", "of the factors"}, {"warm_start", "true", "from the factors before"}}},
                    make_low_rank, {.error_feedback = true});
}

}  // namespace echelon::codecs
